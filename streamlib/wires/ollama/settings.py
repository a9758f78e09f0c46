"""The settings of an Ollama request, tools included: from a `Prompt`, and back.

Thinking is on, off, or one of three levels; settings of the model are in `options`. Others than
these rows go into `Prompt.extra`: `extra={"options": {"num_ctx": 32768}}`.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from streamlib.request.effort import level
from streamlib.request.json_objects import merged, rest_of
from streamlib.request.prompt import EFFORTS, Prompt, ReasoningOptions
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT
from streamlib.request.target import BuildContext
from streamlib.request.tool_options import option_fields
from streamlib.wires.arguments import free_form_schema
from streamlib.wires.settings import Setting, SettingsTable, put, read_stop, switched_logprobs, take
from streamlib_parsers.items import JsonObject, ToolOptions, ToolSpec

LEVELS: Final = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
"""Effort -> the level of thinking that the wire has."""


# --- tools ---


def wire_tool(tool: ToolSpec, index: int, report: Report) -> JsonObject:
    """A tool as the wire's object."""
    if tool.native is not None:
        return tool.native
    function: JsonObject = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    schema: JsonObject = {"type": "object", "properties": {}}
    if tool.format is not None:
        schema = free_form_schema("Ollama", f"/tools/{index}", report)
    elif isinstance(tool.schema, dict):
        schema = tool.schema
    if tool.strict:
        report.dropped(f"/tools/{index}/strict", "Ollama has no strict tools")
    function["parameters"] = schema
    return merged({"type": "function", "function": function}, option_fields(tool))


def read_tool(tool: JsonObject) -> ToolSpec:
    """A tool of a decoded request."""
    function = tool.get("function")
    if not isinstance(function, dict):
        return ToolSpec(str(tool.get("name") or tool["type"]), native=tool, native_wire="ollama")
    rest = rest_of(tool, "type", "function") or {}
    function_rest = rest_of(function, "name", "description", "parameters")
    if function_rest:
        rest["function"] = function_rest
    options = ToolOptions(native=rest, native_wire="ollama") if rest else None
    return ToolSpec(
        function["name"], function.get("description"), function.get("parameters"), options=options
    )


# --- rules ---


def _think(prompt: Prompt, context: BuildContext) -> bool | str:
    options = prompt.thinking or ReasoningOptions()
    if options.effort == "off":
        return False
    effort = level(options)
    if effort is None:
        return True
    wire_level = LEVELS[effort]
    if options.effort != wire_level:
        reason = f"Ollama knows low, medium and high: {wire_level}"
        context.report.add("changed", "/reasoning", reason)
    return wire_level


def _read_think(fields: JsonObject) -> Literal["off"] | ReasoningOptions | None:
    """A value that is no switch and no level stays in `extra`."""
    think = fields.get("think")
    if not isinstance(think, bool) and think not in EFFORTS:
        return None
    del fields["think"]
    if think is False:
        return "off"
    if think is True:
        return ReasoningOptions()
    return ReasoningOptions(think)


def _format(prompt: Prompt, context: BuildContext) -> JsonObject | str | None:
    """The schema itself, without a name around it."""
    if prompt.schema == ANY_OBJECT:
        return "json"
    return prompt.schema


def _read_format(fields: JsonObject) -> JsonObject | None:
    output_format = fields.get("format")
    if output_format == "":
        # clients write the default so
        del fields["format"]
        return None
    if output_format != "json" and not isinstance(output_format, dict):
        return None
    del fields["format"]
    if output_format == "json":
        return ANY_OBJECT
    schema: JsonObject = output_format
    return schema


def _read_limit(fields: JsonObject) -> Any:
    """Ollama writes "no limit" as -1 or -2 tokens; such a value stays in `extra`."""
    tokens = (fields.get("options") or {}).get("num_predict")
    if isinstance(tokens, int) and tokens < 0:
        return None
    return take(fields, "options.num_predict")


def _read_stop(fields: JsonObject) -> Any:
    """The stop sequences; an empty list stays, because it replaces those of the Modelfile."""
    stop = read_stop("options.stop")(fields)
    if stop == []:
        put(fields, "options.stop", stop)
    return stop


SETTINGS: Final = SettingsTable(
    "Ollama",
    Setting("reasoning", "think", write=_think, read=_read_think),
    Setting("output_schema", "format", write=_format, read=_read_format),
    switched_logprobs("logprobs", "top_logprobs"),
    Setting("max_output_tokens", "options.num_predict", read=_read_limit),
    Setting("temperature", "options.temperature"),
    Setting("top_p", "options.top_p"),
    Setting("top_k", "options.top_k"),
    Setting("seed", "options.seed"),
    Setting("presence_penalty", "options.presence_penalty"),
    Setting("frequency_penalty", "options.frequency_penalty"),
    Setting("stop", "options.stop", read=_read_stop),
    # without a choice, the model decides
    Setting("tool_choice", fixed="auto"),
    # the server caches by itself
    Setting("cache"),
)
