"""Which fields of a Claude request need a beta: Anthropic refuses them without its name in the
header `anthropic-beta` (on Bedrock: in the body's `anthropic_beta`).

The tables list what only the beta types of Anthropic's SDK have (2.12.0, `anthropic/types/beta`); a
test compares them. The names of the betas, and pairs that the types do not show, are from the SDK's
docstrings and from platform.claude.com/docs (November 2026): "Context editing",
"Compaction", "MCP connector", "Task budgets", "Fast mode", "Computer use", "Advisor tool",
"Refusals and fallback", "Mid-conversation changes". Betas that no field
shows (`context-1m`, `interleaved-thinking`) are in no table: `Prompt.headers` sends them.

Betas that differ in their date only are one family. A request names one beta of each family: the
caller's, else the newest that its fields need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamlib.providers.wire_specs import ANTHROPIC_BETA
from streamlib.request.headers import joined_lists
from streamlib.request.prompt import Prompt
from streamlib.request.target import BuildContext
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

_COMPACTION_EDIT: Final = "compact-2026-01-12"
_COMPACTION: Final = "compact-2026-09-04"
_CONTEXT_EDITING: Final = "context-management-2025-06-27"
_FALLBACKS: Final = "server-side-fallback-2026-07-01"
_MCP_LISTING: Final = "mcp-client-2026-09-15"
_MCP_TOOLSET: Final = "mcp-client-2025-11-20"
_MCP_SERVERS: Final = "mcp-client-2025-04-04"
_TOOL_CHANGES: Final = "mid-conversation-tool-changes-2026-07-01"
_ADVISOR: Final = "advisor-tool-2026-03-01"
_COMPUTER_2024: Final = "computer-use-2024-10-22"

FIELDS: Final[Mapping[str, str]] = {
    "thinking.block_binding": "thinking-binding-controls-2026-08-01",
    "output_config.task_budget": "task-budgets-2026-03-13",
    "output_format": "structured-outputs-2025-11-13",
    "compaction": _COMPACTION,
    "fallbacks": _FALLBACKS,
    "fallback_credit_token": "fallback-credit-2026-07-01",
    "speed": "fast-mode-2026-02-01",
    "thread": "message-threads-2026-08-12",
    "billing_policy": "user-profiles-billing-2026-10-01",
}
"""Dotted path in the body -> the beta of the field."""

VALUES: Final[Mapping[tuple[str, str], str]] = {
    ("thinking.display", "updates"): "thinking-display-updates-2026-08-18",
}
"""Dotted path and value -> the beta of the value."""

_PATHS: Final = (*FIELDS, *(path for path, _ in VALUES))
_FIRST_KEYS: Final = frozenset(path.partition(".")[0] for path in _PATHS)

EDITS: Final[Mapping[str, str]] = {
    "clear_tool_uses_20250919": _CONTEXT_EDITING,
    "clear_thinking_20251015": _CONTEXT_EDITING,
    "compact_20260112": _COMPACTION_EDIT,
}
"""`context_management.edits[].type` -> its beta."""

TOOLS: Final[Mapping[str, str]] = {
    "advisor_20260301": _ADVISOR,
    "bash_20241022": _COMPUTER_2024,
    "computer_20241022": _COMPUTER_2024,
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
    "mcp_toolset": _MCP_TOOLSET,
    "text_editor_20241022": _COMPUTER_2024,
}
"""`tools[].type` -> its beta."""

TURNS: Final[Mapping[str, str]] = {
    "clear_at": "mid-conversation-system-clear-at-2026-08-21",
    "output_config": "mid-conversation-output-config-2026-07-01",
}
"""Field of `messages[]` -> its beta."""

BLOCKS: Final[Mapping[str, str]] = {
    "advisor_tool_result": _ADVISOR,
    "compaction": _COMPACTION_EDIT,
    "fallback": _FALLBACKS,
    "mcp_tool_listing": _MCP_LISTING,
    "mcp_tool_result": _MCP_TOOLSET,
    "mcp_tool_use": _MCP_TOOLSET,
    "tool_addition": _TOOL_CHANGES,
    "tool_removal": _TOOL_CHANGES,
}
"""`messages[].content[].type` -> its beta."""

_INLINE_TOOLS: Final = "inline-tools-2026-09-15"
_DATE: Final = re.compile(r"-\d{4}-\d\d-\d\d$")
_BETA: Final = re.compile(r"[\w.-]+", re.ASCII)


def required_betas(body: JsonObject, header: str | None = None) -> list[str]:
    """The betas of a request.

    Args:
        body: a Messages request, or the part of one that Converse passes on to Claude.
        header: the betas that the caller names, as in `anthropic-beta`.

    Returns:
        The caller's betas, then those that fields of the body need.
    """
    betas = joined_lists(header or "")
    families = {_family(beta) for beta in betas}
    # Newest first: `mcp-client-2026-09-15` includes what its older dates offer.
    for beta in sorted(set(_betas_of_fields(body)), key=_date, reverse=True):
        if _family(beta) not in families:
            families.add(_family(beta))
            betas.append(beta)
    return betas


def take_betas(body: JsonObject, key: str = "anthropic_beta") -> dict[str, str]:
    """Removes the betas of a Bedrock body.

    Returns:
        The header with the betas; empty if the value is not a list of names.
    """
    names = body.get(key)
    if not isinstance(names, list) or not names:
        return {}
    for name in names:
        if not isinstance(name, str) or not _BETA.fullmatch(name):
            return {}
    del body[key]
    return {ANTHROPIC_BETA: ",".join(names)}


def report_lost_betas(prompt: Prompt, context: BuildContext) -> None:
    """Reports the betas of a request to a model of Bedrock that is not a Claude model."""
    if ANTHROPIC_BETA in prompt.headers:
        reason = f"{context.target.model} is not a Claude model"
        context.report.dropped(f"/headers/{ANTHROPIC_BETA}", reason)


def _family(beta: str) -> str:
    """The name without its date."""
    return _DATE.sub("", beta)


def _date(beta: str) -> str:
    """The date of a beta and, so that the order does not depend on a hash, its name."""
    return beta[len(_family(beta)) :] + beta


def _betas_of_fields(body: JsonObject) -> Iterator[str]:
    if not _FIRST_KEYS.isdisjoint(body):  # most requests have none of them
        for path, beta in FIELDS.items():
            if _value(body, path) is not None:
                yield beta
        for (path, value), beta in VALUES.items():
            if _value(body, path) == value:
                yield beta
    yield from _betas_of_types(_value(body, "context_management.edits"), EDITS)
    yield from _betas_of_tools(body.get("tools"))
    if body.get("mcp_servers"):
        yield _MCP_SERVERS
    for turn in objects_in(body.get("messages")):
        for name, beta in TURNS.items():
            if turn.get(name) is not None:
                yield beta
        yield from _betas_of_blocks(turn.get("content"))


def _betas_of_tools(tools: object) -> Iterator[str]:
    yield from _betas_of_types(tools, TOOLS)
    for tool in objects_in(tools):
        # A toolset that pins the tools of an MCP server.
        if tool.get("type") == "mcp_toolset" and tool.get("tools") is not None:
            yield _MCP_LISTING


def _betas_of_blocks(content: object) -> Iterator[str]:
    for block in objects_in(content):
        block_type = block.get("type")
        if not isinstance(block_type, str) or block_type not in BLOCKS:
            continue
        yield BLOCKS[block_type]
        # Blocks of the newer beta are signed; those of an edit are not.
        if block_type == "compaction" and block.get("signature") is not None:
            yield _COMPACTION
        tool = block.get("tool")
        if isinstance(tool, dict) and tool.get("type") == "tool_definition":
            yield _INLINE_TOOLS
            if _value(tool, "definition.type") == "mcp_toolset":
                yield _MCP_LISTING


def _betas_of_types(values: object, table: Mapping[str, str]) -> Iterator[str]:
    for value in objects_in(values):
        value_type = value.get("type")
        if isinstance(value_type, str) and value_type in table:
            yield table[value_type]


def _value(body: JsonObject, path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    value: Any = body
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
