"""Messages of OpenTelemetry's GenAI conventions: `gen_ai.input.messages` and its like.

    [{"role": "user" | "assistant" | "tool" | "system", "parts": [{"type": "text", "content": …}]}]

Source: the JSON schemas of `model/gen-ai` in open-telemetry/semantic-conventions-genai, 2026-10.
They have no field for signatures, encrypted state and errors of tools.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from streamlib.client.otel.content import item_parts
from streamlib.history.transcripts.draft import TranscriptDraft
from streamlib.history.transcripts.source import (
    JsonSource,
    list_at,
    mistake,
    object_at,
    read_source,
    text_at,
)
from streamlib.request.history import (
    OUTPUTS,
    IndexedItem,
    content_parts,
    drop_incomplete,
    reasoning_text,
)
from streamlib.request.origins import as_text, opaque_state
from streamlib.request.report import Report
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import (
    Audio,
    Compaction,
    ContentPart,
    CustomToolCall,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    JsonObject,
    Media,
    Message,
    Reasoning,
    Refusal,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
    parse_arguments,
)

ATTRIBUTES: Final = ("gen_ai.input.messages", "gen_ai.output.messages")
"""Attributes with messages, in the order of the conversation."""

INSTRUCTIONS: Final = "gen_ai.system_instructions"

MediaKind: TypeAlias = Callable[..., Image | Audio | Document]

MODALITIES: Final[dict[str, MediaKind]] = {"image": Image, "audio": Audio}
"""Modality of a blob, a file or an address -> its part; any other is a document."""

STATE: Final = "the conventions have no field for signatures and encrypted state"

KINDS: Final = (Reasoning, FunctionCall, CustomToolCall, ServerToolCall, ServerToolResult)
"""Kinds of items of a model that the conventions have a part for."""

CONTENT: Final = (Text, Image, Audio, Document)
"""Parts of messages and outputs."""

ROLES: Final = ("user", "assistant", "system", "developer", "tool")


# --- reading ---


def read_otel(source: JsonSource, draft: TranscriptDraft) -> None:
    """Reads a list of messages, or the attributes of a span."""
    value = source.value
    if not isinstance(value, dict):
        _read_messages(source, "", draft)
        return
    if INSTRUCTIONS in value:
        texts: list[str] = []
        for index, element in enumerate(_attribute(value, INSTRUCTIONS)):
            path = f"/{INSTRUCTIONS}/{index}"
            part = object_at(element, path)
            if part.get("type", "text") == "text":
                texts.append(text_at(part, "content", path))
            else:
                draft.report.dropped(path, "instructions are texts")
        draft.instructions = "\n\n".join(texts) or None
    for name in ATTRIBUTES:
        if name in value:
            _read_messages(read_source(_attribute(value, name)), f"/{name}", draft)


def _attribute(value: JsonObject, name: str) -> list[Any]:
    """The list in an attribute, which may be its JSON as text."""
    result = value[name]
    if isinstance(result, str):
        try:
            result = msgspec.json.decode(result)
        except (msgspec.DecodeError, RecursionError):
            raise ValueError(f"/{name}: not JSON, or only its beginning") from None
    if not isinstance(result, list):
        raise mistake(f"/{name}", "not a list")
    return result


def _read_messages(source: JsonSource, prefix: str, draft: TranscriptDraft) -> None:
    for entry in source.entries():
        path = prefix + entry.path
        role = text_at(entry.value, "role", path)
        if role not in ROLES:
            raise ValueError(f"{path}/role is one of {', '.join(ROLES)}")
        content: list[ContentPart] = []
        for index, element in enumerate(list_at(entry.value, "parts", path)):
            part_path = f"{path}/parts/{index}"
            result = _read_part(object_at(element, part_path), part_path, draft)
            if isinstance(result, CONTENT):
                content.append(result)
                continue
            _add_message(role, content, draft)
            if result is not None:
                draft.add([result])
        _add_message(role, content, draft)


def _add_message(role: str, content: list[ContentPart], draft: TranscriptDraft) -> None:
    if content:
        known: Any = "user" if role == "tool" else role
        draft.items.append(Message(known, tuple(content)))
        content.clear()


PartValue: TypeAlias = ResponseItem | Text | Image | Audio | Document
"""What a part becomes: an item, or a part of a message."""


def _read_part(part: JsonObject, path: str, draft: TranscriptDraft) -> PartValue | None:
    kind = part.get("type")
    if not isinstance(kind, str):
        raise mistake(f"{path}/type", "not a text")
    if kind == "blob" and not part.get("content"):
        draft.report.dropped(path, "its bytes were not recorded")
        return None
    if kind == "tool_call_response":
        return _read_response(part, path, draft)
    read = PARTS.get(kind)
    if read is None:
        draft.report.dropped(path, f"a part of the unknown type {kind!r:.60}")
        return None
    return read(part, path)


def _read_text(part: JsonObject, path: str) -> Text:
    return Text(text_at(part, "content", path))


def _read_reasoning(part: JsonObject, path: str) -> Reasoning:
    return Reasoning(text_at(part, "content", path))


def _read_compaction(part: JsonObject, path: str) -> Compaction:
    return Compaction(text_at(part, "content", path))


def _read_response(part: JsonObject, path: str, draft: TranscriptDraft) -> FunctionCallOutput:
    output = _read_output(part.get("response", part.get("result")), f"{path}/response", draft)
    return FunctionCallOutput(text_at(part, "id", path), output)


def _read_server_result(part: JsonObject, path: str) -> ServerToolResult:
    name, result = "", part.get("server_tool_call_response")
    if isinstance(result, dict) and result.keys() == {"type", "output"}:
        name, result = str(result["type"]), result["output"]
    return ServerToolResult(text_at(part, "id", path), name, result)


def _read_call(part: JsonObject, path: str) -> ResponseItem:
    """A call; instrumentations write its arguments as an object, or as its text."""
    call_id, name = text_at(part, "id", path), text_at(part, "name", path)
    arguments = part.get("arguments")
    if arguments is None:
        return FunctionCall(call_id, name)
    if not isinstance(arguments, str):
        return FunctionCall(call_id, name, msgspec.json.encode(arguments).decode())
    try:
        parse_arguments(arguments)
    except ValueError:
        return CustomToolCall(call_id, name, arguments)
    return FunctionCall(call_id, name, arguments)


def _read_server_call(part: JsonObject, path: str) -> ServerToolCall:
    fields = dict(object_at(part.get("server_tool_call") or {}, f"{path}/server_tool_call"))
    name = text_at(part, "name", path) or str(fields.get("type") or "tool")
    fields.pop("type", None)
    arguments: Any = fields
    if fields.keys() == {"arguments"}:
        arguments = fields["arguments"]
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode() if arguments else ""
    return ServerToolCall(text_at(part, "id", path), name, arguments)


def _read_output(response: Any, path: str, draft: TranscriptDraft) -> str | tuple[ContentPart, ...]:
    """An output: a text, parts as the writer below has them, or any other value as JSON."""
    if response is None:
        return ""
    if isinstance(response, str):
        return response
    if isinstance(response, list) and response:
        kinds = [element.get("type") if isinstance(element, dict) else None for element in response]
        if all(kind in ("text", "blob", "uri", "file") for kind in kinds):
            read = [
                _read_part(element, f"{path}/{index}", draft)
                for index, element in enumerate(response)
            ]
            return tuple([part for part in read if isinstance(part, CONTENT)])
    return msgspec.json.encode(response).decode()


def _read_media(part: JsonObject, path: str) -> Image | Audio | Document:
    media_type = text_at(part, "mime_type", path) or None
    modality = text_at(part, "modality", path) or (media_type or "").partition("/")[0]
    make: MediaKind = unchecked(MODALITIES.get(modality, Document))
    match part["type"]:
        case "blob":
            return make(data=text_at(part, "content", path), media_type=media_type)
        case "uri":
            return make(url=text_at(part, "uri", path), media_type=media_type)
        case _:
            return make(file_id=text_at(part, "file_id", path), media_type=media_type)


PARTS: Final[dict[str, Callable[[JsonObject, str], PartValue]]] = {
    "text": _read_text,
    "reasoning": _read_reasoning,
    "compaction": _read_compaction,
    "tool_call": _read_call,
    "server_tool_call": _read_server_call,
    "server_tool_call_response": _read_server_result,
    "blob": _read_media,
    "uri": _read_media,
    "file": _read_media,
}
"""Type of a part -> what reads it."""


# --- writing ---


def write_otel(entries: list[IndexedItem], report: Report) -> list[JsonObject]:
    """The messages of items; what a model made in a row is one."""
    messages: list[JsonObject] = []
    for entry in drop_incomplete(entries, report):
        role, parts = _written(entry, report)
        if not parts:
            continue
        # Two messages of a caller are two; blocks of a model, and results, are parts of one.
        is_joined = role in ("assistant", "tool") and messages and messages[-1]["role"] == role
        if is_joined:
            messages[-1]["parts"] += parts
        else:
            messages.append({"role": role, "parts": parts})
    return messages


def _written(entry: IndexedItem, report: Report) -> tuple[str, list[JsonObject]]:
    """Role and parts of one item."""
    item = entry.item
    _report_losses(entry, report)
    if isinstance(item, Message):
        return item.role, item_parts(item, with_bytes=True)
    if isinstance(item, OUTPUTS):
        return "tool", item_parts(item, with_bytes=True)
    if isinstance(item, Reasoning):
        item = Reasoning(reasoning_text(item))
    if isinstance(item, KINDS) or (isinstance(item, Compaction) and item.content):
        return "assistant", item_parts(item)
    readable = as_text(entry, report)
    return ("", []) if readable is None else _written(readable, report)


def _report_losses(entry: IndexedItem, report: Report) -> None:
    """Reports what an item has and no part has a field for."""
    item = entry.item
    if opaque_state(item):
        report.dropped(f"{entry.path}/signature", STATE)
    if isinstance(item, OUTPUTS) and item.is_error:
        report.dropped(f"{entry.path}/is_error", "the conventions have no field for it")
    for part in content_parts(item):
        if isinstance(part, Text) and part.annotations:
            report.dropped(entry.path, "citations have no place in a text part")
        elif isinstance(part, Refusal):
            report.add("changed", entry.path, "a refusal, written as text")
        elif isinstance(part, Audio) and part.transcript:
            report.dropped(
                f"{entry.path}/transcript", "the conventions have no transcripts of audio"
            )
        if isinstance(part, Media) and part.name:
            report.dropped(f"{entry.path}/name", "the conventions have no names of files")
