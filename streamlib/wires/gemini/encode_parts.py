"""Items as parts of a Gemini response."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Raw

from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.gemini.build_media import media_field
from streamlib.wires.gemini.build_parts import part_object, server_part
from streamlib.wires.reasoning_text import reasoning_text
from streamlib_parsers.items import (
    Audio,
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
from streamlib_parsers.json_text import is_json
from streamlib_parsers.namespaces import flat_call_name

ItemT = TypeVar("ItemT", bound=ResponseItem)


def parts_of(item: ResponseItem, report: Report) -> list[JsonObject]:
    """The parts of a complete item; none if the wire has no form for it."""
    match item:
        case Message():
            return _message_parts(item, report)
        case Reasoning():
            return _reasoning_parts(item, report)
        case FunctionCall() | CustomToolCall():
            return _call_parts(item, report)
        case ServerToolCall() | ServerToolResult() if is_own(item, "gemini"):
            part = server_part(item)
            if part is None:
                report.dropped(f"/{type(item).__name__}", "Gemini has no part for it")
                return []
            return [part]
        case Opaque() if is_own(item, "gemini"):
            return [item.payload]
        case _:
            report.dropped(f"/{type(item).__name__}", "Gemini has no part for it")
            return []


def _message_parts(item: Message, report: Report) -> list[JsonObject]:
    parts: list[JsonObject] = []
    for content_part in item.content:
        part = _content_part(content_part, report)
        if part is not None:
            parts.append(part)
    if item.signature and not parts:
        # A signature needs a part that carries it.
        parts.append({"text": ""})
    if len(parts) == 1:
        kind, data = next(iter(parts[0].items()))
        return [part_object(kind, data, item.native, item.signature)]
    if parts and item.signature:
        parts[-1] = {**parts[-1], "thoughtSignature": item.signature}
    return parts


def _content_part(part: ContentPart, report: Report) -> JsonObject | None:
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Refusal):
        report.dropped("/refusal", "a refusal is plain text in Gemini")
        return {"text": part.refusal}
    if isinstance(part, Audio) and part.transcript:
        report.dropped("/transcript", "Gemini has no transcript of audio")
    field = media_field(part)
    if field is None:
        return None
    kind, data = field
    return {kind: data}


def _reasoning_parts(item: Reasoning, report: Report) -> list[JsonObject]:
    if item.encrypted_content:
        report.dropped("/encrypted_content", "Gemini has no field for encrypted reasoning")
    if item.summary:
        report.dropped("/summary", "a summary is plain reasoning in Gemini")
    text = reasoning_text(item)
    if not text and not item.signature:
        return []
    part = part_object("text", text, item.native, item.signature)
    return [{"text": part.pop("text"), "thought": True, **part}]


def _call_parts(item: FunctionCall | CustomToolCall, report: Report) -> list[JsonObject]:
    if item.status == "incomplete":
        report.dropped("/incomplete", "an incomplete call is left out: it would look callable")
        return []
    own = isinstance(item, FunctionCall) and is_own(item, "gemini")
    data: JsonObject = {}
    if not own:
        # The id of another wire's call, so that its result can refer to it.
        data["id"] = item.call_id
    elif item.id:
        # Gemini's own calls have an id only if it sent one.
        data["id"] = item.id
    data["name"] = flat_call_name(item)
    data.update(_arguments(item, report, own=own))
    return [part_object("functionCall", data, item.native, item.signature)]


def _arguments(item: FunctionCall | CustomToolCall, report: Report, *, own: bool) -> JsonObject:
    """`args`: always an object, in the provider's own bytes where possible."""
    if isinstance(item, CustomToolCall):
        reason = "a free-form call is a functionCall with its text as `input`"
        report.dropped("/custom_tool_call", reason)
        return {"args": {"input": item.input}}
    arguments = item.arguments
    if not arguments:
        if own:
            return {}
        arguments = "{}"
    if not arguments.lstrip().startswith("{") or not is_json(arguments):
        report.dropped("/arguments", "arguments that are not a JSON object are wrapped")
        return {"args": {"_raw": arguments}}
    return {"args": Raw(arguments.encode("utf-8"))}
