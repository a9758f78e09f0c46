"""What Interactions has around its steps: status, usage, errors."""

from __future__ import annotations

from typing import Final

from streamlib.request.report import Report
from streamlib.wires.json_objects import without_none
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.interactions import STOP_REASONS
from streamlib_parsers.wires.interactions import usage as read_usage

ID_PREFIX: Final = "v1_"
"""Beginning of the id of a response that has none."""

STATUSES: Final[dict[StopReason, str]] = {
    "stop": "completed",
    "tool_calls": "requires_action",
    "length": "incomplete",
    "content_filter": "incomplete",
    "refusal": "completed",
    "pause": "requires_continuation",
    "other": "completed",
}

CODES: Final[dict[ErrorKind, str]] = {
    "authentication": "authentication",
    "permission": "permission_denied",
    "rate_limited": "rate_limit_exceeded",
    "quota_exhausted": "quota_exceeded",
    "overloaded": "unavailable",
    "context_window_exceeded": "context_window_exceeded",
    "request_too_large": "payload_too_large",
    "invalid_request": "invalid_request",
    "invalid_history": "invalid_request",
    "content_filter": "content_filter",
    "not_found": "not_found",
    "stalled": "gateway_timeout",
    "deadline": "gateway_timeout",
    "cancelled": "cancelled",
}
"""Error codes by kind. Any other kind is `internal_error`."""

RESERVED: Final = frozenset({"id", "object", "status", "model", "steps", "usage", "error"})
"""Keys of an interaction that metadata must not replace."""

TEXTS: Final = frozenset(
    {
        "created",
        "updated",
        "service_tier",
        "continuation_token",
        "environment_id",
        "previous_interaction_id",
        "system_instruction",
    }
)
"""Keys of an interaction that hold texts, of which other wires have some with other values."""


def native_status(stop_reason: StopReason, native: str | None, report: Report) -> str:
    """The native status if it is one of this wire, else the nearest one."""
    own = STOP_REASONS.get(native or "")
    # Whether a completed interaction means `stop` or `tool_calls` depends on its calls.
    if native and (own == stop_reason or {own, stop_reason} <= {"stop", "tool_calls"}):
        return native
    nearest = STATUSES[stop_reason]
    if STOP_REASONS[nearest] != stop_reason:
        report.dropped("/stop_reason", f"Interactions has no status for {stop_reason}: {nearest}")
    return nearest


def interactions_usage(usage: Usage | None, report: Report) -> JsonObject | None:
    """The usage object.

    The provider's own object is returned if this wire reads the same numbers from it.
    """
    if usage is None:
        return None
    if usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    if usage.cache_write_input_tokens:
        reason = "Interactions does not count what is written to a cache"
        report.dropped("/usage/cache_write_input_tokens", reason)
    output_tokens, reasoning = usage.output_tokens, usage.reasoning_output_tokens
    if output_tokens is not None and reasoning is not None:
        output_tokens = max(0, output_tokens - reasoning)
    body = {
        "total_input_tokens": usage.input_tokens,
        "input_tokens_by_modality": _modalities(usage.input_modalities),
        "total_cached_tokens": usage.cache_read_input_tokens,
        "cached_tokens_by_modality": _modalities(usage.cache_modalities),
        "total_output_tokens": output_tokens,
        "output_tokens_by_modality": _modalities(usage.output_modalities),
        "total_thought_tokens": reasoning,
    }
    if usage.input_tokens is not None and usage.output_tokens is not None:
        body["total_tokens"] = usage.input_tokens + usage.output_tokens
    return without_none(body)


def _modalities(modalities: dict[str, int]) -> list[JsonObject] | None:
    if not modalities:
        return None
    return [{"modality": name, "tokens": tokens} for name, tokens in modalities.items()]


def metadata_fields(values: JsonObject) -> JsonObject:
    """The metadata that an interaction may have beside its own keys."""
    fields: JsonObject = {}
    for key, value in values.items():
        is_of_another_wire = key in TEXTS and not isinstance(value, str)
        if value is not None and not is_of_another_wire:
            fields[key] = value
    return fields


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error object."""
    code = CODES.get(error.kind, "internal_error")
    # The provider's own code is more precise, if this wire reads it as the same kind.
    if error.code and classify(None, _body(error.code, error.message)).kind == error.kind:
        code = error.code
    return _body(code, error.message)


def _body(code: str, message: str) -> JsonObject:
    return {"error": {"code": code, "message": message}}
