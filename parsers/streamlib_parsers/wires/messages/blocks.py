"""Anthropic Messages: from the start of a content block to its item. What no typed field holds is kept in `native`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib_parsers.items import (
    Compaction,
    FunctionCall,
    JsonObject,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import string_or_none


def _rest(block: dict[str, Any], *typed: str) -> JsonObject | None:
    """What no typed field holds."""
    return {key: value for key, value in block.items() if key not in typed} or None


def _text_block(block: dict[str, Any]) -> ResponseItem:
    return Message("assistant", native=_rest(block, "type", "text", "citations"))


def _thinking_block(block: dict[str, Any]) -> ResponseItem:
    return Reasoning(
        signature=string_at(block, "signature") or None,
        native=_rest(block, "type", "thinking", "signature"),
    )


def _redacted_block(block: dict[str, Any]) -> ResponseItem:
    return Reasoning(
        encrypted_content=string_at(block, "data"),
        redacted=True,
        native=_rest(block, "type", "data"),
    )


def _tool_use_block(block: dict[str, Any]) -> ResponseItem:
    return FunctionCall(
        string_at(block, "id"),
        string_at(block, "name"),
        native=_rest(block, "type", "id", "name", "input"),
    )


def _server_tool_block(block: dict[str, Any]) -> ResponseItem:
    return ServerToolCall(
        string_at(block, "id"), string_at(block, "name"), native=_rest(block, "id", "name", "input")
    )


def _result_block(block: dict[str, Any]) -> ResponseItem:
    name = str(block["type"]).removesuffix("_tool_result")
    return ServerToolResult(
        string_at(block, "tool_use_id"),
        name,
        block.get("content"),
        native=_rest(block, "tool_use_id", "content"),
    )


def _compaction_block(block: dict[str, Any]) -> ResponseItem:
    return Compaction(
        string_or_none(block, "content"),
        string_or_none(block, "encrypted_content"),
        signature=string_or_none(block, "signature"),
        native=_rest(block, "type", "content", "encrypted_content", "signature"),
    )


def string_at(block: dict[str, Any], key: str) -> str:
    """The text at `key`, "" for anything else."""
    return string_or_none(block, key) or ""


BLOCKS: Final[dict[str, Callable[[dict[str, Any]], ResponseItem]]] = {
    "text": _text_block,
    "thinking": _thinking_block,
    "redacted_thinking": _redacted_block,
    "tool_use": _tool_use_block,
    "server_tool_use": _server_tool_block,
    "mcp_tool_use": _server_tool_block,
    "compaction": _compaction_block,
}
"""Block kinds with an item of their own. `*_tool_result` is a ServerToolResult, every other kind an Opaque."""


def item_of(kind: str, block: dict[str, Any]) -> ResponseItem:
    """The item that begins with a block of this kind."""
    if kind.endswith("_tool_result"):
        return _result_block(block)
    begin = BLOCKS.get(kind)
    return begin(block) if begin else Opaque(kind, block)
