"""Encodes a response as a non-streaming body of Ollama: a single line."""

from __future__ import annotations

import msgspec

from streamlib.request.report import Report
from streamlib.wires.ollama.encode_objects import (
    EPOCH,
    NOT_IN_OLLAMA,
    call_object,
    done_reason,
    encode_line,
    error_body,
    final_fields,
    images_of,
)
from streamlib.wires.reasoning_text import reasoning_text
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import CustomToolCall, FunctionCall, JsonObject, Message, Reasoning


def encode_body(response: Response, model: str | None, report: Report) -> bytes:
    """Returns the line of a response, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    message: JsonObject = {"role": "assistant", "content": response.text + response.refusal}
    reasoning: list[str] = []
    images: list[str] = []
    for item in response.items:
        if isinstance(item, Reasoning) and reasoning_text(item):
            reasoning.append(reasoning_text(item))
        elif isinstance(item, Message):
            images += images_of(item, report)
        elif not isinstance(item, (Reasoning, FunctionCall, CustomToolCall)):
            report.dropped(f"/{type(item).__name__}", NOT_IN_OLLAMA)
    if response.reasoning:
        message["thinking"] = "\n\n".join(reasoning)
    if images:
        message["images"] = images
    if response.calls:
        message["tool_calls"] = [call_object(call, report) for call in response.calls]
    stop_reason = response.stop_reason or "other"
    reason = done_reason(stop_reason, response.native_stop_reason, report)
    fields = final_fields(reason, response.metadata, response.usage, report)
    line = {
        "model": response.model or model or "",
        "created_at": EPOCH,
        "message": message,
        **fields,
    }
    return encode_line(line)
