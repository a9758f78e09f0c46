"""The invariants of the event stream, on every recording.

Any partition gives the same events; items are bracketed; the stream ends once; truncation is never
silent; text is valid. The default run takes a seeded sample of the recordings of each wire;
`-m slow` takes them all, with more partitions.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import (
    Completed,
    Created,
    Failed,
    FunctionCall,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    RateLimits,
    ResponseEvent,
    Text,
    parser,
)
from streamlib_parsers.json_text import is_json
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.metrics import figure
from tests.support.partitions import byte_by_byte, every_single_split, random_partitions
from tests.support.shared import STREAMS, WIRES, Recording, recordings

FOLDERS = sorted(WIRES)
SAMPLE = 60
"""Recordings of each wire in the default run."""
ENCODE = msgspec.json.Encoder()


def events_of(wire: Any, chunks: list[bytes]) -> list[ResponseEvent]:
    wire_parser = parser(wire)
    events: list[ResponseEvent] = []
    for chunk in chunks:
        events += wire_parser.feed(chunk)
    return events + wire_parser.close()


def log(events: list[ResponseEvent]) -> list[bytes]:
    """Events as JSON with `seq`: what must not depend on the partition."""
    return [ENCODE.encode(event) for event in events]


def streams(folder: str, sample: int | None) -> list[Recording]:
    available = recordings(folder, STREAMS)
    if sample is None:
        return available
    return random.Random(folder).sample(available, min(sample, len(available)))


@pytest.fixture(
    params=[pytest.param(SAMPLE, id="sample"), pytest.param(None, id="all", marks=pytest.mark.slow)]
)
def sample(request: pytest.FixtureRequest) -> Any:
    return request.param


def each(folder: str, sample: int | None) -> Iterator[tuple[Recording, bytes, list[ResponseEvent]]]:
    chosen = streams(folder, sample)
    if not chosen:
        pytest.skip("shared test data is absent: no corpus")
    for recording in chosen:
        yield recording, recording.body, events_of(recording.wire, [recording.body])


@pytest.mark.parametrize("folder", FOLDERS)
def test_invariant_1_events_do_not_depend_on_the_partition(folder: str, sample: int | None) -> None:
    for recording, body, complete in each(folder, sample):
        reference = log(complete)
        several = [
            byte_by_byte(body, 1 if len(body) < 20_000 else 13),
            *random_partitions(body, 2 if sample else 50),
        ]
        for chunks in several:
            assert log(events_of(recording.wire, chunks)) == reference, recording.path.name
        figure("partitions", len(several))


@pytest.mark.parametrize("folder", FOLDERS)
def test_invariant_2_items_are_bracketed_and_streams_end_once(
    folder: str, sample: int | None
) -> None:
    for recording, _, events in each(folder, sample):
        assert [event.seq for event in events] == list(range(len(events))), recording.path.name
        terminals = [event for event in events if isinstance(event, (Completed, Failed))]
        assert terminals == [events[-1]], recording.path.name
        check_brackets(events, recording.path.name)


def check_brackets(events: list[ResponseEvent], name: str) -> None:
    added: dict[int, list[str]] = {}
    done: dict[int, Any] = {}
    replaced = {
        event.index
        for event in events
        if isinstance(event, Notice) and event.code == "text_replaced"
    }
    for event in events:
        index = getattr(event, "index", None)
        if isinstance(event, OutputItemAdded):
            assert index == len(added), name
            added[index] = []
        elif isinstance(event, OutputItemDone):
            assert index in added.keys() - done.keys(), name
            done[event.index] = event.item
        elif index is not None and not isinstance(event, Notice):
            assert index in added.keys() - done.keys(), name
            if isinstance(event, OutputTextDelta):
                added[index].append(event.delta)
    assert added.keys() == done.keys(), name
    for index, deltas in added.items():
        if isinstance(done[index], Message) and index not in replaced:
            assert "".join(deltas) == done[index].text, name


@pytest.mark.parametrize("folder", FOLDERS)
def test_created_precedes_every_item_and_rate_limits_everything(
    folder: str, sample: int | None
) -> None:
    for recording, body, _ in each(folder, sample):
        wire_parser = parser(recording.wire, headers={"retry-after": "1"})  # type: ignore[arg-type]
        events = [*wire_parser.feed(body), *wire_parser.close()]
        assert isinstance(events[0], RateLimits), recording.path.name
        firsts = [type(event) for event in events if isinstance(event, (Created, OutputItemAdded))]
        assert firsts[:1] in ([], [Created]), recording.path.name
        assert firsts.count(Created) <= 1, recording.path.name


@pytest.mark.parametrize("folder", FOLDERS)
def test_invariant_3_a_truncated_stream_never_completes(folder: str, sample: int | None) -> None:
    """`Completed` with less content than the complete recording would be wrong.

    Gemini has no terminator: what follows its finishReason may be missing, which is excepted.
    """
    rng = random.Random(folder)
    for recording, body, complete in each(folder, sample):
        if not isinstance(complete[-1], Completed):
            continue
        offsets = [rng.randrange(len(body)) for _ in range(12 if sample else 400)]
        for offset in offsets:
            events = events_of(recording.wire, [body[:offset]])
            if isinstance(events[-1], Completed) and not (
                recording.wire == "gemini" and b"inishReason" in body[:offset]
            ):
                assert content_of(events) == content_of(complete), (
                    f"{recording.path.name} at {offset}"
                )


def content_of(events: list[ResponseEvent]) -> tuple[str, list[tuple[str, str]]]:
    items = [event.item for event in events if isinstance(event, OutputItemDone)]
    text = "".join(
        part.text
        for item in items
        if isinstance(item, Message)
        for part in item.content
        if isinstance(part, Text)
    )
    return text, [(item.name, item.arguments) for item in items if isinstance(item, FunctionCall)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_call_with_incomplete_arguments_is_never_callable(
    folder: str, sample: int | None
) -> None:
    rng = random.Random(folder)
    for recording, body, _ in each(folder, sample):
        for offset in [rng.randrange(len(body) + 1) for _ in range(6)]:
            for event in events_of(recording.wire, [body[:offset]]):
                if (
                    isinstance(event, OutputItemDone)
                    and isinstance(event.item, FunctionCall)
                    and event.item.status == "completed"
                ):
                    assert is_json(event.item.arguments), recording.path.name


@pytest.mark.parametrize("wire", WIRE_APIS)
@given(st.lists(st.binary(max_size=60), max_size=6))
def test_invariant_9_any_bytes_end_in_one_terminal_event(wire: str, chunks: list[bytes]) -> None:
    events = events_of(wire, chunks)
    assert [type(event) for event in events if isinstance(event, (Completed, Failed))] == [
        type(events[-1])
    ]
    assert log(events) == log(events_of(wire, [b"".join(chunks)]))


KEYS = (
    *(
        "type",
        "index",
        "delta",
        "message",
        "content_block",
        "usage",
        "error",
        "choices",
        "candidates",
        "content",
        "parts",
        "item",
    ),
    *(
        "output_index",
        "text",
        "finish_reason",
        "tool_calls",
        "function",
        "arguments",
        "id",
        "name",
        "role",
        "response",
        "done",
        "start",
    ),
    *(
        "contentBlockIndex",
        "stopReason",
        "finishReason",
        "functionCall",
        "args",
        "part",
        "summary_index",
        "content_index",
        "bytes",
    ),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("wire", [wire for wire in WIRE_APIS if wire not in ("converse", "invoke")])
@given(st.lists(JSON_VALUES, max_size=5))
def test_invariant_9_any_json_in_frames_raises_nothing(wire: str, values: list[Any]) -> None:
    payloads = [json.dumps(value).encode() for value in values]
    body = b"".join(
        b"data: " + payload + b"\n\n" if wire != "ollama" else payload + b"\n"
        for payload in payloads
    )
    events = events_of(wire, [body])
    check_brackets(events, wire)
    assert isinstance(events[-1], (Completed, Failed))


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_single_split_of_the_smaller_recordings(folder: str) -> None:
    for recording, body, complete in each(folder, None):
        if len(body) <= 6_000:
            reference = log(complete)
            for chunks in every_single_split(body):
                assert log(events_of(recording.wire, chunks)) == reference, recording.path.name
            figure("partitions", len(body) + 1)
