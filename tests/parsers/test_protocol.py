"""Parser, assembler and accumulator as all wires share them: bad input, limits, deep nesting."""

from __future__ import annotations

import gc
import json
from base64 import b64decode
from typing import Any

import pytest

from streamlib.testing.bench import bodies
from streamlib.testing.bench.responses import SampleCall, SampleReasoning, SampleText
from streamlib_parsers import (
    Completed,
    Failed,
    Image,
    Message,
    Opaque,
    OutputItemDone,
    Reasoning,
    Refusal,
    Text,
    WireApi,
    envelope,
    json_text,
    parser,
)
from streamlib_parsers.accumulate import Accumulator, accumulate
from streamlib_parsers.assembler import EventAssembler, text_changes
from streamlib_parsers.build_kind import compiled
from streamlib_parsers.errors import ErrorInfo, ParseFailure
from streamlib_parsers.framing import Frame
from streamlib_parsers.items import JsonObject, Origin
from streamlib_parsers.json_text import SurrogateJoiner, decode_any, is_truncated_json
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.protocol import WIRE_APIS, Parser, parse_body, wire
from tests.support.dialect_calls import (
    TOOLS,
)
from tests.support.responses_frames import about, added, created, reasoning
from tests.support.wires import events_of


@pytest.mark.parametrize("feed", [Parser.feed, Parser.feed_body])
@pytest.mark.parametrize("text", ["data: {}\n\n", None, 5])
def test_parser_raises_type_error_for_text(feed: Any, text: Any) -> None:
    # The second is what a compiled parser says.
    with pytest.raises(TypeError, match=r"a parser reads bytes, not|bytes object expected; got"):
        feed(parser("chat"), text)


@pytest.mark.skipif(compiled, reason="a compiled parser takes bytes alone")
def test_parser_reads_a_bytearray() -> None:
    body = b"".join(bodies.body("messages", (SampleText(["a", "b", "c"]),)))
    read = parser("messages")
    assert [*read.feed(bytearray(body)), *read.close()] == events_of("messages", body)


@pytest.mark.parametrize("wire", WIRE_APIS)
@pytest.mark.parametrize("size", [1, 3])
def test_ended_response_leaves_nothing_to_the_collector(wire: WireApi, size: int) -> None:
    """Complete, or truncated: what refers to itself stays in memory until the collector runs."""
    call = SampleCall("call_0", "f", ['{"k":', "1}"])
    events = bodies.body(wire, (SampleReasoning(["a"]), SampleText(["b"]), call))
    events_of(wire, b"".join(events))  # loads the modules of the wire
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        gc.collect()
        events_of(wire, b"".join(events[: len(events) * size // 3]))
        assert gc.collect() == 0
    finally:
        if was_enabled:
            gc.enable()


@pytest.mark.skipif(compiled, reason="no function of a compiled module is replaced")
@pytest.mark.parametrize("wire", ["messages", "chat", "responses", "interactions", "cohere"])
def test_surrogates_are_sought_only_where_decoding_failed(
    wire: WireApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = SampleCall("call_0", "f", ['{"k":', "1}"])
    body = b"".join(bodies.body(wire, (SampleText(["a", "b", "\U0001f600"]), call)))
    # Before anything is replaced: the wire's modules are loaded here.
    expected = events_of(wire, body)

    def refuse(data: bytes) -> None:
        raise AssertionError(data)

    for module in (json_text, envelope):
        monkeypatch.setattr(module, "mark_surrogates", refuse, raising=False)
    assert events_of(wire, body) == expected
    with pytest.raises(AssertionError):
        events_of(wire, body.replace(b'"b"', rb'"\ud83d"'))


class BrokenFraming:
    """Fails as a program with a mistake does."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def feed(self, chunk: bytes) -> list[Frame]:
        raise self._failure


@pytest.mark.parametrize("failure", [KeyError("x"), TypeError("unsupported operand")])
def test_other_exceptions_are_raised_unchanged(failure: Exception) -> None:
    """Only a wrong kind of input is explained."""
    stream_parser = parser("messages")
    stream_parser._framing = BrokenFraming(failure)  # type: ignore[assignment]
    with pytest.raises(type(failure), match=str(failure)):
        stream_parser.feed(b"x")


def test_body_after_the_end_is_ignored() -> None:
    stream_parser = parser("messages")
    ended = stream_parser.abort(ErrorInfo("cancelled", "stop"))
    assert isinstance(ended[-1], Failed)
    assert stream_parser.feed_body(b'{"type":"message","content":[]}') == []


def test_filter_that_exceeds_a_limit_ends_the_stream() -> None:
    """The wire brought one item; the call in its text is one too many."""
    stream_parser = parser("chat", tools=TOOLS, dialects=["hermes"], limits=Limits(items=1))
    text = 'Hi <tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>'
    events = stream_parser.feed(
        b"data: %s\n\n"
        % json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()
    )
    last = events[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, accumulate(events).text, stream_parser.ended) == (
        "limit_exceeded",
        "Hi ",
        True,
    )
    assert stream_parser.close() == []


def test_empty_summary_delta_emits_nothing() -> None:
    events = events_of(
        "responses",
        created(),
        added(reasoning(item_id="r")),
        about("reasoning_summary_text.delta", 0, "r", delta=""),
    )
    assert not [event for event in events if hasattr(event, "summary_index")]


BROKEN = {
    b"[" * 950 + b"D": "JSON nested too deep",
    b"[" * 400 + b"D": "not JSON",
    b"[]{}" * 600 + b"D": "not JSON",
    b'["' + b"[{" * 600 + b'\\"[" D': "not JSON",
}


def reason_from(levels: int, data: bytes) -> str:
    """Why data is refused when so many functions have been called."""
    if levels:
        return reason_from(levels - 1, data)
    with pytest.raises(ParseFailure) as failure:
        decode_any(data)
    return failure.value.info.message


@pytest.mark.parametrize("data", BROKEN)
def test_reason_of_broken_json_is_the_same_on_any_stack(data: bytes) -> None:
    reasons = {reason_from(levels, data) for levels in (0, 50, 100, 200)}
    assert reasons == {BROKEN[data]}


def test_item_nested_too_deep_to_scrub_is_emitted_as_it_is() -> None:
    """It is given while a stream is being failed: there an exception would lose the end."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assembly = EventAssembler(LIMITS, Origin("messages"))
    assembly.open(Opaque("x", {"deep": deep}))
    assembly.surrogates = SurrogateJoiner()
    assembly.fail(ErrorInfo("truncated", "truncated"))
    assert [type(event) for event in assembly.take()[-2:]] == [OutputItemDone, Failed]


DISTINCT = [name for name in WIRE_APIS if name != "gemini"]
"""Wires whose frames and bodies are distinct. Gemini's are not: the caller says which it is."""


@pytest.mark.parametrize("wire_api", DISTINCT)
def test_frame_in_place_of_a_body_is_not_complete(wire_api: WireApi) -> None:
    stream = b"".join(bodies.body(wire_api, (SampleText(["Hel", "lo"]),)))
    frames = wire(wire_api).framing(LIMITS).feed(stream)
    assert len(frames) > 2
    for frame in frames[:-2]:
        payload = frame.data or b""
        if wire_api == "invoke":
            payload = b64decode(json.loads(payload)["bytes"])
        [*_, last] = parse_body(wire_api, payload)
        if isinstance(last, Completed):
            # It says itself that the response ends.
            assert last.native_stop_reason is not None, payload


@pytest.mark.parametrize(
    ("wire_api", "event"),
    [
        ("interactions", {"event_type": "interaction.status_update", "status": "completed"}),
        ("responses", {"type": "response.shell_call_output_content.done", "output": []}),
    ],
)
def test_event_with_a_key_of_bodies_is_no_body(wire_api: WireApi, event: JsonObject) -> None:
    [*_, last] = parse_body(wire_api, json.dumps(event).encode())
    assert isinstance(last, Failed)
    assert last.error.kind == "malformed"


def test_text_changes_compare_text_and_refusals_only() -> None:
    parts = [Text("a"), Image(url="u"), Refusal("no")]
    changes = [
        (before, after, part)
        for _, before, after, part in text_changes(
            Message("assistant", parts[:1]), Message("assistant", parts)
        )
    ]
    assert changes == [("a", "a", 0), ("", "no", 2)]
    assert [
        after for _, _, after, _ in text_changes(Reasoning("a"), Reasoning("ab", summary=("s",)))
    ] == ["ab", "s"]


@pytest.mark.parametrize(
    ("data", "truncated"),
    [
        (b'{"a":', True),
        (b"[1,", True),
        (b'{"a":1}', False),
        (b"{x", False),
        (b"12", False),
        (b"", False),
        (b"[" * 1_000_000, False),
    ],
)
def test_is_truncated_json_needs_an_open_object_or_list(data: bytes, truncated: bool) -> None:
    assert is_truncated_json(data) is truncated


def test_accumulator_accepts_only_events() -> None:
    unsplit = Accumulator()
    with pytest.raises(TypeError, match="a str is not an event"):
        unsplit.feed("data: {}")  # type: ignore[arg-type]
    assert unsplit.response.status == "incomplete"
