"""Builds a Chat Completions request from a `Prompt`: the generic, OpenAI-compatible body.

`build_messages` writes the conversation and `build_thinking` the fields for thinking; this file
writes tools and settings. Whatever providers do differently is a value of `ChatShape`; no code asks
for a provider's name.

S1 a schema is an object
S2 strict schemas in OpenAI's subset, if requested
S3 the field of max_tokens, and the model's limit
S4 sampling only for models that take it
S5 a tool choice needs tools, and a value that the provider takes
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.providers.names import fit_names
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.context import BuildContext
from streamlib.request.history import IndexedItem
from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import Prompt
from streamlib.request.schemas import ANY_OBJECT, strict_schema
from streamlib.request.target import BuiltRequest
from streamlib.wires.chat.build_messages import wire_messages
from streamlib.wires.chat.build_thinking import thinking_fields, thinks
from streamlib_parsers.items import JsonObject, ToolSpec

CHOICES: Final = ("auto", "required", "none")
"""Tool choices that name no tool."""

SAMPLING: Final = (
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
)
"""Settings that a thinking model may refuse (S4)."""

PLAIN: Final = ("seed", "n", "verbosity", "metadata", "service_tier")
"""Settings whose name in `Prompt` is their wire name."""


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
    shape = context.target.provider.chat
    # Tools are before the messages: the body is a cache prefix.
    body: JsonObject = {"model": context.target.model}
    if prompt.tools:
        body["tools"] = [_tool(tool, index, context) for index, tool in enumerate(prompt.tools)]
    body["messages"] = wire_messages(prompt, items, context)
    # Without `stream_options` OpenAI's wire has no usage in a stream.
    body["stream"] = prompt.stream is not False
    if body["stream"] and shape.stream_usage:
        body["stream_options"] = {"include_usage": True}
    body.update(_choice_fields(prompt, context))
    body.update(thinking_fields(prompt.thinking, context))
    body.update(_limits(prompt, context))
    body.update(_sampling(prompt, context))
    body.update(_output_format(prompt, context))
    for name in PLAIN:
        value = getattr(prompt, name)
        if value is not None:
            body[name] = value
    body = merged(shape.defaults, merged(body, _identity(prompt, context)))
    merged_extra: tuple[str, ...] = ()
    if _format_rest(prompt) is not None:
        merged_extra = ("response_format",)
    return BuiltRequest(body, merged_extra=merged_extra)


# --- tools ---


def _tool(tool: ToolSpec, index: int, context: BuildContext) -> JsonObject:
    if tool.native is not None:
        return tool.native
    provider, report = context.target.provider, context.report
    function: JsonObject = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.format is not None and provider.chat.custom_tools:
        return {"type": "custom", "custom": {**function, "format": _grammar(tool.format)}}
    schema: JsonObject = {"type": "object", "properties": {}}
    if tool.format is not None:
        report.add(
            "changed",
            f"/tools/{index}/format",
            f"{provider.name} has no free-form tools: it takes one string, input",
        )
        schema["properties"] = {"input": {"type": "string"}}
        schema["required"] = ["input"]
    elif isinstance(tool.schema, dict) and tool.schema:
        schema = tool.schema
    path = f"/tools/{index}/schema"
    if schema.get("type") != "object":
        report.add("changed", path, "parameters are of type object (S1)")
        schema = {**schema, "type": "object"}
    if tool.strict and provider.chat.strict_schemas:
        schema = strict_schema(schema, "chat", path, report)
    function["parameters"] = schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _grammar(tool_format: JsonObject) -> JsonObject:
    """Nests a grammar one level deeper than Responses, whose form `ToolSpec` has."""
    if tool_format.get("type") != "grammar" or "grammar" in tool_format:
        return tool_format
    grammar = {key: value for key, value in tool_format.items() if key != "type"}
    return {"type": "grammar", "grammar": grammar}


def _choice_fields(prompt: Prompt, context: BuildContext) -> JsonObject:
    """S5: `tool_choice` and `parallel_tool_calls`."""
    if not prompt.tools:
        for name in ("tool_choice", "parallel_tools"):
            if getattr(prompt, name) is not None:
                context.report.dropped(f"/{name}", "there are no tools (S5)")
        return {}
    body: JsonObject = {}
    if prompt.tool_choice:
        choice = _choice(prompt, context)
        if choice:
            body["tool_choice"] = choice
    if prompt.parallel_tools is not None:
        body["parallel_tool_calls"] = prompt.parallel_tools
    return body


def _choice(prompt: Prompt, context: BuildContext) -> Any:
    """The provider's value for the choice, or the tool in the form of its kind."""
    target, report = context.target, context.report
    kind = "tool"
    if prompt.tool_choice in CHOICES:
        kind = str(prompt.tool_choice)
    choice = target.provider.chat.tool_choices.get(kind, kind)
    if kind in ("required", "tool") and not target.traits.forced_tools:
        choice = "auto"
    if not choice:
        report.dropped("/tool_choice", f"{target.provider.name} takes no such choice")
    elif choice in CHOICES and choice != kind:
        report.add("changed", "/tool_choice", f"{target.model} takes no such choice: {choice}")
    if choice == "tool":
        return _tool_choice_object(prompt)
    return choice


def _tool_choice_object(prompt: Prompt) -> JsonObject:
    kind = "function"
    for tool in prompt.tools:
        if tool.name == prompt.tool_choice:
            if tool.format is not None:
                kind = "custom"
            break
    return {"type": kind, kind: {"name": prompt.tool_choice}}


# --- settings ---


def _limits(prompt: Prompt, context: BuildContext) -> JsonObject:
    """S3: the output limit and the stop sequences."""
    target = context.target
    body: JsonObject = {}
    tokens, limit = prompt.max_output_tokens, target.traits.max_output
    if tokens is not None:
        if limit and tokens > limit:
            context.report.add(
                "changed",
                "/max_output_tokens",
                f"{target.model} generates at most {limit} tokens (S3)",
            )
            tokens = limit
        name = target.provider.chat.max_tokens
        if target.traits.completion_tokens:
            name = "max_completion_tokens"
        body[name] = tokens
    if prompt.stop:
        body["stop"] = list(prompt.stop)
        most = target.provider.chat.stop_limit
        if most is not None and len(prompt.stop) > most:
            body["stop"] = list(prompt.stop[:most])
            context.report.add("changed", "/stop", f"at most {most} stop sequences (S3)")
    return body


def _sampling(prompt: Prompt, context: BuildContext) -> JsonObject:
    """S4: some models take no sampling while they think, some never."""
    target, report = context.target, context.report
    body: JsonObject = {}
    for name in SAMPLING:
        value = getattr(prompt, name)
        if value is not None:
            body[name] = value
    # Models with levels take sampling once thinking is off; the others never do.
    refuses = thinks(prompt.thinking, target) or "level" not in target.traits.thinking
    if refuses and not target.traits.sampling:
        for name in body:
            report.dropped(f"/{name}", f"{target.model} takes no {name} while it thinks (S4)")
        return {}
    if "top_k" in body and not target.provider.chat.top_k:
        del body["top_k"]
        report.dropped("/top_k", f"{target.provider.name} has no top_k in Chat")
    # In Chat `logprobs` is a switch, and the number of alternatives has its own field.
    alternatives = body.pop("logprobs", None)
    if alternatives is not None:
        body["logprobs"] = True
    if alternatives:
        body["top_logprobs"] = alternatives
    return body


def _output_format(prompt: Prompt, context: BuildContext) -> JsonObject:
    """`response_format`."""
    provider, schema = context.target.provider, prompt.schema
    shape = provider.chat
    if schema is None:
        return {}
    if not shape.output:
        context.report.dropped("/output_schema", f"{provider.name} has no structured output")
        return {}
    if schema == ANY_OBJECT:
        return {"response_format": merged({"type": "json_object"}, _format_rest(prompt) or {})}
    if shape.output != "json_schema":
        context.report.add(
            "changed",
            "/output_schema",
            f"{provider.name} takes no schema: JSON of any form (structured='tool' or 'json_mode')",
        )
        return {"response_format": {"type": "json_object"}}
    # The API requires a name, in the characters of a tool's name.
    title = str(schema.get("title") or "output")
    name = fit_names([title], WIRE_SPECS["chat"].tool_names).get(title, title)
    rest = _format_rest(prompt) or {}
    is_strict = rest.get("json_schema", {}).get("strict", True)
    if shape.strict_schemas and is_strict:
        schema = strict_schema(schema, "chat", "/output_schema", context.report)
    json_schema = {"name": name, "schema": schema, "strict": True}
    response_format = {"type": "json_schema", "json_schema": json_schema}
    return {"response_format": merged(response_format, rest)}


def _format_rest(prompt: Prompt) -> JsonObject | None:
    """What `extra` adds to the format of a schema: its name, description, `strict`.

    A format with a type is the caller's own, complete, and merged over the body like all `extra`.
    """
    rest = (prompt.extra or {}).get("response_format")
    if not isinstance(rest, dict) or "type" in rest:
        return None
    return rest


def _identity(prompt: Prompt, context: BuildContext) -> JsonObject:
    """The end user and the conversation, in the provider's fields."""
    provider = context.target.provider
    shape = provider.chat
    body: JsonObject = {}
    if prompt.user_id is not None:
        if shape.user:
            body[shape.user] = prompt.user_id
        else:
            context.report.dropped("/user_id", f"{provider.name} has no field for it")
    if prompt.conversation_id is None:
        return body
    if shape.conversation:
        return merged(body, nested(shape.conversation, prompt.conversation_id))
    if not provider.conversation_header:
        context.report.dropped("/conversation_id", f"{provider.name} has no field for it")
    return body
