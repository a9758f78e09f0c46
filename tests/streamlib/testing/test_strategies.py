"""The public strategies: legal responses, noise without effect, partitions, histories."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from streamlib import Prompt, build
from streamlib.testing import strategies
from streamlib.testing.invariants import InvariantViolation, check, join_deltas
from streamlib.testing.mutations import FAULTS, Fault
from streamlib.testing.responses import random_response
from streamlib.wires.encoders import encode_all
from streamlib_parsers import (
    Completed,
    Failed,
    Notice,
    Passthrough,
    ResponseEvent,
    WireApi,
    accumulate,
    parser,
)
from streamlib_parsers.items import BUILT_IN_CALLS
from streamlib_parsers.protocol import WIRE_APIS


def events_of(wire_api: WireApi, *chunks: bytes) -> list[ResponseEvent]:
    parse = parser(wire_api)
    events: list[ResponseEvent] = []
    for chunk in chunks:
        events += parse.feed(chunk)
    return events + parse.close()


few = settings(max_examples=settings.default.max_examples // 5)
"""Fewer examples a wire: there are nine of them."""
each_wire = pytest.mark.parametrize("wire_api", WIRE_APIS)


@each_wire
@few
@given(st.data())
def test_responses_keep_every_invariant_and_end_as_requested(
    wire_api: WireApi, data: st.DataObject
) -> None:
    failing = data.draw(st.booleans())
    events = data.draw(strategies.answers(wire_api, failing=failing))
    check(events)
    if failing:
        assert isinstance(events[-1], Failed)
    else:
        assert isinstance(events[-1], Completed)


@each_wire
@few
@given(st.data())
def test_streams_complete_in_any_partition_with_noise(
    wire_api: WireApi, data: st.DataObject
) -> None:
    body = data.draw(strategies.streams(wire_api, failing=False))
    chunks = data.draw(strategies.splits(body))
    assert b"".join(chunks) == body
    events = events_of(wire_api, *chunks)
    check(events)
    assert isinstance(events[-1], Completed)
    assert not [event for event in events if isinstance(event, Passthrough)]


def test_generated_responses_have_each_built_in_call() -> None:
    """Only Responses has them: they were in no generated stream."""
    kinds: set[type] = set()
    for seed in range(100):
        events = random_response(random.Random(seed), "responses")
        kinds.update(type(item) for item in accumulate(events).items)
    assert kinds >= set(BUILT_IN_CALLS)


@each_wire
@few
@given(st.data())
def test_histories_build_for_their_own_and_any_other_wire(
    wire_api: WireApi, data: st.DataObject
) -> None:
    history = data.draw(strategies.histories(wire_api, images=True))
    to = data.draw(strategies.wires())
    request = build(Prompt(history), "custom:any", wire_api=to, base_url="https://example.test/v1")
    assert request.body
    if wire_api == to:
        dropped = [change.path for change in request.report if change.action == "dropped"]
        assert not any("arguments" in path for path in dropped)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_deterministic_and_accepts_an_empty_body(name: str) -> None:
    fault = Fault(name, 12_345, 7)
    assert fault(b"abcdefgh") == fault(b"abcdefgh")
    assert isinstance(fault(b""), bytes)


def test_faults_can_be_limited_to_one_name() -> None:
    assert (
        find(strategies.faults("truncate"), lambda fault: fault(b"abc") == b"ab").name == "truncate"
    )


def test_streams_shrink_to_a_short_body() -> None:
    smallest = find(
        strategies.streams("chat", failing=False, noise=False),
        lambda body: b"finish_reason" in body,
    )
    assert len(events_of("chat", smallest)) <= 4


# --- the checks themselves can fail ---


def violated(events: list[ResponseEvent]) -> str:
    with pytest.raises(InvariantViolation) as caught:
        check(events)
    return caught.value.invariant


def test_check_names_the_invariant_that_is_violated() -> None:
    body = encode_all(
        "messages", find(strategies.answers(failing=False), lambda events: len(events) > 4)
    )
    events = events_of("messages", body)
    added = next(n for n, event in enumerate(events) if type(event).__name__ == "OutputItemAdded")
    done = next(n for n, event in enumerate(events) if type(event).__name__ == "OutputItemDone")
    assert violated([]) == "one terminal"
    assert violated(events[:-1]) == "one terminal"
    assert violated([*events, events[-1]]) == "one terminal"
    assert violated(events[1:]) == "numbered"
    assert violated(renumbered([*events[:added], *events[added + 1 :]])) == "brackets"
    assert violated(renumbered([*events[:done], *events[done + 1 :]])) == "brackets"
    assert violated(renumbered([events[0], *events])) == "order"
    assert violated(renumbered([Notice(code=5), events[-1]])) == "typed"  # type: ignore[arg-type]


def renumbered(events: list[ResponseEvent]) -> list[ResponseEvent]:
    return [msgspec.structs.replace(event, seq=n) for n, event in enumerate(events)]


def test_join_deltas_joins_deltas_of_the_same_text_only() -> None:
    body = b"".join(
        b'data: {"choices":[{"delta":{"%s":"%s"}}]}\n\n' % pair
        for pair in [(b"content", b"a"), (b"content", b"b"), (b"refusal", b"c")]
    )
    joined = [getattr(event, "delta", None) for event in join_deltas(events_of("chat", body))]
    assert [delta for delta in joined if delta] == ["ab", "c"]
