"""What the lines of an Ollama stream and its non-streaming body have in common."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.json_objects import without_none
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Image,
    JsonObject,
    Message,
    Refusal,
    Text,
)
from streamlib_parsers.namespaces import flat_call_name
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.ollama import TYPED_KEYS, USAGE_KEYS
from streamlib_parsers.wires.ollama import usage as read_usage

EPOCH: Final = "1970-01-01T00:00:00Z"
"""`created_at` of a response whose time is not known."""
KNOWN_DONE_REASONS: Final = frozenset({"stop", "length", "load", "unload"})
RESERVED_KEYS: Final = TYPED_KEYS | {"error"}
"""Envelope keys that have another meaning in a line."""
NOT_IN_OLLAMA: Final = "Ollama has no field for it"


def encode_line(value: JsonObject, name: str = "") -> bytes:
    """One line. Line breaks in JSON of the provider's own bytes become spaces."""
    return msgspec.json.encode(value).replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def call_object(item: FunctionCall | CustomToolCall, report: Report) -> JsonObject:
    """An entry of `tool_calls`: arguments in their own bytes, free text as `input`."""
    arguments: Any = {}
    if isinstance(item, CustomToolCall):
        report.dropped("/custom_tool_call", "a free-form call has its text as `input`")
        arguments = {"input": item.input}
    elif item.arguments:
        arguments = Raw(item.arguments.encode("utf-8"))
    else:
        report.dropped("/arguments", "empty arguments are written as {}")
    entry: JsonObject = {"id": item.call_id}
    function = {"name": flat_call_name(item), "arguments": arguments}
    if is_own(item, "ollama") and item.native:
        entry.update(item.native)
        function.update(item.native.get("function", {}))
        # The wire has the function last.
        entry.pop("function", None)
    entry["function"] = function
    return entry


def images_of(item: Message, report: Report) -> list[str]:
    """The images of a message in base64."""
    images: list[str] = []
    for part in item.content:
        if isinstance(part, Image) and part.data:
            images.append(part.data)
        elif not isinstance(part, (Text, Refusal)):
            report.dropped("/media", "Ollama has images as bytes only")
    return images


def done_reason(reason: StopReason, native: str | None, report: Report) -> str:
    """The native `done_reason` if it is one of this wire, else the nearest one."""
    if reason == "length":
        return "length"
    if native in KNOWN_DONE_REASONS and reason == "other":
        return native
    if reason not in ("stop", "tool_calls"):
        report.dropped("/stop_reason", f"Ollama has no value for {reason}: stop")
    return "stop"


def final_fields(
    reason: str, envelope: JsonObject, usage: Usage | None, report: Report
) -> JsonObject:
    """What the last line has beside its message."""
    fields: JsonObject = {"done": True, "done_reason": reason}
    for key, value in envelope.items():
        if key in RESERVED_KEYS:
            report.dropped(f"/metadata/{key}", "Ollama has another meaning for the key")
        else:
            fields[key] = value
    fields.update(_counts(usage, report))
    return fields


def _counts(usage: Usage | None, report: Report) -> JsonObject:
    if usage is None:
        return {}
    input_key, output_key = USAGE_KEYS
    counts = without_none({input_key: usage.input_tokens, output_key: usage.output_tokens})
    if not read_usage(counts).same_numbers(usage):
        report.dropped("/usage", "Ollama separates neither cached input nor reasoning")
    return counts


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error: only a message."""
    return {"error": error.message}
