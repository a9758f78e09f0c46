"""The settings of a Gemini request: generationConfig, thinking, and the fields beside them.

Rules have the numbers of the rule table in docs/wires/gemini.md.
"""

from __future__ import annotations

from typing import Any, Final

from streamlib.request.context import BuildContext
from streamlib.request.effort import BUDGETS, level, nearest
from streamlib.request.prompt import CacheOptions, Prompt, ReasoningOptions
from streamlib.request.report import Report
from streamlib.request.schemas import ANY_OBJECT
from streamlib.request.target import Target
from streamlib.wires.gemini.build_tools import Tools, json_schema
from streamlib.wires.gemini.decode_settings import json_schema as schema_of_openapi
from streamlib.wires.lost_settings import report_conversation, report_unsupported
from streamlib_parsers.items import JsonObject

LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")
"""The levels of thinking that the wire has."""

MAX_STOPS: Final = 5
"""Stop sequences that the API accepts (G24)."""

DYNAMIC: Final = -1
"""The budget with which the model itself decides how many tokens it thinks with."""

CACHED: Final = {
    "systemInstruction": "/instructions",
    "tools": "/tools",
    "toolConfig": "/tool_choice",
}
"""Fields that are part of cached content, with their JSON pointers in the prompt (G16)."""

SAMPLING: Final = {"temperature": "temperature", "top_p": "topP", "top_k": "topK"}
PENALTIES: Final = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty"}
PLAIN: Final = {"seed": "seed", "n": "candidateCount"}


def generation_config(prompt: Prompt, offered: Tools, context: BuildContext) -> JsonObject:
    """`generationConfig`: everything about how the response is generated."""
    config = _sampling(prompt, context)
    config.update(_lengths(prompt, context))
    if prompt.logprobs is not None:
        # 0 means the chosen token only: the switch without a number of alternatives.
        config["responseLogprobs"] = True
        if prompt.logprobs:
            config["logprobs"] = prompt.logprobs
    thinking = _thinking_config(prompt, context)
    if thinking:
        config["thinkingConfig"] = thinking
    config.update(_output_format(prompt, offered, context))
    return config


def _sampling(prompt: Prompt, context: BuildContext) -> JsonObject:
    """G23: newer models fix their own sampling."""
    traits = context.target.traits
    config: JsonObject = {}
    tables = (
        (SAMPLING, traits.sampling),
        (PENALTIES, traits.penalties),
        (PLAIN, True),
    )
    for table, is_taken in tables:
        for name, key in table.items():
            value = getattr(prompt, name)
            if value is None:
                continue
            if is_taken:
                config[key] = value
            else:
                context.report.dropped(f"/{name}", f"{context.target.model} does not take it (G23)")
    return config


def _lengths(prompt: Prompt, context: BuildContext) -> JsonObject:
    config: JsonObject = {}
    requested, limit = prompt.max_output_tokens, context.target.traits.max_output
    if requested is not None:
        config["maxOutputTokens"] = requested
        if limit and requested > limit:
            config["maxOutputTokens"] = limit
            context.report.add(
                "changed",
                "/max_output_tokens",
                f"{context.target.model} generates at most {limit} tokens",
            )
    stops = [text for text in prompt.stop if text]
    if len(stops) > MAX_STOPS:
        context.report.add("changed", "/stop", f"the first {MAX_STOPS} stop sequences (G24)")
    if stops:
        config["stopSequences"] = stops[:MAX_STOPS]
    return config


def _output_format(prompt: Prompt, offered: Tools, context: BuildContext) -> JsonObject:
    if prompt.schema is None:
        return {}
    if offered.sent and not context.target.traits.typed_tools:
        context.report.dropped(
            "/output_schema", f"{context.target.model} takes no output schema beside tools (G18)"
        )
        return {}
    if prompt.schema == ANY_OBJECT:
        return {"responseMimeType": "application/json"}
    config: JsonObject = {"responseMimeType": "application/json"}
    openapi_schema = own_schema(prompt)
    if openapi_schema is not None:
        config["responseSchema"] = openapi_schema
    else:
        config["responseJsonSchema"] = json_schema(prompt.schema, "/output_schema", context.report)
    return config


def own_schema(prompt: Prompt) -> Any:
    """The decoded request's schema in OpenAPI's dialect, if the prompt's still means the same."""
    config = (prompt.extra or {}).get("generationConfig")
    if not isinstance(config, dict):
        return None
    openapi_schema = config.get("responseSchema")
    if openapi_schema is None or schema_of_openapi(openapi_schema) != prompt.schema:
        return None
    return openapi_schema


# --- thinking: a budget or a level, never both (G10), in the form that the model takes (G11) ---


def _thinking_config(prompt: Prompt, context: BuildContext) -> JsonObject:
    """`thinkingConfig`, empty if nothing is to be sent."""
    options = prompt.thinking
    if options is None:
        return {}
    if not context.target.traits.thinking:
        context.report.dropped(
            "/reasoning", f"{context.target.model} has no settings for thinking (G11)"
        )
        return {}
    if options.effort == "off" or (options.effort is None and options.budget == 0):
        return _least_thinking(context)
    config: JsonObject = {}
    # Without this the API thinks, but sends no reasoning.
    if options.display != "omitted":
        config["includeThoughts"] = True
    config.update(_amount(options, context))
    return config


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
    context.report.add(
        "changed", "/reasoning", f"{target.model} always thinks: as little as it can (G11)"
    )
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
        context.report.dropped(f"/reasoning/{unused}", "a level or a budget, never both (G10)")
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
        context.report.add(
            "changed", "/reasoning", f"{context.target.model}: level {allowed or 'left out'} (G11)"
        )
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
    # A level has no exact number of tokens, so fitting it into the range changes nothing requested.
    if options.budget is not None and fitted != tokens:
        context.report.add(
            "changed",
            "/reasoning",
            f"{context.target.model} thinks with {smallest} to {largest} tokens (G11)",
        )
    return {"thinkingBudget": fitted}


# --- the rest of the body ---


def plain(prompt: Prompt, context: BuildContext) -> JsonObject:
    """Settings that only need their wire name; those that Gemini lacks are reported."""
    provider, report = context.target.provider, context.report
    body: JsonObject = {}
    if prompt.service_tier:
        body["serviceTier"] = prompt.service_tier
    if prompt.metadata and "labels" in provider.unsupported:
        report.dropped("/metadata", f"{provider.name}: {provider.unsupported['labels']}")
    elif prompt.metadata:
        body["labels"] = prompt.metadata
    if isinstance(prompt.cache, CacheOptions):
        report.dropped(
            "/cache", "Gemini caches by itself, or by another call (`cachedContent` in `extra`)"
        )
    report_unsupported(prompt, ("verbosity", "user_id", "thinking_mismatch"), "Gemini", report)
    report_conversation(prompt, "Gemini", context)
    return body


def without_cached(body: JsonObject, prompt: Prompt, report: Report) -> JsonObject:
    """G16: what is part of the cached content is not sent beside it."""
    if "cachedContent" not in (prompt.extra or {}):
        return body
    remaining: JsonObject = {}
    for field, value in body.items():
        if field in CACHED:
            report.dropped(CACHED[field], "it is part of the cached content (G16)")
        else:
            remaining[field] = value
    return remaining
