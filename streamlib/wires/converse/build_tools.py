"""Tools of a Converse request, and which of them the model may call.

Numbers such as B17 are the rows of the rule table in docs/wires/converse.md, T7 is one of
docs/wires/messages.md.
"""

from __future__ import annotations

from typing import Final

from streamlib.request.history import CALLS, IndexedItem
from streamlib.request.json_objects import merged
from streamlib.request.prompt import Prompt
from streamlib.request.tool_options import option_fields
from streamlib.wires.arguments import free_form_schema, object_schema
from streamlib.wires.bedrock import CLAUDE, Choice
from streamlib.wires.converse.build_cache import cache_point
from streamlib.wires.converse.build_parts import ConverseContext
from streamlib_parsers.items import JsonObject, ServerToolCall, ToolSpec

CONVERSE_TOOLS: Final = frozenset({"toolSpec", "systemTool", "cachePoint"})
"""Members of tools that Converse itself knows."""
TOOL_CHOICES: Final[dict[str, Choice]] = {"auto": "auto", "required": "any"}
"""`Prompt.tool_choice` -> form of `toolChoice`; anything else but `none` is the name of a tool."""
FALLBACKS: Final[dict[Choice, tuple[Choice, ...]]] = {
    "tool": ("any", "auto"),
    "any": ("auto",),
    "auto": (),
}
"""Form of `toolChoice` -> the forms to try instead, nearest first."""


# --- tools ---


def tools(prompt: Prompt, items: list[IndexedItem], context: ConverseContext) -> list[JsonObject]:
    """The tools that Converse knows; those that only Claude knows go to the model's fields.

    Calls in the history need their tools, so these get stubs if the prompt has none.
    """  # rule B1
    bodies: list[JsonObject] = []
    for index, tool in enumerate(prompt.tools):
        body = _tool(tool, f"/tools/{index}", context)
        if body:
            bodies.append(body)
            bodies += _cache_points(tool, f"/tools/{index}", context)
    if bodies:
        return bodies
    stubs = _stubs(items)
    if stubs:
        context.report.add(
            "generated",
            "/tools",
            "calls in the history need their tools: stubs for those that are not given",
        )
    return stubs


def _cache_points(tool: ToolSpec, path: str, context: ConverseContext) -> list[JsonObject]:
    """The cache point after a tool, if it has one."""  # rule B14
    if tool.cache is None:
        return []
    if "tools" not in context.family.caches:
        context.report.dropped(f"{path}/cache", "the model caches no tools")
        return []
    return [cache_point(tool.cache.ttl, f"{path}/cache/ttl", context.report)]


def _stubs(items: list[IndexedItem]) -> list[JsonObject]:
    """One tool for each called name. If calls of two kinds share a name, the last counts."""
    stubs: dict[str, JsonObject] = {}
    for entry in items:
        item = entry.item
        if isinstance(item, ServerToolCall):
            stubs[item.name] = {"systemTool": {"name": item.name}}
        elif isinstance(item, CALLS):
            schema = {"type": "object", "properties": {}}
            stubs[item.name] = {"toolSpec": {"name": item.name, "inputSchema": {"json": schema}}}
    return list(stubs.values())


def _tool(tool: ToolSpec, path: str, context: ConverseContext) -> JsonObject | None:
    """The tool, or None where Converse does not know it."""
    report = context.report
    if tool.native is not None:
        if tool.native.keys() & CONVERSE_TOOLS:
            return tool.native
        if context.family is not CLAUDE:
            report.dropped(path, "a hosted tool of another wire")
        return None
    if tool.format is None:
        schema = object_schema(tool, f"{path}/schema", report)
    else:
        schema = free_form_schema("Converse", path, report)
    spec: JsonObject = {"name": tool.name}
    # an empty description is refused (B10)
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": schema}
    if tool.strict is not None:
        spec["strict"] = tool.strict
    return merged({"toolSpec": spec}, option_fields(tool))


# --- the choice of a tool ---


def tool_choice(prompt: Prompt, context: ConverseContext) -> JsonObject:
    """`toolChoice` in the nearest form the model takes (B17, T7); `{}`: not sent.

    `{"none": {}}` is this library's own: Converse has no such choice.
    """  # rule B16
    name = prompt.tool_choice
    if not prompt.tools or name is None:
        return {}
    if name == "none":
        return {"none": {}}
    requested = TOOL_CHOICES.get(name, "tool")
    form = _nearest_form(requested, context)
    if form != requested:
        context.report.add(
            "changed",
            "/tool_choice",
            f"{context.target.model} takes no such choice: {form or 'left out'}",
        )
    if form is None:
        return {}
    if form == "tool":
        return {"tool": {"name": name}}
    return {form: {}}


def _nearest_form(requested: Choice, context: ConverseContext) -> Choice | None:
    for form in (requested, *FALLBACKS[requested]):
        is_allowed = form == "auto" or context.target.traits.forced_tools
        if is_allowed and form in context.family.choices:
            return form
    return None


def forces_call(choice: JsonObject) -> bool:
    """Whether a `toolChoice` forces a call."""
    return "any" in choice or "tool" in choice


def tool_config(tools: list[JsonObject], choice: JsonObject, fields: JsonObject) -> JsonObject:
    """`toolConfig`; `{}` without tools.

    Args:
        fields: the fields for the model itself. A choice that is in them is not sent twice.
    """
    if not tools:
        return {}
    config: JsonObject = {"tools": tools}
    if choice and "none" not in choice and "tool_choice" not in fields:
        config["toolChoice"] = choice
    return config


def claude_tool_fields(prompt: Prompt, choice: JsonObject) -> JsonObject:
    """What Converse cannot express: Claude's own tools, `none`, and one call at a time."""
    fields: JsonObject = {}
    claude_tools: list[JsonObject] = []
    for tool in prompt.tools:
        if tool.native is not None and not tool.native.keys() & CONVERSE_TOOLS:
            claude_tools.append(tool.native)
    if claude_tools:
        fields["tools"] = claude_tools
    form = next(iter(choice), "auto")
    if form == "none":
        fields["tool_choice"] = {"type": "none"}
    elif prompt.parallel_tools is False and prompt.tools:
        fields["tool_choice"] = {
            "type": form,
            **choice.get(form, {}),
            "disable_parallel_tool_use": True,
        }
    return fields
