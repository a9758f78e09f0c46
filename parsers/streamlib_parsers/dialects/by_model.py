"""Which dialects a model gets, as data: the first row whose name stands in its id wins.

A name stands there as a word: `step` in `stepfun-ai/Step-1`, and not in `stepwise-7b`. Digits may
follow it (`qwen3`), and a row may end with the sign behind the word (`glm-`).

    dialects_for("Qwen/Qwen3-32B")                          -> ("hermes", "qwen3_coder", "think")
    dialects_for("gpt-5.5", parses_calls=True)              -> (), the provider parses them
    dialects_for("my-qwen", overrides=[("my-", ("xai",))])  -> ("xai",)

A model that is known to reason from its first character has `think:open`, which only matters where
the server does not separate the reasoning itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

Row: TypeAlias = tuple[str, tuple[str, ...]]
"""(part of the model's id in lower case, names of dialects in the order they are tried)."""

DIALECTS_BY_MODEL: Final[tuple[Row, ...]] = (
    ("grok", ("xai", "hermes")),
    ("claude", ("anthropic",)),
    ("qwen3-coder", ("qwen3_coder", "hermes", "think")),
    ("qwen3-next-coder", ("qwen3_coder", "hermes", "think")),
    ("qwen3.", ("qwen3_coder", "hermes", "think")),
    ("qwen-3.", ("qwen3_coder", "hermes", "think")),
    ("thinking-2507", ("hermes", "qwen3_coder", "think:open")),
    ("qwq", ("hermes", "qwen3_coder", "think:open")),
    ("minimax-m3", ("minimax_m3", "minimax_m2", "think")),
    ("minimax-m2", ("minimax_m2", "think:open")),
    ("gpt-oss", ("harmony",)),
    ("glm-4.5", ("glm45", "glm47", "think")),
    ("glm-4.6", ("glm45", "glm47", "think")),
    ("glm-", ("glm47", "glm45", "think")),
    ("kimi-k3", ("kimi_k3", "kimi_k2", "think:open")),
    ("kimi-k2-thinking", ("kimi_k2", "hermes", "think:open")),
    ("kimi", ("kimi_k2", "hermes", "think")),
    # Its distilled models write the form of the Qwen or Llama they were made of.
    ("deepseek-r1", ("deepseek_v3", "deepseek_v31", "hermes", "think:open")),
    ("deepseek-v3.1", ("deepseek_v31", "deepseek_v3", "think")),
    ("deepseek-chat-v3.1", ("deepseek_v31", "deepseek_v3", "think")),
    ("deepseek-v3.2", ("deepseek_v32", "deepseek_v31", "think")),
    ("deepseek-v4", ("deepseek_v32", "deepseek_v31", "think")),
    ("deepseek", ("deepseek_v3", "deepseek_v31", "think")),
    ("mimo", ("mimo", "qwen3_coder", "think")),
    ("seed", ("seed_oss", "qwen3_coder", "think")),
    ("qwen", ("hermes", "qwen3_coder", "think")),
    ("hermes", ("hermes", "qwen3_coder", "think")),
    ("nous", ("hermes", "qwen3_coder", "think")),
    ("tulu", ("hermes", "qwen3_coder", "think")),
    ("smollm", ("hermes", "qwen3_coder", "think")),
    # Before Nemotron: Apriel-Nemotron is one of these.
    ("apriel", ("apriel", "think")),
    # Before Llama: Llama-Nemotron is one of these.
    ("nemotron", ("nemotron", "qwen3_coder", "hermes", "think")),
    ("llama", ("llama3_json", "pythonic")),
    ("mistral", ("mistral", "think")),
    ("mixtral", ("mistral", "think")),
    ("devstral", ("mistral", "think")),
    ("magistral", ("mistral", "think")),
    ("codestral", ("mistral", "think")),
    ("ministral", ("mistral", "think")),
    ("gpt-", ("harmony",)),
    ("functiongemma", ("functiongemma",)),
    ("gemma", ("gemma4", "think")),
    ("granite", ("granite", "qwen3_coder", "think")),
    ("phi-4", ("phi4_mini_json",)),
    ("internlm", ("internlm", "think")),
    ("hunyuan", ("hunyuan_a13b", "hy_v3", "think")),
    ("hy3", ("hy_v3", "think")),
    ("hy4", ("hy_v3", "think")),
    ("iquest", ("iquest_q1", "think:open")),
    ("ernie", ("ernie45", "think")),
    ("jamba", ("jamba",)),
    ("longcat", ("longcat", "think")),
    # Qwen3-Coder's form, not that of Step 3.
    ("step-3.", ("qwen3_coder", "step3", "think:open")),
    ("step-5", ("qwen3_coder", "think:open")),
    ("step-3", ("step3", "think:open")),
    ("step3", ("step3", "think:open")),
    ("step", ("step3", "think")),
    ("dots", ("dots", "think")),
    ("minicpm", ("minicpm5", "hermes", "think")),
    ("gigachat3.5", ("gigachat35", "gigachat3", "think:open")),
    ("gigachat", ("gigachat3", "think")),
    ("apertus", ("apertus", "think")),
    ("lfm", ("pythonic", "think")),
    ("olmo", ("pythonic", "think")),
    # The others do not reason; Command R7B writes both tags.
    ("command-a-reasoning", ("cohere", "think:open")),
    ("command", ("cohere", "think")),
    ("cohere", ("cohere", "think")),
    # The form of GLM 4.7.
    ("spark", ("glm47", "think")),
    ("ling-3", ("glm47", "think")),
    ("ling-", ("hermes", "glm47", "think")),
    ("reka", ("hermes", "qwen3_coder", "think")),
    (
        "",
        (
            "hermes",
            "qwen3_coder",
            "glm45",
            "kimi_k2",
            "deepseek_v31",
            "deepseek_v32",
            "minimax_m2",
            "think:start",
        ),
    ),
)
"""The more specific id is before the more general one; the last row is every other model."""

REASONING_DIALECTS: Final = frozenset({"think", "think:open", "think:start"})
"""Dialects that find reasoning, and no calls."""


def dialects_for(
    model: str,
    *,
    parses_calls: bool = False,
    types_reasoning: bool = False,
    overrides: Iterable[Row] = (),
) -> tuple[str, ...]:
    """Names of the dialects a model needs.

    Args:
        model: name of the model, with or without its vendor.
        parses_calls: the provider parses calls itself (`Provider.parses_calls`).
        types_reasoning: the wire has a form for reasoning (`WireSpec.types_reasoning`): tags in a
            text are text.
        overrides: rows that are tried first; they also win over both.
    """
    name = model.lower()
    override = _first_row(name, tuple(overrides))
    if override is not None:
        return override
    if parses_calls:
        return ()
    dialects = _shipped_dialects(name)
    if types_reasoning:
        dialects = tuple([dialect for dialect in dialects if dialect not in REASONING_DIALECTS])
    return dialects


@lru_cache(256)  # else each request would search all rows
def _shipped_dialects(name: str) -> tuple[str, ...]:
    return _first_row(name, DIALECTS_BY_MODEL) or ()


def _first_row(name: str, rows: Sequence[Row]) -> tuple[str, ...] | None:
    for part, dialects in rows:
        if stands_in(part.lower(), name):
            return dialects
    return None


def stands_in(part: str, name: str) -> bool:
    """Whether a part of a name is a word of it; digits may follow the word."""
    start = name.find(part)
    while start >= 0:
        before, after = name[start - 1 : start], name[start + len(part) :][:1]
        if not before.isalnum() and not (part[-1:].isalpha() and after.isalpha()):
            return True
        start = name.find(part, start + 1)
    return False
