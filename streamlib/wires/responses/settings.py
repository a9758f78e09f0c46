"""The settings of a Responses request: from a `Prompt`, and back.

What `Prompt` has no field for goes into `Prompt.extra`, which only this wire sends again. Numbers
are the rows of the rule table in docs/wires/responses.md:

S2 effort is a value that the model takes
S3 encrypted reasoning is requested only from models that think
S4 sampling only where the model does not think
S5 keys and identifiers have a maximum length; longer ones are hashed
S6 a tool choice needs tools
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.providers.models import traits
from streamlib.providers.names import fit_names
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.effort import level, nearest
from streamlib.request.json_objects import rest_of
from streamlib.request.prompt import EFFORTS, CacheOptions, Prompt, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT, can_be_strict, strict_schema
from streamlib.request.target import BuildContext, Target
from streamlib.wires.cache_marks import comparison, why_no_breakpoints
from streamlib.wires.settings import (
    Setting,
    SettingsTable,
    left_in_extra,
    put,
    take,
    take_object,
    without_settings,
)
from streamlib_parsers.items import JsonObject, ToolSpec

KEY_LENGTH: Final = 64
"""Characters that `prompt_cache_key` may have."""  # rule S5

IDENTIFIER_LENGTH: Final = 128
"""Characters that `safety_identifier` may have."""  # rule S5

LIFETIMES: Final = {"5m": "30m", "1h": "12h", "24h": "12h"}
"""Cache lifetimes of other wires, and the nearest here; the wire's own are 30m and 12h."""

SUMMARIES: Final = ("auto", "concise", "detailed")
"""Values of `reasoning.summary`."""

SAMPLING: Final = ("temperature", "top_p", "logprobs")
"""Settings that a thinking model may refuse."""  # rule S4

LOGPROBS: Final = "message.output_text.logprobs"

ENCRYPTED: Final = "reasoning.encrypted_content"

INCLUDED: Final = frozenset({ENCRYPTED, LOGPROBS})
"""Elements of `include` that are requested without the caller's request."""


def fitted(prompt: Prompt, context: BuildContext) -> Prompt:
    """The prompt without settings that the model refuses beside others (S4, S6)."""
    target, report = context.target, context.report
    if not prompt.tools:
        refused = ("tool_choice", "parallel_tools")
        prompt = without_settings(prompt, refused, "there are no tools", report)
    if not target.traits.sampling and _thinks(prompt, target):
        reason = f"{target.model} takes no sampling parameters while it thinks"
        prompt = without_settings(prompt, SAMPLING, reason, report)
    return prompt


def is_stored(prompt: Prompt, target: Target) -> bool:
    """Whether the server keeps the response: by the request, else by the provider, else not."""
    provider = target.provider
    extra = prompt.extra or {}
    for values in (provider.overrides, extra, provider.defaults):
        if "store" in values:
            return bool(values["store"])
    # A response in the background is stored, or refused. Who continues a stored one has the next
    # request continue this one: there the wire's own default stays.
    stored_history = WIRE_SPECS["responses"].stored_history
    return bool(
        prompt.background
        or extra.get("background")
        or any(extra.get(name) for name in stored_history)
    )


def keeps_own_storage(prompt: Prompt, target: Target) -> bool:
    """Whether a request of this wire was decoded that leaves it to the server what it stores.

    Its client may continue the response by `previous_response_id` next, which no request tells
    before.
    """
    values = {**target.provider.defaults, **(prompt.extra or {}), **target.provider.overrides}
    return prompt.extra_wire == "responses" and "store" not in values


# --- the choice of a tool ---

CHOICES: Final = ("auto", "required", "none")
"""Tool choices that name no tool."""

NAMED_KINDS: Final = ("function", "custom")
"""Kinds of tools that a choice names by their name; it names other tools by their kind."""


def _choice(prompt: Prompt, context: BuildContext) -> Any:
    """The choice, or the tool in the flat form of its kind."""
    name = prompt.tool_choice
    if name in CHOICES:
        return name
    tool = next((tool for tool in prompt.tools if tool.name == name), None)
    if tool is None:
        return {"type": "function", "name": name}
    native = tool.native or {}
    kind = native.get("type")
    if kind is None:
        kind = "function" if tool.format is None else "custom"
    if kind in ("function", "custom"):
        return {"type": kind, "name": name}
    choice = {"type": kind}
    # An MCP server is named by its label.
    if "server_label" in native:
        choice["server_label"] = native["server_label"]
    return choice


def read_choice(fields: JsonObject, tools: list[ToolSpec]) -> str | None:
    """Takes the choice or the tool's name; a form that the builder would not write stays."""
    choice: Any = fields.get("tool_choice")
    if isinstance(choice, dict) and not _choice_exceeds(choice, tools):
        choice = choice.get("name", choice["type"])
    if not isinstance(choice, str):
        return None
    del fields["tool_choice"]
    return choice


def _choice_exceeds(choice: JsonObject, tools: list[ToolSpec]) -> bool:
    """Whether the choice names no tool of this request, or names it in the form of another kind."""
    kind, name = choice["type"], choice.get("name")
    if kind not in NAMED_KINDS:
        return not any(_is_of_kind(tool, kind) for tool in tools) or choice.keys() != {"type"}
    offered = [tool for tool in tools if tool.name == name]
    # The builder takes a tool outside the list (a stored prompt has its own) for a function.
    offered_kind = "function"
    if offered:
        offered_kind = _kind_of(offered[0])
    return kind != offered_kind or choice.keys() != {"type", "name"}


def _is_of_kind(tool: ToolSpec, kind: str) -> bool:
    """Whether a choice of this kind means the tool, and the builder writes it so again."""
    is_native = (tool.native or {}).get("type") == kind
    return is_native and (tool.name == kind or tool.provider_run is not None)


def _kind_of(tool: ToolSpec) -> str:
    if tool.native is not None:
        return str(tool.native.get("type"))
    if tool.format is not None:
        return "custom"
    return "function"


# --- thinking ---


def _reasoning(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """`reasoning`: effort and summary."""
    target, report = context.target, context.report
    options = prompt.thinking or ReasoningOptions()
    if not target.traits.thinking:
        report.dropped("/reasoning", f"{target.model} cannot think")
        return None
    if options.display is not None:
        report.dropped("/reasoning/display", "Responses has no display: it shows summaries only")
    if options.summary not in (None, *SUMMARIES):
        report.dropped("/reasoning/summary", f"a summary is one of {', '.join(SUMMARIES)}")
    effort = _effort(options, target)
    is_as_requested = options.budget is None and effort == options.effort
    if level(options) is not None and effort != "none" and not is_as_requested:
        sent = f"effort {effort or 'left out'}"
        cause = target.model if options.effort else "Responses takes no budget"
        report.add("changed", "/reasoning", f"{cause}: {sent}")
    fields = _reasoning_fields(options, target)
    if not fields and level(options) is None and not target.traits.thinking_default:
        report.dropped("/reasoning", "Responses has no switch for thinking: it wants a level")
    return fields or None


def _reasoning_fields(options: ReasoningOptions, target: Target) -> JsonObject:
    fields: JsonObject = {}
    effort = _effort(options, target)
    if effort is not None:
        fields["effort"] = effort
    if options.summary in SUMMARIES:
        fields["summary"] = options.summary
    return fields


def _effort(options: ReasoningOptions, target: Target) -> str | None:
    """S2: a budget becomes a level; a level that the model does not take becomes the nearest."""
    requested = level(options)
    if requested is None or requested in target.traits.efforts:
        return requested
    # A model that cannot be switched off gets its lowest level instead.
    if requested == "off" and target.traits.thinking_off:
        return "none"
    return nearest(requested, target.traits.efforts)


def _thinks(prompt: Prompt, target: Target) -> bool:
    if prompt.thinking is not None and target.traits.thinking:
        effort = _effort(prompt.thinking, target)
        if effort:
            return effort != "none"
    return target.traits.thinking_default


def _read_reasoning(fields: JsonObject) -> ReasoningOptions | None:
    """`Prompt.reasoning`; an unknown effort or summary stays in `extra`."""
    options = _reasoning_options(fields.get("reasoning") or {})
    if fields.get("reasoning") == {}:
        del fields["reasoning"]
    if options is not None and options.effort is not None:
        take(fields, "reasoning.effort")
    if options is not None and options.summary is not None:
        take(fields, "reasoning.summary")
    return options


def _reasoning_options(reasoning: JsonObject) -> ReasoningOptions | None:
    effort, summary = reasoning.get("effort"), reasoning.get("summary")
    if effort == "none":
        effort = "off"
    if effort not in EFFORTS:
        effort = None
    if summary not in SUMMARIES:
        summary = None
    if effort is None and summary is None:
        return None
    return ReasoningOptions(effort, summary=summary)


# --- output ---


def _format(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    # A format in `extra` that has a type is complete: ours must not be mixed into it. Without one
    # it holds the name and the description.
    own = (prompt.extra or {}).get("text")
    own_format = own.get("format") if isinstance(own, dict) else None
    if isinstance(own_format, dict) and "type" in own_format:
        return None
    schema = prompt.schema or {}
    if schema == ANY_OBJECT:
        return {"type": "json_object"}
    # The API requires a name, in the characters of a tool's name.
    title = str(schema.get("title") or "output")
    name = fit_names([title], WIRE_SPECS["responses"].tool_names).get(title, title)
    # A `strict` that the caller wrote is sent, and the service says what it does not take.
    own_strict = own_format.get("strict") if isinstance(own_format, dict) else None
    is_strict = own_strict is True
    if own_strict is None:
        is_strict = can_be_strict(schema, "responses", "/output_schema", context.report)
    if is_strict:
        schema = strict_schema(schema, "responses", "/output_schema", context.report)
    return {"type": "json_schema", "name": name, "schema": schema, "strict": is_strict}


def _read_format(fields: JsonObject) -> JsonObject | None:
    """The schema. Name and description of a strict format stay, and any other format complete."""
    text_format = take_object(fields, "text.format")
    kind = text_format.get("type", "text")
    rest: JsonObject | None = text_format
    if kind in ("text", "json_object"):
        rest = rest_of(text_format, "type") and text_format
    elif kind == "json_schema" and text_format.get("strict") is True:
        rest = rest_of(text_format, "type", "schema", "strict")
    if rest:
        put(fields, "text.format", rest)
    if kind == "json_object":
        return ANY_OBJECT
    schema: JsonObject | None = text_format.get("schema")
    return schema


def _logprobs(prompt: Prompt, context: BuildContext) -> int | None:
    """`include` alone requests those of the chosen tokens."""
    return prompt.logprobs or None


def _include(prompt: Prompt, context: BuildContext) -> list[str] | None:
    """S3: the encrypted form of reasoning that the server does not store; log probabilities."""
    target, extra = context.target, prompt.extra or {}
    # What a decoded request includes replaces ours; a caller's own `extra` is sent as it is.
    if has_own_include(prompt):
        return _own_include(extra["include"] or (), context)
    include: list[str] = []
    if target.traits.thinking:
        asks = prompt.thinking is not None and _reasoning_fields(prompt.thinking, target)
        if asks or not is_stored(prompt, target):
            include.append(ENCRYPTED)
    if prompt.logprobs is not None:
        include.append(LOGPROBS)
    return include or None


def has_own_include(prompt: Prompt) -> bool:
    """Whether the prompt is a decoded request with an `include` of its own."""
    return prompt.extra_wire is not None and "include" in (prompt.extra or {})


def _own_include(elements: Any, context: BuildContext) -> list[str] | None:
    """The elements that a decoded request included, as far as the model takes them."""
    include: list[str] = []
    for element in elements:
        if element == ENCRYPTED and not context.target.traits.thinking:
            reason = f"{context.target.model} has no reasoning to encrypt"
            context.report.dropped("/extra/include", reason)
        else:
            include.append(element)
    return include or None


def read_include(fields: JsonObject) -> None:
    """Takes `include` where the builder requests the same by itself; else it stays complete.

    It is read first: it depends on the model, on `store` and on `reasoning`.
    """
    elements = fields.get("include")
    if not isinstance(elements, list | None):
        raise TypeError("include is not a list")
    include: set[str] = set(elements or ())
    if LOGPROBS in include and fields.get("top_logprobs") is None:
        # those of the chosen tokens alone
        fields["top_logprobs"] = 0
    if not include <= INCLUDED:
        return
    model = fields.get("model")
    # For a model that does not think, the builder leaves the element out, and reports it.
    if ENCRYPTED in include and isinstance(model, str) and not traits(model).thinking:
        return
    stored = fields.get("store")
    if stored is None:
        stored = fields.get("background")
    # For a stored response the builder requests encrypted reasoning only beside `reasoning`.
    has_reasoning = _reasoning_options(fields.get("reasoning") or {}) is not None
    if ENCRYPTED in include and stored and not has_reasoning:
        return
    fields.pop("include", None)


# --- caching, identity ---


def _cache_options(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """What is options of the cache: it works by itself, with breakpoints or without."""
    options = prompt.cache
    if not isinstance(options, CacheOptions):
        return None
    fields: JsonObject = {}
    if options.ttl is not None:
        fields["ttl"] = LIFETIMES.get(options.ttl, options.ttl)
    if options.prewarm:
        fields["prewarm"] = True
    compared = comparison(prompt, "resp_", context.report)
    if compared:
        fields["comparison_response_id"] = compared
    why_not = why_no_breakpoints(context.target)
    if why_not is not None:
        for name in fields:
            context.report.dropped(f"/cache/{OPTION_NAMES.get(name, name)}", why_not)
        return None
    if options.ttl is not None and fields["ttl"] != options.ttl:
        reason = f"Responses keeps prefixes 30m or 12h: {fields['ttl']}"
        context.report.add("changed", "/cache/ttl", reason)
    return fields or None


OPTION_NAMES: Final = {"comparison_response_id": "compare"}
"""Field of `prompt_cache_options` -> its name in `CacheOptions`, where that is another one."""


def _read_user(fields: JsonObject) -> Any:
    """`safety_identifier`, else its older name; beside the other, that stays in `extra`."""
    user_id = fields.pop("safety_identifier", None)
    if user_id is None:
        user_id = fields.pop("user", None)
    return user_id


SETTINGS: Final = SettingsTable(
    "Responses",
    # `read_choice` reads it, which knows the tools
    Setting("tool_choice", "tool_choice", write=_choice, read=left_in_extra),
    Setting("parallel_tools", "parallel_tool_calls"),
    Setting("reasoning", "reasoning", write=_reasoning, read=_read_reasoning),
    Setting("reasoning.summary", sent_when_off=True),
    Setting("reasoning.display"),
    Setting("verbosity", "text.verbosity"),
    Setting("output_schema", "text.format", write=_format, read=_read_format),
    Setting("temperature", "temperature"),
    Setting("top_p", "top_p"),
    Setting("logprobs", "top_logprobs", write=_logprobs),
    # no setting of its own: what others need; `read_include` reads it
    Setting("", "include", write=_include, read=left_in_extra),
    # `decode` reads it with the breakpoints, which `build_input_rules.mark_cache` writes
    Setting("cache", "prompt_cache_options", write=_cache_options, read=left_in_extra),
    Setting("cache.ttl"),
    Setting("cache.breakpoints"),
    Setting("cache.compare"),
    Setting("cache.prewarm"),
    Setting("max_output_tokens", "max_output_tokens", least=16),
    Setting("metadata", "metadata"),
    Setting("service_tier", "service_tier"),
    Setting("user_id", "safety_identifier", longest=IDENTIFIER_LENGTH, read=_read_user),
    Setting("conversation_id", "prompt_cache_key", longest=KEY_LENGTH),
    Setting("background", "background", read=left_in_extra),
    # one request has one response
    Setting("n", fixed=1),
)
