"""What providers say of their prompt caches, as dated data: `CACHE_RULES`.

A provider keeps the beginning of a request, and reads it where the next one begins with the same.
The rows say up to where, for how long, and which settings are part of that beginning. They age:
each has the day on which its source was read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from streamlib.providers.models import longest_prefix
from streamlib_parsers.items import WireApi

Scope: TypeAlias = Literal["all", "system", "messages"]
"""What is read anew where a setting changes: everything, all behind the tools, or the messages."""


class CacheSetting(Struct, frozen=True):
    """A setting that is part of the prefix.

    Attributes:
        path: JSON pointer of it in the body.
        scope: what is read anew.
        reason: the provider's word for its change.
    """

    path: str
    scope: Scope
    reason: str


class CacheRule(Struct, frozen=True, kw_only=True):
    """How the cache of a family of models works.

    Attributes:
        how: `marks`: up to marked parts only; `breakpoints`: marked parts, and one that the
            provider chooses; `automatic`: the provider chooses.
        minimum: tokens below which nothing is kept.
        step: reads are multiples of so many tokens; 1 where some recorded read is none.
        look_back: how many parts before a mark an entry is looked for; None: all.
        writes: marks of a request that are kept, the last ones.
        matches: marks of a request that are looked for, the last ones; None: all.
        lives: lifetime as a request names it -> seconds; "": where it names none.
        is_least: the lifetime is the shortest one: an entry may be there longer.
        gone: seconds after which surely nothing is there, where `is_least`.
        settings: settings that are part of the prefix.
        toggles: so are the provider's web search and citations, on or off, of the system prompt,
            and images or none, of the messages.
        reasons: the provider's words for a change of the tools, the system prompt and the messages.
        counts_writes: its usage has the tokens that were written.
        hidden: tokens that the provider puts before each request: read whatever follows them.
        turn: tokens around the output of the model once it is history, which no usage has.
        route_header: header that names the conversation, whose requests meet the same cache.
        reads_beside: its usage counts what was read beside the input, not in it.
        read_on: day on which the source was read.
        source: where the facts are from.
    """

    how: Literal["marks", "breakpoints", "automatic"]
    minimum: int = 0
    step: int = 1
    look_back: int | None = None
    writes: int = 4
    matches: int | None = None
    lives: dict[str, float] = {}
    is_least: bool = False
    gone: float | None = None
    settings: tuple[CacheSetting, ...] = ()
    toggles: bool = False
    reasons: tuple[str, str, str] = ("tools_changed", "input_changed", "input_changed")
    counts_writes: bool = False
    hidden: int = 0
    turn: int = 0
    route_header: str | None = None
    reads_beside: bool = False
    read_on: str
    source: str


MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86_400.0

# "What invalidates the cache": tools and model everything; web search and citations the system
# prompt too; tool choice, thinking and images the messages. A format of the output becomes a part
# of the system prompt ("Structured outputs", prompt caching).
_CLAUDE_SETTINGS: Final = (
    CacheSetting("/speed", "all", "model_changed"),
    CacheSetting("/output_config/format", "system", "system_changed"),
    CacheSetting("/output_format", "system", "system_changed"),
    CacheSetting("/tool_choice", "messages", "unavailable"),
    CacheSetting("/thinking", "messages", "unavailable"),
    # Guessed: no source names it, but it is how a model is told to think.
    CacheSetting("/output_config/effort", "messages", "unavailable"),
    # The same on Converse.
    CacheSetting("/toolConfig/toolChoice", "messages", "unavailable"),
    CacheSetting("/additionalModelRequestFields/thinking", "messages", "unavailable"),
    CacheSetting("/additionalModelRequestFields/output_config/format", "system", "system_changed"),
)

_CLAUDE: Final = CacheRule(
    how="marks",
    minimum=1024,
    look_back=20,
    lives={"": 5 * MINUTE, "5m": 5 * MINUTE, "1h": HOUR},
    settings=_CLAUDE_SETTINGS,
    toggles=True,
    reasons=("tools_changed", "system_changed", "messages_changed"),
    counts_writes=True,
    read_on="2026-11-23",
    source="platform.claude.com/docs, prompt caching; minimums: docs.litellm.ai, 2026-10-07",
)
_CLAUDE_512: Final = replace(_CLAUDE, minimum=512)
_CLAUDE_2048: Final = replace(_CLAUDE, minimum=2048)
_CLAUDE_4096: Final = replace(_CLAUDE, minimum=4096)

_NOVA: Final = replace(
    _CLAUDE,
    minimum=1000,
    look_back=None,
    settings=(),
    toggles=False,
    source="docs.aws.amazon.com/bedrock, prompt caching",
)

_OPENAI_SETTINGS: Final = (
    CacheSetting("/prompt_cache_key", "all", "prompt_cache_key_changed"),
    CacheSetting("/text/format", "all", "text_format_changed"),
    CacheSetting("/response_format", "all", "text_format_changed"),
    CacheSetting("/reasoning/effort", "all", "reasoning_effort_changed"),
    CacheSetting("/reasoning_effort", "all", "reasoning_effort_changed"),
    CacheSetting("/text/verbosity", "all", "verbosity_changed"),
    CacheSetting("/verbosity", "all", "verbosity_changed"),
    CacheSetting("/service_tier", "all", "service_tier_changed"),
)

_OPENAI: Final = CacheRule(
    how="automatic",
    minimum=1024,
    # 22 of 23 recorded reads are multiples of 128: no step.
    lives={"": 10 * MINUTE, "in_memory": 10 * MINUTE, "24h": DAY},
    is_least=True,
    gone=DAY,
    settings=_OPENAI_SETTINGS,
    read_on="2026-11-23",
    source="developers.openai.com, prompt caching; types of the Python SDK 3.54",
)
_OPENAI_5_5: Final = replace(_OPENAI, lives={"": DAY, "24h": DAY})
_OPENAI_5_6: Final = replace(
    _OPENAI,
    how="breakpoints",
    matches=80,
    lives={"": 30 * MINUTE, "30m": 30 * MINUTE, "12h": 12 * HOUR},
    gone=None,
    counts_writes=True,
)

_OTHER: Final = CacheRule(
    how="automatic",
    settings=(
        CacheSetting("/response_format", "all", "text_format_changed"),
        CacheSetting("/text/format", "all", "text_format_changed"),
        CacheSetting("/format", "all", "text_format_changed"),
        CacheSetting("/prompt_cache_key", "all", "prompt_cache_key_changed"),
    ),
    read_on="2026-11-23",
    source="recorded usage of 2025 and 2026",
)

_GEMINI: Final = replace(
    _OTHER,
    minimum=4096,
    settings=(
        CacheSetting("/cachedContent", "all", "input_changed"),
        CacheSetting("/cached_content", "all", "input_changed"),
        CacheSetting("/generationConfig/responseSchema", "all", "text_format_changed"),
        CacheSetting("/generationConfig/responseJsonSchema", "all", "text_format_changed"),
    ),
    read_on="2026-10-13",
    source="ai.google.dev, context caching",
)

_GROK: Final = replace(_OTHER, hidden=128, turn=1, route_header="x-grok-conv-id")

CACHE_RULES: Final[dict[str, CacheRule]] = {
    "claude-": _CLAUDE,
    "claude-3-haiku": _CLAUDE_2048,
    "claude-3-5-haiku": _CLAUDE_2048,
    "claude-opus-4-5": _CLAUDE_4096,
    "claude-opus-4-6": _CLAUDE_4096,
    "claude-haiku-4-5": _CLAUDE_4096,
    "claude-opus-4-7": _CLAUDE_2048,
    "claude-opus-5": _CLAUDE_512,
    "claude-fable-5": _CLAUDE_512,
    "claude-mythos-5": _CLAUDE_512,
    "nova-": _NOVA,
    "gpt-": _OPENAI_5_6,
    "gpt-3": _OPENAI,
    "gpt-4": _OPENAI,
    "chatgpt-": _OPENAI,
    "o1": _OPENAI,
    "o3": _OPENAI,
    "o4": _OPENAI,
    "codex-mini": _OPENAI,
    "gpt-5": _OPENAI,
    "gpt-5-5": _OPENAI_5_5,
    "gpt-5-6": _OPENAI_5_6,
    "gpt-5-7": _OPENAI_5_6,
    "gpt-5-8": _OPENAI_5_6,
    "gpt-5-9": _OPENAI_5_6,
    "gpt-oss": _OTHER,
    "gemini-": _GEMINI,
    "gemini-2-5": replace(_GEMINI, minimum=2048),
    # Without `cachedContent` nothing is kept.
    "gemini-1": replace(_GEMINI, how="marks"),
    "gemini-2-0": replace(_GEMINI, how="marks"),
    # Prefix units, matched whole or not at all: 35 of 36 recorded reads are multiples of 64.
    "deepseek": _OTHER,
    # An entry may go at any time; 36 of 60 recorded reads are multiples of 64. One read is a token
    # longer than input and output before it, and one of 128 is of a request with other tools.
    "grok-": _GROK,
    # 3 of 4 recorded reads are longer than the input.
    "azure/grok-": replace(_GROK, reads_beside=True),
    # Recorded reads are up to 28 tokens longer than input and output before them.
    "command-": replace(_OTHER, turn=32),
    # 5 of 5 recorded reads.
    "kimi-": replace(_OTHER, step=64),
    "moonshot-": replace(_OTHER, step=64),
}
"""Beginning of a model's name, after its provider's or not -> its rule; the longest wins. Dots in
versions are hyphens here."""

WIRE_RULES: Final[dict[str, CacheRule]] = {
    "messages": _CLAUDE,
    "converse": replace(_CLAUDE, look_back=None, source="docs.aws.amazon.com/bedrock"),
}
"""Wire -> the rule of a model without a row; other wires have caches that need no marks."""

_VERSION_DOT: Final = re.compile(r"(?<=\d)\.(?=\d)")


def named_cache_rule(
    provider: str | None, model: str, rules: Mapping[str, CacheRule] = CACHE_RULES
) -> CacheRule | None:
    """The rule for a model of a provider; None if its name is not known."""
    name = f"{provider}/{_VERSION_DOT.sub('-', model)}"
    prefix = longest_prefix(name, rules)
    return None if prefix is None else rules[prefix]


def cache_rule(wire_api: WireApi, provider: str | None, model: str) -> CacheRule:
    """The rule for a model of a provider on a wire."""
    return named_cache_rule(provider, model) or WIRE_RULES.get(wire_api, _OTHER)
