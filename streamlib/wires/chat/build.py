"""A `Prompt` as a Chat Completions request: the generic, OpenAI-compatible body.

The conversation is written by `chat_messages`, thinking by `chat_thinking`; this file writes the tools and settings. Whatever
providers do differently is a value of `ChatShape`, never a question for a name.

S1 a schema is an object                           S4 sampling only where the model takes it
S2 strict schemas in OpenAI's subset, where asked  S5 a choice of tools needs tools, in words the provider takes
S3 the field of max_tokens, and the model's ceiling
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.providers.names import fit_names
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.context import BuildContext
from streamlib.request.history import IndexedItem
from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import Prompt
from streamlib.request.schemas import strict_schema
from streamlib.request.target import BuiltRequest
from streamlib.wires.chat.build_messages import wire_messages
from streamlib.wires.chat.build_thinking import thinking_fields, thinks
from streamlib_parsers.items import JsonObject, ToolSpec

WORDS: Final = ("auto", "required", "none")
SAMPLING: Final = (
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
)
PLAIN: Final = ("seed", "n", "verbosity", "metadata", "service_tier")
"""Settings that only need their name."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """The body."""
    shape = context.target.provider.chat
    body: JsonObject = {"model": context.target.model}
    if prompt.tools:
        body["tools"] = [_tool(tool, at, context) for at, tool in enumerate(prompt.tools)]
    body["messages"] = wire_messages(prompt, items, context)
    body["stream"] = prompt.stream is not False
    if body["stream"] and shape.stream_usage:
        body["stream_options"] = {"include_usage": True}
    body.update(_choice(prompt, context))
    body.update(thinking_fields(prompt.thinking, context))
    body.update(_limits(prompt, context))
    body.update(_sampling(prompt, context))
    body.update(_format(prompt, context))
    body.update({name: value for name in PLAIN if (value := getattr(prompt, name)) is not None})
    return BuiltRequest(merged(shape.defaults, merged(body, _names(prompt, context))))


# --- tools ---


def _tool(tool: ToolSpec, at: int, context: BuildContext) -> JsonObject:
    if tool.native is not None:
        return tool.native
    said = {"name": tool.name, **({"description": tool.description} if tool.description else {})}
    if tool.format is not None and context.target.provider.chat.custom_tools:
        return {"type": "custom", "custom": {**said, "format": _grammar(tool.format)}}
    schema = (
        tool.schema
        if isinstance(tool.schema, dict) and tool.schema
        else {"type": "object", "properties": {}}
    )
    if tool.format is not None:
        context.report.add(
            "changed",
            f"/tools/{at}/format",
            f"{context.target.provider.name} has no free-form tools: it takes one string, input",
        )
        schema = {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
        }
    if schema.get("type") != "object":
        context.report.add("changed", f"/tools/{at}/schema", "parameters are of type object (S1)")
        schema = {**schema, "type": "object"}
    if tool.strict and context.target.provider.chat.strict_schemas:
        schema = strict_schema(schema, "chat", f"/tools/{at}/schema", context.report)
    strict = {"strict": tool.strict} if tool.strict is not None else {}
    return {"type": "function", "function": {**said, "parameters": schema, **strict}}


def _grammar(form: JsonObject) -> JsonObject:
    """A grammar stands one level deeper than in Responses."""
    inner = {key: value for key, value in form.items() if key != "type"}
    return (
        {"type": "grammar", "grammar": inner}
        if form.get("type") == "grammar" and "grammar" not in form
        else form
    )


def _choice(prompt: Prompt, context: BuildContext) -> JsonObject:
    """S5."""
    asked = {"tool_choice": prompt.tool_choice, "parallel_tools": prompt.parallel_tools}
    if not prompt.tools:
        for name, value in asked.items():
            if value is not None:
                context.report.dropped(f"/{name}", "there are no tools (S5)")
        return {}
    body: JsonObject = (
        {} if prompt.parallel_tools is None else {"parallel_tool_calls": prompt.parallel_tools}
    )
    choice = _chosen(prompt, context) if prompt.tool_choice else None
    return {"tool_choice": choice, **body} if choice else body


def _chosen(prompt: Prompt, context: BuildContext) -> Any:
    """The provider's word for the choice, or the tool in the form of its kind."""
    kind = str(prompt.tool_choice) if prompt.tool_choice in WORDS else "tool"
    taken = context.target.provider.chat.tool_choices.get(kind, kind)
    if kind in ("required", "tool") and not context.target.traits.forced_tools:
        taken = "auto"
    if not taken:
        context.report.dropped(
            "/tool_choice", f"{context.target.provider.name} takes no such choice"
        )
    elif taken in WORDS and taken != kind:
        context.report.add(
            "changed", "/tool_choice", f"{context.target.model} takes no such choice: {taken}"
        )
    return _named(prompt) if taken == "tool" else taken


def _named(prompt: Prompt) -> JsonObject:
    tool = next((tool for tool in prompt.tools if tool.name == prompt.tool_choice), None)
    kind = "custom" if tool and tool.format is not None else "function"
    return {"type": kind, kind: {"name": prompt.tool_choice}}


# --- settings ---


def _limits(prompt: Prompt, context: BuildContext) -> JsonObject:
    """S3."""
    body: JsonObject = {"stop": list(prompt.stop)} if prompt.stop else {}
    asked, ceiling = prompt.max_output_tokens, context.target.traits.max_output
    if asked is not None and ceiling and asked > ceiling:
        context.report.add(
            "changed", "/max_output_tokens", f"{context.target.model} gives at most {ceiling} (S3)"
        )
        asked = ceiling
    name = (
        "max_completion_tokens"
        if context.target.traits.completion_tokens
        else context.target.provider.chat.max_tokens
    )
    return body if asked is None else {name: asked, **body}


def _sampling(prompt: Prompt, context: BuildContext) -> JsonObject:
    """S4: some models take none while they think, some never."""
    asked = {name: value for name in SAMPLING if (value := getattr(prompt, name)) is not None}
    if not context.target.traits.sampling and (
        thinks(prompt.thinking, context.target) or "level" not in context.target.traits.thinking
    ):
        for name in asked:
            context.report.dropped(
                f"/{name}", f"{context.target.model} takes no {name} while it thinks (S4)"
            )
        return {}
    if "top_k" in asked and not context.target.provider.chat.top_k:
        del asked["top_k"]
        context.report.dropped("/top_k", f"{context.target.provider.name} has no top_k in Chat")
    alternatives = asked.pop("logprobs", None)
    wanted: JsonObject = {} if alternatives is None else {"logprobs": True}
    return {**asked, **wanted, **({"top_logprobs": alternatives} if alternatives else {})}


def _format(prompt: Prompt, context: BuildContext) -> JsonObject:
    shape, schema = context.target.provider.chat, prompt.output_schema
    if schema is None:
        return {}
    if shape.output != "json_schema":
        words = (
            "it is asked for JSON, the schema is yours to say"
            if shape.output
            else "nothing is asked for"
        )
        context.report.add(
            "changed" if shape.output else "dropped",
            "/output_schema",
            f"{context.target.provider.name} takes no schema: {words}",
        )
        return {"response_format": {"type": "json_object"}} if shape.output else {}
    title = str(schema.get("title") or "output")
    name = fit_names([title], WIRE_SPECS["chat"].tool_names).get(title, title)
    if shape.strict_schemas:
        schema = strict_schema(schema, "chat", "/output_schema", context.report)
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": schema, "strict": True},
        }
    }


def _names(prompt: Prompt, context: BuildContext) -> JsonObject:
    """Who asks, and in which conversation."""
    shape = context.target.provider.chat
    body: JsonObject = {}
    if prompt.user_id is not None and shape.user:
        body[shape.user] = prompt.user_id
    elif prompt.user_id is not None:
        context.report.dropped("/user_id", f"{context.target.provider.name} has no field for it")
    if prompt.conversation_id is not None and shape.conversation:
        body = merged(body, nested(shape.conversation, prompt.conversation_id))
    return body
