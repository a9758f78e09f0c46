"""The objects of Interactions that an encoder writes: steps, status, usage, errors."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from streamlib.request.json_objects import without_none
from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.interactions.build_parts import content
from streamlib.wires.usage_counts import output_tokens_without_reasoning
from streamlib_parsers.classification import classify
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
)
from streamlib_parsers.json_text import is_json
from streamlib_parsers.namespaces import flat_call_name
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.interactions import CALLS, RESULTS, STOP_REASONS
from streamlib_parsers.wires.interactions import usage as read_usage

# --- steps ---


def has_step(item: ResponseItem, report: Report) -> bool:
    """Whether the item can be a step; one that cannot is reported."""
    if item.choice:
        report.dropped("/choices", "Interactions has one choice")
        return False
    if isinstance(item, BUILT_IN_CALLS):
        report.dropped(f"/{type(item).__name__}", "Interactions has no such call")
        return False
    if isinstance(item, Compaction):
        report.dropped("/compaction", "Interactions has no compactions")
        return False
    if isinstance(item, Opaque) and not is_own(item, "interactions"):
        # It has state that only another wire knows.
        report.dropped("/Opaque", "Interactions has no such step")
        return False
    return True


def start_of(item: ResponseItem, report: Report) -> JsonObject:
    """The step of `step.start`: without what its deltas bring."""
    match item:
        case Message():
            step: JsonObject = {"type": "user_input" if item.role == "user" else "model_output"}
        case Reasoning():
            step = {"type": "thought"}
        case FunctionCall() | CustomToolCall():
            # The name of a namespace's function is not known to other clients.
            name = flat_call_name(item)
            step = {"type": "function_call", "id": item.call_id, "name": name, "arguments": {}}
        case ServerToolCall():
            step = _server_step(item, CALLS, "mcp_server_tool_call", report)
        case ServerToolResult():
            step = _server_step(item, RESULTS, "mcp_server_tool_result", report)
        case FunctionCallOutput():
            step = {"type": "function_result", "call_id": item.call_id}
        case Opaque():
            return _unknown_step(item)
        case _:
            raise TypeError(f"{type(item).__name__} is never part of a response")
    _add_own_fields(step, item)
    return step


def _add_own_fields(step: JsonObject, item: ResponseItem) -> None:
    """Adds what the wire's own server gave the step at its start."""
    notes = ("content", "summary", "result")
    step.update({k: v for k, v in (item.native or {}).items() if k not in notes})
    if item.signature and not isinstance(item, Message):
        step["signature"] = item.signature
    if isinstance(item, ServerToolResult) and item.output is not None:
        step["result"] = item.output


def end_delta(item: ResponseItem, start: JsonObject) -> JsonObject | None:
    """The delta with what only a complete item has, or None where deltas brought all."""
    kind = start["type"]
    match item:
        case Reasoning() if item.signature and item.signature != start.get("signature"):
            return {"type": "thought_signature", "signature": item.signature}
        case CustomToolCall():
            encoded = msgspec.json.encode({"input": item.input}).decode("utf-8")
            return {"type": "arguments_delta", "arguments": encoded}
        case FunctionCallOutput():
            return {"type": kind, "result": _result_of(item), "is_error": item.is_error}
        case ServerToolCall() | ServerToolResult():
            return _server_delta(item, start)
        case _:
            return None


def _server_delta(item: ServerToolCall | ServerToolResult, start: JsonObject) -> JsonObject | None:
    """The arguments or result of a provider-run tool, unless the start has them."""
    kind: str = start["type"]
    delta: JsonObject = {"type": kind}
    if isinstance(item, ServerToolCall):
        if item.arguments:
            delta["arguments"] = arguments_of(item)
    elif item.output is not None and start.get("result", "") != item.output:
        delta["result"] = item.output
    if item.signature and item.signature != start.get("signature"):
        delta["signature"] = item.signature
    delta.update({k: v for k, v in (item.native or {}).items() if k not in start})
    if delta.keys() == {"type"}:
        return None
    if kind.startswith("mcp_"):
        # The SDK's types require both.
        delta["name"], delta["server_name"] = start["name"], start["server_name"]
    return delta


def arguments_of(item: FunctionCall | ServerToolCall) -> Any:
    """The arguments in the provider's own bytes; text that is not JSON is left out."""
    if item.arguments and is_json(item.arguments):
        return Raw(item.arguments.encode("utf-8", "surrogatepass"))
    return {}


def _result_of(item: FunctionCallOutput) -> Any:
    if isinstance(item.output, str):
        if (item.native or {}).get("result") == "json" and is_json(item.output) and item.output:
            return Raw(item.output.encode("utf-8", "surrogatepass"))
        return item.output
    ignored = Report()
    parts = [content(part, "/items", ignored) for part in item.output]
    return [part for part in parts if part is not None]


def _server_step(
    item: ServerToolCall | ServerToolResult, own: frozenset[str], other: str, report: Report
) -> JsonObject:
    """One of Google's own tools; another provider's is written as a tool of an MCP server."""
    kind: str = (item.native or {}).get("type") or ""
    key = "id" if isinstance(item, ServerToolCall) else "call_id"
    if not is_own(item, "interactions") or kind not in own:
        kind = other
        report.dropped(
            "/server_tools", "another provider's tool is written as one of an MCP server"
        )
        # The SDK's types require all of these in a start, too.
        brought: JsonObject = {"result": ""}
        if isinstance(item, ServerToolCall):
            brought = {"arguments": {}}
        return {
            "type": kind,
            key: item.call_id,
            "name": item.name,
            "server_name": "",
            **brought,
        }
    step: JsonObject = {"type": kind, key: item.call_id}
    if kind.startswith("mcp_"):
        step |= {"name": item.name, "server_name": (item.native or {}).get("server_name", "")}
    return step


def _unknown_step(item: Opaque) -> JsonObject:
    # Unchanged where possible: replay needs the provider's order of keys.
    if "type" in item.payload:
        return item.payload
    return {"type": item.kind, **item.payload}


# --- status, usage, errors ---

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
    body = {
        "total_input_tokens": usage.input_tokens,
        "input_tokens_by_modality": _modalities(usage.input_modalities),
        "total_cached_tokens": usage.cache_read_input_tokens,
        "cached_tokens_by_modality": _modalities(usage.cache_modalities),
        "total_output_tokens": output_tokens_without_reasoning(usage, report),
        "output_tokens_by_modality": _modalities(usage.output_modalities),
        "total_thought_tokens": usage.reasoning_output_tokens,
    }
    if usage.input_tokens is not None and usage.output_tokens is not None:
        body["total_tokens"] = usage.input_tokens + usage.output_tokens
    return without_none(body)


def _modalities(modalities: dict[str, int]) -> list[JsonObject] | None:
    if not modalities:
        return None
    return [{"modality": name, "tokens": tokens} for name, tokens in modalities.items()]


def metadata_fields(values: JsonObject, report: Report) -> JsonObject:
    """The metadata that an interaction may have beside its own keys; the rest is reported."""
    fields: JsonObject = {}
    for key, value in values.items():
        if value is None:
            continue
        if key in TEXTS and not isinstance(value, str):
            report.dropped(f"/metadata/{key}", "the wire has a text under this key")
        else:
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
