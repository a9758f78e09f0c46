"""Anthropic Messages: the wire's usage object as `Usage`."""

from __future__ import annotations

from typing import Any, Final

from streamlib_parsers.json_text import objects_at
from streamlib_parsers.usage import Usage, count, total

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
    objects = [raw]
    for iteration in objects_at(raw, "iterations"):
        if iteration.get("type") == "compaction":
            objects.append(iteration)
    written = _sum(objects, "cache_creation_input_tokens")
    read = _sum(objects, "cache_read_input_tokens")
    uncached = _sum(objects, "input_tokens")
    input_tokens = None
    if uncached is not None:
        input_tokens = total(uncached, written, read)
    five_minutes = hour = day = None
    if isinstance(raw.get("cache_creation"), dict) and written is not None:
        # message_start has the split by lifetime; a later message_delta replaces the total
        # alone. So the 5-minute part is what remains of the total, and no part exceeds it.
        hour = min(_sum(objects, "cache_creation.ephemeral_1h_input_tokens") or 0, written)
        day = _sum(objects, "cache_creation.ephemeral_24h_input_tokens")
        five_minutes = max(0, written - hour - (day or 0))
    return Usage(
        input_tokens=input_tokens,
        output_tokens=_sum(objects, "output_tokens"),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        reasoning_output_tokens=count(raw, ESTIMATE, "output_tokens_details.thinking_tokens"),
        cache_write_5m_input_tokens=five_minutes,
        cache_write_1h_input_tokens=hour,
        cache_write_24h_input_tokens=day,
        raw=raw,
    )


def _sum(objects: list[dict[str, Any]], path: str) -> int | None:
    if len(objects) == 1:
        return count(objects[0], path)
    return total(*(count(counts, path) for counts in objects))
