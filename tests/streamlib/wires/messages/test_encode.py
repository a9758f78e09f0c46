"""The Messages encoder: its output parses back to the same events (invariant 10).

What the wire cannot carry is missing and named in the report.
"""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec
import pytest

from streamlib import (
    Completed,
    ErrorInfo,
    Failed,
    FunctionCall,
    Message,
    Notice,
    Origin,
    OutputItemAdded,
    Reasoning,
    Response,
    ResponseEvent,
    Usage,
    accumulate,
    encode_body,
    encoder,
    parse_body,
    parser,
)
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.testing import echo_response
from streamlib.testing.invariants import join_deltas
from streamlib.wires.encoders import encode_all, error_body
from streamlib.wires.messages.encode_objects import native_stop
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import ToolSpec
from streamlib_parsers.limits import LIMITS
from tests.support.cases import each_case
from tests.support.messages_frames import block, end, start
from tests.support.sdks import anthropic
from tests.support.shared import STREAMS, Recording, each_recording

PROMPT = Prompt(
    input="Weather?",
    tools=[ToolSpec("w", schema={"type": "object", "properties": {"c": {"type": "string"}}})],
    reasoning="low",
)


def parsed(body: bytes) -> list[ResponseEvent]:
    p = parser("messages")
    return [*p.feed(body), *p.close()]


def comparable(events: list[ResponseEvent]) -> list[ResponseEvent]:
    """Without notices: whoever parses the stream makes them again."""
    return join_deltas(event for event in events if not isinstance(event, Notice))


@each_recording("anthropic-messages", STREAMS)
def test_recorded_stream_parses_back_equal(recording: Recording) -> None:
    events = parsed(recording.body)
    if isinstance(events[-1], Completed):
        assert comparable(parsed(encode_all("messages", events))) == comparable(events)


@each_recording("anthropic-messages", STREAMS)
def test_recorded_response_survives_a_body(recording: Recording) -> None:
    response = accumulate(parsed(recording.body))
    if response.error is not None:
        return
    again = accumulate(parse_body("messages", encode_body("messages", response)))
    items = tuple(
        item
        for item in response.items
        if not (isinstance(item, FunctionCall) and item.status == "incomplete")
    )
    settled = tuple(msgspec.structs.replace(item, status="completed") for item in items)
    assert again.items == settled
    assert (again.usage, again.stop_reason, again.metadata) == (
        response.usage,
        response.stop_reason,
        response.metadata,
    )


def test_what_the_wire_cannot_carry_is_reported_once() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    item = assembly.open(Message("assistant"))
    assembly.text(item, "a", logprobs=[{"token": "a"}])
    assembly.text(item, "b", logprobs=[{"token": "b"}])
    assembly.close(item)
    assembly.complete("stop")
    encode = encoder("messages")
    text = b"".join(encode.feed(event) for event in assembly.take())
    assert accumulate(parsed(text)).text == "ab"
    assert [change.path for change in encode.report] == ["/logprobs", "/usage"]


@pytest.mark.parametrize(
    "kind",
    [
        "overloaded",
        "rate_limited",
        "authentication",
        "not_found",
        "permission",
        "request_too_large",
    ],
)
def test_errors_keep_their_kind_in_stream_and_body(kind: Any) -> None:
    error = ErrorInfo(kind, "no")
    last = parsed(encoder("messages").feed(Failed(error)))[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == kind
    assert (
        accumulate(
            parse_body("messages", msgspec.json.encode(error_body("messages", error)))
        ).error.kind
        == kind
    )  # type: ignore[union-attr]


def test_usage_of_another_wire_is_translated() -> None:
    """Input tokens exclude those of the cache again."""
    usage = Usage(100, 20, 30, 10, 5, raw={"prompt_tokens": 100})
    body = msgspec.json.decode(
        encode_body("messages", Response("r", "m", "completed", usage=usage, stop_reason="stop"))
    )
    assert body["usage"]["input_tokens"] == 60
    again = accumulate(parse_body("messages", msgspec.json.encode(body))).usage
    assert again is not None
    assert again.same_numbers(usage)


async def test_the_official_sdk_reads_an_encoded_stream_and_body() -> None:
    events = echo_response(PROMPT)
    response = accumulate(events)

    def reply(request: httpx2.Request) -> httpx2.Response:
        if msgspec.json.decode(request.content).get("stream"):
            return httpx2.Response(
                200,
                headers={"content-type": "text/event-stream"},
                content=encode_all("messages", events),
            )
        return httpx2.Response(
            200,
            headers={"content-type": "application/json"},
            content=encode_body("messages", response),
        )

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(reply)) as http:
        client = anthropic.AsyncAnthropic(api_key="none", http_client=http)
        arguments: Any = {
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "x"}],
        }
        async with client.messages.stream(**arguments) as stream:
            streamed = await stream.get_final_message()
        created = await client.messages.create(**arguments)
    for message in (streamed, created):
        thinking, text, call = message.content
        assert (thinking.thinking, text.text) == (response.reasoning, response.text)
        assert (call.name, call.input) == ("w", {"c": "text"})
        assert (message.stop_reason, message.usage.output_tokens) == (
            "tool_use",
            response.usage.output_tokens,
        )  # type: ignore[union-attr]


def test_reasoning_signature_precedes_the_block_stop() -> None:
    """CASES 18."""
    assembly = EventAssembler(LIMITS, Origin("messages"))
    item = assembly.open(Reasoning())
    assembly.reasoning(item, "hm")
    item.fields["signature"] = "EqQB"
    assembly.close(item)
    assembly.complete("stop")
    body = encode_all("messages", assembly.take())
    assert body.index(b"signature_delta") < body.index(b"content_block_stop")
    assert accumulate(parsed(body)).items[0].signature == "EqQB"


@pytest.mark.parametrize(
    "item", [FunctionCall("c", "f", "{}"), Message("assistant")], ids=["call", "text"]
)
def test_signature_of_a_call_or_text_is_reported_not_sent(item: Any) -> None:
    """B8: Claude Code stops with an error at a `signature_delta` outside thinking."""
    assembly = EventAssembler(LIMITS, Origin("gemini"))
    open_item = assembly.open(item)
    open_item.fields["signature"] = "EqQB"
    assembly.close(open_item)
    assembly.complete("tool_calls")
    encode = encoder("messages")
    body = b"".join(encode.feed(event) for event in assembly.take())
    assert b"signature" not in body
    assert "/signature" in [change.path for change in encode.report]


@pytest.mark.parametrize("usage", [None, Usage(1, 2)], ids=["alone", "with usage"])
def test_call_stays_open_when_the_response_fails(usage: Usage | None) -> None:
    """B9: Claude Code takes a closed call for finished, and loses the error."""
    assembly = EventAssembler(LIMITS, Origin("chat"))
    call = assembly.open(FunctionCall("c", "f"))
    assembly.arguments(call, '{"a": ')
    assembly.close(call, status="incomplete")
    if usage is not None:
        assembly.usage(usage)
    assembly.fail(ErrorInfo("overloaded", "busy"))
    body = encode_all("messages", assembly.take())
    assert b"content_block_stop" not in body
    assert b"overloaded_error" in body
    last = accumulate(parsed(body))
    assert last.items[0].status == "incomplete"
    assert last.error is not None


def test_broken_call_is_closed_when_the_response_continues() -> None:
    """As Anthropic does where `max_tokens` cut the arguments."""
    assembly = EventAssembler(LIMITS, Origin("messages"))
    call = assembly.open(FunctionCall("c", "f"))
    assembly.arguments(call, '{"a": ')
    assembly.close(call, status="incomplete")
    assembly.complete("length")
    body = encode_all("messages", assembly.take())
    assert body.index(b"content_block_stop") < body.index(b"message_delta")


def frame_kinds(stream: bytes) -> list[str]:
    """The kinds of the frames, in order."""
    return [line[7:].decode() for line in stream.split(b"\n") if line.startswith(b"event: ")]


def test_estimated_tokens_are_deltas_of_their_block() -> None:
    """A11: they became `message_delta` inside the block, which the API never sends."""
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    estimates: list[dict[str, Any]] = []
    for tokens in (64, 128):
        estimates.append({"kind": "thinking_delta", "thinking": "", "estimated_tokens": tokens})
    signed = {"kind": "signature_delta", "signature": "sig"}
    events = parsed(start() + block(0, thinking, *estimates, signed) + end())
    stream = encode_all("messages", events)
    kinds = frame_kinds(stream)
    assert kinds.index("message_delta") > kinds.index("content_block_stop")
    assert stream.count(b'"estimated_tokens":64') == 1
    assert stream.count(b'"estimated_tokens":128') == 1
    assert comparable(parsed(stream)) == comparable(events)


def test_counts_inside_a_block_are_sent_after_it() -> None:
    """Chat servers send usage with each chunk; only the newest count is of interest."""
    assembler = EventAssembler(LIMITS, Origin("chat"), str)
    assembler.identify("r", "m")
    message = assembler.open(Message("assistant"))
    for tokens in (1, 2, 3):
        assembler.text(message, "word ")
        assembler.usage(Usage(input_tokens=5, output_tokens=tokens))
    assembler.close(message)
    assembler.complete("stop")
    events = assembler.take()
    stream = encode_all("messages", events)
    assert frame_kinds(stream) == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    response = accumulate(parsed(stream))
    assert response.usage is not None
    assert response.usage.output_tokens == 3


@each_case(
    "said, message",
    [
        (
            "This model's maximum context length is 128000 tokens. You requested 135,000 tokens.",
            "prompt is too long: 135000 tokens > 128000 maximum",
        ),
        (
            "The input token count (1200000) exceeds the maximum number of tokens (1048576).",
            "prompt is too long: 1200000 tokens > 1048576 maximum",
        ),
        (
            "too many tokens: the prompt cannot exceed 4081 - received 5000",
            "prompt is too long: 5000 tokens > 4081 maximum",
        ),
        (
            "prompt is too long: 210000 tokens > 200000 maximum",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ),
        (
            "too many tokens: size limit exceeded by 11326 tokens. The limit is 128000 tokens.",
            "prompt is too long: 139326 tokens > 128000 maximum",
        ),
        (
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            "prompt is too long: 40000 tokens > 32768 maximum",
        ),
        (
            "prompt too long; exceeded max context length by 120 tokens",
            "prompt is too long: prompt too long; exceeded max context length by 120 tokens",
        ),
        (
            "Your input exceeds the context window of this model.",
            "prompt is too long: Your input exceeds the context window of this model.",
        ),
        (
            "exceeds the available context size (4096 tokens)",
            "prompt is too long: exceeds the available context size (4096 tokens)",
        ),
    ],
)
def test_full_context_has_anthropics_words(said: str, message: str) -> None:
    """It compacts its history at these words, whatever provider has said what."""
    error = ErrorInfo("context_window_exceeded", said)
    assert error_body("messages", error)["error"]["message"] == message
    assert message.encode() in encode_all("messages", [Failed(error)])


@pytest.mark.parametrize(
    ("stop_reason", "native", "sent"),
    [
        ("stop", "stop_sequence", "stop_sequence"),
        ("stop", "max_tokens", "end_turn"),
        ("stop", None, "end_turn"),
        ("other", "brand_new", "brand_new"),
    ],
)
def test_native_stop_reason_is_sent_where_it_fits(
    stop_reason: Any, native: str | None, sent: str
) -> None:
    assert native_stop(stop_reason, native, Report()) == sent


def test_stream_begins_with_counts_of_zero_where_none_are_known() -> None:
    encode = encoder("messages")
    start = encode.feed(OutputItemAdded(0, Message("assistant")))
    assert b'"usage":{"input_tokens":0,"output_tokens":0}' in start
