"""Gemini Interactions: from the start of a step to its item.

Keys without a typed field are kept in `native`, so that a replay sends them back.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib_parsers.items import (
    FunctionCall,
    FunctionCallOutput,
    JsonObject,
    Message,
    Opaque,
    Output,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import dumps, rest_of, string_or_none
from streamlib_parsers.wires.interactions.contents import part_of

SERVER_TOOLS: Final = (
    "google_search",
    "code_execution",
    "url_context",
    "file_search",
    "google_maps",
    "retrieval",
    "tool_search",
    "processing",
    "mcp_server_tool",
)
"""Tools that Google runs: each has a step for its call and one for its result."""

CALLS: Final = frozenset(f"{tool}_call" for tool in SERVER_TOOLS)
RESULTS: Final = frozenset(f"{tool}_result" for tool in SERVER_TOOLS)


def item_of(kind: str, step: dict[str, Any]) -> ResponseItem:
    """The item of a step whose type is `kind`, without contents, arguments and output."""
    signature = string_or_none(step, "signature") or None
    if kind == "model_output":
        return Message("assistant", native=rest_of(step, "type", "content", "error"))
    if kind == "user_input":
        return Message("user", native=rest_of(step, "type", "content"))
    if kind == "thought":
        return Reasoning(signature=signature, native=rest_of(step, "type", "signature", "summary"))
    if kind == "function_call":
        native = rest_of(step, "type", "id", "name", "arguments", "signature")
        call_id = string_or_none(step, "id") or ""
        name = string_or_none(step, "name") or ""
        return FunctionCall(call_id, name, signature=signature, native=native)
    if kind == "function_result":
        return _function_result(step, signature)
    if kind in CALLS:
        return _server_call(kind, step, signature)
    if kind in RESULTS:
        return _server_result(kind, step, signature)
    return Opaque(kind, step)


def output_of(result: Any) -> tuple[Output, JsonObject | None]:
    """`FunctionCallOutput.output` of a result, and a note if its text was another JSON value."""
    if isinstance(result, str):
        return result, None
    if result is None:
        return "", None
    if isinstance(result, list) and result:
        parts = [part_of(content) for content in result if isinstance(content, dict)]
        known = [part for part in parts if part is not None]
        if len(known) == len(result):
            return tuple(known), None
    return dumps(result), {"result": "json"}


def _function_result(step: dict[str, Any], signature: str | None) -> FunctionCallOutput:
    output, note = output_of(step.get("result"))
    native = rest_of(step, "type", "call_id", "result", "is_error", "signature") or {}
    native.update(note or {})
    return FunctionCallOutput(
        string_or_none(step, "call_id") or "",
        output,
        step.get("is_error") is True,
        signature=signature,
        native=native or None,
    )


def _server_call(kind: str, step: dict[str, Any], signature: str | None) -> ServerToolCall:
    # `type` stays in `native`: all of these are one item class. Tools of MCP have their own names.
    return ServerToolCall(
        string_or_none(step, "id") or "",
        string_or_none(step, "name") or kind.removesuffix("_call"),
        signature=signature,
        native=rest_of(step, "id", "name", "arguments", "signature"),
    )


def _server_result(kind: str, step: dict[str, Any], signature: str | None) -> ServerToolResult:
    return ServerToolResult(
        string_or_none(step, "call_id") or "",
        string_or_none(step, "name") or kind.removesuffix("_result"),
        step.get("result"),
        signature=signature,
        native=rest_of(step, "call_id", "name", "result", "signature"),
    )
