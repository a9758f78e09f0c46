"""Tools as objects of a Responses request: those of the request, and those that a search found."""

from __future__ import annotations

from collections.abc import Sequence

from streamlib.request.fit_tools import fit_tools
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.schemas import can_be_strict, strict_schema
from streamlib.request.target import BuildContext
from streamlib.request.tool_options import fit_tool_options, option_fields
from streamlib_parsers.item_base import unchecked
from streamlib_parsers.items import JsonObject, ToolSpec


def wire_tools(tools: Sequence[ToolSpec], path: str, report: Report) -> list[JsonObject]:
    """Converts tools that are fitted to the target.

    Args:
        tools: the tools.
        path: JSON pointer of the list.
        report: receives what had to change.

    Returns:
        The wire's objects.
    """
    return [_tool(tool, f"{path}/{index}", report) for index, tool in enumerate(tools)]


def found_tools(tools: Sequence[ToolSpec], path: str, context: BuildContext) -> list[JsonObject]:
    """Converts the tools that a search found, fitted as those of a request are.

    Args:
        tools: the tools.
        path: JSON pointer of the search's output.
        context: the target and the report.

    Returns:
        The wire's objects.

    Raises:
        StreamError: `invalid_request` for a restriction that the target lacks.
    """
    report = Report()
    prompt = fit_tool_options(unchecked(Prompt)(tools=tools), "responses", report)
    fitted = fit_tools(prompt, [], BuildContext(context.target, report))
    report.tool_paths = fitted.paths
    objects = wire_tools(fitted.prompt.tools, "/tools", report)
    for change in report.changes:
        context.report.add(change.action, f"{path}{change.path}", change.reason)
    return objects


def _tool(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    if tool.native is not None:
        return tool.native
    if tool.tools:
        return _namespace(tool, path, report)
    body: JsonObject = {"type": "function", "name": tool.name, **option_fields(tool)}
    if tool.description is not None:
        body["description"] = tool.description
    if tool.format is not None:
        body["type"] = "custom"
        body["format"] = tool.format
        return body
    schema = tool.schema
    if schema is None:
        schema = {"type": "object", "properties": {}}
    if schema.get("type") != "object":
        report.add("changed", f"{path}/schema", "parameters are of type object")
        schema = {**schema, "type": "object"}
    schema_path = f"{path}/schema"
    is_strict = bool(tool.strict) and can_be_strict(schema, "responses", schema_path, report)
    if is_strict:
        schema = strict_schema(schema, "responses", schema_path, report)
    body["parameters"] = schema
    # S1: without the field the API would refuse schemas that are not in the strict subset.
    body["strict"] = is_strict
    return body


def _namespace(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    """A group of functions. The API requires a description, even an empty one."""
    return {
        "type": "namespace",
        "name": tool.name,
        "description": tool.description or "",
        "tools": wire_tools(tool.tools, f"{path}/tools", report),
    }
