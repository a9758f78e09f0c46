"""The parts of a Converse response outside its blocks: stop reason, usage, envelope keys."""

from __future__ import annotations

from typing import Final

from streamlib.request.report import Report
from streamlib.wires.json_objects import without_none
from streamlib.wires.usage_counts import uncached_input_tokens
from streamlib_parsers.events import Completed, StopReason
from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.converse import STOP_REASONS
from streamlib_parsers.wires.converse import usage as read_usage

STOP_FIELDS: Final = "additionalModelResponseFields"
"""The envelope key that belongs to `messageStop`; models put the stop sequence there."""
OWN_KEYS: Final = frozenset({STOP_FIELDS, "metrics", "trace", "performanceConfig", "serviceTier"})
"""Envelope keys of this wire; those of others are left out."""
NATIVE_STOP: Final[dict[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "refusal": "content_filtered",
    "pause": "end_turn",
    "other": "end_turn",
}


def native_stop(end: Completed, report: Report, *, foreign: bool) -> str:
    """The native `stopReason` if it is one of this wire, else the nearest one."""
    reason = end.stop_reason
    native = end.native_stop_reason
    if native and STOP_REASONS.get(native) == reason:
        return native
    if native and reason == "other" and not foreign:
        return native
    if end.stop_sequence and reason == "stop":
        return "stop_sequence"
    nearest = NATIVE_STOP[reason]
    if STOP_REASONS[nearest] != reason:
        report.dropped("/stop_reason", f"Converse has no value for {reason}: {nearest}")
    return nearest


def converse_usage(usage: Usage | None, report: Report, *, complete: bool) -> JsonObject | None:
    """The usage object.

    The provider's own object is returned if this wire reads the same numbers from it.

    Args:
        usage: the counts; None if they are not known.
        report: receives counts that had to be written as 0.
        complete: write unknown numbers as 0 if the wire's clients rely on them.
    """
    if usage is not None and usage.raw and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    if usage is None:
        if not complete:
            return None
        usage = Usage()
    input_tokens = uncached_input_tokens(usage)
    output_tokens = usage.output_tokens
    if complete and (input_tokens is None or output_tokens is None):
        report.dropped("/usage", "Converse cannot leave usage unknown: zeros")
        input_tokens = input_tokens or 0
        output_tokens = output_tokens or 0
    body: JsonObject = without_none(
        {
            "inputTokens": input_tokens,
            "outputTokens": output_tokens,
            "totalTokens": (usage.input_tokens or 0) + (usage.output_tokens or 0),
            "cacheReadInputTokens": usage.cache_read_input_tokens,
            "cacheWriteInputTokens": usage.cache_write_input_tokens,
        }
    )
    if usage.reasoning_output_tokens is not None:
        body["output_tokens_details"] = {"thinking_tokens": usage.reasoning_output_tokens}
    cache_details = _cache_details(usage)
    if cache_details:
        body["cacheDetails"] = cache_details
    return body


def _cache_details(usage: Usage) -> list[JsonObject]:
    details: list[JsonObject] = []
    if usage.cache_write_5m_input_tokens is not None:
        details.append({"ttl": "5m", "inputTokens": usage.cache_write_5m_input_tokens})
    if usage.cache_write_1h_input_tokens is not None:
        details.append({"ttl": "1h", "inputTokens": usage.cache_write_1h_input_tokens})
    return details
