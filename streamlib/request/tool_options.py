"""Options and cache marks of tools that a wire has no place for: left out, and reported."""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib_parsers.items import JsonObject, ToolOptions, ToolSpec, WireApi

OPTION_NAMES: Final = (
    "defer_loading",
    "eager_input_streaming",
    "input_examples",
    "allowed_callers",
    "output_schema",
)
"""Fields of `ToolOptions` that have a name on some wire; the others are about `native`."""


def fit_tool_options(prompt: Prompt, wire_api: WireApi, report: Report) -> Prompt:
    """The prompt with only those options of its tools that the wire takes."""
    if not prompt.tools:
        return prompt
    tools: list[ToolSpec] = []
    for index, tool in enumerate(prompt.tools):
        tools.append(_fitted_tool(tool, f"/tools/{index}", wire_api, report))
    return msgspec.structs.replace(prompt, tools=tools)


def _fitted_tool(tool: ToolSpec, path: str, wire_api: WireApi, report: Report) -> ToolSpec:
    if tool.tools:
        inner: list[ToolSpec] = []
        for index, function in enumerate(tool.tools):
            inner.append(_fitted_tool(function, f"{path}/tools/{index}", wire_api, report))
        tool = msgspec.structs.replace(tool, tools=inner)
    if tool.cache is not None and not WIRE_SPECS[wire_api].tool_cache:
        report.dropped(f"{path}/cache", f"{wire_api} caches up to no single tool")
        tool = msgspec.structs.replace(tool, cache=None)
    if tool.options is None:
        return tool
    options = _fitted(tool.options, f"{path}/options", wire_api, report)
    return msgspec.structs.replace(tool, options=options)


def _fitted(options: ToolOptions, path: str, wire_api: WireApi, report: Report) -> ToolOptions:
    values: JsonObject = {}
    for name in OPTION_NAMES:
        value = getattr(options, name)
        # an empty list says nothing
        if value is None or value == ():
            continue
        if name in WIRE_SPECS[wire_api].tool_options:
            values[name] = value
        else:
            report.dropped(f"{path}/{name}", f"{wire_api} has no such option of a tool")
    if options.native_wire in (None, wire_api):
        values["native"] = options.native
    else:
        repeated = WIRE_SPECS[options.native_wire].repeated
        for key in options.native or ():
            if key in repeated:
                continue
            report.dropped(f"{path}/native/{key}", f"a field of {options.native_wire}")
    return ToolOptions(**values)


def option_fields(tool: ToolSpec) -> JsonObject:
    """The options of a tool under their own names, and its further keys."""
    fields: JsonObject = {}
    if tool.options is None:
        return fields
    for name in OPTION_NAMES:
        value = getattr(tool.options, name)
        if value is not None and value != ():
            fields[name] = value
    return fields | (tool.options.native or {})
