"""Why less of a prompt was read from a cache than could be, as the provider itself says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from streamlib_parsers.usage import number

CacheStatus: TypeAlias = Literal["hit", "miss", "not_found", "unavailable", "pending"]


class CacheDiagnosis(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """What a provider found when it compared a request with an earlier one.

    Attributes:
        status: `hit`; `miss`; `not_found`: the earlier response is not known to it; `unavailable`:
            it cannot say (Anthropic: also where thinking or the tool choice differ); `pending`:
            the response was sent before the comparison ended.
        reason: of a miss, in the provider's word (`tools_changed`, `input_changed` …), as
            ``explain_cache`` has it too. None otherwise.
        missed_tokens: about how many tokens were not read because of it.
        reusable_tokens: how many the earlier request had that could be read.
    """

    status: CacheStatus
    reason: str | None = None
    missed_tokens: int | None = None
    reusable_tokens: int | None = None


STATUSES: Final[Mapping[str, CacheStatus]] = {
    "cache_hit": "hit",
    "cache_miss": "miss",
    "comparison_response_not_found": "not_found",
    "previous_message_not_found": "not_found",
    "unavailable": "unavailable",
}
"""The provider's word for a status -> ours. Another word is the reason of a miss."""


def _of_messages(value: Mapping[str, Any]) -> CacheDiagnosis:
    miss = value.get("cache_miss_reason")
    if not isinstance(miss, dict):
        return CacheDiagnosis("pending")
    kind = str(miss.get("type") or "unavailable")
    if kind in STATUSES:
        return CacheDiagnosis(STATUSES[kind])
    return CacheDiagnosis("miss", kind, number(miss.get("cache_missed_input_tokens")))


def _of_responses(value: Mapping[str, Any]) -> CacheDiagnosis:
    status = STATUSES.get(str(value.get("type")), "unavailable")
    if status != "miss":
        return CacheDiagnosis(status)
    reason = value.get("reason")
    return CacheDiagnosis(
        "miss",
        str(reason) if reason else None,
        number(value.get("cache_missed_tokens")),
        number(value.get("comparison_reusable_tokens")),
    )


READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], CacheDiagnosis]]] = {
    "diagnostics": _of_messages,
    "prompt_cache_diagnostics": _of_responses,
}
"""Key of a response's envelope (messages, responses) -> what reads it."""


def cache_diagnosis(metadata: Mapping[str, Any]) -> CacheDiagnosis | None:
    """The diagnosis in the metadata of a response; None if there is none."""
    for key, read in READERS.items():
        value = metadata.get(key)
        if isinstance(value, dict):
            return read(value)
    return None
