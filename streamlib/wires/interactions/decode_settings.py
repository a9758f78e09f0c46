"""Decodes the settings of an Interactions request into those of a `Prompt`.

What `Prompt` has no field for goes into `extra`, in the same object as in the body.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.request.hosted_forms import read_hosted
from streamlib.request.prompt import Prompt, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT
from streamlib.wires.interactions.build import LEVELS
from streamlib.wires.interactions.build_tools import CHOICES
from streamlib_parsers.items import JsonObject, ToolOptions, ToolSpec

READ: Final = frozenset(
    {
        "system_instruction",
        "tools",
        "generation_config",
        "response_format",
        "labels",
        "service_tier",
        "stream",
    }
)
"""Fields of the body that are read here; the others go into `extra`."""

PLAIN: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "max_output_tokens": "max_output_tokens",
    "stop_sequences": "stop",
}
"""Field of generation_config -> field of `Prompt` with the same meaning."""

_CHOICE_OF: Final = {wire_name: choice for choice, wire_name in CHOICES.items()}


def settings(body: JsonObject) -> Prompt:
    """Decodes everything but the model and the conversation."""
    config = dict(body.get("generation_config") or {})
    values: JsonObject = {}
    for key, name in PLAIN.items():
        value = config.pop(key, None)
        if value is not None:
            values[name] = value
    # Each of these takes what it can express out of `config`; what remains goes into `extra`.
    values.update(_thinking(config))
    choice = _choice(config)
    extra = {key: value for key, value in body.items() if key not in READ}
    values.update(_schema(body.get("response_format"), extra))
    config = {key: value for key, value in config.items() if value is not None}
    if config:
        extra["generation_config"] = config
    tools = [_tool(tool) for tool in body.get("tools") or ()]
    return Prompt(
        instructions=body.get("system_instruction") or None,
        tools=tools,
        tool_choice=choice,
        metadata=body.get("labels") or None,
        service_tier=body.get("service_tier"),
        stream=body.get("stream", False),
        extra=extra or None,
        **values,
    )


def _thinking(config: JsonObject) -> JsonObject:
    effort: Any = None
    if config.get("thinking_level") in LEVELS:
        effort = config.pop("thinking_level")
    # `auto` is what the builder asks for; any other value stays in `config`.
    has_summaries = config.get("thinking_summaries") == "auto"
    if has_summaries:
        del config["thinking_summaries"]
    if effort is None and not has_summaries:
        return {}
    display = None
    if not has_summaries:
        display = "omitted"
    return {"reasoning": ReasoningOptions(effort, display=display)}


def _choice(config: JsonObject) -> str | None:
    """The tool choice. Several names, or `validated`, stay in `config`."""
    choice = config.get("tool_choice")
    if isinstance(choice, str) and choice in _CHOICE_OF:
        del config["tool_choice"]
        return _CHOICE_OF[choice]
    if isinstance(choice, dict) and choice.keys() == {"allowed_tools"}:
        allowed = choice["allowed_tools"]
        names = allowed.get("tools")
        if allowed.get("mode") == "any" and isinstance(names, list) and len(names) == 1:
            del config["tool_choice"]
            return str(names[0])
    return None


def _schema(response_format: Any, extra: JsonObject) -> JsonObject:
    """The output schema. `Prompt` has no other formats: they stay in `extra`."""
    if response_format is None:
        return {}
    formats = response_format
    if isinstance(formats, dict):
        formats = [formats]
    if len(formats) == 1:
        [only] = formats
        is_json = only.get("type") == "text" and only.get("mime_type") == "application/json"
        if is_json and only.keys() <= {"type", "mime_type", "schema"}:
            return {"output_schema": only.get("schema") or ANY_OBJECT}
    extra["response_format"] = response_format
    return {}


def _tool(tool: JsonObject) -> ToolSpec:
    if tool["type"] == "function":
        return _function(tool)
    hosted = read_hosted("interactions", tool)
    name = tool["type"]
    if hosted is not None:
        name = hosted.name
    elif isinstance(tool.get("name"), str):
        name = tool["name"]
    return ToolSpec(name, native=tool, native_wire="interactions", provider_run=hosted)


def _function(function: JsonObject) -> ToolSpec:
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
