"""Encodes a response as a UI message of Vercel's AI SDK."""

from __future__ import annotations

import msgspec

from streamlib.web.ui_parts import (
    Call,
    CallIds,
    call_input,
    files,
    inline_result,
    message_text,
    visible_reasoning,
    why_hidden,
)
from streamlib.web.vercel.parts import message_metadata, provider_executed
from streamlib.wires.generated_ids import new_id
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import (
    ApprovalRequest,
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)


def encode_body(
    response: Response, model: str | None = None, message_id: str | None = None
) -> bytes:
    """The UI message `{id, role, metadata, parts}` that a reader of the stream would have.

    Args:
        response: the response.
        model: the model's name, used if the response has none.
        message_id: the message's id; random if not given, since the page keeps messages by it.
    """
    call_ids = CallIds(message_id)
    calls: dict[str, JsonObject] = {}
    parts: list[JsonObject] = [{"type": "step-start"}]
    for index, item in enumerate(response.items):
        if why_hidden(item) is None:
            parts += _item_parts(index, item, call_ids, calls)
    if response.stop_reason != "pause":
        _end_running_calls(parts)
    body: JsonObject = {"id": message_id or new_id("msg-"), "role": "assistant"}
    metadata = message_metadata(response.usage, response.model or model)
    if metadata:
        body["metadata"] = metadata
    body["parts"] = parts
    return msgspec.json.encode(body)


def _item_parts(
    index: int, item: ResponseItem, call_ids: CallIds, calls: dict[str, JsonObject]
) -> list[JsonObject]:
    """The parts of an item. A result has no part of its own: its call's part receives it.

    Args:
        index: the item's index.
        item: the item.
        call_ids: ids of the calls so far.
        calls: the parts of the calls so far, by their id; receives the part of this item.
    """
    match item:
        case Message():
            return _message_parts(item)
        case Reasoning():
            text = visible_reasoning(item)
            return [{"type": "reasoning", "id": str(index), "text": text, "state": "done"}]
        case FunctionCall() | CustomToolCall() | ServerToolCall() | ApprovalRequest():
            call_id = call_ids.add(index, item.call_id)
            calls[call_id] = _call_part(call_id, item)
            return [calls[call_id]]
        case ServerToolResult():
            call = calls.get(call_ids.of_result(item.call_id) or "")
            if call is not None:
                call.update(state="output-available", output=item.output)
        case _:
            pass
    return []


def _message_parts(item: Message) -> list[JsonObject]:
    parts: list[JsonObject] = []
    text = message_text(item)
    if text:
        parts.append({"type": "text", "text": text, "state": "done"})
    for file in files(item):
        if file is not None:
            parts.append({"type": "file", "mediaType": file.media_type, "url": file.url})
    return parts


def _call_part(call_id: str, item: Call) -> JsonObject:
    value, fault = call_input(item)
    part: JsonObject = {
        "type": "dynamic-tool",
        "toolName": item.name,
        "toolCallId": call_id,
        "input": value,
        **provider_executed(item),
    }
    result = inline_result(item)
    if fault is not None:
        part["state"] = "output-error"
        part["errorText"] = fault
    elif isinstance(item, ApprovalRequest):
        part["state"] = "approval-requested"
        part["approval"] = {"id": call_id}
    elif result is not None:
        part["state"] = "output-available"
        part["output"] = result
    else:
        part["state"] = "input-available"
    return part


def _end_running_calls(parts: list[JsonObject]) -> None:
    """Gives provider-run calls without a result an empty one: the response has ended."""
    for part in parts:
        if part.get("providerExecuted") and part["state"] == "input-available":
            part.update(state="output-available", output=None)
