"""Rules of Anthropic's Messages API for tools, their choice, cache marks and output formats.

Numbers are those of docs/wires/messages.md. Types and fields are those of the official SDK
(anthropic 2.12.0, ``types/tool_union_param.py`` and its beta).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from streamlib.providers.models import traits
from streamlib.testing.provider.strict.messages import EXTRA, check_keys, has_beta
from streamlib.testing.provider.strict.rules import (
    Rejection,
    Rule,
    StrictRequest,
    all_blocks,
    first_repeated,
    names,
    object_of,
    schemas_in,
    string,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.json_text import objects_in

COMMON: Final = frozenset(
    {"type", "name", "cache_control", "defer_loading", "allowed_callers", "strict"}
)
_EXAMPLES: Final = COMMON | {"input_examples"}
_SEARCH: Final = COMMON | {"allowed_domains", "blocked_domains", "max_uses", "user_location"}
_FETCH: Final = COMMON | {
    "allowed_domains",
    "blocked_domains",
    "citations",
    "max_content_tokens",
    "max_uses",
    "url_sources",
}
_SCREEN: Final = _EXAMPLES | {"display_height_px", "display_width_px", "display_number"}
_TOOLSET: Final = frozenset({"type", "cache_control", "configs"})

CUSTOM_FIELDS: Final = _EXAMPLES | {"description", "input_schema", "eager_input_streaming"}

TOOL_FIELDS: Final[dict[str, frozenset[str]]] = {
    "bash_20250124": _EXAMPLES,
    "code_execution_20250522": COMMON,
    "code_execution_20250825": COMMON,
    "code_execution_20260120": COMMON,
    "code_execution_20260521": COMMON,
    "browser_toolset_20260801": _TOOLSET,
    "computer_toolset_20260801": _TOOLSET,
    "memory_20250818": _EXAMPLES,
    "text_editor_20250124": _EXAMPLES,
    "text_editor_20250429": _EXAMPLES,
    "text_editor_20250728": _EXAMPLES | {"max_characters"},
    "web_search_20250305": _SEARCH,
    "web_search_20260209": _SEARCH,
    "web_search_20260318": _SEARCH | {"response_inclusion"},
    "web_fetch_20250910": _FETCH,
    "web_fetch_20260209": _FETCH,
    "web_fetch_20260309": _FETCH | {"use_cache"},
    "web_fetch_20260318": _FETCH | {"use_cache", "response_inclusion"},
    "tool_search_tool_bm25_20251119": COMMON,
    "tool_search_tool_bm25": COMMON,
    "tool_search_tool_regex_20251119": COMMON,
    "tool_search_tool_regex": COMMON,
    "bash_20241022": _EXAMPLES,
    "text_editor_20241022": _EXAMPLES,
    "computer_20241022": _SCREEN,
    "computer_20250124": _SCREEN,
    "computer_20251124": _SCREEN | {"enable_zoom"},
    "advisor_20260301": COMMON | {"caching", "max_tokens", "max_uses", "model"},
    "mcp_toolset": _TOOLSET | {"default_config", "mcp_server_name", "tools"},
}
"""Type of a tool that Anthropic defines -> its fields."""

TOOLS_OF_BETAS: Final[dict[str, str]] = {
    "bash_20241022": "computer-use-2024-10-22",
    "text_editor_20241022": "computer-use-2024-10-22",
    "computer_20241022": "computer-use-2024-10-22",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
    "advisor_20260301": "advisor-tool",
    "mcp_toolset": "mcp-client",
}
"""Type of a tool that only the SDK's beta types have -> prefix of its beta."""

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CHOICES: Final = ("auto", "any", "tool", "none")
CACHE_LIMIT: Final = 4

UNSUPPORTED_KEYWORDS: Final = names(
    """
    minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems
    uniqueItems minProperties maxProperties patternProperties propertyNames not if then else
    dependentRequired dependentSchemas contains
    """
)
"""Keywords that a strict schema cannot have (docs, "Structured outputs"; the SDK moves them into
the description: ``lib/_parse/_transform.py``)."""


def check_tools(request: StrictRequest) -> None:
    """Types and fields are known, names and schemas valid (A10, S5, S8; claude-code#31033)."""
    tools = request.body.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise Rejection("tools: Input should be a valid list")
    names: list[str] = []
    for n, tool in enumerate(objects_in(tools)):
        kind = tool.get("type") or "custom"
        if kind == "custom":
            _check_custom(tool, f"tools.{n}.custom")
        else:
            _check_defined(request, tool, n)
        if "name" in tool:
            names.append(tool["name"])
    if first_repeated(names) is not None:
        raise Rejection("tools: Tool names must be unique.")


def _check_custom(tool: JsonObject, path: str) -> None:
    check_keys(tool, CUSTOM_FIELDS, path)
    if not TOOL_NAME.fullmatch(string(tool.get("name"))):
        raise Rejection(f"{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if not isinstance(tool.get("description", ""), str):
        raise Rejection(f"{path}.description: Input should be a valid string")
    schema = tool.get("input_schema")
    if not isinstance(schema, dict):
        raise Rejection(f"{path}.input_schema: Field required")
    if schema.get("type") != "object":
        raise Rejection(f"{path}.input_schema.type: Input should be 'object'")
    for keyword in ("oneOf", "allOf", "anyOf"):
        if keyword in schema:
            raise Rejection(
                f"{path}.input_schema: input_schema does not support oneOf, allOf, or anyOf at "
                "the top level"
            )
    if tool.get("strict"):
        _check_strict_schema(schema, f"{path}.input_schema")
        return


def _check_defined(request: StrictRequest, tool: JsonObject, n: int) -> None:
    kind = string(tool["type"])
    beta = TOOLS_OF_BETAS.get(kind)
    if kind not in TOOL_FIELDS or (beta is not None and not has_beta(request, beta)):
        expected = ", ".join(f"'{name}'" for name in TOOL_FIELDS)
        raise Rejection(
            f"tools.{n}: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {expected}"
        )
    check_keys(tool, TOOL_FIELDS[kind], f"tools.{n}.{kind}")


def _check_strict_schema(schema: JsonObject, path: str) -> None:
    """A strict schema is closed and has no unsupported keywords (docs, "Structured outputs")."""
    for inner_path, inner in schemas_in(schema):
        schema_path = f"{path}{inner_path}"
        for keyword in inner:
            if keyword in UNSUPPORTED_KEYWORDS:
                raise Rejection(
                    f"{schema_path}: For this type, property '{keyword}' is not supported"
                )
        is_object = inner.get("type") == "object" or "properties" in inner
        if is_object and inner.get("additionalProperties") is not False:
            raise Rejection(
                f"{schema_path}: For 'object' type, 'additionalProperties' must be explicitly set "
                "to false"
            )


def check_output_format(request: StrictRequest) -> None:
    """The schema of an output format is valid in strict mode (docs, "Structured outputs")."""
    output_format = object_of(object_of(request.body.get("output_config")).get("format"))
    if not output_format:
        return
    schema = output_format.get("schema")
    if output_format.get("type") != "json_schema" or not isinstance(schema, dict):
        raise Rejection("output_config.format: Field required")
    _check_strict_schema(schema, "output_config.format.schema")


def check_tool_choice(request: StrictRequest) -> None:
    """A tool choice needs tools, and a named tool must be one of them."""  # rule S6
    choice = request.body.get("tool_choice")
    if choice is None:
        return
    kind = object_of(choice).get("type")
    if kind not in CHOICES:
        raise Rejection(
            f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the "
            "expected tags: 'auto', 'any', 'tool', 'none'"
        )
    tools = objects_in(request.body.get("tools"))
    if not tools and kind != "none":
        raise Rejection("tool_choice: tool_choice may only be specified while providing tools.")
    if kind == "none" and "disable_parallel_tool_use" in choice:
        raise Rejection(f"tool_choice.none.disable_parallel_tool_use: {EXTRA}")
    names = [tool.get("name") for tool in tools]
    if kind == "tool" and choice.get("name") not in names:
        raise Rejection(f"tool_choice: Tool '{choice.get('name')}' not found in provided tools")


def check_forced_choice(request: StrictRequest) -> None:
    """The newest models refuse a choice that forces a call."""  # rule T7
    kind = object_of(request.body.get("tool_choice")).get("type")
    if kind in ("any", "tool") and not traits(request.model).forced_tools:
        raise Rejection(f'tool_choice: type "{kind}" is not supported on this model.')


def check_cache_marks(request: StrictRequest) -> None:
    """There are at most four cache marks, those of one hour before those of five minutes.

    Source: docs, "Prompt caching". The order is tools, system prompt, messages.
    """  # rule A23
    seen_short = False
    count = 0
    for path, holder in _cacheable(request):
        mark = holder.get("cache_control")
        if mark is None:
            continue
        count += 1
        ttl = object_of(mark).get("ttl", "5m")
        if object_of(mark).get("type") != "ephemeral" or ttl not in ("5m", "1h"):
            raise Rejection(f"{path}.cache_control: Input should be 'ephemeral'")
        check_keys(mark, ("type", "ttl"), f"{path}.cache_control.ephemeral")
        if holder.get("defer_loading"):
            raise Rejection(f"{path}: cache_control cannot be set on a tool with defer_loading")
        if holder.get("type") == "text" and not holder.get("text"):
            raise Rejection(f"{path}: cache_control cannot be set for empty text blocks")
        if ttl == "1h" and seen_short:
            raise Rejection(
                f"{path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
                "ttl='5m' cache_control block"
            )
        seen_short = seen_short or ttl == "5m"
    if "cache_control" in request.body:
        count += 1
    if count > CACHE_LIMIT:
        raise Rejection(
            f"A maximum of {CACHE_LIMIT} blocks with cache_control may be provided. Found {count}."
        )


def _cacheable(request: StrictRequest) -> Iterator[tuple[str, JsonObject]]:
    """Everything that may have a cache mark, with its path, in the order of the cache."""
    for n, tool in enumerate(objects_in(request.body.get("tools"))):
        yield f"tools.{n}", tool
    for n, block in enumerate(objects_in(request.body.get("system"))):
        yield f"system.{n}", block
    for path, _, block in all_blocks(request):
        if block["type"] == "tool_result":
            for m, inner in enumerate(objects_in(block.get("content"))):
                yield f"{path}.tool_result.content.{m}", inner
        yield path, block


def check_deferred(request: StrictRequest) -> None:
    """At least one tool is not deferred."""  # rule S7
    tools: list[Any] = objects_in(request.body.get("tools"))
    deferred = [tool for tool in tools if tool.get("defer_loading")]
    if tools and len(deferred) == len(tools):
        raise Rejection("tools: at least one tool must have defer_loading=false")


TOOL_RULES: Final[tuple[Rule, ...]] = (
    check_tools,
    check_output_format,
    check_tool_choice,
    check_forced_choice,
    check_cache_marks,
    check_deferred,
)
"""The rules of this module."""
