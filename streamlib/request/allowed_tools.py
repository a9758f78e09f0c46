"""A tool choice of type `allowed_tools`, for wires that have none.

    responses   {"type": "allowed_tools", "mode": "auto",
                 "tools": [{"type": "function", "name": "look"}]}
    chat        {"type": "allowed_tools", "allowed_tools": {"mode": "auto",
                 "tools": [{"type": "function", "function": {"name": "look"}}]}}

It names the tools that may be called; the others stay in the request for its prompt cache. On other
wires the others are left out: a restriction is never dropped. Source: openai 3.54,
``ToolChoiceAllowedParam`` and ``ChatCompletionAllowedToolsParam``.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from streamlib.request.json_objects import without
from streamlib.request.prompt import Prompt
from streamlib_parsers.items import JsonObject, ToolSpec, WireApi

NAMED: Final = ("function", "custom", "namespace")
"""Types of tools that have names of the caller's; `mcp` has the label of a server."""


class AllowedTools(NamedTuple):
    """The tools that may be called.

    Attributes:
        names: type and name of each; a function's type is "" here.
        is_required: whether one of them must be called.
    """

    names: frozenset[tuple[str, str]]
    is_required: bool

    def fitted(self, tool: ToolSpec) -> ToolSpec | None:
        """The tool, a namespace with its allowed functions alone, or None."""
        if _key_of_tool(tool) in self.names:
            return tool
        members = [member for member in tool.tools if _key_of_tool(member) in self.names]
        if members:
            return replace(tool, tools=members)
        return None


def choice_of_another_wire(prompt: Prompt, wire_api: WireApi) -> AllowedTools | None:
    """The allowed tools of a request of another wire; None where there is no such choice."""
    if prompt.extra is None or prompt.extra_wire in (None, wire_api):
        return None
    choice = prompt.extra.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return None
    inner = choice.get("allowed_tools", choice)
    tools = inner.get("tools") if isinstance(inner, dict) else None
    if not isinstance(tools, list):
        return None
    names = frozenset(_key(tool) for tool in tools if isinstance(tool, dict))
    return AllowedTools(names, inner.get("mode") == "required")


def without_choice(prompt: Prompt, allowed: AllowedTools) -> Prompt:
    """The prompt with the choice that the other wire has a word for."""
    extra = without(prompt.extra or {}, "tool_choice")
    choice = prompt.tool_choice
    if allowed.is_required:
        choice = "required"
    return replace(prompt, extra=extra or None, tool_choice=choice)


def _key(declaration: JsonObject) -> tuple[str, str]:
    """Type and name of a tool as a choice or a declaration names it."""
    kind = str(declaration.get("type"))
    if kind == "mcp":
        return kind, str(declaration.get("server_label"))
    if kind not in NAMED:
        return kind, ""
    inner: Any = declaration.get(kind, declaration)
    name = str(inner.get("name")) if isinstance(inner, dict) else ""
    if kind == "namespace":
        return kind, name
    return "", name


def _key_of_tool(tool: ToolSpec) -> tuple[str, str]:
    if tool.native is not None:
        return _key(tool.native)
    if tool.tools:
        return "namespace", tool.name
    return "", tool.name
