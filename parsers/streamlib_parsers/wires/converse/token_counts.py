"""Bedrock Converse: the wire's usage object as `Usage`."""

from __future__ import annotations

from typing import Any

from streamlib_parsers.usage import Usage, count, total


def usage(raw: dict[str, Any]) -> Usage:
    """The token counts of a merged usage object (wire: `metadata.usage`).

    Bedrock counts cached input apart from `inputTokens`; the sum is the model's input. Thinking
    tokens are known only if the request asked for `/usage/output_tokens_details`.
    """
    # Both spellings of the cache counts are in one object with equal values: the first that is
    # present counts, they are never added.
    read = count(raw, "cacheReadInputTokens", "cacheReadInputTokenCount")
    written = count(raw, "cacheWriteInputTokens", "cacheWriteInputTokenCount")
    uncached = count(raw, "inputTokens")
    input_tokens = None
    if uncached is not None:
        input_tokens = total(uncached, read, written)
    five_minutes = hour = None
    details = raw.get("cacheDetails")
    if isinstance(details, list) and details:
        five_minutes = _written_with_ttl(details, "5m")
        hour = _written_with_ttl(details, "1h")
    return Usage(
        input_tokens=input_tokens,
        output_tokens=count(raw, "outputTokens"),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        reasoning_output_tokens=count(
            raw, "output_tokens_details.thinking_tokens", "output_tokens_details.reasoning_tokens"
        ),
        cache_write_5m_input_tokens=five_minutes,
        cache_write_1h_input_tokens=hour,
        raw=raw,
    )


def _written_with_ttl(details: list[Any], ttl: str) -> int:
    written = 0
    for detail in details:
        if isinstance(detail, dict) and detail.get("ttl") == ttl:
            written += count(detail, "inputTokens") or 0
    return written
