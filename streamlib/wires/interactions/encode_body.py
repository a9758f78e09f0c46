"""Encodes a response as a non-streaming interaction."""

from __future__ import annotations

import msgspec

from streamlib.request.report import Report
from streamlib.wires.generated_ids import new_id
from streamlib.wires.interactions.encode_envelope import (
    ID_PREFIX,
    error_body,
    interactions_usage,
    metadata_fields,
    native_status,
)
from streamlib.wires.interactions.encode_steps import has_step, step_of
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    CustomToolCall,
    FunctionCall,
    JsonObject,
    ResponseItem,
)

__all__ = ["encode_body", "error_body"]


def encode_body(response: Response, model: str | None, report: Report) -> bytes:
    """Returns an interaction, or the error body of a response that failed."""
    if response.error is not None:
        return msgspec.json.encode(error_body(response.error))
    status = native_status(response.stop_reason or "other", response.native_stop_reason, report)
    if response.stop_sequence:
        report.dropped("/stop_sequence", "Interactions does not name it")
    steps = [step_of(item, report) for item in response.items if _fits_in_body(item, report)]
    body: JsonObject = {
        # First, so that a key of another wire cannot replace one of ours.
        **metadata_fields(response.metadata),
        "id": response.response_id or new_id(ID_PREFIX),
        "object": "interaction",
        "model": response.model or model or "",
        "status": status,
        "steps": steps,
    }
    usage = interactions_usage(response.usage, report)
    if usage is not None:
        body["usage"] = usage
    return msgspec.json.encode(body)


def _fits_in_body(item: ResponseItem, report: Report) -> bool:
    if not has_step(item, report):
        return False
    # An incomplete call would look callable in a body.
    is_call = isinstance(item, (FunctionCall, CustomToolCall, *BUILT_IN_CALLS))
    return item.status == "completed" or not is_call
