"""Builds a Gemini Interactions request from a `Prompt`.

Items become steps one to one (`build_steps`); this file writes the settings. Interactions are not
stored unless `Prompt.extra` requests it, continues a stored one or runs in the background, so
signed reasoning is sent back instead. Numbers such as I3 are the rows of the rule table in
docs/wires/interactions.md.
"""

from __future__ import annotations

from typing import Final

from streamlib.errors import invalid_request
from streamlib.request.context import BuildContext
from streamlib.request.effort import level, nearest
from streamlib.request.history import IndexedItem
from streamlib.request.prompt import CacheOptions, Prompt, ReasoningOptions
from streamlib.request.schemas import ANY_OBJECT
from streamlib.request.target import BuiltRequest
from streamlib.wires.interactions.build_steps import leading_system, steps
from streamlib.wires.interactions.build_tools import tool_choice, tools
from streamlib.wires.lost_settings import report_conversation, report_unsupported, stop_sequences
from streamlib_parsers.items import JsonObject

STATE: Final = frozenset({"previous_interaction_id", "continuation_token"})
"""Fields with which a request needs no input of its own."""

STORED: Final = frozenset({"previous_interaction_id", "background"})
"""Fields of requests whose interaction is stored unless `store` is false."""

LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")
"""Values of `thinking_level`."""

SUMMARIES: Final = ("auto", "none")
"""Values of `thinking_summaries`."""

UNSUPPORTED: Final = (
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "n",
    "logprobs",
    "verbosity",
    "user_id",
    "thinking_mismatch",
)
"""Settings of other wires that Interactions does not have."""

MODEL_SETTINGS: Final = (
    "reasoning",
    "tool_choice",
    "max_output_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
)
"""Settings of `generation_config`, which only models have (I8)."""


def build(prompt: Prompt, items: list[IndexedItem], context: BuildContext) -> BuiltRequest:
    """Builds the request body.

    Args:
        prompt: The settings; its own input is not read.
        items: The repaired and downgraded history, with positions in the prompt's input.
        context: The target, and the report that is filled.

    Returns:
        The body, without headers of its own.

    Raises:
        StreamError: `invalid_request` (code `empty_input`) if there is nothing to send, and no
            stored interaction is continued.
    """
    extra = prompt.extra or {}
    system, items = leading_system(prompt, items, context.report)
    sent = steps(items, context)
    if not sent and not STATE & extra.keys():
        raise invalid_request("there is nothing to send: the input is empty", "empty_input")
    is_agent = bool(extra.get("agent")) or context.target.traits.agent
    # The order of the keys is fixed: the body is a cache prefix.
    body: JsonObject = {"agent" if is_agent else "model": context.target.model}
    if system:
        body["system_instruction"] = system
    if prompt.tools:
        body["tools"] = tools(prompt, context.report)
    if sent:
        body["input"] = sent
    body["stream"] = prompt.stream is not False
    # An agent keeps its state itself.
    if not is_agent and "store" not in extra:
        body["store"] = bool(prompt.background) or any(extra.get(name) for name in STORED)
    if is_agent:
        _report_model_settings(prompt, context)
    else:
        config = _generation_config(prompt, context)
        if config:
            body["generation_config"] = config
    body.update(_response_format(prompt))
    body.update(_plain(prompt, context))
    return BuiltRequest(body, merged_extra=("agent",))


def _report_model_settings(prompt: Prompt, context: BuildContext) -> None:
    for name in MODEL_SETTINGS:
        if getattr(prompt, name) not in (None, ()):
            reason = f"{context.target.model} is an agent, which takes no such setting (I8)"
            context.report.dropped(f"/{name}", reason)


def _generation_config(prompt: Prompt, context: BuildContext) -> JsonObject:
    """`generation_config`: everything about how a model generates."""
    config = _sampling(prompt, context)
    requested, limit = prompt.max_output_tokens, context.target.traits.max_output
    if requested is not None:
        config["max_output_tokens"] = requested
        if limit and requested > limit:
            reason = f"{context.target.model} generates at most {limit} tokens"
            context.report.add("changed", "/max_output_tokens", reason)
            config["max_output_tokens"] = limit
    stop = stop_sequences(prompt, context.report)
    if stop:
        config["stop_sequences"] = stop
    if prompt.thinking is not None:
        config.update(_thinking(prompt.thinking, context))
    choice = tool_choice(prompt, context)
    if choice is not None:
        config["tool_choice"] = choice
    return config


def _sampling(prompt: Prompt, context: BuildContext) -> JsonObject:
    """Newer models fix their own sampling (I7)."""
    config: JsonObject = {}
    for name in ("temperature", "top_p"):
        value = getattr(prompt, name)
        if value is None:
            continue
        if context.target.traits.sampling:
            config[name] = value
        else:
            context.report.dropped(f"/{name}", f"{context.target.model} does not take it (I7)")
    if prompt.seed is not None:
        config["seed"] = prompt.seed
    return config


def _thinking(options: ReasoningOptions, context: BuildContext) -> JsonObject:
    """`thinking_level` and `thinking_summaries`; this wire has no budget and no `off` (I6)."""
    target, report = context.target, context.report
    if not target.traits.thinking:
        report.dropped("/reasoning", f"{target.model} has no settings for thinking (I6)")
        return {}
    config: JsonObject = {}
    requested = level(options)
    if options.budget == 0 and options.effort is None:
        requested = "off"
    if requested is not None:
        allowed = nearest(requested, tuple(e for e in target.traits.efforts if e in LEVELS))
        if allowed != requested or options.effort is None:
            reason = f"{target.model} thinks at a level: {allowed or 'its own'} (I6)"
            report.add("changed", "/reasoning", reason)
        elif options.budget is not None:
            report.dropped("/reasoning/budget", "a level, never a number of tokens (I6)")
        if allowed:
            config["thinking_level"] = allowed
    if options.summary in SUMMARIES:
        config["thinking_summaries"] = options.summary
    elif options.display != "omitted" and requested != "off":
        # Without this the API thinks, but sends no summaries.
        config["thinking_summaries"] = "auto"
    if options.summary not in (None, *SUMMARIES):
        report.dropped("/reasoning/summary", f"thinking_summaries is one of {SUMMARIES}")
    return config


def _response_format(prompt: Prompt) -> JsonObject:
    if prompt.output_schema is None:
        return {}
    response_format: JsonObject = {"type": "text", "mime_type": "application/json"}
    if prompt.output_schema != ANY_OBJECT:
        response_format["schema"] = prompt.output_schema
    return {"response_format": response_format}


def _plain(prompt: Prompt, context: BuildContext) -> JsonObject:
    """Settings that only need their wire name; those that Interactions lacks are reported."""
    report = context.report
    body: JsonObject = {}
    if prompt.background is not None:
        body["background"] = prompt.background
    if prompt.service_tier:
        body["service_tier"] = prompt.service_tier
    if prompt.metadata:
        body["labels"] = prompt.metadata
    if isinstance(prompt.cache, CacheOptions):
        reason = "Google caches by itself, or by another call (`cached_content` in `extra`)"
        report.dropped("/cache", reason)
    report_unsupported(prompt, UNSUPPORTED, "Interactions", report)
    report_conversation(prompt, "Interactions", context)
    return body
