"""Decodes the settings of a Chat Completions request: everything but messages and tools.

A setting that `Prompt` has becomes a typed field. The rest stays in `Prompt.extra`, which only this
wire sends again.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from streamlib.request.prompt import EFFORTS, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT
from streamlib.wires.chat.decode_parts import rest_of
from streamlib_parsers.items import JsonObject, ToolSpec

PLAIN: Final = (
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "n",
    "verbosity",
    "metadata",
    "service_tier",
)
"""Settings whose wire name is their name in `Prompt`."""

READ: Final = frozenset(
    {
        *PLAIN,
        "model",
        "messages",
        "tools",
        "functions",
        "tool_choice",
        "function_call",
        "parallel_tool_calls",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "seed",
        "random_seed",
        "logprobs",
        "top_logprobs",
        "response_format",
        "reasoning_effort",
        "reasoning",
        "thinking",
        "enable_thinking",
        "thinking_budget",
        "chat_template_kwargs",
        "prompt_cache_key",
        "user",
        "safety_identifier",
    }
)
"""Keys with a field in `Prompt`. Other keys, and what `Prompt` cannot express, go into `extra`."""


def settings(fields: JsonObject, tools: list[ToolSpec]) -> dict[str, Any]:
    """The fields of `Prompt` for everything but messages.

    Args:
        fields: The body without `messages`.
        tools: Its tools.

    Returns:
        Values by their name in `Prompt`, `extra` included.
    """
    extra = {key: value for key, value in fields.items() if key not in READ}
    logprobs = None
    if fields.get("logprobs"):
        logprobs = fields.get("top_logprobs") or 0
    # Mistral's name of the field is `random_seed`.
    seed = _first_present(fields, extra, "seed", "random_seed")
    max_output = _first_present(fields, extra, "max_completion_tokens", "max_tokens")
    user_id = _first_present(fields, extra, "safety_identifier", "user")
    extra.update(_rests(fields))
    return {
        "tools": tools,
        "tool_choice": _choice(fields, tools, extra),
        "parallel_tools": fields.get("parallel_tool_calls"),
        "reasoning": _reasoning(fields, extra),
        "output_schema": _schema(fields.get("response_format") or {}),
        "max_output_tokens": max_output,
        "stop": _string_list(fields.get("stop")),
        "seed": seed,
        "logprobs": logprobs,
        "conversation_id": fields.get("prompt_cache_key"),
        "user_id": user_id,
        "extra": extra or None,
        "model": fields.get("model"),
        "stream": bool(fields.get("stream")),
        **{name: fields.get(name) for name in PLAIN},
    }


def _first_present(fields: JsonObject, extra: JsonObject, *names: str) -> Any:
    """The value of the first name that has one; another one under a later name goes to `extra`."""
    present = [name for name in names if fields.get(name) is not None]
    for name in present[1:]:
        if fields[name] != fields[present[0]]:
            extra[name] = fields[name]
    if present:
        return fields[present[0]]
    return None


def _rests(fields: JsonObject) -> JsonObject:
    """Those parts of typed fields that `Prompt` cannot hold."""
    rests: JsonObject = {}
    format_rest = _format_rest(fields.get("response_format") or {})
    if format_rest:
        rests["response_format"] = format_rest
    # The builder requests usage in a stream by itself.
    options = dict(fields.get("stream_options") or {})
    if fields.get("stream") and options.get("include_usage") is True:
        del options["include_usage"]
    if options:
        rests["stream_options"] = options
    if fields.get("top_logprobs") is not None and not fields.get("logprobs"):
        rests["top_logprobs"] = fields["top_logprobs"]
    return rests


def _string_list(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return list(value or ())


def _choice(fields: JsonObject, tools: list[ToolSpec], extra: JsonObject) -> str | None:
    """The choice or the tool's name; a form that the builder would not write goes to `extra`."""
    choice: Any = fields.get("tool_choice") or fields.get("function_call")
    if isinstance(choice, dict) and "type" not in choice:
        # The older field has the name alone.
        choice = {"type": "function", "function": choice}
    if choice == "any":
        # Mistral's name for it.
        return "required"
    if isinstance(choice, str):
        return choice
    if not choice:
        return None
    kind = str(choice["type"])
    named: Any = choice.get(kind, choice)
    # The builder takes a tool that is not in the list for a function.
    offered_kind = "function"
    for tool in tools:
        if tool.name == named.get("name") and tool.format is not None:
            offered_kind = "custom"
    if "name" in named and kind == offered_kind:
        return str(named["name"])
    extra["tool_choice"] = choice
    return None


def _schema(response_format: JsonObject) -> JsonObject | None:
    schema: JsonObject | None = (response_format.get("json_schema") or {}).get("schema")
    if response_format.get("type") == "json_object":
        return ANY_OBJECT
    return schema


def _format_rest(response_format: JsonObject) -> JsonObject | None:
    """What `extra` keeps of a format: all of it, or what is beside its schema (`name`, `strict`).

    The builder writes strict schemas, so one that is not strict is kept with `strict: false`.
    """
    if response_format.get("type", "text") in ("text", "json_object"):
        return rest_of(response_format, "type")
    json_schema = response_format.get("json_schema") or {}
    if json_schema.get("schema") is None:
        return response_format
    rest = rest_of(response_format, "type", "json_schema") or {}
    schema_rest = rest_of(json_schema, "schema", "strict") or {}
    if json_schema.get("strict") is not True:
        schema_rest["strict"] = False
    if schema_rest:
        rest["json_schema"] = schema_rest
    return rest or None


def _reasoning(fields: JsonObject, extra: JsonObject) -> Literal["off"] | ReasoningOptions | None:
    """The request for thinking in every provider's form (`providers/shapes.py`).

    Keys inside these objects that have another meaning stay in `extra`.
    """
    reader = _FieldReader({key: fields[key] for key in READ if key in fields})
    # In order: DeepSeek and Z.ai, Qwen, OpenRouter and Together, templates of vLLM and SGLang.
    switches = [
        reader.take("thinking.type"),
        reader.take("enable_thinking"),
        reader.take("reasoning.enabled"),
        reader.take("chat_template_kwargs.enable_thinking"),
        reader.take("chat_template_kwargs.thinking"),
    ]
    wire_effort = reader.take("reasoning_effort") or reader.take("reasoning.effort")
    budget = (
        reader.take("thinking.budget_tokens")
        or reader.take("thinking_budget")
        or reader.take("reasoning.max_tokens")
    )
    extra.update(reader.rest("thinking", "reasoning", "chat_template_kwargs"))
    is_off = any(switch is False or switch == "disabled" for switch in switches)
    # An explicit "off" wins over a level beside it.
    if wire_effort == "none" or is_off:
        return "off"
    effort = None
    if wire_effort in EFFORTS:
        effort = wire_effort
    elif wire_effort:
        extra["reasoning_effort"] = wire_effort
    if effort or budget or any(switches):
        return ReasoningOptions(effort, budget)
    return None


class _FieldReader:
    """Takes values out of the body's objects, and returns what is left of these."""

    def __init__(self, values: JsonObject) -> None:
        self._values = values
        """The body's fields; an object loses each key that is taken."""

    def take(self, path: str) -> Any:
        """The value at a dotted path, removed from its object; None if there is none."""
        name, _, key = path.partition(".")
        value = self._values.get(name)
        if not key:
            return value
        if not isinstance(value, dict):
            return None
        # A copy: the caller's object must not change.
        remaining = dict(value)
        taken = remaining.pop(key, None)
        self._values[name] = remaining
        return taken

    def rest(self, *names: str) -> JsonObject:
        """What was not taken of these objects; empty ones are left out."""
        return {name: self._values[name] for name in names if self._values.get(name)}
