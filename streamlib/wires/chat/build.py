"""Builds a Chat Completions request from a `Prompt`: the generic, OpenAI-compatible body.

`build_messages` writes the conversation, `settings` the settings; this file writes the tools.
Whatever providers do differently is a value of `ChatShape`; no code asks for a provider's name.
"""

from __future__ import annotations

from functools import reduce

from streamlib.request.history import IndexedItem
from streamlib.request.json_objects import merged, without
from streamlib.request.prompt import Prompt
from streamlib.request.schemas import can_be_strict, strict_schema
from streamlib.request.target import BuildContext, BuiltRequest
from streamlib.request.tool_options import option_fields
from streamlib.wires.arguments import free_form_schema
from streamlib.wires.chat.build_messages import wire_messages
from streamlib.wires.chat.settings import SETTINGS, fitted, format_rest, unsent_beside_off
from streamlib_parsers.items import JsonObject, ToolSpec


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """Builds the request body.

    Args:
        prompt: the settings; its own input is not read.
        items: the repaired and downgraded history, with positions in the prompt's input.
        context: the target, and the report that is filled.

    Returns:
        The body, without headers of its own.

    Raises:
        StreamError: `invalid_request` (code `empty_input`) if there is no message to send.
    """
    shape = context.target.provider.chat
    # Tools are before the messages: the body is a cache prefix.
    body: JsonObject = {"model": context.target.model}
    if prompt.tools:
        body["tools"] = [
            merged(_tool(tool, index, context), option_fields(tool))
            for index, tool in enumerate(prompt.tools)
        ]
    body["messages"] = wire_messages(prompt, items, context)
    if body["messages"][-1]["role"] == "assistant":
        body.update(shape.prefill_body)
    # Without `stream_options` OpenAI's wire has no usage in a stream.
    body["stream"] = prompt.stream is not False
    if body["stream"] and shape.stream_usage:
        body["stream_options"] = {"include_usage": True}
    body = merged(shape.defaults, merged(body, SETTINGS.write(fitted(prompt, context), context)))
    merged_extra: list[str] = []
    if format_rest(prompt) is not None:
        merged_extra.append("response_format")
    if prompt.logprobs == 0 and "top_logprobs" in (prompt.extra or {}):
        # A number is refused without the switch, which not every model and provider takes.
        merged_extra.append("top_logprobs")
        if "logprobs" in body:
            body["top_logprobs"] = (prompt.extra or {})["top_logprobs"]
    unsent = unsent_beside_off(prompt, context)
    rest = reduce(without, unsent, prompt.extra or {})
    for key in (path.partition(".")[0] for path in unsent):
        merged_extra.append(key)
        if key in rest:
            body = merged(body, {key: rest[key]})
    return BuiltRequest(body, merged_extra=tuple(merged_extra))


# --- tools ---


def _tool(tool: ToolSpec, index: int, context: BuildContext) -> JsonObject:
    if tool.native is not None:
        return tool.native
    provider, report = context.target.provider, context.report
    function: JsonObject = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.format is not None and provider.chat.custom_tools:
        return {"type": "custom", "custom": {**function, "format": _grammar(tool.format)}}
    schema: JsonObject = {"type": "object", "properties": {}}
    if tool.format is not None:
        schema = free_form_schema(provider.name, f"/tools/{index}", report)
    elif isinstance(tool.schema, dict):
        schema = tool.schema
    path = f"/tools/{index}/schema"
    if schema.get("type") != "object":
        report.add("changed", path, "parameters are of type object")
        schema = {**schema, "type": "object"}
    is_strict = tool.strict
    if is_strict and provider.chat.strict_schemas:
        is_strict = can_be_strict(schema, "chat", path, report)
        if is_strict:
            schema = strict_schema(schema, "chat", path, report)
    function["parameters"] = schema
    if is_strict is not None:
        function["strict"] = is_strict
    return {"type": "function", "function": function}


def _grammar(tool_format: JsonObject) -> JsonObject:
    """Nests a grammar one level deeper than Responses, whose form `ToolSpec` has."""
    if tool_format.get("type") != "grammar" or "grammar" in tool_format:
        return tool_format
    grammar = {key: value for key, value in tool_format.items() if key != "type"}
    return {"type": "grammar", "grammar": grammar}
