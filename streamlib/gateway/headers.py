"""What stands in the head of an answer: status, rate limits and request id under the names of the client's wire, and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.report import Change
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import RateLimits, Window
from streamlib_parsers.items import WireApi

STATUS: Final[dict[ErrorKind, int]] = {
    "authentication": 401,
    "permission": 403,
    "rate_limited": 429,
    "quota_exhausted": 429,
    "context_window_exceeded": 400,
    "request_too_large": 413,
    "invalid_request": 400,
    "invalid_history": 400,
    "content_filter": 400,
    "not_found": 404,
    "stalled": 504,
    "deadline": 504,
    "connection": 502,
    "truncated": 502,
    "malformed": 502,
    "limit_exceeded": 502,
}
"""Kinds that are not here are 500. What failed between us and the model is a bad gateway, not the client's fault."""
REPORT: Final = "x-streamlib-report"
MODEL: Final = "x-streamlib-model"
"""The model that answered: the body names the one that the client asked for."""
MAIN: Final = ("requests", "tokens", "input_tokens", "output_tokens")


def status_of(wire_api: WireApi, error: ErrorInfo) -> int:
    """The HTTP status of a failure."""
    if error.kind == "overloaded":
        return WIRE_SPECS[wire_api].overloaded_status
    return STATUS.get(error.kind, 500)


def id_header(wire_api: WireApi, request_id: str) -> dict[str, str]:
    """The header with the id of this request."""
    return {WIRE_SPECS[wire_api].request_id_header: request_id}


def report_header(changes: Iterable[Change]) -> dict[str, str]:
    """`dropped=2; downgraded=1`: how much of the request, or of the answer, the other wire could not say."""
    counts = Counter(change.action for change in changes)
    return (
        {REPORT: "; ".join(f"{action}={count}" for action, count in sorted(counts.items()))}
        if counts
        else {}
    )


def error_headers(error: ErrorInfo) -> dict[str, str]:
    """How long to wait."""
    return {} if error.retry_after is None else {"retry-after": _number(error.retry_after)}


def limit_headers(wire_api: WireApi, limits: RateLimits | None, now: datetime) -> dict[str, str]:
    """What is left upstream, as the client's wire names it: Anthropic's headers for Messages, OpenAI's for every other."""
    if limits is None:
        return {}
    name = _anthropic if WIRE_SPECS[wire_api].rate_limit_headers == "anthropic" else _openai
    windows = ((kind, window) for kind in MAIN if (window := getattr(limits, kind)) is not None)
    made = {
        header: text for kind, window in windows for header, text in name(kind, window, now).items()
    }
    return (
        made if limits.retry_after is None else {**made, "retry-after": _number(limits.retry_after)}
    )


def _anthropic(kind: str, window: Window, now: datetime) -> dict[str, str]:
    head = f"anthropic-ratelimit-{kind.replace('_', '-')}"
    at = _reset_at(window, now)
    reset = {f"{head}-reset": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")} if at else {}
    return {**_counts(window, f"{head}-{{}}"), **reset}


def _openai(kind: str, window: Window, now: datetime) -> dict[str, str]:
    name = kind.replace("_", "-")
    at = _reset_at(window, now)
    seconds = (
        window.reset_after
        if window.reset_after is not None or at is None
        else max(0.0, (at - now).total_seconds())
    )
    reset = (
        {} if seconds is None else {f"x-ratelimit-reset-{name}": f"{_number(round(seconds, 3))}s"}
    )
    return {**_counts(window, f"x-ratelimit-{{}}-{name}"), **reset}


def _counts(window: Window, name: str) -> dict[str, str]:
    counts = {"limit": window.limit, "remaining": window.remaining}
    return {
        name.format(field): _number(count) for field, count in counts.items() if count is not None
    }


def _reset_at(window: Window, now: datetime) -> datetime | None:
    if window.reset_at is not None or window.reset_after is None:
        return window.reset_at
    return datetime.fromtimestamp(now.timestamp() + window.reset_after, UTC)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
