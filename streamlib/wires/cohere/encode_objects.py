"""The objects of Cohere that an encoder writes: calls, usage, errors."""

from __future__ import annotations

from typing import Final

from streamlib.request.json_objects import without_none
from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import (
    BUILT_IN_CALLS,
    Compaction,
    CustomToolCall,
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from streamlib_parsers.json_text import dumps
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.cohere import STOP_REASONS
from streamlib_parsers.wires.cohere import usage as read_usage

# --- items ---

NO_PLACE = (
    *BUILT_IN_CALLS,
    Compaction,
    FunctionCallOutput,
    ServerToolCall,
    ServerToolResult,
)
"""Items that a Cohere message cannot hold."""


def has_place(item: ResponseItem, report: Report) -> bool:
    """Whether the item can be in a response; one that cannot is reported."""
    if item.choice:
        report.dropped("/choices", "Cohere has one choice")
        return False
    # An item that only another wire knows has state of that wire.
    if isinstance(item, NO_PLACE) or (isinstance(item, Opaque) and not is_own(item, "cohere")):
        report.dropped(f"/{type(item).__name__}", "Cohere has no such item")
        return False
    return True


def is_plan(item: Message) -> bool:
    """Whether the message is a tool plan."""
    return item.phase == "commentary" and all(isinstance(part, Text) for part in item.content)


def own_fields(item: ResponseItem) -> JsonObject:
    """Further keys of the wire's own object, if the item was made on this wire."""
    return dict(item.native or {})


def signature_fields(item: ResponseItem) -> JsonObject:
    """The signature of reasoning. Cohere has none, but gateways keep their state in it."""
    if isinstance(item, Reasoning) and item.signature:
        return {"signature": item.signature}
    return {}


def call_arguments(item: FunctionCall | CustomToolCall, report: Report) -> str:
    """The arguments of a call; a free-form call has its text as `input`."""
    if isinstance(item, FunctionCall):
        return item.arguments
    report.dropped("/custom_tool_call", "a free-form call is a function's with `input`")
    return dumps({"input": item.input})


def report_losses(item: ResponseItem, report: Report) -> None:
    """Reports what a complete item has and the wire cannot express."""
    if item.signature and not signature_fields(item):
        report.dropped("/signature", "Cohere has no signatures")
    match item:
        case Reasoning() if item.encrypted_content:
            report.dropped("/encrypted_content", "Cohere has no encrypted reasoning")
        case Message():
            if item.phase not in (None, "commentary"):
                report.dropped("/phase", "Cohere has no phases but that of a tool plan")
            for part in item.content:
                if isinstance(part, Text):
                    _report_citations(part, report)
        case _:
            pass


def _report_citations(part: Text, report: Report) -> None:
    if any("sources" not in annotation for annotation in part.annotations):
        report.dropped("/annotations", "a citation of another wire")


# --- finish reason, usage, errors ---

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
