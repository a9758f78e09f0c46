"""The laws of the event stream on generated streams and on our own recordings, one test a law; the corpus is in `test_laws.py`.

Law 1 for dialects, 5 and 10 word for word: in the tests of the dialects, builders and encoders. The long forms: `test_laws_long.py`.
"""

from __future__ import annotations

import random
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
from tests.support.invariants import OURS, WIRE_APIS, cut_falsely, events_of, said, wire_of
from tests.support.partitions import byte_by_byte, random_partitions
from tests.support.wire_rules import elements

each_wire = pytest.mark.parametrize("wire_api", WIRE_APIS)
each_recording = pytest.mark.parametrize(
    "path", OURS, ids=lambda path: f"{path.parent.name}-{path.name}"
)
few = settings(max_examples=settings.default.max_examples // 6)
"""There are seven wires, and the long forms."""


def any_stream(wire_api: WireApi) -> st.SearchStrategy[bytes]:
    return (
        strategies.streams(wire_api)
        | strategies.malformed_streams(wire_api)
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
    whole = log(events_of(wire_api, [body]))
    assert log(events_of(wire_api, data.draw(strategies.splits(body)))) == whole
    assert log(events_of(wire_api, byte_by_byte(body))) == whole


@each_recording
def test_invariant_1_recordings_parse_alike_when_split(path: Path) -> None:
    body = path.read_bytes()
    whole = log(events_of(wire_of(path), [body]))
    for chunks in random_partitions(body, 5):
        assert log(events_of(wire_of(path), chunks)) == whole


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
    whole = said(events_of(wire_api, [body]))
    assert not cut_falsely(wire_api, body, data.draw(st.integers(0, len(body))), whole)


@each_recording
def test_invariant_3_truncated_recordings_never_complete(path: Path) -> None:
    body, rng = path.read_bytes(), random.Random(path.name)
    whole = said(events_of(wire_of(path), [body]))
    assert not [
        place
        for place in sorted(rng.sample(range(len(body)), 40))
        if cut_falsely(wire_of(path), body, place, whole)
    ]


# --- 4 ---

SAID_ELSEWHERE: Final = {
    ("responses", "add_nameless"): "what is told at its place or under its id takes its place",
    ("responses", "text_done"): "a `.done` about an item that is done tells nothing new",
    ("responses", "arguments_done"): "the same",
    ("chat", "begin_call"): "a call's id is its first one; some servers change it in every chunk",
    ("chat", "nameless_call"): "the same",
    ("gemini", "nameless_call"): "the last `args` of a streamed call stand",
    ("ollama", "unknown_key"): "keys inside a delta are not kept",
}
"""Texts that a wire's rules replace or leave out, each with the rule (docs/wires)."""


def marks_of(
    wire_api: WireApi, names: list[str], places: list[int]
) -> tuple[list[Any], dict[str, str]]:
    """Payloads, each with a mark of its own, and the marks that must come out again."""
    payloads: list[Any] = []
    marks: dict[str, str] = {}
    for n, (name, place) in enumerate(zip(names, places, strict=True)):
        payloads.append(FRAME_GENERATORS[wire_api][name](place, f"<mark{n}>"))
        if f"<mark{n}>" in repr(payloads[-1]) and (wire_api, name) not in SAID_ELSEWHERE:
            marks[f"<mark{n}>"] = name
    return payloads, marks


@each_wire
@few
@given(st.data())
def test_invariant_4_all_content_is_in_some_event(wire_api: WireApi, data: st.DataObject) -> None:
    """Known kinds, unknown kinds, unknown items, unknown deltas: each says a word of its own, and the word is there."""
    moves = [
        name for name in FRAME_GENERATORS[wire_api] if name not in ("done", "done_mark")
    ]  # nothing behind `[DONE]` is looked at
    names = [moves[0], *data.draw(st.lists(st.sampled_from(moves), max_size=6))]
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
    for until in range(len(payloads), 0, -1):  # what stands behind the end is not looked at
        if not ended(events_of(wire_api, [framed_all(wire_api, payloads[:until])])):
            break
    else:
        return
    told = b"".join(
        line if isinstance(line, bytes) else line.encode()
        for line in log(events_of(wire_api, [framed_all(wire_api, payloads[:until])]))
    )
    assert {
        mark: name
        for mark, name in marks.items()
        if int(mark[5:-1]) < until and mark.encode() not in told
    } == {}


def ended(events: list[ResponseEvent]) -> bool:
    """Ended by the wire itself, or refused; a stream that only stopped is `truncated`."""
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
    """Element by element: what a cache of prefixes needs. Turns of the user are where an agent asks again."""
    history = data.draw(strategies.histories(wire_api))
    asked = [n + 1 for n, item in enumerate(history) if getattr(item, "role", "") == "user"]
    requests = [
        build(
            Prompt(history[:n], tools=TOOLS),
            "custom:any",
            wire_api=wire_api,
            base_url="https://example.test/v1",
        )
        for n in asked
    ]
    for shorter, longer in pairwise(map(elements, requests)):
        assert longer[: len(shorter)] == shorter


SEAL: Final = "U0VBTEVE"


@each_wire
@few
@given(st.data())
def test_invariant_6_foreign_encrypted_state_is_never_sent(
    wire_api: WireApi, data: st.DataObject
) -> None:
    made: WireApi = "chat" if wire_api == "messages" else "messages"
    history = [
        *data.draw(strategies.histories(made)),
        Reasoning("Hm.", signature=SEAL, encrypted_content=SEAL, origin=None),
    ]
    history[-1] = type(history[-1])(content="Hm.", signature=SEAL, origin=history[1].origin)  # type: ignore[call-arg]
    request = build(
        Prompt([*history, *history[:1]]),
        "custom:any",
        wire_api=wire_api,
        base_url="https://example.test/v1",
    )
    assert SEAL.encode() not in request.body
    assert [change for change in request.report if change.action in ("downgraded", "dropped")]


# --- 7 ---

SPOKEN: Final = st.text(
    st.sampled_from('a\u00e9\u4e16\U0001f600\U0001d11e \\"'), min_size=1, max_size=12
)


@each_wire
@few
@given(SPOKEN, st.data())
def test_invariant_7_text_split_between_code_units_is_joined(
    wire_api: WireApi, text: str, data: st.DataObject
) -> None:
    """As gateways in JavaScript cut it: each delta some UTF-16 units, an emoji's halves in two of them."""
    units = text.encode("utf-16-be")
    places = sorted(
        {2 * place for place in data.draw(st.lists(st.integers(0, len(units) // 2)))}
        | {0, len(units)}
    )
    pieces = [units[a:b].decode("utf-16-be", "surrogatepass") for a, b in pairwise(places)]
    start = ["start_text"] if wire_api in ("messages", "invoke") else []
    moves = FRAME_GENERATORS[wire_api]
    body = framed_all(
        wire_api,
        [
            *(moves[name](0, "") for name in [next(iter(moves)), *start]),
            *(moves["text"](0, piece) for piece in pieces),
        ],
    )
    events = events_of(wire_api, [body])
    deltas = [event.delta for event in events if isinstance(event, OutputTextDelta)]
    assert "".join(deltas) == accumulate(events).text == text
    assert all(delta.encode() for delta in deltas)


# --- 8 ---


@each_wire
def test_invariant_8_each_limit_ends_the_stream_and_is_named(wire_api: WireApi) -> None:
    body = encode_all(wire_api, an_answer(wire_api))
    for limits, code in (
        (Limits(response_bytes=len(body) - 9), "response_bytes"),
        (Limits(event_bytes=40), "event_bytes"),
    ):
        for chunks in ([body], byte_by_byte(body)):
            last = events_of(wire_api, chunks, limits=limits)[-1]
            assert isinstance(last, Failed)
            assert (last.error.kind, last.error.code) == ("limit_exceeded", code)


def an_answer(wire_api: WireApi, words: int = 1) -> list[ResponseEvent]:
    moves = FRAME_GENERATORS[wire_api]
    start = ["start_text"] if wire_api in ("messages", "invoke") else []
    end = {
        "messages": ["stop", "message_delta", "message_stop"],
        "invoke": ["stop", "message_delta", "message_stop"],
        "responses": ["completed"],
    }
    end |= {
        "chat": ["stop", "done"],
        "gemini": ["stop"],
        "converse": ["stop", "message_stop", "metadata"],
        "ollama": ["done"],
    }
    names = [next(iter(moves)), *start, *["text"] * words, *end[wire_api]]
    return events_of(wire_api, [framed_all(wire_api, [moves[name](0, "word ") for name in names])])


@each_wire
def test_invariant_8_memory_stays_near_the_size_of_the_content(wire_api: WireApi) -> None:
    """Twice the response's own bytes and 2 MiB, in chunks, with the events thrown away."""
    body = encode_all(wire_api, an_answer(wire_api, words=1_000))
    chunks = byte_by_byte(body, 1024)
    tracemalloc.start()
    one = parser(wire_api)
    for chunk in chunks:
        one.feed(chunk)
    one.close()
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
    events = data.draw(strategies.responses(wire_api, failing=False))
    encode = encoder(wire_api)
    again = events_of(
        wire_api, [b"".join([*(encode.feed(event) for event in events), encode.close()])]
    )
    body = parse_body(wire_api, encode_body(wire_api, accumulate(events)))
    assert said(again) == said(events)
    assert squeezed(body) == squeezed(events)
    assert isinstance(again[-1], Completed)


def squeezed(events: list[ResponseEvent]) -> Any:
    """A body has one place for all thoughts: what parts them there is space."""
    text, thoughts, calls = said(events)
    return "".join(text.split()), "".join(thoughts.split()), calls


@each_wire
@few
@given(st.data())
def test_invariant_10_a_failure_stays_a_failure(wire_api: WireApi, data: st.DataObject) -> None:
    events = data.draw(strategies.responses(wire_api, failing=True))
    last = events_of(wire_api, [encode_all(wire_api, events)])[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == events[-1].error.kind or wire_api == "ollama"  # type: ignore[union-attr]  # its errors are words alone


# --- 11 ---


@each_recording
def test_invariant_11_both_loops_give_the_same_events(path: Path) -> None:
    body = path.read_bytes()

    async def told() -> list[bytes | str]:
        async with (
            replay(body, wire_of(path), split=97) as client,
            client.stream(Prompt("hi"), model=MODEL) as stream,
        ):
            return log([event async for event in stream])

    assert anyio.run(told, backend="asyncio") == anyio.run(told, backend="trio")
