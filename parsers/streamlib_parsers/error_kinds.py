"""What `classification.classify` returns: a failure, named by what the caller can do about it.

`error_body` collects the codes and messages of a failure; the kind is the first that a step of
`_STEPS` gives: a daily quota; messages that outrank codes; codes; messages; the HTTP status; types
that only repeat a status. Keys are masked in everything that is shown, and a message is cut at
2 KiB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final

from streamlib_parsers.durations import (
    SECONDS,
    as_text,
    parse_duration,
    parse_moment,
    parse_number,
    seconds_until,
)
from streamlib_parsers.error_body import ErrorEvidence, ErrorObject, decode_body, read_evidence
from streamlib_parsers.error_tables import (
    CODES,
    INVALID_PREFIXES,
    KIND_ORDER,
    OVERRIDING_RULES,
    STATUSES,
    STATUSES_OVER_TEXT,
    TEXT_RULES,
    TYPE_STATUSES,
    TextRule,
    plain,
)
from streamlib_parsers.errors import RETRYABLE, ErrorInfo, ErrorKind
from streamlib_parsers.events import RateLimits, Window
from streamlib_parsers.json_text import scrub
from streamlib_parsers.rate_limits import read_rate_limits
from streamlib_parsers.redaction import redact, redact_value

_DELAY_KEYS: Final = ("retryDelay", "retry_after", "retry_after_seconds", "retryAfter")
_RESET_KEYS: Final = ("resets_in_seconds", "resets_at")
"""The Codex backend's: seconds, and a time in unix seconds."""


_QUOTA_PERIODS: Final[dict[str, ErrorKind]] = {
    "perday": "quota_exhausted",
    "perminute": "rate_limited",
    "persecond": "rate_limited",
}
"""Part of Google's `quotaId` -> kind, the daily quota first: where that is used up, it does not
help to wait for the quota per minute that is reported beside it."""

_SHOWN_MESSAGES: Final = 4
_MESSAGE_BYTES: Final = 2048
_SEARCHED_LENGTH: Final = 4096

FREE_TIER_REQUESTS: Final = 1000
"""Google's paid tiers allow more requests a day than this."""
FREE_TIER_DAY: Final = (
    "This is the free tier's daily limit: wait for its reset at midnight Pacific time, "
    "enable billing, or use another model."
)
FREE_TIER: Final = (
    "This is a limit of the free tier: wait as asked, enable billing, or use another model."
)


def error_of(
    status: int | None,
    body: Any,
    headers: Mapping[str, str] | None = None,
    received_at: datetime | None = None,
) -> ErrorInfo:
    """See `classify`."""
    texts: dict[str, str] = {}
    for name, header in (headers or {}).items():
        text = as_text(header)
        if text is not None:
            texts[str(name).lower()] = text
    value = decode_body(body)
    evidence = read_evidence(status, value, texts, received_at)
    kind = _kind(evidence)
    code = None
    if evidence.codes:
        code = _shown(evidence.codes[0].removeprefix("base_resp."))
    return ErrorInfo(
        kind=kind,
        message=_message(evidence, kind),
        retryable=_is_retryable(kind, texts),
        retry_after=_retry_after(evidence, kind, received_at),
        status=evidence.status,
        code=code,
        detail=_detail(value, evidence.objects),
    )


# ---------------------------------------------------------------- the kind


def _kind(evidence: ErrorEvidence) -> ErrorKind:
    for step in _STEPS:
        kind = step(evidence)
        if kind is not None:
            return kind
    return "server_error"


def _by_quota(evidence: ErrorEvidence) -> ErrorKind | None:
    """By Google's `quotaId`s and by daily windows in the headers.

    Google's message is the same for a limit per minute and for one per day.
    """
    quotas = " ".join(_google_quotas(evidence))
    for period, kind in _QUOTA_PERIODS.items():
        if period in quotas:
            return kind
    if evidence.status == 429:
        for name, window in evidence.limits.windows.items():
            if name.endswith("day") and window.remaining == 0:
                return "quota_exhausted"
    # Gemini without a quotaId: a delay means that the limit is per minute, not per day.
    if "RESOURCE_EXHAUSTED" in evidence.codes:
        for error_object in evidence.objects:
            if "retryDelay" in error_object.value:
                return "rate_limited"
    return None


def _by_overriding_text(evidence: ErrorEvidence) -> ErrorKind | None:
    return _by_rules(OVERRIDING_RULES, evidence)


def _by_code(evidence: ErrorEvidence) -> ErrorKind | None:
    kinds = {CODES.get(plain(code)) for code in evidence.codes}
    for kind in KIND_ORDER:
        if kind in kinds:
            return kind
    return None


def _by_text(evidence: ErrorEvidence) -> ErrorKind | None:
    if evidence.status in STATUSES_OVER_TEXT:
        return None
    return _by_rules(TEXT_RULES, evidence)


def _by_rules(rules: Iterable[TextRule], evidence: ErrorEvidence) -> ErrorKind | None:
    text = evidence.text
    for rule in rules:
        if rule.statuses and evidence.status not in rule.statuses:
            continue
        if any(phrase in text for phrase in rule.unless):
            continue
        if any(phrase in text for phrase in rule.phrases):
            return rule.kind
    return None


def _by_status(evidence: ErrorEvidence) -> ErrorKind | None:
    if evidence.status is None:
        return None
    return _kind_of_status(evidence.status)


def _by_type(evidence: ErrorEvidence) -> ErrorKind | None:
    """By types that repeat a status, for failures inside a stream, which have none."""
    names = [plain(code) for code in evidence.codes]
    for name in names:
        if name in TYPE_STATUSES:
            return _kind_of_status(TYPE_STATUSES[name])
    for name in names:
        if name.startswith(INVALID_PREFIXES):
            return "invalid_request"
    return None


def _kind_of_status(status: int) -> ErrorKind:
    kind = STATUSES.get(status)
    if kind is not None:
        return kind
    if status >= 500:
        return "server_error"
    return "invalid_request"


_STEPS: Final[tuple[Callable[[ErrorEvidence], ErrorKind | None], ...]] = (
    _by_quota,
    _by_overriding_text,
    _by_code,
    _by_text,
    _by_status,
    _by_type,
)


# ---------------------------------------------------------------- message and detail


def _message(evidence: ErrorEvidence, kind: ErrorKind) -> str:
    """The provider's messages, keys masked, at most 2 KiB of UTF-8 with the advice at their end."""
    text = _shown("; ".join(evidence.messages[:_SHOWN_MESSAGES]))
    if not text:
        text = "an error without a message"
        if evidence.status:
            text = f"HTTP {evidence.status} without a message"
    advice = ""
    if kind in {"quota_exhausted", "rate_limited"}:
        advice = _free_tier_advice(evidence)
    # The provider's text is shortened, never the advice.
    room = _MESSAGE_BYTES - len(advice.encode())
    return text.encode()[:room].decode("utf-8", "ignore") + advice


def _shown(text: str) -> str:
    """Valid Unicode without keys."""
    return redact(scrub(text)).encode("utf-8", "replace").decode("utf-8")


def _free_tier_advice(evidence: ErrorEvidence) -> str:
    """Advice where the limit is that of Google's free tier, which the message never names."""
    quotas = _google_quotas(evidence)
    is_free = any("free" in quota for quota in quotas)
    for quota, limit in quotas.items():
        if "perday" not in quota:
            continue
        # Newer quota names do not say `FreeTier`, but no paid tier has so low a limit.
        if "free" in quota or (limit is not None and limit <= FREE_TIER_REQUESTS):
            return " " + FREE_TIER_DAY
    daily_limit = evidence.limits.windows.get("requests-per-day", Window()).limit
    if is_free or (daily_limit and daily_limit <= FREE_TIER_REQUESTS):
        return " " + FREE_TIER
    return ""


def _google_quotas(evidence: ErrorEvidence) -> dict[str, float | None]:
    """Google's violated quotas, `quotaId quotaMetric` in lower case, with their limits."""
    quotas: dict[str, float | None] = {}
    for key, value in evidence.objects:
        if key == "violations":
            quota_id = as_text(value.get("quotaId")) or ""
            metric = as_text(value.get("quotaMetric")) or ""
            name = f"{quota_id} {metric}".lower()
            quotas[name] = parse_number(as_text(value.get("quotaValue")))
    return quotas


def _detail(value: Any, objects: Iterable[ErrorObject]) -> Any:
    """The provider's error object, else everything received; keys masked, size limited."""
    if isinstance(value, str):
        return _shown(value[:_MESSAGE_BYTES]) or None
    for error_object in objects:
        if error_object.key == "error":
            return redact_value(error_object.value)
    return redact_value(value)


# ---------------------------------------------------------------- retry


def _is_retryable(kind: ErrorKind, headers: Mapping[str, str]) -> bool:
    """By kind, unless the server decides it (OpenAI and Anthropic send ``x-should-retry``)."""
    advice = headers.get("x-should-retry", "").strip().lower()
    if advice == "true":
        return True
    if advice == "false":
        return False
    return kind in RETRYABLE


def _retry_after(
    evidence: ErrorEvidence, kind: ErrorKind, received_at: datetime | None
) -> float | None:
    """Seconds that the provider asks to wait, from the headers or from the body.

    The most exact source first. For a quota only its own reset counts: `retryDelay` and "try again
    in" accompany daily limits too, and are wrong there.
    """
    if evidence.limits.retry_after is not None:
        return evidence.limits.retry_after
    if kind == "quota_exhausted":
        return _delay_in_reset_fields(evidence.objects, received_at)
    if kind not in RETRYABLE:
        return None
    delay = _delay_in_fields(evidence.objects)
    if delay is None:
        delay = _delay_in_nested_headers(evidence.objects, received_at)
    if delay is None:
        delay = _delay_in_reset_fields(evidence.objects, received_at)
    if delay is None:
        delay = delay_in_message(evidence.text)
    if delay is None:
        delay = _refill_time(evidence.limits)
    return delay


@cache  # compiled by the first message that is read: few programs meet one
def _delay_in_message() -> re.Pattern[str]:
    units = "|".join(sorted(SECONDS, key=len, reverse=True))
    return re.compile(
        r"(?:try again|retry|retrying|reset|resets|wait)(?: again)?(?: in| after| for)?(?: about)? "
        rf"((?:[0-9]{{1,12}}(?:\.[0-9]{{1,12}})? ?(?:{units})(?![a-zµμ])[ ,]*){{1,6}})"
    )


def delay_in_message(text: str) -> float | None:
    """Seconds to wait that a message names.

    `Please try again in 6m0s.`, `retry in 22.4s`, `retry after 12 seconds`, `wait 3 minutes`.
    """
    match = _delay_in_message().search(text[:_SEARCHED_LENGTH].lower())
    if match is None:
        return None
    return parse_duration(match[1])


def _delay_in_fields(objects: Iterable[ErrorObject]) -> float | None:
    for text in _field_texts(objects, _DELAY_KEYS):
        seconds = parse_duration(text)
        if seconds is not None:
            return seconds
    return None


def _delay_in_reset_fields(
    objects: Iterable[ErrorObject], received_at: datetime | None
) -> float | None:
    for text in _field_texts(objects, _RESET_KEYS):
        moment = parse_moment(text)
        seconds = None
        if moment is None:
            seconds = parse_duration(text)
        elif received_at is not None:
            seconds = seconds_until(moment, received_at)
        if seconds is not None:
            return seconds
    return None


def _delay_in_nested_headers(
    objects: Iterable[ErrorObject], received_at: datetime | None
) -> float | None:
    """From headers inside the body: OpenRouter's ``error.metadata.headers``, a WebSocket frame's
    ``headers``."""
    for error_object in objects:
        headers = error_object.value.get("headers")
        if not isinstance(headers, dict):
            continue
        limits = read_rate_limits(headers, received_at)
        delay = limits.retry_after
        if delay is None:
            delay = _refill_time(limits)
        if delay is not None:
            return delay
    return None


def _field_texts(objects: Iterable[ErrorObject], keys: Iterable[str]) -> Iterator[str]:
    for error_object in objects:
        for key in keys:
            text = as_text(error_object.value.get(key))
            if text:
                yield text


def _refill_time(limits: RateLimits) -> float | None:
    """Seconds until every window that is used up is full again."""
    main_windows = (limits.requests, limits.tokens, limits.input_tokens, limits.output_tokens)
    longest: float | None = None
    for window in (*main_windows, *limits.windows.values()):
        if window is None or window.remaining != 0 or window.reset_after is None:
            continue
        if longest is None or window.reset_after > longest:
            longest = window.reset_after
    return longest
