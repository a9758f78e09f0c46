"""Cache marks: those of a decoded request as `Prompt.cache` (messages, converse), and which targets
take those of OpenAI."""

from __future__ import annotations

from typing import Any, Final, Literal

from streamlib.providers.cache_rules import named_cache_rule
from streamlib.request.prompt import CacheOptions, Prompt
from streamlib.request.report import Report
from streamlib.request.target import Target
from streamlib_parsers.items import CacheMark, JsonObject

MARK: Final = "cache_control"
"""Key of a block, a tool or the body with its mark (messages, and chat where servers take it)."""

BREAKPOINT: Final = "prompt_cache_breakpoint"
"""Key of a part up to which the input is cached (responses, chat)."""

BREAKPOINT_PROVIDERS: Final = ("openai", "openai-codex", "azure")
"""Providers that are known to have breakpoints; other servers may refuse them."""


def why_no_breakpoints(target: Target) -> str | None:
    """Why a target takes no breakpoints of OpenAI's, for the report; None: it takes them.

    A model whose name says nothing, such as that of a deployment, may be any.
    """
    if target.provider.name not in BREAKPOINT_PROVIDERS:
        return "only OpenAI and Azure are known to have cache breakpoints"
    rule = named_cache_rule(target.provider.name, target.model)
    if rule is not None and rule.how != "breakpoints":
        return f"cache breakpoints came with gpt-5.6: {target.model} caches by itself"
    return None


def comparison(prompt: Prompt, prefix: str, report: Report) -> str | None:
    """The id of the response that a provider is asked to compare with; "" for a first request.

    Args:
        prompt: with `CacheOptions.compare`, or without.
        prefix: how ids of the provider's responses begin.
        report: names an id of another provider, which is not sent.
    """
    compared = prompt.cache.compare if isinstance(prompt.cache, CacheOptions) else None
    if not isinstance(compared, str):
        return None
    if compared and not compared.startswith(prefix):
        reason = f"a response of another provider: its id does not begin with {prefix}"
        report.dropped("/cache/compare", reason)
        return None
    return compared


def take_mark(holder: JsonObject) -> CacheMark | None:
    """Takes the mark of an object; one with keys of its own also stays, to go back as it came."""
    mark = holder.get(MARK)
    if not isinstance(mark, dict) or mark.get("type") != "ephemeral":
        if mark is None:
            holder.pop(MARK, None)
        return None
    if mark.keys() <= {"type", "ttl"}:
        del holder[MARK]
    return CacheMark(mark.get("ttl"))


def marked(body: JsonObject, ttl: str | None) -> JsonObject:
    """A copy of an object with a mark, whose further keys it may hold already."""
    mark: dict[str, Any] = {**(body.get(MARK) or {}), "type": "ephemeral"}
    mark.pop("ttl", None)
    if ttl is not None:
        mark["ttl"] = ttl
    return {**body, MARK: mark}


def lifetime(mark: CacheMark, options: CacheOptions) -> str | None:
    """How long a mark keeps what stands before it: without a time of its own, as the others."""
    return options.ttl if mark.ttl is None else mark.ttl


def cache_options(
    marked: dict[int, CacheMark], instructions: CacheMark | None, automatic: CacheMark | None
) -> CacheOptions | Literal["auto"] | None:
    """The value of `Prompt.cache`.

    Args:
        marked: the marks after items, by their index.
        instructions: the mark after the instructions.
        automatic: the mark of the body: the provider itself chooses where to cache.
    """
    if not marked and instructions is None:
        if automatic is None:
            return None
        return "auto" if automatic.ttl is None else CacheOptions(automatic.ttl)
    lifetimes = {index: marking.ttl for index, marking in marked.items()}
    ttl = next(iter(lifetimes.values()), None)
    further = [mark.ttl for mark in (instructions, automatic) if mark is not None]
    # if all marks have the same lifetime, it is given once; it would also be that of a mark
    # without one
    if set(lifetimes.values()) == {ttl} and (ttl is None or None not in further):
        lifetimes.clear()
    else:
        ttl = None
    return CacheOptions(ttl, tuple(marked), lifetimes, instructions, automatic)
