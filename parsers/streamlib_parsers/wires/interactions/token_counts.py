"""Gemini Interactions: the wire's usage object as `Usage`.

{"total_input_tokens":11,"total_output_tokens":4,"total_thought_tokens":60,"total_tokens":75,
 "input_tokens_by_modality":[{"modality":"text","tokens":11}]}
"""

from __future__ import annotations

from typing import Any

from streamlib_parsers.json_text import objects_at
from streamlib_parsers.usage import Usage, count, total


def usage(raw: dict[str, Any]) -> Usage:
    """The token counts of a merged usage object (wire: `usage`).

    The parts exclude each other: what tools read counts as input, thoughts count as output. Cached
    tokens are part of the input.
    """
    input_tokens = count(raw, "total_input_tokens")
    reasoning = count(raw, "total_thought_tokens")
    if input_tokens is not None:
        input_tokens = total(input_tokens, count(raw, "total_tool_use_tokens"))
    return Usage(
        input_tokens=input_tokens,
        output_tokens=total(count(raw, "total_output_tokens"), reasoning),
        cache_read_input_tokens=count(raw, "total_cached_tokens"),
        reasoning_output_tokens=reasoning,
        input_modalities=_modalities(
            raw, "input_tokens_by_modality", "tool_use_tokens_by_modality"
        ),
        output_modalities=_modalities(raw, "output_tokens_by_modality"),
        cache_modalities=_modalities(raw, "cached_tokens_by_modality"),
        raw=raw,
    )


def _modalities(raw: dict[str, Any], *keys: str) -> dict[str, int]:
    """Tokens by modality, summed over lists of `{modality, tokens}`."""
    sums: dict[str, int] = {}
    for key in keys:
        for entry in objects_at(raw, key):
            tokens = count(entry, "tokens")
            modality = entry.get("modality")
            if tokens is not None and isinstance(modality, str):
                name = modality.lower()
                sums[name] = sums.get(name, 0) + tokens
    return sums
