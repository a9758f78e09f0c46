"""Token counts for wires whose counts exclude each other."""

from __future__ import annotations

from streamlib.request.report import Report
from streamlib_parsers.usage import Usage


def uncached_input_tokens(usage: Usage, report: Report) -> int | None:
    """The input tokens neither read from nor written to a cache: for Messages and Converse.

    None if the total is not known; never below 0, since providers' numbers may disagree.
    """
    if usage.input_tokens is None:
        return None
    cached = (usage.cache_write_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
    if cached > usage.input_tokens:
        reason = "fewer input tokens than those of a cache: their sum is another"
        report.add("changed", "/usage", reason)
        return 0
    return usage.input_tokens - cached


def output_tokens_without_reasoning(usage: Usage, report: Report) -> int | None:
    """The output tokens that are no reasoning: for Gemini and Interactions. None if not known."""
    if usage.output_tokens is None:
        return None
    reasoning = usage.reasoning_output_tokens or 0
    if reasoning > usage.output_tokens:
        # The provider counted it apart from the output.
        report.add("changed", "/usage", "more reasoning than output tokens: their sum is another")
        return usage.output_tokens
    return usage.output_tokens - reasoning
