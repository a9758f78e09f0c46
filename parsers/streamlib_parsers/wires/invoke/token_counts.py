"""Bedrock InvokeModel: token counts of the text families, and Bedrock's metrics, as `Usage`."""

from __future__ import annotations

from typing import Any

from streamlib_parsers.usage import Usage, count, total


def usage(raw: dict[str, Any]) -> Usage:
    """The token counts of merged usage keys: the family's own, else those of Bedrock's metrics."""
    read = count(raw, "cacheReadInputTokenCount")
    written = count(raw, "cacheWriteInputTokenCount")
    input_tokens = count(raw, "inputTextTokenCount", "prompt_token_count")
    metered = count(raw, "inputTokenCount")
    if input_tokens is None and metered is not None:
        # The metrics count cached input apart, as Converse does.
        input_tokens = total(metered, read, written)
    return Usage(
        input_tokens=input_tokens,
        output_tokens=count(
            raw,
            "totalOutputTextTokenCount",
            "generation_token_count",
            "tokenCount",
            "outputTokenCount",
        ),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        raw=raw,
    )
