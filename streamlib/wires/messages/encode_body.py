"""Encodes a response as a non-streaming Message."""

from __future__ import annotations

import msgspec

from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.generated_ids import new_id
from streamlib.wires.messages.encode_blocks import block_of, has_block
from streamlib.wires.messages.encode_envelope import (
    ID_PREFIX,
    error_body,
    messages_usage,
    native_stop,
)
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    ResponseItem,
    WireApi,
)

__all__ = ["encode_body", "error_body"]


def encode_body(
    response: Response, model: str | None, report: Report, *, wire_api: WireApi = "messages"
) -> bytes:
    """Returns a Message, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    stop = native_stop(response.stop_reason or "other", response.native_stop_reason, report)
    content = [
        block_of(item, report) for item in response.items if _fits_in_body(item, report, wire_api)
    ]
    body = {
        # First, so that a key of another wire cannot replace one of ours.
        **response.metadata,
        "id": response.response_id or new_id(ID_PREFIX),
        "type": "message",
        "role": "assistant",
        "model": response.model or model or "",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": response.stop_sequence,
        "usage": messages_usage(response.usage) or {"input_tokens": 0, "output_tokens": 0},
    }
    return msgspec.json.encode(body)


def _fits_in_body(item: ResponseItem, report: Report, wire_api: WireApi) -> bool:
    if not has_block(item, report, own=is_own(item, wire_api)):
        return False
    if isinstance(item, (FunctionCallOutput, CustomToolCallOutput)):
        return False
    # An incomplete call would look callable in a body.
    return item.status == "completed" or not isinstance(item, (FunctionCall, CustomToolCall))
