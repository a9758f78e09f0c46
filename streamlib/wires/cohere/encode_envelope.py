"""What Cohere has around its contents and calls: finish reason, usage, errors."""

from __future__ import annotations

from typing import Final

from streamlib.request.report import Report
from streamlib.wires.json_objects import without_none
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.cohere import STOP_REASONS
from streamlib_parsers.wires.cohere import usage as read_usage

FINISH_REASONS: Final[dict[StopReason, str]] = {
    "stop": "COMPLETE",
    "tool_calls": "TOOL_CALL",
    "length": "MAX_TOKENS",
    "content_filter": "ERROR_TOXIC",
    "refusal": "COMPLETE",
    "pause": "COMPLETE",
    "other": "COMPLETE",
}

ERROR_TYPES: Final[dict[ErrorKind, str]] = {
    "authentication": "authentication_error",
    "permission": "permission_error",
    "rate_limited": "rate_limit_exceeded",
    "quota_exhausted": "quota_exceeded",
    "overloaded": "service_unavailable",
    "context_window_exceeded": "TOO_MANY_TOKENS",
    "request_too_large": "request_too_large",
    "invalid_request": "bad_request",
    "invalid_history": "bad_request",
    "content_filter": "content_filter",
    "not_found": "not_found_error",
    "server_error": "server_error",
}
"""ErrorKind -> `error_type`: Cohere's own value if it has one, else one that our parsers know."""

RESERVED: Final = frozenset({"type", "id", "index", "delta", "message", "finish_reason", "usage"})
"""Keys that metadata must not replace."""


def finish_reason(
    stop_reason: StopReason, native: str | None, stop_sequence: str | None, report: Report
) -> str:
    """`native` if it is a finish reason of this wire, else the nearest one."""
    own = STOP_REASONS.get(native or "")
    # Whether a complete response means `stop` or `tool_calls` depends on its calls.
    if native and (own == stop_reason or {own, stop_reason} <= {"stop", "tool_calls"}):
        return native
    nearest = FINISH_REASONS[stop_reason]
    if stop_sequence:
        report.dropped("/stop_sequence", "Cohere does not name it")
        nearest = "STOP_SEQUENCE"
    if STOP_REASONS[nearest] != stop_reason:
        report.dropped("/stop_reason", f"Cohere has no reason for {stop_reason}: {nearest}")
    return nearest


def cohere_usage(usage: Usage | None, report: Report) -> JsonObject | None:
    """The usage object.

    The provider's own object is returned if this wire reads the same numbers from it.
    """
    if usage is None:
        return None
    if usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    if usage.cache_write_input_tokens:
        reason = "Cohere does not count what is written to a cache"
        report.dropped("/usage/cache_write_input_tokens", reason)
    if {*usage.input_modalities, *usage.output_modalities, *usage.cache_modalities} - {"image"}:
        report.dropped("/usage/modalities", "Cohere counts images alone")
    tokens = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_output_tokens,
        "image_tokens": usage.input_modalities.get("image"),
    }
    body = {
        "tokens": without_none(tokens),
        "cached_tokens": usage.cache_read_input_tokens,
    }
    return without_none(body)


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error object."""
    body: JsonObject = {"message": error.message}
    error_type = ERROR_TYPES.get(error.kind)
    if error_type is not None:
        body["error_type"] = error_type
    return body
