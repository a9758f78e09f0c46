"""A `Prompt` as a Chat Completions request: the generic, OpenAI-compatible body.

The conversation is written by `chat_messages`, thinking by `chat_thinking`; this file writes the tools and settings. Whatever
providers do differently is a value of `ChatShape`, never a question for a name.

S1 a schema is an object                           S4 sampling only where the model takes it
S2 strict schemas in OpenAI's subset, where asked  S5 a choice of tools needs tools, in words the provider takes
S3 the field of max_tokens, and the model's ceiling
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.providers.names import TOOL_NAMES, fit_names
from streamlib.request.history import IndexedItem
from streamlib.request.json_objects import merged, nested
from streamlib.request.prompt import Prompt
from streamlib.request.report import Report
from streamlib.request.schemas import strict_schema
from streamlib.request.target import BuiltRequest, Target
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


def build(prompt: Prompt, items: list[IndexedItem], where: Target, report: Report) -> BuiltRequest:
    """The body."""
    shape = where.provider.chat
    body: JsonObject = {"model": where.model}
    if prompt.tools:
        body["tools"] = [_tool(tool, at, where, report) for at, tool in enumerate(prompt.tools)]
    body["messages"] = wire_messages(prompt, items, where, report)
    body["stream"] = prompt.stream is not False
    if body["stream"] and shape.stream_usage:
        body["stream_options"] = {"include_usage": True}
    body.update(_choice(prompt, where, report))
    body.update(thinking_fields(prompt.thinking, where, report))
    body.update(_limits(prompt, where, report))
    body.update(_sampling(prompt, where, report))
    body.update(_format(prompt, where, report))
    body.update({name: value for name in PLAIN if (value := getattr(prompt, name)) is not None})
    return BuiltRequest(merged(shape.defaults, merged(body, _names(prompt, where, report))))


# --- tools ---


def _tool(tool: ToolSpec, at: int, where: Target, report: Report) -> JsonObject:
    if tool.native is not None:
        return tool.native
    said = {"name": tool.name, **({"description": tool.description} if tool.description else {})}
    if tool.format is not None and where.provider.chat.custom_tools:
        return {"type": "custom", "custom": {**said, "format": _grammar(tool.format)}}
    schema = (
        tool.schema
        if isinstance(tool.schema, dict) and tool.schema
        else {"type": "object", "properties": {}}
    )
    if tool.format is not None:
        report.add(
            "changed",
            f"/tools/{at}/format",
            f"{where.provider.name} has no free-form tools: it takes one string, input",
        )
        schema = {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
        }
    if schema.get("type") != "object":
        report.add("changed", f"/tools/{at}/schema", "parameters are of type object (S1)")
        schema = {**schema, "type": "object"}
    if tool.strict and where.provider.chat.strict_schemas:
        schema = strict_schema(schema, "chat", f"/tools/{at}/schema", report)
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


def _choice(prompt: Prompt, where: Target, report: Report) -> JsonObject:
    """S5."""
    asked = {"tool_choice": prompt.tool_choice, "parallel_tools": prompt.parallel_tools}
    if not prompt.tools:
        for name, value in asked.items():
            if value is not None:
                report.dropped(f"/{name}", "there are no tools (S5)")
        return {}
    body: JsonObject = (
        {} if prompt.parallel_tools is None else {"parallel_tool_calls": prompt.parallel_tools}
    )
    choice = _chosen(prompt, where, report) if prompt.tool_choice else None
    return {"tool_choice": choice, **body} if choice else body


def _chosen(prompt: Prompt, where: Target, report: Report) -> Any:
    """The provider's word for the choice, or the tool in the form of its kind."""
    kind = str(prompt.tool_choice) if prompt.tool_choice in WORDS else "tool"
    taken = where.provider.chat.tool_choices.get(kind, kind)
    if kind in ("required", "tool") and not where.traits.forced_tools:
        taken = "auto"
    if not taken:
        report.dropped("/tool_choice", f"{where.provider.name} takes no such choice")
    elif taken in WORDS and taken != kind:
        report.add("changed", "/tool_choice", f"{where.model} takes no such choice: {taken}")
    return _named(prompt) if taken == "tool" else taken


def _named(prompt: Prompt) -> JsonObject:
    tool = next((tool for tool in prompt.tools if tool.name == prompt.tool_choice), None)
    kind = "custom" if tool and tool.format is not None else "function"
    return {"type": kind, kind: {"name": prompt.tool_choice}}


# --- settings ---


def _limits(prompt: Prompt, where: Target, report: Report) -> JsonObject:
    """S3."""
    body: JsonObject = {"stop": list(prompt.stop)} if prompt.stop else {}
    asked, ceiling = prompt.max_output_tokens, where.traits.max_output
    if asked is not None and ceiling and asked > ceiling:
        report.add("changed", "/max_output_tokens", f"{where.model} gives at most {ceiling} (S3)")
        asked = ceiling
    name = (
        "max_completion_tokens"
        if where.traits.completion_tokens
        else where.provider.chat.max_tokens
    )
    return body if asked is None else {name: asked, **body}


def _sampling(prompt: Prompt, where: Target, report: Report) -> JsonObject:
    """S4: some models take none while they think, some never."""
    asked = {name: value for name in SAMPLING if (value := getattr(prompt, name)) is not None}
    if not where.traits.sampling and (
        thinks(prompt.thinking, where) or "level" not in where.traits.thinking
    ):
        for name in asked:
            report.dropped(f"/{name}", f"{where.model} takes no {name} while it thinks (S4)")
        return {}
    if "top_k" in asked and not where.provider.chat.top_k:
        del asked["top_k"]
        report.dropped("/top_k", f"{where.provider.name} has no top_k in Chat")
    alternatives = asked.pop("logprobs", None)
    wanted: JsonObject = {} if alternatives is None else {"logprobs": True}
    return {**asked, **wanted, **({"top_logprobs": alternatives} if alternatives else {})}


def _format(prompt: Prompt, where: Target, report: Report) -> JsonObject:
    shape, schema = where.provider.chat, prompt.output_schema
    if schema is None:
        return {}
    if shape.output != "json_schema":
        words = (
            "it is asked for JSON, the schema is yours to say"
            if shape.output
            else "nothing is asked for"
        )
        report.add(
            "changed" if shape.output else "dropped",
            "/output_schema",
            f"{where.provider.name} takes no schema: {words}",
        )
        return {"response_format": {"type": "json_object"}} if shape.output else {}
    title = str(schema.get("title") or "output")
    name = fit_names([title], TOOL_NAMES["chat"]).get(title, title)
    if shape.strict_schemas:
        schema = strict_schema(schema, "chat", "/output_schema", report)
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": schema, "strict": True},
        }
    }


def _names(prompt: Prompt, where: Target, report: Report) -> JsonObject:
    """Who asks, and in which conversation."""
    shape = where.provider.chat
    body: JsonObject = {}
    if prompt.user_id is not None and shape.user:
        body[shape.user] = prompt.user_id
    elif prompt.user_id is not None:
        report.dropped("/user_id", f"{where.provider.name} has no field for it")
    if prompt.conversation_id is not None and shape.conversation:
        body = merged(body, nested(shape.conversation, prompt.conversation_id))
    return body
