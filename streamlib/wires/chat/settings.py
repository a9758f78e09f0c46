"""The settings of a Chat Completions request: from a `Prompt`, and back.

Whatever providers do differently is a value of `ChatShape`; no code asks for a provider's name.
What `Prompt` has no field for goes into `Prompt.extra`, which only this wire sends again.

S2 strict schemas in OpenAI's subset, if requested
S3 the field of max_tokens, and the model's limit
S4 sampling only for models that take it
S5 a tool choice needs tools, and a value that the provider takes
"""

from __future__ import annotations

from typing import Any, Final, Literal

from streamlib.providers.names import fit_names
from streamlib.providers.shapes import Thinking
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.effort import BUDGETS, level, nearest
from streamlib.request.hosted_forms import value_at
from streamlib.request.json_objects import merged, nested, rest_of
from streamlib.request.prompt import EFFORTS, Prompt, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT, can_be_strict, strict_schema
from streamlib.request.target import BuildContext, Target
from streamlib.wires.settings import (
    Setting,
    SettingsTable,
    left_in_extra,
    output_limit,
    put,
    read_stop,
    switched_logprobs,
    take,
    take_object,
    without_settings,
)
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
"""Settings that a thinking model may refuse."""  # rule S4


def fitted(prompt: Prompt, context: BuildContext) -> Prompt:
    """The prompt without settings that the target refuses beside others."""
    target, report = context.target, context.report
    if not prompt.tools:
        names = ("tool_choice", "parallel_tools")
        prompt = without_settings(prompt, names, "there are no tools", report)
    # Models with levels take sampling once thinking is off; the others never do.
    refuses = thinks(prompt.thinking, target) or "level" not in target.traits.thinking
    if refuses and not target.traits.sampling:
        reason = f"{target.model} takes no sampling parameters while it thinks"
        prompt = without_settings(prompt, SAMPLING, reason, report)
    return prompt


# --- the choice of a tool ---


def _choice(prompt: Prompt, context: BuildContext) -> Any:
    """The provider's value for the choice, or the tool in the form of its kind."""
    target, report = context.target, context.report
    kind = "tool"
    if not prompt.tool_choice:
        report.dropped("/tool_choice", "it names no tool")
        return None
    if prompt.tool_choice in CHOICES:
        kind = str(prompt.tool_choice)
    choice = target.provider.chat.tool_choices.get(kind, kind)
    if kind in ("required", "tool") and not target.traits.forced_tools:
        choice = "auto"
    if not choice:
        report.dropped("/tool_choice", f"{target.provider.name} takes no such choice")
        return None
    if choice in CHOICES and choice != kind:
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


def read_choice(fields: JsonObject, tools: list[ToolSpec]) -> str | None:
    """Takes the choice, or the tool's name; a form that the builder would not write stays."""
    choice: Any = fields.pop("tool_choice", None)
    # The older field has the name alone.
    older: Any = fields.pop("function_call", None)
    if isinstance(older, dict):
        older = {"type": "function", "function": older}
    if choice is None:
        choice = older
    if choice == "any":
        # Mistral's name for it.
        return "required"
    if choice is None or (choice and isinstance(choice, str)):
        name: str | None = choice
        return name
    if not choice:
        fields["tool_choice"] = choice
        return None
    kind = str(choice["type"])
    named: Any = choice.get(kind, choice)
    if choice.keys() - {"type", "name", kind} or rest_of(named, "type", "name"):
        fields["tool_choice"] = choice
        return None
    # The builder takes a tool that is not in the list for a function.
    offered_kind = "function"
    for tool in tools:
        if tool.name == named.get("name") and tool.format is not None:
            offered_kind = "custom"
    if "name" in named and kind == offered_kind:
        return str(named["name"])
    fields["tool_choice"] = choice
    return None


# --- thinking ---


def _thinking(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """The fields for thinking, in the terms of the provider (`ChatShape.thinking`).

    A level that the model does not take becomes the nearest one. A budget becomes a level if only
    levels are taken, and the other way round.
    """
    target, report = context.target, context.report
    style = target.provider.chat.thinking
    options = prompt.thinking or ReasoningOptions()
    if style is None:
        report.dropped("/reasoning", f"{target.provider.name} has no field for thinking")
        return None
    if not target.traits.thinking:
        report.dropped("/reasoning", f"{target.model} cannot think")
        return None
    for name in ("summary", "display"):
        if getattr(options, name) is not None:
            report.dropped(f"/reasoning/{name}", f"Chat has no {name} of reasoning")
    if options.effort == "off":
        return _off(style, context)
    return merged(style.on, _amount(options, style, context))


def thinks(options: ReasoningOptions | None, target: Target) -> bool:
    """Whether the model will think, as far as the request determines it."""
    if options is None:
        return target.traits.thinking_default
    return options.effort != "off"


def _off(style: Thinking, context: BuildContext) -> JsonObject:
    """Thinking off, or as little as the model can."""
    target = context.target
    if style.off is not None and target.traits.thinking_off:
        return style.off
    lowest = nearest("off", target.traits.efforts)
    if style.effort and lowest:
        reason = f"{target.model} always thinks: effort {lowest}"
        context.report.add("changed", "/reasoning", reason)
        return nested(style.effort, style.words.get(lowest, lowest))
    context.report.dropped("/reasoning", f"thinking cannot be switched off at {target.model}")
    return {}


def _amount(options: ReasoningOptions, style: Thinking, context: BuildContext) -> JsonObject:
    """A level or a number of tokens, whichever the provider takes."""
    name, report = context.target.provider.name, context.report
    has_both = options.budget is not None and options.effort is not None
    if has_both and (style.budget or style.effort):
        unused = "effort" if style.budget else "budget"
        report.dropped(f"/reasoning/{unused}", f"{name} takes a level or tokens, never both")
    if options.budget is not None and style.budget:
        return nested(style.budget, options.budget)
    requested = level(options)
    if requested is None:
        # Thinking without an amount: some providers have a switch for it.
        if not style.on and not style.plain:
            report.dropped("/reasoning", f"{name} wants a level")
        return style.plain
    if style.effort:
        return nested(style.effort, _effort(requested, options, style, context))
    if style.budget:
        tokens = BUDGETS[requested]
        report.add("changed", "/reasoning", f"{name} takes tokens, not levels: {tokens}")
        return nested(style.budget, tokens)
    report.add("changed", "/reasoning", f"{name} has no levels: thinking is switched on")
    return {}


def _effort(
    requested: str, options: ReasoningOptions, style: Thinking, context: BuildContext
) -> str:
    """The provider's name of the level; reported if it differs from what was requested."""
    allowed = context.target.traits.efforts
    effort = requested
    # A model without a list of levels takes whatever is sent.
    if allowed and requested not in allowed:
        effort = nearest(requested, allowed) or requested
    wire_effort = style.words.get(effort, effort)
    if options.effort != wire_effort:
        context.report.add("changed", "/reasoning", f"{context.target.model}: effort {wire_effort}")
    return wire_effort


def unsent_beside_off(prompt: Prompt, context: BuildContext) -> list[str]:
    """Paths of `extra` that ask for thinking, in a decoded request that also switches it off.

    Merged over the body, they would switch it on again, or be unknown there: they are reported. A
    level in the provider's own field changes nothing beside a switch of its own, and is sent.
    """
    extra, target = prompt.extra or {}, context.target
    is_off = prompt.thinking is not None and prompt.thinking.effort == "off"
    if prompt.extra_wire != "chat" or not is_off:
        return []
    style = target.provider.chat.thinking or Thinking()
    has_switch = bool(style.off) and target.traits.thinking and target.traits.thinking_off
    paths: list[str] = []
    for path in (*SWITCHES, *EFFORT_PATHS):
        is_own = has_switch and path == style.effort and value_at(style.off, path) is None
        if value_at(extra, path) is not None and not is_own:
            context.report.dropped(f"/extra/{path.replace('.', '/')}", "reasoning is off")
            paths.append(path)
    return paths


SWITCHES: Final = (
    "thinking.type",  # DeepSeek, Z.ai
    "enable_thinking",  # Qwen
    "reasoning.enabled",  # OpenRouter, Together
    "chat_template_kwargs.enable_thinking",  # templates of vLLM and SGLang
    "chat_template_kwargs.thinking",
)
SWITCHED_ON: Final = (True, "enabled")
SWITCHED_OFF: Final = (False, "disabled")
EFFORT_PATHS: Final = ("reasoning_effort", "reasoning.effort")
BUDGET_PATHS: Final = ("thinking.budget_tokens", "thinking_budget", "reasoning.max_tokens")


def _read_thinking(fields: JsonObject) -> Literal["off"] | ReasoningOptions | None:
    """The request for thinking in every provider's form (`providers/shapes.py`).

    Keys inside these objects that have another meaning stay in `extra`.
    """
    switches = {path: _take_first(fields, path)[1] for path in SWITCHES}
    effort_path, wire_effort = _take_first(fields, *EFFORT_PATHS)
    budget = _take_first(fields, *BUDGET_PATHS)[1]
    is_off = wire_effort == "none" or any(switch in SWITCHED_OFF for switch in switches.values())
    for path, switch in switches.items():
        # `on` beside "off", which wins, or one that is on for other wires: Doubao's `auto`
        is_known = switch in SWITCHED_OFF or (switch in SWITCHED_ON and not is_off)
        if switch is not None and not is_known:
            put(fields, path, switch)
    effort = None
    if wire_effort in EFFORTS and not is_off:
        effort = wire_effort
    elif wire_effort is not None and wire_effort != "none":
        # beside "off", too, or no level of ours
        put(fields, effort_path, wire_effort)
    if is_off:
        return ReasoningOptions("off", budget) if budget else "off"
    # a word is a type of thinking, but no switch
    is_on = any(switch in SWITCHED_ON for switch in switches.values()) or switches[SWITCHES[0]]
    if effort or budget or is_on:
        return ReasoningOptions(effort, budget)
    return None


def _take_first(fields: JsonObject, *paths: str) -> tuple[str, Any]:
    """The first value that says something, with its path: a 0 or an empty text stays there."""
    for path in paths:
        value = take(fields, path)
        if value or value is False:
            return path, value
        if value is not None:
            put(fields, path, value)
    return "", None


# --- output ---


def _format(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    provider, schema, report = context.target.provider, prompt.schema or {}, context.report
    shape = provider.chat
    if not shape.output:
        report.dropped("/output_schema", f"{provider.name} has no structured output")
        return None
    if schema == ANY_OBJECT:
        return merged({"type": "json_object"}, format_rest(prompt) or {})
    if shape.output != "json_schema":
        reason = "takes no schema: JSON of any form (structured='tool' or 'json_mode')"
        report.add("changed", "/output_schema", f"{provider.name} {reason}")
        return {"type": "json_object"}
    # The API requires a name, in the characters of a tool's name.
    title = str(schema.get("title") or "output")
    name = fit_names([title], WIRE_SPECS["chat"].tool_names).get(title, title)
    rest = format_rest(prompt) or {}
    own = rest.get("json_schema", {})
    is_strict = own.get("strict", True)
    if shape.strict_schemas and is_strict:
        # What the caller wrote is sent, and the service says what it does not take.
        is_strict = "strict" in own or can_be_strict(schema, "chat", "/output_schema", report)
        if is_strict:
            schema = strict_schema(schema, "chat", "/output_schema", report)
    json_schema = {"name": name, "schema": schema, "strict": is_strict}
    return merged({"type": "json_schema", "json_schema": json_schema}, rest)


def format_rest(prompt: Prompt) -> JsonObject | None:
    """What `extra` adds to the format of a schema: its name, description, `strict`.

    A format with a type is the caller's own, complete, and merged over the body like all `extra`.
    """
    rest = (prompt.extra or {}).get("response_format")
    if not isinstance(rest, dict) or "type" in rest:
        return None
    return rest


def _read_schema(fields: JsonObject) -> JsonObject | None:
    response_format = take_object(fields, "response_format")
    rest = _read_format_rest(response_format)
    if rest:
        fields["response_format"] = rest
    if response_format.get("type") == "json_object":
        return ANY_OBJECT
    schema: JsonObject | None = (response_format.get("json_schema") or {}).get("schema")
    return schema


def _read_format_rest(response_format: JsonObject) -> JsonObject | None:
    """What `extra` keeps of a format: all of it, or what is beside its schema (`name`, `strict`).

    The builder writes strict schemas, so one that is not strict is kept with `strict: false`.
    """
    kind = response_format.get("type", "text")
    if kind == "text" and rest_of(response_format, "type"):
        return response_format
    if kind in ("text", "json_object"):
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


# --- limits, sampling, identity ---


def _max_tokens(prompt: Prompt, context: BuildContext) -> JsonObject:
    name = context.target.provider.chat.max_tokens
    if context.target.traits.completion_tokens:
        name = "max_completion_tokens"
    return {name: output_limit(prompt, context)}


def _stop(prompt: Prompt, context: BuildContext) -> list[str]:
    most = context.target.provider.chat.stop_limit
    if most is not None and len(prompt.stop) > most:
        context.report.add("changed", "/stop", f"at most {most} stop sequences")
    return list(prompt.stop[:most])


def _top_k(prompt: Prompt, context: BuildContext) -> int | None:
    provider = context.target.provider
    if not provider.chat.top_k:
        context.report.dropped("/top_k", f"{provider.name} has no top_k in Chat")
        return None
    return prompt.top_k


def _user(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    provider = context.target.provider
    if not provider.chat.user:
        context.report.dropped("/user_id", f"{provider.name} has no field for it")
        return None
    return {provider.chat.user: prompt.user_id}


def _conversation(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    provider = context.target.provider
    if provider.chat.conversation:
        return nested(provider.chat.conversation, prompt.conversation_id)
    if not provider.conversation_header:
        context.report.dropped("/conversation_id", f"{provider.name} has no field for it")
    return None


SETTINGS: Final = SettingsTable(
    "Chat",
    # `read_choice` reads it, which knows the tools
    Setting("tool_choice", "tool_choice", write=_choice, read=left_in_extra),
    Setting("parallel_tools", "parallel_tool_calls"),
    Setting("reasoning", also=("thinking", "reasoning"), write=_thinking, read=_read_thinking),
    Setting("reasoning.summary"),
    Setting("reasoning.display"),
    Setting("max_output_tokens", also=("max_completion_tokens", "max_tokens"), write=_max_tokens),
    Setting("stop", "stop", write=_stop, read=read_stop("stop")),
    Setting("temperature", "temperature"),
    Setting("top_p", "top_p"),
    Setting("top_k", "top_k", write=_top_k),
    Setting("presence_penalty", "presence_penalty"),
    Setting("frequency_penalty", "frequency_penalty"),
    switched_logprobs("logprobs", "top_logprobs"),
    Setting("output_schema", "response_format", write=_format, read=_read_schema),
    # Mistral's name of the field is `random_seed`
    Setting("seed", "seed", also=("random_seed",)),
    Setting("n", "n"),
    Setting("verbosity", "verbosity"),
    Setting("metadata", "metadata"),
    Setting("service_tier", "service_tier"),
    Setting("user_id", also=("safety_identifier", "user"), write=_user),
    Setting("conversation_id", also=("prompt_cache_key",), write=_conversation),
    # marks of messages, where the provider takes them: `build_message_rules.mark_cache`
    Setting("cache"),
    Setting("cache.ttl"),
    Setting("cache.lifetimes"),
    Setting("cache.breakpoints"),
)
