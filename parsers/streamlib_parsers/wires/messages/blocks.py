"""Anthropic Messages: from the start of a content block to its item.

Keys without a typed field are kept in `native`, so that a replay sends them back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamlib_parsers.items import (
    Compaction,
    FunctionCall,
    Message,
    Opaque,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)
from streamlib_parsers.json_text import rest_of, string_at, string_or_none


def _text_block(block: dict[str, Any]) -> ResponseItem:
    # Text and citations become deltas, see `Machine._read_initial_content`.
    return Message("assistant", native=rest_of(block, "type", "text", "citations"))


def _thinking_block(block: dict[str, Any]) -> ResponseItem:
    return Reasoning(
        # Anthropic's own start has an empty signature: the signature_delta brings it.
        signature=string_at(block, "signature") or None,
        native=rest_of(block, "type", "thinking", "signature"),
    )


def _redacted_block(block: dict[str, Any]) -> ResponseItem:
    return Reasoning(
        encrypted_content=string_at(block, "data"),
        redacted=True,
        native=rest_of(block, "type", "data"),
    )


def _tool_use_block(block: dict[str, Any]) -> ResponseItem:
    return FunctionCall(
        string_at(block, "id"),
        string_at(block, "name"),
        native=rest_of(block, "type", "id", "name", "input"),
    )


def _server_tool_block(block: dict[str, Any]) -> ResponseItem:
    # `type` stays in `native`: `server_tool_use` and `mcp_tool_use` are one item class.
    return ServerToolCall(
        string_at(block, "id"),
        string_at(block, "name"),
        native=rest_of(block, "id", "name", "input"),
    )


def _result_block(block: dict[str, Any]) -> ResponseItem:
    # `type` stays in `native` for the replay; its prefix is the tool's name.
    return ServerToolResult(
        string_at(block, "tool_use_id"),
        str(block["type"]).removesuffix("_tool_result"),
        block.get("content"),
        native=rest_of(block, "tool_use_id", "content"),
    )


def _compaction_block(block: dict[str, Any]) -> ResponseItem:
    return Compaction(
        string_or_none(block, "content"),
        string_or_none(block, "encrypted_content"),
        signature=string_or_none(block, "signature"),
        native=rest_of(block, "type", "content", "encrypted_content", "signature"),
    )


BLOCKS: Final[dict[str, Callable[[dict[str, Any]], ResponseItem]]] = {
    "text": _text_block,
    "thinking": _thinking_block,
    "redacted_thinking": _redacted_block,
    "tool_use": _tool_use_block,
    "server_tool_use": _server_tool_block,
    "mcp_tool_use": _server_tool_block,
    "compaction": _compaction_block,
}
"""Block kinds with an item class. `*_tool_result` is a `ServerToolResult`, others an `Opaque`."""


def item_of(kind: str, block: dict[str, Any]) -> ResponseItem:
    """The item of a block (wire: `content_block`) whose type is `kind`."""
    make_item = BLOCKS.get(kind)
    if make_item is not None:
        return make_item(block)
    if kind.endswith("_tool_result"):
        return _result_block(block)
    return Opaque(kind, block)
