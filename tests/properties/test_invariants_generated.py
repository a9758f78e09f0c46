"""The invariants of the event stream on generated streams and on our own recordings.

The recordings of the corpus are in `test_invariants.py`, the long forms in
`test_invariants_long.py`; invariant 1 for dialects, and 5 and 10 byte for byte, in the tests of
dialects, builders and encoders.
"""

from __future__ import annotations

import random
import re
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlib import Prompt, build
from streamlib.testing import MODEL, replay, strategies
from streamlib.testing.frame_generators import FRAME_GENERATORS
from streamlib.testing.frames import encode_payloads as framed_all
from streamlib.testing.frames import framed, unframed
from streamlib.testing.invariants import check, log
from streamlib.wires.encoders import encode_all, encode_body, encoder
from streamlib_parsers import (
    Completed,
    Failed,
    Limits,
    OutputTextDelta,
    Reasoning,
    ResponseEvent,
    ToolSpec,
    WireApi,
    accumulate,
    parse_body,
    parser,
)
from tests.support.invariants import (
    OURS,
    WIRE_APIS,
    content_of,
    events_of,
    is_false_completion,
    wire_of,
)
from tests.support.partitions import byte_by_byte, random_partitions
from tests.support.wire_rules import elements

each_wire = pytest.mark.parametrize("wire_api", WIRE_APIS)
each_recording = pytest.mark.parametrize(
    "path", OURS, ids=lambda path: f"{path.parent.name}-{path.name}"
)
GENERATED_CALL: Final = re.compile("call_[0-9a-f]{16}_")
"""The beginning of an id that the client made for a call without one."""
few = settings(max_examples=settings.default.max_examples // 6)
"""There are nine wires, and the long forms."""


def any_stream(wire_api: WireApi) -> st.SearchStrategy[bytes]:
    return (
        strategies.streams(wire_api)
        | strategies.odd_streams(wire_api)
        | strategies.bad_streams(wire_api)
    )


# --- 1 and 2 ---


@each_wire
@few
@given(st.data())
def test_invariant_1_generated_streams_parse_alike_when_split(
    wire_api: WireApi, data: st.DataObject
) -> None:
    body = data.draw(any_stream(wire_api))
    reference = log(events_of(wire_api, [body]))
    assert log(events_of(wire_api, data.draw(strategies.splits(body)))) == reference
    assert log(events_of(wire_api, byte_by_byte(body))) == reference


@each_recording
def test_invariant_1_recordings_parse_alike_when_split(path: Path) -> None:
    body = path.read_bytes()
    reference = log(events_of(wire_of(path), [body]))
    for chunks in random_partitions(body, 5):
        assert log(events_of(wire_of(path), chunks)) == reference


@each_wire
@few
@given(st.data())
def test_invariant_2_generated_streams_are_bracketed(
    wire_api: WireApi, data: st.DataObject
) -> None:
    check(events_of(wire_api, [data.draw(any_stream(wire_api))]))


@each_recording
def test_invariant_2_recordings_are_bracketed(path: Path) -> None:
    check(events_of(wire_of(path), [path.read_bytes()]))


# --- 3 ---


@each_wire
@few
@given(st.data())
def test_invariant_3_truncated_generated_streams_never_complete(
    wire_api: WireApi, data: st.DataObject
) -> None:
    body = data.draw(strategies.streams(wire_api, failing=False))
    complete = content_of(events_of(wire_api, [body]))
    offset = data.draw(st.integers(0, len(body)))
    assert not is_false_completion(wire_api, body, offset, complete)


@each_recording
def test_invariant_3_truncated_recordings_never_complete(path: Path) -> None:
    body, rng = path.read_bytes(), random.Random(path.name)
    complete = content_of(events_of(wire_of(path), [body]))
    wrong = [
        offset
        for offset in sorted(rng.sample(range(len(body)), 40))
        if is_false_completion(wire_of(path), body, offset, complete)
    ]
    assert wrong == []


# --- 4 ---

REPLACED: Final = {
    ("responses", "add_nameless"): "a later object with its index or id replaces it",
    ("responses", "text_done"): "a `.done` event of an item that is done adds nothing",
    ("responses", "arguments_done"): "the same",
    ("chat", "begin_call"): "a call keeps its first id; some servers change it in every chunk",
    ("chat", "nameless_call"): "the same",
    ("gemini", "nameless_call"): "the last `args` of a streamed call count",
    ("ollama", "unknown_key"): "keys inside a delta are not kept",
}
"""Texts that a wire's rules replace or omit, each with the rule (docs/wires)."""


def marks_of(
    wire_api: WireApi, names: list[str], indexes: list[int]
) -> tuple[list[Any], dict[str, str]]:
    """Payloads, each with a unique mark, and the marks that events must contain."""
    payloads: list[Any] = []
    marks: dict[str, str] = {}
    for n, (name, index) in enumerate(zip(names, indexes, strict=True)):
        payloads.append(FRAME_GENERATORS[wire_api][name](index, f"<mark{n}>"))
        if f"<mark{n}>" in repr(payloads[-1]) and (wire_api, name) not in REPLACED:
            marks[f"<mark{n}>"] = name
    return payloads, marks


@each_wire
@few
@given(st.data())
def test_invariant_4_all_content_is_in_some_event(wire_api: WireApi, data: st.DataObject) -> None:
    """Known and unknown kinds, items and deltas each carry a mark, and an event contains it."""
    # Nothing after `[DONE]` is read.
    kinds = [name for name in FRAME_GENERATORS[wire_api] if name not in ("done", "done_mark")]
    names = [kinds[0], *data.draw(st.lists(st.sampled_from(kinds), max_size=6))]
    payloads, marks = marks_of(
        wire_api,
        names,
        [
            0,
            *data.draw(
                st.lists(st.sampled_from((0, 1)), min_size=len(names) - 1, max_size=len(names) - 1)
            ),
        ],
    )
    for until in range(len(payloads), 0, -1):  # nothing after the end is read
        if not ended(events_of(wire_api, [framed_all(wire_api, payloads[:until])])):
            break
    else:
        return
    logged = b"".join(
        line if isinstance(line, bytes) else line.encode()
        for line in log(events_of(wire_api, [framed_all(wire_api, payloads[:until])]))
    )
    assert {
        mark: name
        for mark, name in marks.items()
        if int(mark[5:-1]) < until and mark.encode() not in logged
    } == {}


def ended(events: list[ResponseEvent]) -> bool:
    """Whether the wire ended it or it was rejected; a stream that only stopped is `truncated`."""
    last = events[-1]
    return isinstance(last, Completed) or (
        isinstance(last, Failed) and last.error.kind != "truncated"
    )


# --- 5 and 6 ---

TOOLS: Final = [
    ToolSpec(
        "get_weather",
        "The weather in a city.",
        {"type": "object", "properties": {"city": {"type": "string"}}},
    )
]


@each_wire
@few
@given(st.data())
def test_invariant_5_each_request_begins_with_the_previous_one(
    wire_api: WireApi, data: st.DataObject
) -> None:
    """Element by element, as a prefix cache needs it; an agent sends a request at each user
    turn."""
    history = data.draw(strategies.histories(wire_api))
    lengths = [n + 1 for n, item in enumerate(history) if getattr(item, "role", "") == "user"]
    requests = [
        build(
            Prompt(history[:n], tools=TOOLS),
            "custom:any",
            wire_api=wire_api,
            base_url="https://example.test/v1",
        )
        for n in lengths
    ]
    for shorter, longer in pairwise(map(elements, requests)):
        assert longer[: len(shorter)] == shorter


ENCRYPTED: Final = "U0VBTEVE"


@each_wire
@few
@given(st.data())
def test_invariant_6_foreign_encrypted_state_is_never_sent(
    wire_api: WireApi, data: st.DataObject
) -> None:
    made: WireApi = "chat" if wire_api == "messages" else "messages"
    history = [
        *data.draw(strategies.histories(made)),
        Reasoning("Hm.", signature=ENCRYPTED, encrypted_content=ENCRYPTED, origin=None),
    ]
    origin = history[1].origin
    history[-1] = Reasoning("Hm.", signature=ENCRYPTED, origin=origin)
    request = build(
        Prompt([*history, *history[:1]]),
        "custom:any",
        wire_api=wire_api,
        base_url="https://example.test/v1",
    )
    assert ENCRYPTED.encode() not in request.body
    assert [change for change in request.report if change.action in ("downgraded", "dropped")]


# --- 7 ---

TEXTS: Final = st.text(
    st.sampled_from('a\u00e9\u4e16\U0001f600\U0001d11e \\"'), min_size=1, max_size=12
)


@each_wire
@few
@given(TEXTS, st.data())
def test_invariant_7_text_split_between_code_units_is_joined(
    wire_api: WireApi, text: str, data: st.DataObject
) -> None:
    """As gateways in JavaScript split it: each delta some UTF-16 units, a surrogate pair in two."""
    units = text.encode("utf-16-be")
    offsets = {2 * offset for offset in data.draw(st.lists(st.integers(0, len(units) // 2)))}
    fragments: list[str] = []
    for start, end in pairwise(sorted(offsets | {0, len(units)})):
        fragments.append(units[start:end].decode("utf-16-be", "surrogatepass"))
    generators = FRAME_GENERATORS[wire_api]
    payloads = [next(iter(generators.values()))(0, "")]
    if "start_text" in generators:
        payloads.append(generators["start_text"](0, ""))
    for fragment in fragments:
        payloads.append(generators["text"](0, fragment))
    body = framed_all(wire_api, payloads)
    events = events_of(wire_api, [body])
    deltas = [event.delta for event in events if isinstance(event, OutputTextDelta)]
    assert "".join(deltas) == accumulate(events).text == text
    assert all(delta.encode() for delta in deltas)


# --- 8 ---


@each_wire
def test_invariant_8_each_limit_ends_the_stream_and_is_named(wire_api: WireApi) -> None:
    body = encode_all(wire_api, events_of_text(wire_api))
    # What follows the end is not read, so it exceeds no limit.
    if wire_api in ("responses", "interactions", "cohere"):
        body = body.removesuffix(b"data: [DONE]\n\n").removesuffix(b"event: done\n")
    for limits, code in (
        (Limits(response_bytes=len(body) - 9), "response_bytes"),
        (Limits(event_bytes=40), "event_bytes"),
    ):
        for chunks in ([body], byte_by_byte(body)):
            last = events_of(wire_api, chunks, limits=limits)[-1]
            assert isinstance(last, Failed)
            assert (last.error.kind, last.error.code) == ("limit_exceeded", code)


def events_of_text(wire_api: WireApi, words: int = 1) -> list[ResponseEvent]:
    generators = FRAME_GENERATORS[wire_api]
    start = ["start_text"] if "start_text" in generators else []
    end = {
        "messages": ["stop", "message_delta", "message_stop"],
        "invoke": ["stop", "message_delta", "message_stop"],
        "responses": ["completed"],
    }
    end |= {
        "chat": ["stop", "done"],
        "gemini": ["stop"],
        "interactions": ["stop", "completed"],
        "converse": ["stop", "message_stop", "metadata"],
        "ollama": ["done"],
        "cohere": ["content_end", "complete"],
    }
    names = [next(iter(generators)), *start, *["text"] * words, *end[wire_api]]
    return events_of(
        wire_api, [framed_all(wire_api, [generators[name](0, "word ") for name in names])]
    )


@each_wire
def test_invariant_8_memory_stays_near_the_size_of_the_content(wire_api: WireApi) -> None:
    """Twice the response's bytes and 2 MiB, in chunks, with the events discarded."""
    body = encode_all(wire_api, events_of_text(wire_api, words=1_000))
    chunks = byte_by_byte(body, 1024)
    tracemalloc.start()
    wire_parser = parser(wire_api)
    for chunk in chunks:
        wire_parser.feed(chunk)
    wire_parser.close()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 2 * len(body) + (2 << 20)


# --- 9 ---


@each_wire
@few
@given(st.data())
def test_invariant_9_any_input_ends_in_one_terminal_event(
    wire_api: WireApi, data: st.DataObject
) -> None:
    body = data.draw(strategies.bad_streams(wire_api))
    check(events_of(wire_api, [body]))
    check(parse_body(wire_api, data.draw(strategies.faults())(body)))
    for name, payload in unframed(wire_api, body):
        assert framed(wire_api, payload, name)


# --- 10 ---


@each_wire
@few
@given(st.data())
def test_invariant_10_a_response_survives_as_stream_and_body(
    wire_api: WireApi, data: st.DataObject
) -> None:
    events = data.draw(strategies.answers(wire_api, failing=False))
    encode = encoder(wire_api)
    again = events_of(
        wire_api, [b"".join([*(encode.feed(event) for event in events), encode.close()])]
    )
    body = parse_body(wire_api, encode_body(wire_api, accumulate(events)))
    assert content_of(again) == content_of(events)
    assert squeezed(body) == squeezed(events)
    assert isinstance(again[-1], Completed)


def squeezed(events: list[ResponseEvent]) -> Any:
    """Content without white space: a body has one field for all reasoning, joined by space."""
    text, reasoning, calls = content_of(events)
    return "".join(text.split()), "".join(reasoning.split()), calls


@each_wire
@few
@given(st.data())
def test_invariant_10_a_failure_stays_a_failure(wire_api: WireApi, data: st.DataObject) -> None:
    events = data.draw(strategies.answers(wire_api, failing=True))
    last = events_of(wire_api, [encode_all(wire_api, events)])[-1]
    assert isinstance(last, Failed)
    sent = events[-1]
    assert isinstance(sent, Failed)
    # An error of Ollama is text alone, without a kind.
    assert last.error.kind == sent.error.kind or wire_api == "ollama"


# --- 11 ---


@each_recording
def test_invariant_11_both_loops_give_the_same_events(path: Path) -> None:
    body = path.read_bytes()

    async def logged() -> list[str]:
        async with (
            replay(body, wire_of(path), split=97) as client,
            client.stream(Prompt("hi"), model=MODEL) as stream,
        ):
            lines = log([event async for event in stream])
        # Ids of calls that have none differ in every attempt.
        return [GENERATED_CALL.sub("call_", str(line)) for line in lines]

    assert anyio.run(logged, backend="asyncio") == anyio.run(logged, backend="trio")
