"""Token counts as `usageMetadata` of Gemini."""

from __future__ import annotations

from streamlib.request.report import Report
from streamlib.wires.json_objects import without_none
from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.gemini import usage as read_usage


def gemini_usage(usage: Usage | None, report: Report) -> JsonObject | None:
    """`usageMetadata`.

    The provider's own object is returned if this wire reads the same numbers from it.
    """
    if usage is None:
        return None
    if usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    if usage.cache_write_input_tokens:
        reason = "Gemini does not count what is written to a cache"
        report.dropped("/usage/cache_write_input_tokens", reason)
    body = {
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cache_read_input_tokens,
        "candidatesTokenCount": _candidates_tokens(usage),
        "thoughtsTokenCount": usage.reasoning_output_tokens,
        "totalTokenCount": (usage.input_tokens or 0) + (usage.output_tokens or 0),
        "promptTokensDetails": _details(usage.input_modalities),
        "candidatesTokensDetails": _details(usage.output_modalities),
        "cacheTokensDetails": _details(usage.cache_modalities),
    }
    return without_none(body)


def _candidates_tokens(usage: Usage) -> int | None:
    """The output tokens without reasoning."""
    if usage.output_tokens is None:
        return None
    reasoning = usage.reasoning_output_tokens or 0
    if reasoning > usage.output_tokens:
        # More reasoning than output: this provider counted it apart from the output.
        return usage.output_tokens
    return usage.output_tokens - reasoning


def _details(modalities: dict[str, int]) -> list[JsonObject] | None:
    if not modalities:
        return None
    details: list[JsonObject] = []
    for modality, tokens in modalities.items():
        details.append({"modality": modality.upper(), "tokenCount": tokens})
    return details
