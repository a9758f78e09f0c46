"""Anthropic Messages: the wire's usage object as `Usage`."""

from __future__ import annotations

from typing import Any, Final

from streamlib_parsers.json_text import objects_at
from streamlib_parsers.usage import Usage, counts_of, total
from streamlib_parsers.wires.messages.events import CacheCreation, UsageCounts

ESTIMATE: Final = "estimated_tokens"
"""Key of `Usage.raw` for the estimate of omitted thinking, until the server reports a count."""

SUMMED: Final = tuple(
    name
    for name in UsageCounts.__struct_fields__
    if name.endswith(("input_tokens", "output_tokens"))
)
"""Counts of the response to which those of a compaction are added."""


def usage(raw: dict[str, Any]) -> Usage:
    """The token counts of a merged usage object (wire: `usage`).

    Anthropic counts cached input apart from `input_tokens`; the sum is the model's input.
    `output_tokens` includes thinking. The counts leave out what a compaction of the conversation
    cost (`iterations[]` of type `compaction`), which is added; the tokens of an advisor are not,
    since they are another model's.
    """
    counts = counts_of(raw, UsageCounts)
    if raw.get("iterations"):
        for iteration in objects_at(raw, "iterations"):
            if iteration.get("type") == "compaction":
                _add(counts, counts_of(iteration, UsageCounts))
    written = counts.cache_creation_input_tokens
    read = counts.cache_read_input_tokens
    input_tokens = counts.input_tokens
    if input_tokens is not None:
        input_tokens += (written or 0) + (read or 0)
    five_minutes = hour = day = None
    if counts.cache_creation is not None and written is not None:
        # message_start has the split by lifetime; a later message_delta replaces the total
        # alone. So the 5-minute part is what remains of the total, and no part exceeds it.
        hour = min(counts.cache_creation.ephemeral_1h_input_tokens or 0, written)
        day = counts.cache_creation.ephemeral_24h_input_tokens
        five_minutes = max(0, written - hour - (day or 0))
    reasoning = counts.estimated_tokens
    if reasoning is None and counts.output_tokens_details is not None:
        reasoning = counts.output_tokens_details.thinking_tokens
    output = counts.output_tokens
    # By position: half the time of keywords.
    return Usage(
        input_tokens, output, read, written, reasoning, five_minutes, hour, day, {}, {}, {}, raw
    )


def _add(counts: UsageCounts, more: UsageCounts) -> None:
    """Adds the counts of a further object; one that neither has stays unknown."""
    for name in SUMMED:
        setattr(counts, name, total(getattr(counts, name), getattr(more, name)))
    lifetimes, further = counts.cache_creation, more.cache_creation
    if lifetimes is not None and further is not None:
        for name in CacheCreation.__struct_fields__:
            setattr(lifetimes, name, total(getattr(lifetimes, name), getattr(further, name)))
