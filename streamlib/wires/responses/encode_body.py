"""Encodes a response as a non-streaming Response object."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.generated_ids import new_id
from streamlib.wires.responses.encode_envelope import (
    ID_PREFIX,
    ending,
    envelope_of,
    incomplete_details,
    report_unknown_counts,
    response_object,
    responses_usage,
)
from streamlib.wires.responses.encode_errors import error_body, error_object
from streamlib.wires.responses.encode_items import (
    encodable,
    generated_id,
    images_of,
    item_object,
)
from streamlib_parsers.accumulate import Response
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    CustomToolCall,
    FunctionCall,
    JsonObject,
    ResponseItem,
    ServerToolCall,
)


def encode_body(
    response: Response,
    model: str | None,
    report: Report,
    *,
    created_at: int | None = None,
    clock: Callable[[], float] | None = None,
    settings: JsonObject | None = None,
) -> bytes:
    """Returns a Response, or the error body of a response that failed before it started.

    Args:
        response: The response to encode.
        model: Used if the response has none.
        report: Receives what the wire cannot carry.
        created_at: Unix seconds.
        clock: Returns the unix seconds of `completed_at`, for a response that is completed.
        settings: The request's settings (`request_settings`). With them and both times, the
            response has all members that Open Responses requires.
    """
    if response.error is not None and response.response_id is None and not response.items:
        return msgspec.json.encode(error_body(response.error))
    common: JsonObject = {
        "id": response.response_id or new_id(ID_PREFIX),
        "model": response.model or model or "",
    }
    if created_at is not None:
        common.update(created_at=created_at, parallel_tool_calls=True, tool_choice="auto")
    envelope = envelope_of(response.metadata, report)
    own = all(is_own(item, "responses") for item in response.items)
    status, fields = _status(response, envelope, report, own=own)
    with_details = settings is not None
    report_unknown_counts(response.usage, report, with_details=with_details)
    fields["usage"] = responses_usage(response.usage, own=own, with_details=with_details)
    if status == "completed" and clock is not None:
        fields["completed_at"] = envelope.get("completed_at") or int(clock())
    output = _output(response, common["id"], report)
    return msgspec.json.encode(
        response_object(common, status, output, envelope, settings, **fields)
    )


def _status(
    response: Response, envelope: JsonObject, report: Report, *, own: bool
) -> tuple[str | None, JsonObject]:
    """Returns the status and the fields that explain it."""
    if response.error is not None:
        return "failed", {"error": error_object(response.error)}
    native = response.native_stop_reason
    is_incomplete = native is not None and native.startswith("incomplete:")
    if response.stop_reason == "other" and own and not is_incomplete:
        # A status that only this server knows stays as it is.
        return native, {}
    stop_reason = response.stop_reason or "other"
    status, reason = ending(stop_reason, native, report, refused=bool(response.refusal))
    return status, {"incomplete_details": incomplete_details(envelope, reason)}


def _output(response: Response, response_id: str, report: Report) -> list[JsonObject]:
    output: list[JsonObject] = []
    for item in response.items:
        encoded = None
        if _fits_in_body(item):
            encoded = encodable(item, report)
        if encoded is not None:
            output.append(item_object(encoded, item.status, response_id, len(output)))
        for image in images_of(item):
            image_id = generated_id(image["type"], response_id, len(output))
            output.append({**image, "id": image_id, "status": "completed"})
    return output


def _fits_in_body(item: ResponseItem) -> bool:
    # An incomplete call would look callable in a body.
    calls = (FunctionCall, CustomToolCall, ServerToolCall, *BUILT_IN_CALLS)
    is_call = isinstance(item, calls)
    return item.status == "completed" or not is_call
