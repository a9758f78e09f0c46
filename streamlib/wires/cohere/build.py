"""Builds a request to Cohere's v2 chat from a `Prompt`.

Items become messages in `build_messages`; this file writes the settings. Numbers such as H3 are the
rows of the rule table in docs/wires/cohere.md.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.errors import invalid_request
from streamlib.request.context import BuildContext
from streamlib.request.effort import BUDGETS
from streamlib.request.history import IndexedItem
from streamlib.request.json_objects import merged
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT
from streamlib.request.target import BuiltRequest
from streamlib.request.tool_options import option_fields
from streamlib.wires.arguments import free_form_schema, object_schema
from streamlib.wires.cohere.build_messages import messages
from streamlib.wires.lost_settings import report_conversation, report_unsupported
from streamlib_parsers.items import JsonObject, ToolSpec

SETTINGS: Final = {
    "max_output_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
"""Setting of `Prompt` -> its name on the wire."""

CHOICES: Final = {"required": "REQUIRED", "none": "NONE"}
"""`Prompt.tool_choice` -> the wire's value; for `auto` nothing is sent."""

UNSUPPORTED: Final = (
    "parallel_tools",
    "verbosity",
    "n",
    "metadata",
    "service_tier",
    "user_id",
    "thinking_mismatch",
)
"""Settings of other wires that Cohere does not have."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """Builds the request body.

    Args:
        prompt: The settings; its own input is not read.
        items: The repaired and downgraded history, with positions in the prompt's input.
        context: The target, and the report that is filled.

    Returns:
        The body, without headers of its own.

    Raises:
        StreamError: `invalid_request` (code `empty_input`) if there is no message to send.
    """
    report = context.report
    # The order of the keys is fixed: the body is a cache prefix.
    body: JsonObject = {"model": context.target.model}
    if prompt.tools:
        body.update(_tools(prompt, report))
    body["messages"] = messages(prompt, items, report)
    if all(message["role"] == "system" for message in body["messages"]):
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    body["stream"] = prompt.stream is not False
    choice = _tool_choice(prompt, report)
    if choice is not None:
        body["tool_choice"] = choice
    thinking = _thinking(prompt, context)
    if thinking is not None:
        body["thinking"] = thinking
    if prompt.schema is not None:
        body["response_format"] = _response_format(prompt.schema)
    body.update(_sampling(prompt, report))
    _report_lost(prompt, context)
    return BuiltRequest(body)


def _sampling(prompt: Prompt, report: Report) -> JsonObject:
    fields: JsonObject = {}
    for name, wire_name in SETTINGS.items():
        value = getattr(prompt, name)
        if value is not None:
            fields[wire_name] = value
    if prompt.stop:
        fields["stop_sequences"] = list(prompt.stop)
    if prompt.logprobs is not None:
        fields["logprobs"] = True
        if prompt.logprobs:
            reason = "Cohere has the chosen token's probability alone (H7)"
            report.add("changed", "/logprobs", reason)
    return fields


def _report_lost(prompt: Prompt, context: BuildContext) -> None:
    if isinstance(prompt.cache, CacheOptions):
        context.report.dropped("/cache", "Cohere caches by itself")
    report_unsupported(prompt, UNSUPPORTED, "Cohere", context.report)
    report_conversation(prompt, "Cohere", context)


def _thinking(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """`thinking`: on with a number of tokens, or off; the wire has no levels (H6)."""
    options, target, report = prompt.thinking, context.target, context.report
    if options is None:
        return None
    for name in ("summary", "display"):
        if getattr(options, name) is not None:
            report.dropped(f"/reasoning/{name}", f"Cohere has no {name} of reasoning")
    is_off = options.effort == "off" or (options.effort is None and options.budget == 0)
    if not target.traits.thinking:
        if not is_off:
            report.dropped("/reasoning", f"{target.model} does not think (H6)")
        return None
    if is_off:
        return {"type": "disabled"}
    thinking: JsonObject = {"type": "enabled"}
    if options.budget is not None:
        thinking["token_budget"] = options.budget
        if options.effort is not None:
            report.dropped("/reasoning/effort", "a number of tokens, never a level (H6)")
    elif options.effort is not None:
        thinking["token_budget"] = BUDGETS[options.effort]
    return thinking


def _response_format(schema: JsonObject) -> JsonObject:
    response_format: JsonObject = {"type": "json_object"}
    if schema != ANY_OBJECT:
        response_format["json_schema"] = schema
    return response_format


# --- tools ---


def _tools(prompt: Prompt, report: Report) -> JsonObject:
    """`tools` and `strict_tools`, which applies to all tools (H5)."""
    fields: JsonObject = {
        "tools": [_tool(tool, f"/tools/{index}", report) for index, tool in enumerate(prompt.tools)]
    }
    stated = {bool(tool.strict) for tool in prompt.tools if tool.native is None}
    if stated == {True}:
        fields["strict_tools"] = True
    elif True in stated:
        for index, tool in enumerate(prompt.tools):
            if tool.strict:
                reason = "strict_tools is for all tools, and not all are strict (H5)"
                report.dropped(f"/tools/{index}/strict", reason)
    return fields


def _tool(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    if tool.native is not None:
        return tool.native
    function: JsonObject = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.format is not None:
        reason = "Cohere has no free-form tools: it takes one string, input"
        report.add("changed", f"{path}/format", reason)
        function["parameters"] = free_form_schema()
    else:
        # The wire requires `parameters`.
        function["parameters"] = object_schema(tool, f"{path}/schema", report, "H5")
    body: JsonObject = {"type": "function", "function": function}
    return merged(body, option_fields(tool))


def _tool_choice(prompt: Prompt, report: Report) -> Any:
    """`tool_choice`; one function cannot be named, so any call is asked for (H5)."""
    choice = prompt.tool_choice
    if choice in (None, "auto"):
        return None
    if not prompt.tools and choice != "none":
        report.dropped("/tool_choice", "there is no tool to call")
        return None
    if choice in CHOICES:
        return CHOICES[choice]
    if [tool.name for tool in prompt.tools] == [choice]:
        # Any call is a call of the only tool.
        return CHOICES["required"]
    reason = "Cohere cannot name the tool: any call is asked for (H5)"
    report.add("changed", "/tool_choice", reason)
    return CHOICES["required"]
