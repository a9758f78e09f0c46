"""Items as steps of Interactions."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from streamlib.request.origins import is_own
from streamlib.request.report import Report
from streamlib.wires.interactions.build_parts import content
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
from streamlib_parsers.wires.interactions import CALLS, RESULTS


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
