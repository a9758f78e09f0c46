"""The settings of an Interactions request, tools included: from a `Prompt`, and back.

What generates is in `generation_config`, which only models have. What `Prompt` has no field for
goes into `Prompt.extra`, in the same object as in the body. Rules have the numbers of the rule
table in docs/wires/interactions.md.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.request.effort import level, nearest
from streamlib.request.hosted_forms import read_hosted
from streamlib.request.prompt import Prompt, ReasoningOptions
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT
from streamlib.request.target import BuildContext
from streamlib.request.tool_options import option_fields
from streamlib.wires.arguments import free_form_schema, object_schema
from streamlib.wires.settings import (
    Setting,
    SettingsTable,
    left_in_extra,
    output_limit,
    put,
    stop_sequences,
    take,
)
from streamlib_parsers.items import JsonObject, ToolOptions, ToolSpec

# --- tools ---

CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}
"""`Prompt.tool_choice` -> the wire's value; anything else is the name of a function."""

LITERALS: Final = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are not schemas."""


def wire_tools(prompt: Prompt, report: Report) -> list[JsonObject]:
    """`tools`: functions, and Google's own tools as the caller wrote them."""
    return [_wire_tool(tool, f"/tools/{index}", report) for index, tool in enumerate(prompt.tools)]


def _wire_tool(tool: ToolSpec, path: str, report: Report) -> JsonObject:
    if tool.native is not None:
        return tool.native
    body: JsonObject = {"type": "function", "name": tool.name}
    if tool.description is not None:
        body["description"] = tool.description
    if tool.strict:
        report.dropped(f"{path}/strict", "Interactions has no strict functions")
    body.update(option_fields(tool))
    if tool.format is not None:
        body["parameters"] = free_form_schema("Interactions", path, report)
    elif tool.schema is not None:
        schema = object_schema(tool, f"{path}/schema", report)
        body["parameters"] = _without_empty_required(schema, f"{path}/schema", report)
    return body


def _without_empty_required(schema: Any, path: str, report: Report) -> Any:
    """Removes every empty `required` list: it means nothing, and the API refuses it."""  # rule I5
    if isinstance(schema, list):
        return [_without_empty_required(inner, path, report) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    fitted: JsonObject = {}
    for key, value in schema.items():
        if key == "required" and value == []:
            report.add("changed", path, "an empty `required` is refused: left out")
        elif key in LITERALS:
            fitted[key] = value
        else:
            fitted[key] = _without_empty_required(value, path, report)
    return fitted


def read_tool(tool: JsonObject) -> ToolSpec:
    """A tool of a decoded request."""
    if tool["type"] == "function":
        return _read_function(tool)
    hosted = read_hosted("interactions", tool)
    name = tool["type"]
    if hosted is not None:
        name = hosted.name
    elif isinstance(tool.get("name"), str):
        name = tool["name"]
    return ToolSpec(name, native=tool, native_wire="interactions", provider_run=hosted)


def _read_function(function: JsonObject) -> ToolSpec:
    rest = {key: value for key, value in function.items() if value is not None}
    del rest["type"]
    name, description = rest.pop("name"), rest.pop("description", None)
    schema = rest.pop("parameters", None)
    options: JsonObject = {}
    if "defer_loading" in rest:
        options["defer_loading"] = rest.pop("defer_loading")
    if rest:
        options |= {"native": rest, "native_wire": "interactions"}
    return ToolSpec(name, description, schema, options=ToolOptions(**options) if options else None)


def _choice(prompt: Prompt, context: BuildContext) -> Any:
    choice = prompt.tool_choice
    functions = [tool.name for tool in prompt.tools if tool.native is None]
    if choice in CHOICES and (prompt.tools or choice == "auto"):
        return CHOICES[choice]
    if choice in functions:
        return {"allowed_tools": {"mode": "any", "tools": [choice]}}
    context.report.dropped("/tool_choice", "there is no such function to call")
    return None


def _read_choice(fields: JsonObject) -> str | None:
    """The tool choice. Several names, or `validated`, stay in `extra`."""
    sent = take(fields, "generation_config.tool_choice")
    for choice, wire_name in CHOICES.items():
        if sent == wire_name:
            return choice
    if isinstance(sent, dict) and sent.keys() == {"allowed_tools"}:
        allowed = sent["allowed_tools"]
        names = allowed.get("tools")
        is_any = allowed.get("mode") == "any" and allowed.keys() == {"mode", "tools"}
        if is_any and isinstance(names, list) and len(names) == 1:
            return str(names[0])
    if sent is not None:
        put(fields, "generation_config.tool_choice", sent)
    return None


# --- thinking and output ---

LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")
"""Values of `thinking_level`."""

SUMMARIES: Final = ("auto", "none")
"""Values of `thinking_summaries`."""


def _thinking(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """`thinking_level` and `thinking_summaries`; this wire has no budget and no `off`."""
    # rule I6
    target, report = context.target, context.report
    options = prompt.thinking or ReasoningOptions()
    if not target.traits.thinking:
        report.dropped("/reasoning", f"{target.model} has no settings for thinking")
        return None
    config: JsonObject = {}
    requested = level(options)
    if options.budget == 0 and options.effort is None:
        requested = "off"
    if requested is not None:
        allowed = nearest(requested, tuple(e for e in target.traits.efforts if e in LEVELS))
        if allowed != requested or options.effort is None:
            reason = f"{target.model} thinks at a level: {allowed or 'its own'}"
            report.add("changed", "/reasoning", reason)
        elif options.budget is not None:
            report.dropped("/reasoning/budget", "a level, never a number of tokens")
        if allowed:
            config["thinking_level"] = allowed
    if options.summary in SUMMARIES:
        config["thinking_summaries"] = options.summary
    elif options.display != "omitted" and requested != "off":
        # Without this the API thinks, but sends no summaries.
        config["thinking_summaries"] = "auto"
    if options.summary not in (None, *SUMMARIES):
        report.dropped("/reasoning/summary", f"thinking_summaries is one of {SUMMARIES}")
    return {"generation_config": config} if config else None


def _read_thinking(fields: JsonObject) -> ReasoningOptions | None:
    config = fields.get("generation_config", {})
    effort: Any = None
    if config.get("thinking_level") in LEVELS:
        effort = take(fields, "generation_config.thinking_level")
    # `auto` is what the builder asks for; any other value stays in `extra`.
    has_summaries = config.get("thinking_summaries") == "auto"
    if has_summaries:
        take(fields, "generation_config.thinking_summaries")
    if effort is None and not has_summaries:
        return None
    display = None
    if not has_summaries:
        display = "omitted"
    return ReasoningOptions(effort, display=display)


def _format(prompt: Prompt, context: BuildContext) -> JsonObject:
    response_format: JsonObject = {"type": "text", "mime_type": "application/json"}
    if prompt.schema != ANY_OBJECT:
        response_format["schema"] = prompt.schema
    return response_format


def _read_schema(fields: JsonObject) -> JsonObject | None:
    """The output schema. `Prompt` has no other formats: they stay in `extra`."""
    formats: Any = fields.get("response_format") or ()
    if isinstance(formats, dict):
        formats = [formats]
    if len(formats) != 1:
        return None
    [only] = formats
    is_json = only.get("type") == "text" and only.get("mime_type") == "application/json"
    if not is_json or not only.keys() <= {"type", "mime_type", "schema"}:
        return None
    del fields["response_format"]
    return only.get("schema") or ANY_OBJECT


SETTINGS: Final = SettingsTable(
    "Interactions",
    # newer models fix their own sampling (I7)
    Setting("temperature", "generation_config.temperature", needs="sampling"),
    Setting("top_p", "generation_config.top_p", needs="sampling"),
    Setting("seed", "generation_config.seed"),
    Setting("max_output_tokens", "generation_config.max_output_tokens", write=output_limit),
    Setting("stop", "generation_config.stop_sequences", write=stop_sequences),
    Setting("reasoning", write=_thinking, read=_read_thinking),
    Setting("reasoning.summary", sent_when_off=True),
    Setting("reasoning.display"),
    Setting("tool_choice", "generation_config.tool_choice", write=_choice, read=_read_choice),
    Setting("output_schema", "response_format", write=_format, read=_read_schema),
    Setting("background", "background", read=left_in_extra),
    Setting("service_tier", "service_tier"),
    Setting("metadata", "labels"),
    # the functions that it calls at once have no limit
    Setting("parallel_tools", fixed=True),
    # Google caches by itself, or by another call (`cached_content` in `extra`)
    Setting("cache", fixed="auto"),
)

MODEL_SETTINGS: Final = (
    "reasoning",
    "tool_choice",
    "max_output_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
)
"""Settings of `generation_config`, which agents do not have."""  # rule I8
