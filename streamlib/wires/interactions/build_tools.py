"""The tools of an Interactions request, and how they may be called.

Rules have the numbers of the rule table in docs/wires/interactions.md.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.request.context import BuildContext
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.tool_options import option_fields
from streamlib.wires.arguments import free_form_schema, object_schema
from streamlib_parsers.items import JsonObject, ToolSpec

CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}
"""`Prompt.tool_choice` -> the wire's value; anything else is the name of a function."""

LITERALS: Final = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are not schemas."""


def tools(prompt: Prompt, report: Report) -> list[JsonObject]:
    """`tools`: functions, and Google's own tools as the caller wrote them."""
    return [_tool(tool, f"/tools/{index}", report) for index, tool in enumerate(prompt.tools)]


def _tool(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    if tool.native is not None:
        return tool.native
    body: JsonObject = {"type": "function", "name": tool.name}
    if tool.description:
        body["description"] = tool.description
    if tool.strict:
        report.dropped(f"{path}/strict", "Interactions has no strict functions")
    body.update(option_fields(tool))
    if tool.format is not None:
        reason = "Interactions has no free-form tools: it takes one string, input"
        report.add("changed", f"{path}/format", reason)
        body["parameters"] = free_form_schema()
    elif tool.schema:
        schema = object_schema(tool, f"{path}/schema", report, "I5")
        body["parameters"] = _without_empty_required(schema, f"{path}/schema", report)
    return body


def _without_empty_required(schema: Any, path: str, report: Report) -> Any:
    """Removes every empty `required` list: it means nothing, and the API refuses it (I5)."""
    if isinstance(schema, list):
        return [_without_empty_required(inner, path, report) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    fitted: JsonObject = {}
    for key, value in schema.items():
        if key == "required" and value == []:
            report.add("changed", path, "an empty `required` is refused: left out (I5)")
        elif key in LITERALS:
            fitted[key] = value
        else:
            fitted[key] = _without_empty_required(value, path, report)
    return fitted


def tool_choice(prompt: Prompt, context: BuildContext) -> Any:
    """`generation_config.tool_choice`, or None where it is not sent."""
    choice = prompt.tool_choice
    if prompt.parallel_tools is False:
        reason = "Interactions has no limit on the functions that it calls at once"
        context.report.dropped("/parallel_tools", reason)
    if choice is None:
        return None
    functions = [tool.name for tool in prompt.tools if tool.native is None]
    if choice in CHOICES and (prompt.tools or choice == "auto"):
        return CHOICES[choice]
    if choice in functions:
        return {"allowed_tools": {"mode": "any", "tools": [choice]}}
    context.report.dropped("/tool_choice", "there is no such function to call")
    return None
