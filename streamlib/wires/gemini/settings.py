"""The settings of a Gemini request: from a `Prompt`, and back; `tools` has its tools.

What `Prompt` has no field for goes into `Prompt.extra`, in the same object as in the body. Rules
have the numbers of the rule table in docs/wires/gemini.md.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from streamlib.request.effort import BUDGETS, level, nearest
from streamlib.request.json_objects import rest_of
from streamlib.request.prompt import Prompt, ReasoningOptions
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT
from streamlib.request.target import BuildContext, Target
from streamlib.wires.gemini.tools import json_schema, known, read_choice, schema_of_openapi
from streamlib.wires.settings import (
    Setting,
    SettingsTable,
    output_limit,
    put,
    switched_logprobs,
    take,
)
from streamlib_parsers.items import JsonObject

LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")
"""The levels of thinking that the wire has, there in capitals."""

MAX_STOPS: Final = 5
"""Stop sequences that the API accepts."""  # rule G24

DYNAMIC: Final = -1
"""The budget with which the model itself decides how many tokens it thinks with."""

# --- thinking: a budget or a level, never both (G10), in the form that the model takes (G11) ---


def _thinking(prompt: Prompt, context: BuildContext) -> JsonObject | None:
    """`thinkingConfig`."""
    options = prompt.thinking or ReasoningOptions()
    if not context.target.traits.thinking:
        reason = f"{context.target.model} has no settings for thinking"
        context.report.dropped("/reasoning", reason)
        return None
    if options.effort == "off" or (options.effort is None and options.budget == 0):
        return _least_thinking(context) or None
    config: JsonObject = {}
    # Without this the API thinks, but sends no reasoning.
    if options.display != "omitted":
        config["includeThoughts"] = True
    config.update(_amount(options, context))
    return config or None


def _least_thinking(context: BuildContext) -> JsonObject:
    """Thinking off, or as little as the model can."""
    target = context.target
    takes_budget = "budget" in target.traits.thinking
    if takes_budget and target.traits.thinking_off:
        return {"thinkingBudget": 0}
    config: JsonObject = {}
    if takes_budget:
        smallest, _ = target.traits.budgets or (0, 0)
        config["thinkingBudget"] = smallest
    else:
        lowest = nearest("off", _levels(target))
        if lowest:
            config["thinkingLevel"] = lowest.upper()
    reason = f"{target.model} always thinks: as little as it can"
    context.report.add("changed", "/reasoning", reason)
    return config


def _levels(target: Target) -> tuple[str, ...]:
    return tuple(effort for effort in target.traits.efforts if effort in LEVELS)


def _amount(options: ReasoningOptions, context: BuildContext) -> JsonObject:
    """A level or a budget, in the form that the model takes."""
    if options.effort is None and options.budget is None:
        return {}
    forms = context.target.traits.thinking
    is_level = "level" in forms and (options.effort is not None or "budget" not in forms)
    if options.effort is not None and options.budget is not None:
        unused = "budget" if is_level else "effort"
        context.report.dropped(f"/reasoning/{unused}", "a level or a budget, never both")
    if is_level:
        return _level(options, context)
    return _budget(options, context)


def _level(options: ReasoningOptions, context: BuildContext) -> JsonObject:
    if options.effort is None and options.budget == DYNAMIC:
        # Without a level the model decides by itself.
        return {}
    requested = level(options) or "high"
    allowed = nearest(requested, _levels(context.target))
    if allowed != requested or options.effort is None:
        reason = f"{context.target.model}: level {allowed or 'left out'}"
        context.report.add("changed", "/reasoning", reason)
    if not allowed:
        return {}
    return {"thinkingLevel": allowed.upper()}


def _budget(options: ReasoningOptions, context: BuildContext) -> JsonObject:
    tokens = options.budget
    if tokens is None:
        tokens = BUDGETS[options.effort or "medium"]
    smallest, largest = context.target.traits.budgets or (tokens, tokens)
    fitted = tokens
    if tokens != DYNAMIC:
        fitted = max(smallest, min(largest, tokens))
    if options.budget is None:
        reason = f"{context.target.model} takes tokens, not levels: {fitted}"
        context.report.add("changed", "/reasoning", reason)
    elif fitted != tokens:
        reason = f"{context.target.model} thinks with {smallest} to {largest} tokens"
        context.report.add("changed", "/reasoning", reason)
    return {"thinkingBudget": fitted}


def _read_thinking(fields: JsonObject) -> ReasoningOptions | Literal["off"] | None:
    """`thinkingConfig`. A budget of -1 leaves the decision to the model and stays in `extra`."""
    thinking = known(take(fields, "generationConfig.thinkingConfig"))
    if not thinking:
        return None
    has_thoughts = thinking.pop("includeThoughts", None)
    if has_thoughts is False:
        # The default, which the builder does not write; alone it is no setting of reasoning.
        put(fields, "generationConfig.thinkingConfig.includeThoughts", has_thoughts)
    if not thinking and not has_thoughts:
        return None
    budget: int | None = thinking.get("thinkingBudget")
    level = str(thinking.get("thinkingLevel") or "").lower()
    further = rest_of(thinking, "thinkingBudget", "thinkingLevel")
    if budget == 0:
        # a level beside "off" stays
        further = rest_of(thinking, "thinkingBudget")
    elif budget == DYNAMIC or (level and level not in LEVELS):
        further = thinking
        budget, level = None, ""
    for name, value in (further or {}).items():
        put(fields, f"generationConfig.thinkingConfig.{name}", value)
    if budget == 0:
        if has_thoughts:
            put(fields, "generationConfig.thinkingConfig.includeThoughts", has_thoughts)
        return "off"
    display = None
    if not has_thoughts:
        display = "omitted"
    effort: Any = level or None  # one of LEVELS
    return ReasoningOptions(effort, budget, display=display)


# --- output ---


def _format(prompt: Prompt, context: BuildContext) -> JsonObject:
    config: JsonObject = {"responseMimeType": "application/json"}
    openapi_schema = own_schema(prompt)
    if openapi_schema is not None:
        config["responseSchema"] = openapi_schema
    elif prompt.schema != ANY_OBJECT:
        config["responseJsonSchema"] = json_schema(prompt.schema, "/output_schema", context.report)
    return {"generationConfig": config}


def own_schema(prompt: Prompt) -> Any:
    """The decoded request's schema in OpenAPI's dialect, if the prompt's still means the same."""
    config = (prompt.extra or {}).get("generationConfig")
    if not isinstance(config, dict):
        return None
    openapi_schema = config.get("responseSchema")
    if openapi_schema is None or schema_of_openapi(openapi_schema) != prompt.schema:
        return None
    return openapi_schema


def _read_schema(fields: JsonObject) -> Any:
    """The output schema in either form. `Prompt` has no other formats: they stay in `extra`."""
    config = fields.get("generationConfig", {})
    media_type = config.get("responseMimeType", "application/json")
    schema: Any = None
    if media_type == "application/json" and "responseJsonSchema" in config:
        schema = take(fields, "generationConfig.responseJsonSchema")
    elif media_type == "application/json" and "responseSchema" in config:
        # The schema itself stays in `extra`: the builder sends it as long as it means the same.
        schema = schema_of_openapi(config["responseSchema"])
    elif "responseMimeType" in config and media_type == "application/json":
        schema = ANY_OBJECT
    elif media_type != "text/plain":
        return None
    # The default, a plain text, adds nothing.
    take(fields, "generationConfig.responseMimeType")
    return schema


def _stop(prompt: Prompt, context: BuildContext) -> list[str] | None:
    stops: list[str] = []
    for index, text in enumerate(prompt.stop):
        if text:
            stops.append(text)
        else:
            context.report.dropped(f"/stop/{index}", "an empty stop sequence is refused")
    if len(stops) > MAX_STOPS:
        context.report.add("changed", "/stop", f"the first {MAX_STOPS} stop sequences")
    return stops[:MAX_STOPS] or None


SETTINGS: Final = SettingsTable(
    "Gemini",
    # newer models fix their own sampling (G23)
    Setting("temperature", "generationConfig.temperature", needs="sampling"),
    Setting("top_p", "generationConfig.topP", needs="sampling"),
    Setting("top_k", "generationConfig.topK", needs="sampling"),
    Setting("presence_penalty", "generationConfig.presencePenalty", needs="penalties"),
    Setting("frequency_penalty", "generationConfig.frequencyPenalty", needs="penalties"),
    Setting("seed", "generationConfig.seed"),
    Setting("n", "generationConfig.candidateCount"),
    Setting("max_output_tokens", "generationConfig.maxOutputTokens", write=output_limit),
    Setting("stop", "generationConfig.stopSequences", write=_stop),
    switched_logprobs("generationConfig.responseLogprobs", "generationConfig.logprobs"),
    Setting("reasoning", "generationConfig.thinkingConfig", write=_thinking, read=_read_thinking),
    Setting("reasoning.display"),
    Setting("output_schema", write=_format, read=_read_schema),
    Setting("service_tier", "serviceTier"),
    Setting("metadata", "labels"),
    # `tools.tool_config` writes it
    Setting("tool_choice", also=("toolConfig",), read=read_choice),
    # the functions that it calls at once have no limit
    Setting("parallel_tools", fixed=True),
    # Gemini caches by itself, or by another call (`cachedContent` in `extra`)
    Setting("cache", fixed="auto"),
)


# --- cached content ---

CACHED: Final = {
    "systemInstruction": "/instructions",
    "tools": "/tools",
    "toolConfig": "/tool_choice",
}
"""Fields that are part of cached content, with their JSON pointers in the prompt."""  # rule G16


def without_cached(body: JsonObject, prompt: Prompt, report: Report) -> JsonObject:
    """G16: what is part of the cached content is not sent beside it."""
    if "cachedContent" not in (prompt.extra or {}):
        return body
    remaining: JsonObject = {}
    for field, value in body.items():
        if field in CACHED:
            report.dropped(CACHED[field], "it is part of the cached content")
        else:
            remaining[field] = value
    return remaining
