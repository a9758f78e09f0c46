"""The settings of a Cohere request, tools included: from a `Prompt`, and back.

Rules have the numbers of the rule table in docs/wires/cohere.md.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from streamlib.request.effort import BUDGETS
from streamlib.request.json_objects import merged
from streamlib.request.prompt import Effort, Prompt, ReasoningOptions
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT
from streamlib.request.target import BuildContext
from streamlib.request.tool_options import option_fields
from streamlib.wires.arguments import free_form_schema, object_schema
from streamlib.wires.settings import Setting, SettingsTable
from streamlib_parsers.items import JsonObject, ToolOptions, ToolSpec

# --- tools ---

CHOICES: Final = {"required": "REQUIRED", "none": "NONE"}
"""`Prompt.tool_choice` -> the wire's value; for `auto` nothing is sent."""


def tool_fields(prompt: Prompt, report: Report) -> JsonObject:
    """`tools` and `strict_tools`, which applies to all tools."""  # rule H5
    fields: JsonObject = {
        "tools": [_tool(tool, f"/tools/{index}", report) for index, tool in enumerate(prompt.tools)]
    }
    stated = {bool(tool.strict) for tool in prompt.tools if tool.native is None}
    if stated == {True}:
        fields["strict_tools"] = True
    elif True in stated:
        for index, tool in enumerate(prompt.tools):
            if tool.strict:
                reason = "strict_tools is for all tools, and not all are strict"
                report.dropped(f"/tools/{index}/strict", reason)
    return fields


def _tool(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    if tool.native is not None:
        return tool.native
    function: JsonObject = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.format is not None:
        function["parameters"] = free_form_schema("Cohere", path, report)
    else:
        # The wire requires `parameters`.
        function["parameters"] = object_schema(tool, f"{path}/schema", report)
    body: JsonObject = {"type": "function", "function": function}
    return merged(body, option_fields(tool))


def read_tools(fields: JsonObject) -> list[ToolSpec]:
    """Takes `tools`, and `strict_tools` beside them."""
    declared = fields.pop("tools", None) or []
    strict = None
    if declared and isinstance(fields.get("strict_tools"), bool):
        strict = fields.pop("strict_tools")
    return [_read_tool(tool, strict=strict) for tool in declared]


def _read_tool(tool: JsonObject, *, strict: bool | None) -> ToolSpec:
    function = tool.get("function")
    if not isinstance(function, dict):
        return ToolSpec(str(tool.get("name") or tool["type"]), native=tool, native_wire="cohere")
    rest = {key: value for key, value in tool.items() if key not in ("type", "function")}
    typed = ("name", "description", "parameters")
    function_rest = {key: value for key, value in function.items() if key not in typed}
    if function_rest:
        rest["function"] = function_rest
    options = None
    if rest:
        options = ToolOptions(native=rest, native_wire="cohere")
    return ToolSpec(
        function["name"],
        function.get("description"),
        function.get("parameters"),
        strict=strict,
        options=options,
    )


def _choice(prompt: Prompt, context: BuildContext) -> str | None:
    """`tool_choice`; one function cannot be named, so any call is asked for."""  # rule H5
    choice = prompt.tool_choice
    if choice == "auto":
        return None
    if not prompt.tools and choice != "none":
        context.report.dropped("/tool_choice", "there is no tool to call")
        return None
    if choice in CHOICES:
        return CHOICES[choice]
    # Any call is a call of the only tool.
    if [tool.name for tool in prompt.tools] != [choice]:
        reason = "Cohere cannot name the tool: any call is asked for"
        context.report.add("changed", "/tool_choice", reason)
    return CHOICES["required"]


def _read_choice(fields: JsonObject) -> str | None:
    for choice, wire_name in CHOICES.items():
        if fields.get("tool_choice") == wire_name:
            del fields["tool_choice"]
            return choice
    return None


# --- thinking and output ---


def _thinking(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """`thinking`: on with a number of tokens, or off; the wire has no levels."""  # rule H6
    options = prompt.thinking or ReasoningOptions()
    target, report = context.target, context.report
    is_off = options.effort == "off" or (options.effort is None and options.budget == 0)
    if not target.traits.thinking:
        if not is_off:
            report.dropped("/reasoning", f"{target.model} does not think")
        return None
    if is_off:
        return {"type": "disabled"}
    thinking: JsonObject = {"type": "enabled"}
    if options.budget is not None:
        thinking["token_budget"] = options.budget
        if options.effort is not None:
            report.dropped("/reasoning/effort", "a number of tokens, never a level")
    elif options.effort is not None:
        tokens = BUDGETS[options.effort]
        thinking["token_budget"] = tokens
        # a request of this wire had the number, which was read as the level that it stands for
        if prompt.extra_wire != "cohere":
            report.add("changed", "/reasoning", f"Cohere takes tokens, not levels: {tokens}")
    return thinking


def _read_thinking(fields: JsonObject) -> Literal["off"] | ReasoningOptions | None:
    """Thinking; a form with further keys stays in `extra`."""
    thinking = fields.get("thinking")
    if not isinstance(thinking, dict) or not thinking.keys() <= {"type", "token_budget"}:
        return None
    kind, budget = thinking.get("type"), thinking.get("token_budget")
    if kind == "disabled" and budget is None:
        del fields["thinking"]
        return "off"
    if kind != "enabled" or not isinstance(budget, int | None) or isinstance(budget, bool):
        return None
    if budget is not None and budget <= 0:
        return None
    del fields["thinking"]
    for name, tokens in BUDGETS.items():
        if tokens == budget:
            # The builder writes this number for a level, which other wires can use.
            return ReasoningOptions(msgspec.convert(name, Effort))
    return ReasoningOptions(budget=budget)


def _format(prompt: Prompt, context: BuildContext) -> JsonObject:
    response_format: JsonObject = {"type": "json_object"}
    if prompt.schema != ANY_OBJECT:
        response_format["json_schema"] = prompt.schema
    return response_format


def _read_schema(fields: JsonObject) -> JsonObject | None:
    """The output schema. A format without a schema stays in `extra`, unless it means any JSON."""
    response_format = fields.get("response_format")
    if not isinstance(response_format, dict) or response_format.get("type") != "json_object":
        return None
    if not response_format.keys() <= {"type", "json_schema"}:
        return None
    schema: Any = response_format.get("json_schema")
    if schema is None:
        schema = ANY_OBJECT
    if not isinstance(schema, dict):
        return None
    del fields["response_format"]
    return schema


def _logprobs(prompt: Prompt, context: BuildContext) -> bool:
    if prompt.logprobs:
        reason = "Cohere has the chosen token's probability alone"
        context.report.add("changed", "/logprobs", reason)
    return True


def _read_logprobs(fields: JsonObject) -> int | None:
    if fields.get("logprobs") is not True:
        return None
    del fields["logprobs"]
    return 0


SETTINGS: Final = SettingsTable(
    "Cohere",
    Setting("tool_choice", "tool_choice", write=_choice, read=_read_choice),
    Setting("reasoning", "thinking", write=_thinking, read=_read_thinking),
    Setting("output_schema", "response_format", write=_format, read=_read_schema),
    Setting("max_output_tokens", "max_tokens"),
    Setting("temperature", "temperature"),
    Setting("top_p", "p"),
    Setting("top_k", "k"),
    Setting("seed", "seed"),
    Setting("presence_penalty", "presence_penalty"),
    Setting("frequency_penalty", "frequency_penalty"),
    Setting("stop", "stop_sequences"),
    Setting("logprobs", "logprobs", write=_logprobs, read=_read_logprobs),
    Setting("cache", fixed="auto"),
)
"""For the fields that `Prompt` lacks (`documents`, `safety_mode` …) there is `Prompt.extra`."""
