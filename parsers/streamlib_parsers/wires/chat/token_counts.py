"""Token counts of Chat Completions: one meaning for the names of many servers.

{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,
 "prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":3}}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage, count, number

__all__ = ["CACHE_READS", "CACHE_WRITES", "REASONING_TOKENS", "contradictions", "usage"]

CACHE_READS: Final = (
    "prompt_tokens_details.cached_tokens",
    "prompt_token_details.cached_tokens",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "num_cached_tokens",
    "input_tokens_details.cached_tokens",
    "cache_read_input_tokens",
)
"""Names of the tokens read from a cache; the first that has a number is taken."""

CACHE_WRITES: Final = (
    "prompt_tokens_details.cache_write_tokens",
    "prompt_tokens_details.cache_creation_input_tokens",
    "cache_creation_input_tokens",
)
"""Names of the tokens written to a cache; the first that has a number is taken."""

REASONING_TOKENS: Final = (
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
    "reasoning_tokens",
)
"""Names of the reasoning tokens; the first that has a number is taken."""

DETAILS: Final = (*CACHE_READS, *CACHE_WRITES, *REASONING_TOKENS, "cache_creation")

DETAILED: Final = frozenset(path.partition(".")[0] for path in DETAILS)
"""Keys of a ``usage`` object that tell more than its input and output."""

MODALITY_KEYS: Final = {
    "text": "text_tokens",
    "image": "image_tokens",
    "audio": "audio_tokens",
    "video": "video_tokens",
}
"""Modality -> its key in an object of details."""


def usage(raw: JsonObject) -> Usage:
    """The meaning of a ``usage`` object."""
    input_tokens = count(raw, "prompt_tokens", "input_tokens")
    output_tokens = count(raw, "completion_tokens", "output_tokens")
    if DETAILED.isdisjoint(raw):
        return Usage(input_tokens, output_tokens, raw=raw)
    reasoning = count(raw, *REASONING_TOKENS)
    # `completion_tokens` includes reasoning, except from xAI: there the total shows that it does
    # not.
    if reasoning and input_tokens is not None and output_tokens is not None:
        total = count(raw, "total_tokens")
        if total == input_tokens + output_tokens + reasoning:
            output_tokens += reasoning
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_input_tokens=count(raw, *CACHE_READS),
        cache_write_input_tokens=count(raw, *CACHE_WRITES),
        reasoning_output_tokens=reasoning,
        cache_write_5m_input_tokens=count(raw, "cache_creation.ephemeral_5m_input_tokens"),
        cache_write_1h_input_tokens=count(raw, "cache_creation.ephemeral_1h_input_tokens"),
        cache_write_24h_input_tokens=count(raw, "cache_creation.ephemeral_24h_input_tokens"),
        input_modalities=_modalities(raw, "prompt_tokens_details", "input_tokens_details"),
        output_modalities=_modalities(raw, "completion_tokens_details", "output_tokens_details"),
        raw=raw,
    )


def _modalities(raw: JsonObject, *names: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    # Most servers send none of these objects: then no modality is looked for.
    details = [raw[name] for name in names if isinstance(raw.get(name), dict)]
    if not details:
        return counts
    for modality, key in MODALITY_KEYS.items():
        for values in details:
            tokens = number(values.get(key))
            if tokens is not None:
                counts[modality] = tokens
                break
    return counts


def contradictions(reported: Usage) -> Iterator[str]:
    """Where a provider's own numbers disagree. They are emitted as reported, never clamped."""
    input_tokens = reported.input_tokens
    output_tokens = reported.output_tokens
    cached = reported.cache_read_input_tokens or 0
    reasoning = reported.reasoning_output_tokens or 0
    if input_tokens is not None and cached > input_tokens:
        yield f"{cached} tokens read from a cache, of {input_tokens} input tokens"
    if output_tokens is not None and reasoning > output_tokens:
        yield f"{reasoning} reasoning tokens, of {output_tokens} output tokens"
    if input_tokens is not None and output_tokens is not None:
        total = count(reported.raw, "total_tokens")
        if total not in {None, input_tokens + output_tokens}:
            yield f"{total} tokens in total, but {input_tokens} input and {output_tokens} output"
