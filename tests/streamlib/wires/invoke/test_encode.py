"""The Invoke encoder: its output for Claude parses back to the same events (invariant 10).

botocore opens the frames, and Anthropic's SDK reads the events in them.
"""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Completed,
    CustomToolCall,
    ErrorInfo,
    Failed,
    FunctionCall,
    Message,
    Notice,
    Origin,
    Prompt,
    Reasoning,
    Response,
    ResponseEvent,
    ServerToolCall,
    Text,
    ToolSpec,
    accumulate,
    encode_body,
    encoder,
    parse_body,
)
from streamlib.testing import echo_response
from streamlib.testing.invariants import join_deltas
from streamlib.wires.encoders import encode_all, error_body
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.limits import LIMITS
from tests.support.bedrock_readers import parsed_events
from tests.support.shared import BODIES, STREAMS, Recording, each_recording
from tests.support.wires import events_of, parsed


def comparable(events: list[ResponseEvent]) -> list[ResponseEvent]:
    """Without notices: whoever parses the stream makes them again."""
    return join_deltas(event for event in events if not isinstance(event, Notice))


def again(events: list[ResponseEvent]) -> list[ResponseEvent]:
    return events_of("invoke", encode_all("invoke", events))


def is_claude(events: list[ResponseEvent]) -> bool:
    return "claude" in str(accumulate(events).model)


@each_recording("bedrock-invoke", STREAMS)
def test_recorded_claude_stream_parses_back_equal(recording: Recording) -> None:
    events = parsed(recording)
    if is_claude(events):
        assert comparable(again(events)) == comparable(events)


@each_recording("bedrock-invoke", [*STREAMS, *BODIES])
def test_recorded_claude_response_survives_a_body(
    recording: Recording,
) -> None:
    response = accumulate(parsed(recording))
    if response.error is not None or "claude" not in str(response.model):
        return
    back = accumulate(parse_body("invoke", encode_body("invoke", response)))
    items = tuple(
        item
        for item in response.items
        if not (isinstance(item, FunctionCall) and item.status == "incomplete")
    )
    assert back.items == tuple(msgspec.structs.replace(item, status="completed") for item in items)
    assert (back.usage, back.stop_reason, back.metadata) == (
        response.usage,
        response.stop_reason,
        response.metadata,
    )


@each_recording("bedrock-invoke", STREAMS)
def test_response_of_any_family_is_encoded_as_claudes(recording: Recording) -> None:
    events = parsed(recording)
    response, back = accumulate(events), accumulate(again(events))
    assert (back.text, back.reasoning, back.stop_reason in (response.stop_reason, "refusal")) == (
        response.text,
        response.reasoning,
        True,
    )
    assert [
        (call.name, call.parsed()) for call in back.calls if isinstance(call, FunctionCall)
    ] == [(call.name, call.parsed()) for call in response.calls if isinstance(call, FunctionCall)]
    if response.usage is not None and back.usage is not None:
        assert (back.usage.input_tokens, back.usage.output_tokens) == (
            response.usage.input_tokens,
            response.usage.output_tokens,
        )


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["text", "think", "call"]),
        st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=3),
    ),
    max_size=5,
)


@given(STEPS)
def test_generated_stream_parses_back_equal(steps: list[Any]) -> None:
    assembly = EventAssembler(LIMITS, Origin("invoke"))
    assembly.identify("msg_1", "claude-x")
    for n, (kind, texts) in enumerate(steps):
        made: dict[str, Any] = {
            "text": Message("assistant"),
            "think": Reasoning(),
            "call": FunctionCall(f"c{n}", "f"),
        }
        item = assembly.open(made[kind])
        for text in texts:
            if kind == "call":
                break
            (assembly.text if kind == "text" else assembly.reasoning)(
                item, text.replace("\ud800", "")
            )
        if kind == "call":
            assembly.arguments(item, msgspec.json.encode({"a": texts}).decode())
        item.fields["signature"] = "EqQB" if kind == "think" else None
        assembly.close(item)
    assembly.metadata({"amazon-bedrock-invocationMetrics": {"inputTokenCount": 1, "note": "\n\n"}})
    assembly.complete("stop", "end_turn")
    events = comparable(assembly.take())
    expected_events = [event for event in comparable(again(events)) if not hasattr(event, "usage")]
    assert expected_events == [event for event in events if not hasattr(event, "usage")]


def test_claudes_envelope_survives() -> None:
    """Items of origin `invoke` keep what only Messages has: its encoder is inside."""
    assembly = EventAssembler(LIMITS, Origin("invoke"))
    call = assembly.open(
        ServerToolCall("s1", "web_search", native={"type": "mcp_tool_use", "server_name": "s"})
    )
    assembly.arguments(call, "{}")
    assembly.close(call)
    assembly.complete("stop", "end_turn")
    item: Any = accumulate(again(assembly.take())).items[0]
    assert item.native == {"type": "mcp_tool_use", "server_name": "s"}


async def test_anthropics_bedrock_client_reads_a_stream_and_a_body() -> None:
    anthropic = pytest.importorskip("anthropic", reason="the official SDK is the reader here")
    tool = ToolSpec("w", schema={"type": "object", "properties": {"c": {"type": "string"}}})
    events = echo_response(Prompt(input="Weather?", tools=[tool], reasoning="low"))
    response = accumulate(events)

    def reply(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/invoke-with-response-stream"):
            return httpx2.Response(
                200,
                headers={"content-type": encoder("invoke").media_type},
                content=encode_all("invoke", events),
            )
        return httpx2.Response(
            200,
            headers={"content-type": "application/json"},
            content=encode_body("invoke", response),
        )

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(reply)) as http:
        client = anthropic.AsyncAnthropicBedrock(
            api_key="none", aws_region="eu-west-1", http_client=http
        )
        arguments: Any = {
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "x"}],
        }
        async with client.messages.stream(**arguments) as stream:
            streamed_message = await stream.get_final_message()
        created = await client.messages.create(**arguments)
    for message in (streamed_message, created):
        thinking, text, call = message.content
        assert (thinking.thinking, text.text, call.name, call.input) == (
            response.reasoning,
            response.text,
            "w",
            {"c": "text"},
        )
        assert message.stop_reason == "tool_use"


def test_bedrock_metrics_are_in_the_last_event() -> None:
    assembly = EventAssembler(LIMITS, Origin("invoke"))
    assembly.close(assembly.open(Message("assistant")))
    assembly.metadata({"amazon-bedrock-invocationMetrics": {"inputTokenCount": 7}})
    assembly.complete("stop", "end_turn")
    frames = [
        msgspec.json.decode(frame["chunk"]["bytes"])
        for frame in parsed_events(encode_all("invoke", assembly.take()), "invoke")
    ]
    assert frames[-1] == {
        "type": "message_stop",
        "amazon-bedrock-invocationMetrics": {"inputTokenCount": 7},
    }


def test_foreign_key_never_replaces_an_own_one() -> None:
    """Jamba has a number under `stop_reason`."""
    response = Response(
        "r",
        "m",
        "completed",
        (Message("assistant", [Text("a")]),),
        stop_reason="stop",
        metadata={"stop_reason": 518},
    )
    assert msgspec.json.decode(encode_body("invoke", response))["stop_reason"] == "end_turn"


def test_free_form_call_is_buffered_until_complete() -> None:
    assembly = EventAssembler(LIMITS, Origin("responses"))
    item = assembly.open(CustomToolCall("c", "patch"))
    for text in ("*** Be", 'gin "x"'):
        assembly.arguments(item, text)
    assembly.close(item)
    assembly.complete("tool_calls")
    (call,) = accumulate(again(assembly.take())).calls
    assert isinstance(call, FunctionCall)
    assert call.parsed() == {"input": '*** Begin "x"'}


def test_report_is_that_of_the_messages_encoder() -> None:
    assembly = EventAssembler(LIMITS, Origin("chat"))
    item = assembly.open(Message("assistant"))
    assembly.text(item, "a", logprobs=[{"token": "a"}])
    assembly.close(item)
    assembly.complete("stop")
    encode = encoder("invoke")
    for event in assembly.take():
        encode.feed(event)
    assert {change.path for change in encode.report} >= {"/logprobs"}


@pytest.mark.parametrize(
    "kind",
    ["overloaded", "rate_limited", "authentication", "not_found", "permission", "server_error"],
)
def test_errors_keep_their_kind_in_stream_and_body(kind: Any) -> None:
    error = ErrorInfo(kind, "no")
    started = [*echo_response(Prompt("hi"))[:4], Failed(error)]
    last = again(started)[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == kind
    assert [
        name for frame in parsed_events(encode_all("invoke", started), "invoke") for name in frame
    ][-1] == "exception"
    failed = accumulate(
        parse_body("invoke", msgspec.json.encode(error_body("invoke", error)))
    ).error
    assert failed is not None
    assert failed.kind == kind
    assert not isinstance(last, Completed)
