"""What Responses has around its items: status, usage, and the response object itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from streamlib.request.report import Report
from streamlib.wires.json_objects import without_none
from streamlib.wires.responses.repeated_settings import with_settings
from streamlib_parsers.events import StopReason
from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.responses import usage as read_usage

ID_PREFIX: Final = "resp_"
"""Beginning of the id of a response that has none: clients require one."""
INCOMPLETE_REASONS: Final[dict[StopReason, str]] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
"""Stop reasons of a response that ends `incomplete`."""
DETAIL_MODALITIES: Final = frozenset({"text", "image", "audio"})
"""Modalities that the details of a usage object can name."""


# --- status ---


def ending(
    stop_reason: StopReason, native: str | None, report: Report, *, refused: bool
) -> tuple[str, str | None]:
    """The status and the reason of an incomplete response.

    Args:
        stop_reason: why the response ended.
        native: `incomplete:REASON` if it ended incomplete on this wire: both are then kept.
        report: receives a refusal that the wire cannot express.
        refused: whether the response has refusal text.
    """
    if native is not None:
        status, _, reason = native.partition(":")
        if status == "incomplete":
            return "incomplete", reason or None
    if stop_reason == "refusal" and not refused:
        explanation = "Responses knows a refusal by its text, and there is none: content_filter"
        report.dropped("/stop_reason", explanation)
        return "incomplete", "content_filter"
    if stop_reason in INCOMPLETE_REASONS:
        return "incomplete", INCOMPLETE_REASONS[stop_reason]
    if stop_reason not in ("stop", "tool_calls", "refusal"):
        report.dropped("/stop_reason", f"Responses has no value for {stop_reason}")
    return "completed", None


def incomplete_details(envelope: JsonObject, reason: str | None) -> Any:
    """The provider's own `incomplete_details`, else those made from the reason, or None."""
    details = envelope.get("incomplete_details")
    if not details and reason:
        return {"reason": reason}
    return details or None


# --- usage ---


def responses_usage(
    usage: Usage | None, *, own: bool, with_details: bool = False
) -> JsonObject | None:
    """The usage object.

    The provider's own object is returned if this wire reads the same numbers from it.

    Args:
        usage: the counts; None if they are not known.
        own: whether the response was made on this wire, whose servers may leave out the sum.
            Official clients read it, so another wire's object needs it.
        with_details: whether the details are written that Open Responses requires; a count that
            is not known is then 0.
    """
    if usage is None:
        return None
    body = _usage_object(usage, own=own)
    if not with_details:
        return body
    required = {
        "input_tokens_details": "cached_tokens",
        "output_tokens_details": "reasoning_tokens",
    }
    complete = {**body}
    for details, count in required.items():
        counts = body.get(details)
        if not isinstance(counts, dict):
            counts = {}
        if counts.get(count) is None:
            complete[details] = {**counts, count: 0}
    return complete


def _usage_object(usage: Usage, *, own: bool) -> JsonObject:
    raw = usage.raw
    has_totals = "input_tokens" in raw and "output_tokens" in raw
    if has_totals and (own or "total_tokens" in raw) and read_usage(raw).same_numbers(usage):
        return raw
    input_tokens = usage.input_tokens or 0
    output_tokens = usage.output_tokens or 0
    body: JsonObject = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
    input_details = without_none(
        {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_write_input_tokens,
            **_modalities(usage.input_modalities),
        }
    )
    output_details = without_none(
        {
            "reasoning_tokens": usage.reasoning_output_tokens,
            **_modalities(usage.output_modalities),
        }
    )
    # Clients that read any detail require the first one: Codex ends a stream without it.
    if input_details:
        body["input_tokens_details"] = {"cached_tokens": 0, **input_details}
    if output_details:
        body["output_tokens_details"] = {"reasoning_tokens": 0, **output_details}
    return body


def report_unknown_counts(
    usage: Usage | None, report: Report, *, with_details: bool = False
) -> None:
    """Reports counts that are not known: clients read them as numbers.

    Args:
        usage: the counts; None if they are not known.
        report: receives what is unknown.
        with_details: as in `responses_usage`.
    """
    if usage is None:
        return
    if usage.input_tokens is None or usage.output_tokens is None:
        report.dropped("/usage", "unknown totals are written as 0")
    details = (usage.cache_read_input_tokens, usage.reasoning_output_tokens)
    if with_details and None in details:
        report.dropped("/usage/details", "unknown counts of details are written as 0")


def _modalities(modalities: dict[str, int]) -> dict[str, int | None]:
    counts: dict[str, int | None] = {}
    for modality, count in modalities.items():
        if modality in DETAIL_MODALITIES:
            counts[f"{modality}_tokens"] = count
    return counts


# --- the response ---


def response_object(
    common: JsonObject,
    status: str | None,
    output: Iterable[JsonObject],
    envelope: JsonObject,
    settings: JsonObject | None = None,
    **fields: Any,
) -> JsonObject:
    """A Response.

    Args:
        common: `id` and `model`; `created_at` and what clients expect beside it, if it is known.
        status: status of the response.
        output: objects of its items.
        envelope: metadata, which replaces the defaults.
        settings: settings of the request (`request_settings`), which replace the defaults.
        fields: further fields; they replace all others.
    """
    defaults: JsonObject = {
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "tools": [],
    }
    if settings is not None:
        envelope = with_settings(settings, envelope)
    return {
        "object": "response",
        **common,
        "status": status,
        "output": list(output),
        **defaults,
        **envelope,
        **fields,
    }
