"""Members that the APIs gained in 2026: read, sent back exactly, and encoded again.

The bodies are written from the types of anthropic 2.12, openai 3.54 and botocore 1.44; no server
sent them.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from streamlib import (
    FunctionCall,
    Image,
    Message,
    Opaque,
    Passthrough,
    Prompt,
    ResponseItem,
    accumulate,
    build,
    encode_all,
    encode_body,
    encoder,
    parse_body,
    parse_request,
    parser,
    user,
)
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.usage import Usage
from tests.support.responses_frames import added, completed, created, done, frame, message, text

MODELS: Final[dict[WireApi, str]] = {
    "messages": "anthropic:claude-opus-5",
    "responses": "openai:gpt-6",
    "converse": "bedrock:anthropic.claude-opus-5",
}


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")


def sent(wire_api: WireApi, items: list[ResponseItem]) -> tuple[JsonObject, list[Any]]:
    """The body of the next request, and its report."""
    request = build(Prompt([user("q"), *items, user("r")]), MODELS[wire_api], wire_api=wire_api)
    return json.loads(request.body), list(request.report)


def requested_again(wire_api: WireApi, body: JsonObject, path: str = "") -> tuple[JsonObject, Any]:
    """The body of a request after it was decoded and built, and the report."""
    prompt = parse_request(wire_api, json.dumps(body).encode(), path=path)
    request = build(prompt, MODELS[wire_api], wire_api=wire_api)
    return json.loads(request.body), request.report


# --- Messages ---

LISTING: Final = {
    "type": "mcp_tool_listing",
    "mcp_server_name": "files",
    "tools": [{"name": "read", "input_schema": {"type": "object"}, "description": None}],
}
UPLOAD: Final = {"type": "container_upload", "file_id": "file_1"}
FALLBACK: Final = {
    "type": "fallback",
    "from": {"model": "claude-a"},
    "to": {"model": "claude-b"},
    "trigger": {"type": "refusal", "category": "cyber"},
}
BLOCKS: Final[list[JsonObject]] = [
    LISTING,
    {"type": "text", "text": "before"},
    UPLOAD,
    FALLBACK,
    {"type": "text", "text": "after"},
]
MESSAGE: Final = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-a",
    "content": BLOCKS,
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 2},
    "input_transformations": [{"type": "thinking_dropped", "path": "messages.0", "reason": "x"}],
}


def messages_stream() -> bytes:
    """The same message as a stream: each of these blocks arrives whole in its start."""
    start = {**MESSAGE, "content": [], "stop_reason": None}
    events: list[JsonObject] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(BLOCKS):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}})
    events.append({"type": "message_stop"})
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode())
        for event in events
    )


def test_messages_blocks_keep_their_order_and_value() -> None:
    parse = parser("messages")
    streamed = accumulate([*parse.feed(messages_stream()), *parse.close()])
    whole = accumulate(parse_body("messages", json.dumps(MESSAGE).encode()))
    kinds = ["mcp_tool_listing", None, "container_upload", "fallback", None]
    for response in (streamed, whole):
        assert [getattr(item, "kind", None) for item in response.items] == kinds
        # Everything behind the block is the other model's.
        assert response.model == "claude-b"
        assert response.metadata["input_transformations"] == MESSAGE["input_transformations"]


def test_messages_blocks_are_sent_back_exactly() -> None:
    response = accumulate(parse_body("messages", json.dumps(MESSAGE).encode()))
    body, report = sent("messages", list(response.items))
    assert body["messages"][1]["content"] == BLOCKS
    assert report == []


def test_messages_blocks_are_encoded_exactly() -> None:
    events = parse_body("messages", json.dumps(MESSAGE).encode())
    assert json.loads(encode_body("messages", accumulate(events)))["content"] == BLOCKS
    parse = parser("messages")
    again = accumulate([*parse.feed(encode_all("messages", events)), *parse.close()])
    assert again.items == accumulate(events).items


def test_upload_of_a_user_turn_is_sent_again() -> None:
    content = [{**UPLOAD, "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "q"}]
    request = {"max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    body, report = requested_again("messages", {"model": "claude-opus-5", **request})
    assert (body["messages"][0]["content"], report) == (content, [])


# --- Responses ---


def test_events_about_steering_keep_their_order() -> None:
    steer = {"id": "st_1", "previous_response_id": "resp_1"}
    stub = {"type": "function_call_output", "call_id": "c", "name": "f"}
    pending = {"reason": "waiting_for_required_input", "required_input": [stub]}
    frames = [created(), frame("response.steer.accepted", steer=steer), added(message())]
    frames += [text("Hi"), frame("response.steer.pending", steer=steer, **pending)]
    frames += [done(message("Hi")), frame("response.steer.failed", steer={"input": []}, error={})]
    details = {"reason": "steered"}
    frames.append(completed(message("Hi"), kind="incomplete", incomplete_details=details))
    parse = parser("responses")
    events = parse.feed(b"".join(frames))
    passed = [event for event in events if isinstance(event, Passthrough)]
    kinds = ["accepted", "pending", "failed"]
    assert [event.event for event in passed] == [f"response.steer.{kind}" for kind in kinds]
    assert passed[1].data["required_input"] == [stub]
    response = accumulate(events)
    assert (response.stop_reason, response.native_stop_reason) == ("other", "incomplete:steered")
    # The encoder of the same wire sends them on in their place.
    encode = encoder("responses")
    again = parser("responses").feed(b"".join([encode.feed(event) for event in events]))
    assert [type(event) for event in again] == [type(event) for event in events]


ASYNC_TOOL: Final = {
    "type": "function",
    "name": "f",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
    "async": True,
}
ASYNC_CALL: Final = {
    "type": "function_call",
    "call_id": "call_1",
    "name": "f",
    "arguments": "{}",
    "async": True,
    "caller": {"type": "program", "caller_id": "prog_1"},
}


def test_async_tools_and_their_outputs_are_sent_again() -> None:
    """An output that names its tool, not its call, was a `KeyError` of the builder."""
    items: list[JsonObject] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
        ASYNC_CALL,
        {"type": "function_call_output", "call_id": "call_1", "output": "begun", "name": "f"},
        {"type": "function_call_output", "name": "f", "namespace": "n", "output": "later"},
        {"type": "custom_tool_call_output", "name": "g", "output": "later"},
    ]
    request = {"model": "gpt-6", "input": items, "tools": [ASYNC_TOOL]}
    body, report = requested_again("responses", request)
    assert (body["input"], body["tools"], report) == (items, [ASYNC_TOOL], [])


def test_output_of_an_async_tool_is_reported_elsewhere() -> None:
    output = {"type": "function_call_output", "name": "f", "output": "later"}
    items = [{"role": "user", "content": "q"}, output]
    prompt = parse_request("responses", json.dumps({"model": "m", "input": items}).encode())
    request = build(prompt, "anthropic:claude-opus-5")
    assert [(change.action, change.path) for change in request.report] == [("dropped", "/input/1")]


def test_async_call_keeps_its_members() -> None:
    whole = {**ASYNC_CALL, "id": "fc_1", "status": "completed"}
    body = {"id": "resp_1", "status": "completed", "model": "gpt-6", "output": [whole]}
    response = accumulate(parse_body("responses", json.dumps(body).encode()))
    [call] = response.calls
    assert isinstance(call, FunctionCall)
    assert call.native == {"async": True, "caller": ASYNC_CALL["caller"]}
    assert json.loads(encode_body("responses", response))["output"] == [whole]


# --- Converse ---


def converse_body(*content: JsonObject, **fields: Any) -> bytes:
    output = {"message": {"role": "assistant", "content": content}}
    return json.dumps({"output": output, "stopReason": "end_turn", **fields}).encode()


def test_failed_image_is_encoded_with_its_error() -> None:
    error = {"message": "blocked"}
    failed = {"image": {"format": "png", "error": error}}
    partly = {"image": {"format": "png", "error": error, "source": {"bytes": "aGk="}}}
    events = parse_body("converse", converse_body(failed, partly))
    response = accumulate(events)
    assert [item.status for item in response.items] == ["incomplete", "incomplete"]
    for item, data in zip(response.items, (None, "aGk="), strict=True):
        assert isinstance(item, Message)
        assert item.content == (
            unchecked(Image)(data, media_type="image/png", native={"error": error}),
        )
    encoded = json.loads(encode_body("converse", response))
    assert encoded["output"]["message"]["content"] == [failed, partly]
    parse = parser("converse")
    again = accumulate([*parse.feed(encode_all("converse", events)), *parse.close()])
    assert again.items == response.items


def test_cache_and_tier_members_are_kept() -> None:
    details = [{"ttl": "1h", "inputTokens": 1}, {"ttl": "5m", "inputTokens": 2}]
    usage = {"inputTokens": 5, "outputTokens": 1, "totalTokens": 11, "cacheReadInputTokens": 2}
    usage |= {"cacheWriteInputTokens": 3, "cacheDetails": details}
    body = converse_body({"text": "x"}, usage=usage, serviceTier={"type": "reserved"})
    response = accumulate(parse_body("converse", body))
    assert response.usage is not None
    written = Usage(
        10,
        1,
        cache_read_input_tokens=2,
        cache_write_input_tokens=3,
        cache_write_5m_input_tokens=2,
        cache_write_1h_input_tokens=1,
    )
    assert response.usage.same_numbers(written)
    encoded = json.loads(encode_body("converse", response))
    assert (encoded["usage"], encoded["serviceTier"]) == (usage, {"type": "reserved"})


def test_cache_points_and_tier_are_sent_again() -> None:
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    tool = {
        "toolSpec": {"name": "a", "description": "d", "inputSchema": {"json": {"type": "object"}}}
    }
    request: JsonObject = {
        "messages": [{"role": "user", "content": [{"text": "q"}, point]}],
        "toolConfig": {"tools": [tool, point]},
        "serviceTier": {"type": "reserved"},
    }
    path = "/model/anthropic.claude-opus-5/converse"
    body, report = requested_again("converse", request, path)
    assert body["messages"] == request["messages"]
    assert body["toolConfig"]["tools"][1] == point
    assert (body["serviceTier"], report) == ({"type": "reserved"}, [])


def test_changes_of_tools_keep_their_order() -> None:
    change = {"toolAddition": {"tool": {"toolSpec": {"name": "z"}}}}
    removal = {"toolRemoval": {"tool": {"name": "z"}}}
    response = accumulate(parse_body("converse", converse_body(change, {"text": "x"}, removal)))
    kinds = [item.kind for item in response.items if isinstance(item, Opaque)]
    assert kinds == ["toolAddition", "toolRemoval"]
    body, report = sent("converse", list(response.items))
    assert (body["messages"][1]["content"], report) == ([change, {"text": "x"}, removal], [])
