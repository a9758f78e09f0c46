"""What Messages has around its blocks: stop reason, usage, errors."""

from __future__ import annotations

from typing import Final

from streamlib.request.report import Report
from streamlib.wires.json_objects import without_none
from streamlib.wires.usage_counts import uncached_input_tokens
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.messages import STOP_REASONS
from streamlib_parsers.wires.messages import usage as read_usage

ID_PREFIX: Final = "msg_"
"""Beginning of the id of a response that has none: clients require one."""

RESERVED_KEYS: Final = frozenset(
    {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}
)
"""Keys of a Message that metadata must not replace."""

NATIVE_STOP: Final[dict[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
    "other": "end_turn",
}

ERROR_TYPES: Final[dict[ErrorKind, str]] = {
    "authentication": "authentication_error",
    "permission": "permission_error",
    "rate_limited": "rate_limit_error",
    "quota_exhausted": "billing_error",
    "overloaded": "overloaded_error",
    "context_window_exceeded": "invalid_request_error",
    "request_too_large": "request_too_large",
    "invalid_request": "invalid_request_error",
    "invalid_history": "invalid_request_error",
    "content_filter": "invalid_request_error",
    "not_found": "not_found_error",
    "stalled": "timeout_error",
    "deadline": "timeout_error",
}
"""ErrorKind -> `error.type`; any other kind is `api_error`."""


def native_stop(stop_reason: StopReason, native: str | None, report: Report) -> str:
    """The native `stop_reason` if it is one of this wire, else the nearest one."""
    if native and (STOP_REASONS.get(native) == stop_reason or stop_reason == "other"):
        return native
    nearest = NATIVE_STOP[stop_reason]
    if STOP_REASONS[nearest] != stop_reason:
        report.dropped("/stop_reason", f"Messages has no value for {stop_reason}: {nearest}")
    return nearest


def messages_usage(usage: Usage | None) -> JsonObject | None:
    """The usage object.

    The provider's own object is returned if this wire reads the same numbers from it.
    """
    if usage is None:
        return None
    if usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    body: JsonObject = without_none(
        {
            "input_tokens": uncached_input_tokens(usage),
            "cache_creation_input_tokens": usage.cache_write_input_tokens,
            "cache_read_input_tokens": usage.cache_read_input_tokens,
        }
    )
    if usage.cache_write_1h_input_tokens is not None:
        body["cache_creation"] = {
            "ephemeral_5m_input_tokens": usage.cache_write_5m_input_tokens or 0,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_input_tokens,
        }
    if usage.reasoning_output_tokens is not None:
        body["output_tokens_details"] = {"thinking_tokens": usage.reasoning_output_tokens}
    body["output_tokens"] = usage.output_tokens or 0
    return body


def error_body(error: ErrorInfo) -> JsonObject:
    """The wire's error object."""
    error_type = ERROR_TYPES.get(error.kind, "api_error")
    return {"type": "error", "error": {"type": error_type, "message": error.message}}
