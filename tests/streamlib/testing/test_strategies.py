"""The public strategies keep their word: legal answers are legal, noise changes nothing, cuts join, histories build."""

from __future__ import annotations

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from streamlib import Prompt, build
from streamlib.testing import strategies
from streamlib.testing.invariants import InvariantViolation, check, join_deltas
from streamlib.testing.mutations import FAULTS, Fault
from streamlib.wires.encoders import encode_all
from streamlib_parsers import Completed, Failed, Notice, Passthrough, ResponseEvent, WireApi, parser
from streamlib_parsers.protocol import WIRE_APIS


def events_of(wire_api: WireApi, *chunks: bytes) -> list[ResponseEvent]:
    one = parser(wire_api)
    return [*(event for chunk in chunks for event in one.feed(chunk)), *one.close()]


few = settings(max_examples=settings.default.max_examples // 5)
"""There are seven wires."""
each_wire = pytest.mark.parametrize("wire_api", WIRE_APIS)


@each_wire
@few
@given(st.data())
def test_an_answer_keeps_every_law_and_ends_as_asked(
    wire_api: WireApi, data: st.DataObject
) -> None:
    failing = data.draw(st.booleans())
    events = data.draw(strategies.answers(wire_api, failing=failing))
    check(events)
    assert isinstance(events[-1], Failed if failing else Completed)


@each_wire
@few
@given(st.data())
def test_a_stream_is_whole_at_any_cut_and_noise_changes_nothing(
    wire_api: WireApi, data: st.DataObject
) -> None:
    body = data.draw(strategies.streams(wire_api, failing=False))
    chunks = data.draw(strategies.splits(body))
    assert b"".join(chunks) == body
    events = events_of(wire_api, *chunks)
    check(events)
    assert isinstance(events[-1], Completed)
    assert not [event for event in events if isinstance(event, Passthrough)]


@each_wire
@few
@given(st.data())
def test_a_history_is_built_for_its_own_wire_and_for_any_other(
    wire_api: WireApi, data: st.DataObject
) -> None:
    history = data.draw(strategies.histories(wire_api, images=True))
    to = data.draw(strategies.wires())
    request = build(Prompt(history), "custom:any", wire_api=to, base_url="https://example.test/v1")
    lost = [
        change
        for change in request.report
        if change.action == "dropped" and wire_api == to and "arguments" in change.path
    ]
    assert request.body
    assert not lost


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_the_same_each_time_and_survives_an_empty_body(name: str) -> None:
    fault = Fault(name, 12_345, 7)
    assert fault(b"abcdefgh") == fault(b"abcdefgh")
    assert isinstance(fault(b""), bytes)


def test_each_fault_can_be_asked_for_alone() -> None:
    assert find(strategies.faults("cut"), lambda fault: fault(b"abc") == b"ab").name == "cut"


def test_a_failure_shrinks_to_something_short() -> None:
    smallest = find(
        strategies.streams("chat", failing=False, noise=False),
        lambda body: b"finish_reason" in body,
    )
    assert len(events_of("chat", smallest)) <= 4


# --- the checks themselves can fail ---


def broken(events: list[ResponseEvent]) -> str:
    with pytest.raises(InvariantViolation) as caught:
        check(events)
    return caught.value.invariant


def test_each_law_has_an_event_list_that_breaks_it() -> None:
    body = encode_all(
        "messages", find(strategies.answers(failing=False), lambda events: len(events) > 4)
    )
    events = events_of("messages", body)
    added = next(n for n, event in enumerate(events) if type(event).__name__ == "OutputItemAdded")
    done = next(n for n, event in enumerate(events) if type(event).__name__ == "OutputItemDone")
    assert broken([]) == "one terminal"
    assert broken(events[:-1]) == "one terminal"
    assert broken([*events, events[-1]]) == "one terminal"
    assert broken(events[1:]) == "numbered"
    assert broken(renumbered([*events[:added], *events[added + 1 :]])) == "brackets"
    assert broken(renumbered([*events[:done], *events[done + 1 :]])) == "brackets"
    assert broken(renumbered([events[0], *events])) == "order"
    assert broken(renumbered([Notice(code=5), events[-1]])) == "typed"  # type: ignore[arg-type]


def renumbered(events: list[ResponseEvent]) -> list[ResponseEvent]:
    return [
        type(event)(
            **{**{name: getattr(event, name) for name in event.__struct_fields__}, "seq": n}
        )
        for n, event in enumerate(events)
    ]


def test_folding_joins_what_goes_to_one_place_and_nothing_else() -> None:
    body = b"".join(
        b'data: {"choices":[{"delta":{"%s":"%s"}}]}\n\n' % pair
        for pair in [(b"content", b"a"), (b"content", b"b"), (b"refusal", b"c")]
    )
    folded = [getattr(event, "delta", None) for event in join_deltas(events_of("chat", body))]
    assert [delta for delta in folded if delta] == ["ab", "c"]
