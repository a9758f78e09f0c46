"""Anthropic Messages: the wire's usage object as `Usage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamlib_parsers.json_text import objects_at
from streamlib_parsers.usage import Usage, counts_of, total
from streamlib_parsers.wires.messages.events import CacheCreation, UsageCounts

ESTIMATE: Final = "estimated_tokens"
"""Key of `Usage.raw` for the estimate of omitted thinking, until the server reports a count."""


def usage(raw: dict[str, Any]) -> Usage:
    """The token counts of a merged usage object (wire: `usage`).

    Anthropic counts cached input apart from `input_tokens`; the sum is the model's input.
    `output_tokens` includes thinking. The counts leave out what a compaction of the conversation
    cost (`iterations[]` of type `compaction`), which is added; the tokens of an advisor are not,
    since they are another model's.
    """
    # Each of these objects has the counts under the same names.
    objects = [counts_of(raw, UsageCounts)]
    for iteration in objects_at(raw, "iterations"):
        if iteration.get("type") == "compaction":
            objects.append(counts_of(iteration, UsageCounts))
    written = _sum(objects, "cache_creation_input_tokens")
    read = _sum(objects, "cache_read_input_tokens")
    uncached = _sum(objects, "input_tokens")
    input_tokens = None
    if uncached is not None:
        input_tokens = total(uncached, written, read)
    counts = objects[0]
    five_minutes = hour = day = None
    if counts.cache_creation is not None and written is not None:
        # message_start has the split by lifetime; a later message_delta replaces the total
        # alone. So the 5-minute part is what remains of the total, and no part exceeds it.
        by_lifetime = [each.cache_creation for each in objects if each.cache_creation is not None]
        hour = min(_sum(by_lifetime, "ephemeral_1h_input_tokens") or 0, written)
        day = _sum(by_lifetime, "ephemeral_24h_input_tokens")
        five_minutes = max(0, written - hour - (day or 0))
    reasoning = counts.estimated_tokens
    if reasoning is None and counts.output_tokens_details is not None:
        reasoning = counts.output_tokens_details.thinking_tokens
    return Usage(
        input_tokens=input_tokens,
        output_tokens=_sum(objects, "output_tokens"),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        reasoning_output_tokens=reasoning,
        cache_write_5m_input_tokens=five_minutes,
        cache_write_1h_input_tokens=hour,
        cache_write_24h_input_tokens=day,
        raw=raw,
    )


def _sum(objects: Sequence[UsageCounts | CacheCreation], name: str) -> int | None:
    """The sum of one count."""
    if len(objects) == 1:
        number: int | None = getattr(objects[0], name)
        return number
    return total(*(getattr(counts, name) for counts in objects))
