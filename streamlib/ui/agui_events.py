"""AG-UI events and fields that its stream and its messages have in common."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib.ui.ui_parts import total_tokens
from streamlib.wires.encoders import sse
from streamlib.wires.json_objects import without_none
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage


def event_frame(kind: str, /, **fields: Any) -> bytes:
    """Returns one event of the protocol."""
    return sse({"type": kind, **fields})


def as_text(value: Any) -> str:
    """Returns text as it is, any other value as JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def result_id(prefix: str, call_id: str) -> str:
    """Returns the message id of a result that came with its call."""
    return f"{prefix}-{call_id}-result"


def agui_usage(usage: Usage, model: str | None) -> JsonObject:
    """Returns the protocol's usage of one model."""
    body: JsonObject = {}
    if model:
        body["model"] = model
    counts = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": total_tokens(usage),
        "reasoningTokens": usage.reasoning_output_tokens,
        "cachedInputTokens": usage.cache_read_input_tokens,
        "cacheWriteInputTokens": usage.cache_write_input_tokens,
    }
    body.update(without_none(counts))
    return body


def error_body(error: ErrorInfo) -> JsonObject:
    """Returns the protocol's error event."""
    return {"type": "RUN_ERROR", "message": error.message, "code": error.kind}
