"""Parts of Vercel's UI message stream that its stream and its messages have in common."""

from __future__ import annotations

from typing import Any

from streamlib.ui.ui_parts import total_tokens
from streamlib.wires.encoders import sse
from streamlib.wires.json_objects import without_none
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import BuiltInCall, JsonObject, Opaque, ResponseItem, ServerToolCall
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.responses.wire_items import wire_item


def part_frame(kind: str, /, **fields: Any) -> bytes:
    """Returns one part of the stream."""
    return sse({"type": kind, **fields})


def provider_executed(item: ResponseItem) -> JsonObject:
    """Returns the field that marks a tool which the provider ran."""
    if isinstance(item, ServerToolCall):
        return {"providerExecuted": True}
    return {}


def custom_frame(item: Opaque | BuiltInCall) -> bytes:
    """Returns the `custom` part of an item without a part of its own, which version 7 has."""
    provider: str | None = None
    if item.origin is not None:
        provider = item.origin.provider or item.origin.wire_api
    provider = provider or "unknown"
    if isinstance(item, Opaque):
        kind, payload = item.kind, item.payload
    else:
        payload = wire_item(item)
        kind = payload["type"]
    return part_frame("custom", kind=f"{provider}.{kind}", providerMetadata={provider: payload})


def message_metadata(usage: Usage | None, model: str | None) -> JsonObject:
    """Returns the metadata of a message: usage and model, as far as they are known."""
    metadata: JsonObject = {}
    if usage:
        metadata["usage"] = usage_metadata(usage)
    if model:
        metadata["model"] = model
    return metadata


def usage_metadata(usage: Usage) -> JsonObject:
    """Returns the SDK's ``LanguageModelUsage``: totals, and what they consist of."""
    read = usage.cache_read_input_tokens
    written = usage.cache_write_input_tokens
    reasoning = usage.reasoning_output_tokens
    totals = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": total_tokens(usage),
    }
    input_details = {
        "noCacheTokens": _remaining(usage.input_tokens, read, written or 0),
        "cacheReadTokens": read,
        "cacheWriteTokens": written,
    }
    output_details = {
        "textTokens": _remaining(usage.output_tokens, reasoning),
        "reasoningTokens": reasoning,
    }
    return {
        **without_none(totals),
        "inputTokenDetails": without_none(input_details),
        "outputTokenDetails": without_none(output_details),
    }


def _remaining(total: int | None, *counts: int | None) -> int | None:
    """Returns a total without some of its counts; None if any of the numbers is not known."""
    if total is None:
        return None
    for count in counts:
        if count is None:
            return None
        total -= count
    return total


def error_body(error: ErrorInfo) -> JsonObject:
    """Returns the protocol's error part."""
    return {"type": "error", "errorText": f"{error.kind}: {error.message}"}
