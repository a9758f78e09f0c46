"""What each model accepts, as data: the longest prefix of a model's name wins, unknown models
accept everything.

These facts age. A user overrides them per client with
`Client(models={"claude-opus-9": Traits(…)})`; the default is permissive: what the caller set is
sent, and the provider's 400 has its own error kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace


class Traits(Struct, frozen=True, gc=False, omit_defaults=True):
    """What one model family accepts.

    Attributes:
        thinking: forms of thinking (`budget`, `adaptive`, `level`), none where it cannot think.
        thinking_off: how thinking is switched off (`disabled`, `between_tools`, `budget_0`,
            `none`), "" where it cannot be.
        thinking_default: it thinks unless the request switches it off.
        efforts: levels of effort.
        off_efforts: levels that are allowed with thinking off.
        sampling: temperature, top_p and top_k.
        forced_tools: a `tool_choice` that forces a call.
        prefill: a request may end with an assistant turn.
        system_role: system messages inside the conversation.
        max_output: limit of output tokens.
        budgets: minimum and maximum of thinking tokens; 0 (off) and -1 (dynamic) are allowed too.
        signed_calls: a call must carry the signature of the reasoning it was made with.
        rich_results: results of functions may contain images and documents.
        mixed_tools: hosted tools beside functions.
        schemas: an output schema, in the field that Messages, Converse and Invoke have for it.
        typed_tools: an output schema beside tools.
        penalties: presence and frequency penalties.
        developer_role: the role `developer`, where its provider knows it.
        completion_tokens: in Chat only `max_completion_tokens`, whatever its provider's other
            models accept.
        sampling_while_thinking: any sampling parameters while it thinks; otherwise a temperature
            of 1, and a `top_p` from 0.95 on.
        forced_while_adaptive: a forced tool choice beside adaptive thinking.
        both_samplings: `temperature` and `top_p` in one request.
        agent: an agent: Interactions names it in `agent`, and takes no settings of a model.
    """

    thinking: tuple[str, ...] = ("budget", "adaptive", "level")
    thinking_off: str = "disabled"
    thinking_default: bool = False
    efforts: tuple[str, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")
    off_efforts: tuple[str, ...] = ()
    sampling: bool = True
    forced_tools: bool = True
    prefill: bool = True
    system_role: bool = True
    max_output: int | None = None
    budgets: tuple[int, int] | None = None
    signed_calls: bool = False
    rich_results: bool = True
    mixed_tools: bool = True
    schemas: bool = True
    typed_tools: bool = True
    penalties: bool = True
    developer_role: bool = True
    completion_tokens: bool = False
    sampling_while_thinking: bool = True
    forced_while_adaptive: bool = True
    both_samplings: bool = True
    agent: bool = False


_LOW_TO_HIGH = ("low", "medium", "high")
_LOW_TO_MAX = ("low", "medium", "high", "max")
_ALL = ("low", "medium", "high", "xhigh", "max")

# Output schemas: from Opus 4.1 and Sonnet 4.5 on (platform.claude.com/docs, "Structured outputs").
_CLAUDE_3 = Traits(thinking=(), efforts=(), system_role=False, max_output=8_192, schemas=False)
_BUDGET = Traits(
    thinking=("budget",),
    efforts=(),
    system_role=False,
    max_output=64_000,
    # platform.claude.com/docs, "Extended thinking", feature compatibility.
    sampling_while_thinking=False,
)
# "`temperature` and `top_p` cannot both be specified for this model", from Opus 4.1 on
# (open-webui/pipelines#546, litellm#15097).
_BUDGET_ONE_SAMPLING = replace(_BUDGET, both_samplings=False)
_BUDGET_OR_ADAPTIVE = Traits(
    thinking=("budget", "adaptive"),
    efforts=_LOW_TO_MAX,
    prefill=False,
    system_role=False,
    max_output=128_000,
    sampling_while_thinking=False,
    # Bedrock refuses it up to Claude 4.7, and takes it from 4.8 on (langchain-aws#1141, #1151);
    # Anthropic's own API takes it from 4.6 on (pydantic-ai#7200), but does not think then.
    forced_while_adaptive=False,
    both_samplings=False,
)
_ADAPTIVE = Traits(
    thinking=("adaptive",),
    efforts=_ALL,
    sampling=False,
    prefill=False,
    system_role=False,
    max_output=128_000,
    forced_while_adaptive=False,
)


def _adaptive(
    off: str = "disabled",
    *,
    off_efforts: tuple[str, ...] = (),
    forced: bool = True,
    system: bool = False,
) -> Traits:
    """A Claude from 5 on: it thinks adaptively unless that is switched off."""
    return Traits(
        thinking=("adaptive",),
        thinking_off=off,
        thinking_default=True,
        efforts=_ALL,
        off_efforts=off_efforts,
        sampling=False,
        forced_tools=forced,
        prefill=False,
        system_role=system,
        max_output=128_000,
    )


CLAUDE: Final[dict[str, Traits]] = {
    "claude-3": _CLAUDE_3,
    "claude-3-7": replace(_BUDGET, schemas=False),
    "claude-opus-4": replace(_BUDGET, max_output=32_000, schemas=False),
    "claude-sonnet-4": replace(_BUDGET, schemas=False),
    "claude-opus-4-1": replace(_BUDGET_ONE_SAMPLING, max_output=32_000),
    "claude-haiku-4-5": _BUDGET_ONE_SAMPLING,
    "claude-sonnet-4-5": _BUDGET_ONE_SAMPLING,
    "claude-opus-4-5": replace(_BUDGET_ONE_SAMPLING, efforts=_LOW_TO_HIGH),
    "claude-opus-4-6": _BUDGET_OR_ADAPTIVE,
    "claude-sonnet-4-6": _BUDGET_OR_ADAPTIVE,
    "claude-opus-4-7": _ADAPTIVE,
    "claude-opus-4-8": Traits(
        thinking=("adaptive",), efforts=_ALL, sampling=False, prefill=False, max_output=128_000
    ),
    "claude-opus-5": _adaptive(off_efforts=_LOW_TO_HIGH, system=True),
    "claude-sonnet-5": _adaptive(),
    "claude-haiku-5-5": _adaptive(off_efforts=_LOW_TO_HIGH),
    "claude-opus-5-5": _adaptive("", forced=False, system=True),
    "claude-sonnet-5-5": _adaptive("between_tools", off_efforts=_LOW_TO_HIGH, forced=False),
    "claude-fable-5": _adaptive("", system=True),
    "claude-mythos-5": _adaptive("", system=True),
    "claude-fable-5-1": _adaptive("", forced=False, system=True),
    "claude-fable-5-2": _adaptive("", forced=False, system=True),
    "claude-mythos-5-1": _adaptive("", forced=False, system=True),
    "claude-mythos-5-2": _adaptive("", forced=False, system=True),
}
"""Claude by name prefix (capability table of 2026-11).

A name of Bedrock or Vertex matches from its `claude-` on.
"""


def _gpt(*efforts: str, off: str = "", default: bool = True) -> Traits:
    """An OpenAI model that thinks at a level. While it thinks it accepts no sampling parameters."""
    return Traits(
        thinking=("level",),
        thinking_off=off,
        thinking_default=default,
        efforts=efforts,
        sampling=False,
        completion_tokens=True,
    )


_NO_THINKING = Traits(thinking=(), efforts=())
_TO_XHIGH = ("low", "medium", "high", "xhigh")

OPENAI: Final[dict[str, Traits]] = {
    "gpt-3.5": _NO_THINKING,
    "gpt-4": _NO_THINKING,
    "chatgpt-4o": _NO_THINKING,
    "o1": _gpt(*_LOW_TO_HIGH),
    "o1-mini": replace(_gpt(*_LOW_TO_HIGH), developer_role=False),
    "o3": _gpt(*_LOW_TO_HIGH),
    "o4": _gpt(*_LOW_TO_HIGH),
    "codex-mini": _gpt(*_LOW_TO_HIGH),
    "gpt-5": _gpt("minimal", *_LOW_TO_HIGH),
    "gpt-5-chat": _NO_THINKING,
    "gpt-5-codex": _gpt(*_LOW_TO_HIGH),
    "gpt-5-pro": _gpt("high"),
    "gpt-5.1": _gpt(*_LOW_TO_HIGH, off="none", default=False),
    "gpt-5.1-chat": _gpt("medium"),
    "gpt-5.1-codex": _gpt(*_LOW_TO_HIGH),
    "gpt-5.1-codex-max": _gpt(*_TO_XHIGH),
    "gpt-5.2": _gpt(*_TO_XHIGH, off="none", default=False),
    "gpt-5.2-chat": _gpt("medium"),
    "gpt-5.2-codex": _gpt(*_TO_XHIGH),
    "gpt-5.2-pro": _gpt("medium", "high", "xhigh"),
    "gpt-5.3": _gpt(*_TO_XHIGH, off="none", default=False),
    "gpt-5.3-chat": _gpt("medium"),
    "gpt-5.4": _gpt(*_TO_XHIGH, off="none", default=False),
    "gpt-5.4-pro": _gpt("medium", "high", "xhigh"),
    "gpt-5.5": _gpt(*_TO_XHIGH, off="none"),
    "gpt-5.5-pro": _gpt("medium", "high", "xhigh"),
    "gpt-5.6": _gpt(*_ALL, off="none"),
    "gpt-6": _gpt(*_ALL, off="none"),
    "gpt-6-astra": _gpt(*_ALL),
    "gpt-6.2-astra": _gpt(*_ALL),
}
"""OpenAI by name prefix: up to gpt-5.6 as measured on the live API (community tables of 2026),
gpt-6 from its published guides.

Models before gpt-5.1 cannot stop thinking. Models from gpt-5.1 to gpt-5.4 think only at a requested
level, and without one they accept sampling parameters.
"""


def _gemini_2(
    thinking: tuple[str, ...] = (), *, off: str = "", budgets: tuple[int, int] | None = None
) -> Traits:
    """A Gemini up to 2.5. Its own wire has a number of tokens, other wires to it have levels.

    Args:
        thinking: `("budget",)`, a number of tokens; `()` for a model that cannot think.
        off: how its thinking is switched off: `"budget_0"`, by a budget of 0; "" where it cannot
            be (2.5 Pro), or where there is none.
        budgets: fewest and most thinking tokens that it takes; None where they are not known.
    """
    return Traits(
        thinking,
        off,
        thinking_default=bool(thinking),
        budgets=budgets,
        rich_results=False,
        mixed_tools=False,
        typed_tools=False,
    )


def _gemini_3(*efforts: str, sampling: bool = True) -> Traits:
    """A Gemini from 3 on: it always thinks, at a level."""
    return Traits(
        ("level",),
        "",
        thinking_default=True,
        efforts=efforts,
        sampling=sampling,
        signed_calls=True,
        penalties=False,
    )


_FLASH_BUDGETS = _gemini_2(("budget",), off="budget_0", budgets=(0, 24_576))
_PRO_BUDGETS = _gemini_2(("budget",), budgets=(128, 32_768))
_MINIMAL_TO_HIGH = ("minimal", *_LOW_TO_HIGH)

GEMINI: Final[dict[str, Traits]] = {
    "gemma": _gemini_2(),
    "gemini-1": _gemini_2(),
    "gemini-2.0": _gemini_2(),
    "gemini-2.5": _gemini_2(("budget",), off="budget_0"),
    "gemini-2.5-flash": _FLASH_BUDGETS,
    "gemini-2.5-flash-image": _gemini_2(),
    "gemini-2.5-pro": _PRO_BUDGETS,
    "gemini-": _gemini_3(*_MINIMAL_TO_HIGH),
    "gemini-3-pro": _gemini_3("low", "high"),
    "gemini-3.1-pro": _gemini_3(*_LOW_TO_HIGH),
    "gemini-3.1-flash-lite-image": _gemini_3("minimal", "high"),
    "gemini-3.5-flash-lite": _gemini_3(*_MINIMAL_TO_HIGH, sampling=False),
    "gemini-3.6-flash": _gemini_3(*_MINIMAL_TO_HIGH, sampling=False),
    "gemini-3.7-flash": _gemini_3(*_LOW_TO_HIGH, sampling=False),
    "gemini-3.8-flash": _gemini_3(*_LOW_TO_HIGH, sampling=False),
    "gemini-4": _gemini_3(*_MINIMAL_TO_HIGH, sampling=False),
    "gemini-4-argon": _gemini_3(*_LOW_TO_HIGH, sampling=False),
    "gemini-4-carbon": _gemini_3(*_LOW_TO_HIGH, sampling=False),
}
"""Gemini by name prefix (capability tables of 2026; budgets from the guide to thinking).

A name without a row of its own belongs to a newer model, which `gemini-` covers.
"""

_AGENT = Traits(agent=True)

AGENTS: Final[dict[str, Traits]] = {
    "antigravity-": _AGENT,
    "code-mender": _AGENT,
    "deep-research-": _AGENT,
}
"""Google's agents (google-genai 3.4, ``AgentOption`` and the configurations of agents)."""

_THINKS = Traits(thinking=("budget", "level"), thinking_default=True)
_ALWAYS_THINKS = replace(_THINKS, thinking_off="")
_THINKS_BY_NAME = Traits(thinking_off="", thinking_default=True, efforts=())

OTHERS: Final[dict[str, Traits]] = {
    "deepseek-": _THINKS,
    "deepseek-chat": replace(_THINKS, thinking_default=False),
    "deepseek-v3": replace(_THINKS, thinking_default=False),
    "kimi-": _THINKS,
    "kimi-k2-thinking": _ALWAYS_THINKS,
    "kimi-k3": replace(_ALWAYS_THINKS, efforts=("low", "high", "max")),
    "glm-4.": _THINKS,
    "glm-5": _THINKS,
    "minimax-m2": _ALWAYS_THINKS,
    "minimax-m3": _THINKS,
    "minimax-m3.1": _ALWAYS_THINKS,
    "grok-": Traits(thinking_default=True),
    "grok-2": _NO_THINKING,
    "grok-3": _NO_THINKING,
    "grok-3-mini": Traits(thinking_off="", thinking_default=True, efforts=("low", "high")),
    "grok-4": _THINKS_BY_NAME,
    "grok-4.": Traits(thinking_default=True, efforts=_TO_XHIGH),
    "grok-4.3": Traits(thinking_default=True, efforts=_LOW_TO_HIGH),
    "grok-4.20-": _THINKS_BY_NAME,
    "grok-4.20-non-reasoning": _NO_THINKING,
    "grok-4-fast-non-reasoning": _NO_THINKING,
    "grok-4-1-fast-non-reasoning": _NO_THINKING,
    "grok-code": _THINKS_BY_NAME,
}
"""Other families by name prefix, from their providers' guides of 2026.

Grok 4 thinks or not by its name, and accepts no level.
"""

_THINKS_BY_BUDGET = Traits(thinking=("budget",), thinking_default=True)

COHERE: Final[dict[str, Traits]] = {
    "command-a-03": _NO_THINKING,
    "command-a-translate": _NO_THINKING,
    "command-a-vision": _NO_THINKING,
    "command-light": _NO_THINKING,
    "command-r": _NO_THINKING,
    "command-a-plus": _THINKS_BY_BUDGET,
    "command-a-reasoning": _THINKS_BY_BUDGET,
}
"""Cohere's models (docs.cohere.com, "Reasoning"; recorded responses of 2026)."""

_NO_SCHEMAS = Traits(schemas=False)

BEDROCK: Final[dict[str, Traits]] = {
    "ai21.": _NO_SCHEMAS,
    "amazon.nova": _NO_SCHEMAS,
    "amazon.titan": _NO_SCHEMAS,
    "cohere.command": replace(_NO_THINKING, schemas=False),
    "meta.llama": _NO_SCHEMAS,
    "mistral.mistral-7b": _NO_SCHEMAS,
    "mistral.mistral-large-24": _NO_SCHEMAS,
    "mistral.mistral-small": _NO_SCHEMAS,
    "mistral.mixtral": _NO_SCHEMAS,
    "mistral.pixtral": _NO_SCHEMAS,
    "writer.": _NO_SCHEMAS,
}
"""Models of Bedrock without output schemas: those that are not in the list of
docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html (read in 2026-11)."""

TABLES: Final[tuple[dict[str, Traits], ...]] = (
    BEDROCK,
    CLAUDE,
    OPENAI,
    GEMINI,
    AGENTS,
    COHERE,
    OTHERS,
)
ANYTHING: Final = Traits()
"""Traits of an unknown model."""


def traits(model: str, overrides: Mapping[str, Traits] | None = None) -> Traits:
    """The traits of a model: by the caller's table first, then by the library's."""
    if overrides:
        prefix = longest_prefix(model, overrides)
        if prefix is not None:
            return overrides[prefix]
    return _shipped_traits(model)


_DOTTED_CLAUDE: Final = re.compile(r"(claude-(?:[a-z]+-)?\d)\.(\d)", re.IGNORECASE)
"""How OpenRouter, Copilot and Vercel write versions of Claude: `claude-opus-4.5`."""


@lru_cache(256)  # else each request would search some hundred prefixes
def _shipped_traits(model: str) -> Traits:
    model = _DOTTED_CLAUDE.sub(r"\1-\2", model)
    for table in TABLES:
        prefix = longest_prefix(model, table)
        if prefix is not None:
            return table[prefix]
    return ANYTHING


def longest_prefix(model: str, prefixes: Iterable[str]) -> str | None:
    """The longest of the prefixes that the model's name begins with, without regard to case."""
    lowered = model.lower()
    longest: str | None = None
    for prefix in prefixes:
        if longest is not None and len(prefix) <= len(longest):
            continue
        if _begins_with(lowered, prefix.lower()):
            longest = prefix
    return longest


def _begins_with(model: str, prefix: str) -> bool:
    """Whether a name begins with a prefix, also after a vendor or region
    (`us.anthropic.claude-…`, `anthropic/claude-…`)."""
    return model.startswith(prefix) or f"/{prefix}" in model or f".{prefix}" in model
