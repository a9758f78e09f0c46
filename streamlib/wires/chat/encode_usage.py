"""Token counts as the `usage` object of Chat Completions."""

from __future__ import annotations

from streamlib.request.report import Report
from streamlib.wires.json_objects import without_none
from streamlib_parsers.items import JsonObject
from streamlib_parsers.usage import Usage
from streamlib_parsers.wires.chat import usage as read_usage


def chat_usage(usage: Usage | None, report: Report, *, own: bool) -> JsonObject | None:
    """The usage object.

    The provider's own object is returned if this wire reads the same numbers from it.

    Args:
        usage: the counts; None if they are not known.
        report: receives counts that the object cannot carry.
        own: whether an item of the response was made on this wire.
    """
    if usage is None:
        return None
    has_totals = "prompt_tokens" in usage.raw and "completion_tokens" in usage.raw
    if (own or has_totals) and read_usage(usage.raw).same_numbers(usage):
        return usage.raw
    input_tokens = usage.input_tokens or 0
    output_tokens = usage.output_tokens or 0
    body: JsonObject = {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
    for name, counts in _details(usage).items():
        known = without_none(counts)
        if known:
            body[name] = known
    if not read_usage(body).same_numbers(usage):
        reason = "clients want totals: an unknown one is 0; some counts have no name here"
        report.dropped("/usage", reason)
    return body


def _details(usage: Usage) -> dict[str, dict[str, int | None]]:
    return {
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_write_input_tokens,
            **_modalities(usage.input_modalities),
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_output_tokens,
            **_modalities(usage.output_modalities),
        },
        # Anthropic's names, as OpenRouter and LiteLLM pass them on.
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_5m_input_tokens,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_input_tokens,
            "ephemeral_24h_input_tokens": usage.cache_write_24h_input_tokens,
        },
    }


def _modalities(modalities: dict[str, int]) -> dict[str, int]:
    return {f"{modality}_tokens": count for modality, count in modalities.items()}
