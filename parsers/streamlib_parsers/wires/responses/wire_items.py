"""OpenAI Responses: `ResponseItem` to items of the wire, the reverse of `items.py`.

`wire_item(item_of(x))` equals `x` without `status` and `logprobs`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    BUILT_IN_OUTPUTS,
    Compaction,
    ContentPart,
    CustomToolCall,
    FunctionCall,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.wires.responses.built_in import call_object, output_object
from streamlib_parsers.wires.responses.items import HOSTED, RESULTS, Hosted, names_agent

__all__ = ["named_body", "wire_item"]


def wire_item(item: ResponseItem) -> JsonObject:
    """Converts an item that `item_of` made to the wire's own object.

    The typed fields win over `native`. Arguments that are a JSON value are `Raw`.

    Raises:
        TypeError: the item is of a kind that this wire never sends.
    """
    fields: JsonObject = {}
    if item.id is not None:
        fields["id"] = item.id
    if isinstance(item, Opaque):
        if item.agent is not None and not names_agent(item.payload):
            fields["agent"] = {"agent_name": item.agent}
        return {**item.payload, **fields}
    if isinstance(item, (FunctionCall, CustomToolCall)) and item.namespace is not None:
        fields["namespace"] = item.namespace
    if isinstance(item, BUILT_IN_CALLS):
        body = {**fields, **call_object(item)}
    elif isinstance(item, BUILT_IN_OUTPUTS):
        body = {**fields, **output_object(item)}
    else:
        body = {**fields, **(item.native or {}), **_typed_fields(item)}
    return named_body(body, item)


def named_body(body: JsonObject, item: ResponseItem) -> JsonObject:
    """The object of an item with the item's agent, the reverse of `with_agent`."""
    if item.agent is None or isinstance(item, Opaque):
        return body
    agent: JsonObject = {"agent_name": item.agent}
    further = body.get("agent")
    if isinstance(further, dict):
        agent = {**further, **agent}
    return {**body, "agent": agent}


def _typed_fields(item: ResponseItem) -> JsonObject:
    match item:
        case Message():
            return _message(item)
        case FunctionCall():
            return {
                "type": "function_call",
                "call_id": item.call_id,
                "name": item.name,
                "arguments": item.arguments,
            }
        case Reasoning():
            return _reasoning(item)
        case CustomToolCall():
            return {
                "type": "custom_tool_call",
                "call_id": item.call_id,
                "name": item.name,
                "input": item.input,
            }
        case ServerToolCall():
            return _hosted_call(item)
        case ServerToolResult():
            return _result(item)
        case Compaction():
            kind = (item.native or {}).get("type", "compaction")
            return {"type": kind, "encrypted_content": item.encrypted_content}
        case _:
            raise TypeError(f"a {type(item).__name__} is never an output item of this wire")


def _message(item: Message) -> JsonObject:
    text_type = "output_text" if item.role == "assistant" else "input_text"
    parts = [_part(part, text_type) for part in item.content]
    fields: JsonObject = {
        "type": "message",
        "role": item.role,
        "content": _with_native_keys(parts, (item.native or {}).get("content")),
    }
    if item.phase is not None:
        fields["phase"] = item.phase
    return fields


def _part(part: ContentPart, text_type: str) -> JsonObject:
    if isinstance(part, Text):
        fields: JsonObject = {"type": text_type, "text": part.text}
        if text_type == "output_text":
            fields["annotations"] = list(part.annotations)
        return fields
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.refusal}
    raise TypeError(f"a {type(part).__name__} part never came from this wire")


def _with_native_keys(parts: list[JsonObject], native: Any) -> list[JsonObject]:
    """Adds to each part the keys that no typed field holds."""
    # A list of another length belongs to content that was edited later.
    if not isinstance(native, list) or len(native) != len(parts):
        return parts
    return [{**part, **keys} for part, keys in zip(parts, native, strict=True)]


def _reasoning(item: Reasoning) -> JsonObject:
    native = item.native or {}
    summary: list[JsonObject] = [{"type": "summary_text", "text": text} for text in item.summary]
    fields: JsonObject = {
        "type": "reasoning",
        "summary": _with_native_keys(summary, native.get("summary")),
    }
    content: list[JsonObject] = []
    if item.content:
        content.append({"type": "reasoning_text", "text": item.content})
    if content or "content" in native:
        fields["content"] = _with_native_keys(content, native.get("content"))
    parts = native.get("content") or ()
    if len(parts) > 1 and "".join(part.get("text", "") for part in parts) == item.content:
        fields["content"] = parts
    if item.encrypted_content is not None:
        fields["encrypted_content"] = item.encrypted_content
    return fields


def _hosted_call(item: ServerToolCall) -> JsonObject:
    native = item.native or {}
    tool = HOSTED.get(native.get("type", ""), Hosted(""))
    fields: JsonObject = {}
    if not tool.name:
        fields[tool.name_field] = item.name
    if item.call_id and "call_id" not in native and item.call_id != item.id:
        fields["call_id"] = item.call_id
    field = _argument_field(tool, native)
    if field is not None and item.arguments:
        if field == "action" or native.get("type") == "tool_search_call":
            fields[field] = Raw(item.arguments.encode())  # the wire has a JSON value there
        else:
            fields[field] = item.arguments
    return fields


def _argument_field(tool: Hosted, native: JsonObject) -> str | None:
    """The field that the arguments came from: `item_of` marks an unusual one by None."""
    if not tool.arguments:
        return None
    for field in tool.arguments[1:]:
        if field in native and native[field] is None:
            return field
    return tool.arguments[0]


def _result(item: ServerToolResult) -> JsonObject:
    native = item.native or {}
    name, output_field = RESULTS[native["type"]]
    fields: JsonObject = {output_field: item.output}
    if not name:
        fields["action"] = item.name
    if item.call_id and "call_id" not in native:
        fields["call_id"] = item.call_id
    return fields
