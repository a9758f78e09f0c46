"""Response headers and statuses, under the names that clients of each wire read.

Status, rate limits and request id have the names of the client's wire; the report and the model are
the gateway's own headers.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.request.report import Change
from streamlib.wires.error_statuses import status_of_kind
from streamlib_parsers.durations import as_utc, later, seconds_until
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import RateLimits, Window
from streamlib_parsers.items import WireApi
from streamlib_parsers.rate_limits import retry_after_header

REPORT: Final = "x-streamlib-report"

MODEL: Final = "x-streamlib-model"
"""Names the model that responded; the body names the one that the client requested."""

WINDOWS: Final = ("requests", "tokens", "input_tokens", "output_tokens")
"""The rate limits that have a header in the wires' own APIs."""


def status_of(wire_api: WireApi, error: ErrorInfo) -> int:
    """The HTTP status of a failure."""
    # The client's own delay, not the provider's.
    if error.kind == "deadline" and error.code == "body":
        return 408
    return status_of_kind(wire_api, error.kind)


def id_header(wire_api: WireApi, request_id: str) -> dict[str, str]:
    """The header with the id of this request."""
    return {WIRE_SPECS[wire_api].request_id_header: request_id}


def report_header(changes: Iterable[Change]) -> dict[str, str]:
    """The number of changes by action: `dropped=2; downgraded=1`. No header without changes."""
    counts = Counter(change.action for change in changes)
    if not counts:
        return {}
    return {REPORT: "; ".join(f"{action}={count}" for action, count in sorted(counts.items()))}


def error_headers(error: ErrorInfo) -> dict[str, str]:
    """`retry-after`, if the error has one."""
    return retry_after_header(error.retry_after)


def limit_headers(wire_api: WireApi, limits: RateLimits | None, now: datetime) -> dict[str, str]:
    """The provider's rate limits as headers of the client's wire.

    Args:
        wire_api: the client's wire: Messages clients read Anthropic's headers, all others OpenAI's.
        limits: what the provider reported.
        now: converts between times of day and seconds from now.
    """
    if limits is None:
        return {}
    add_window = _add_openai
    if WIRE_SPECS[wire_api].rate_limit_headers == "anthropic":
        add_window = _add_anthropic
    headers: dict[str, str] = {}
    # Further windows have names of their provider's own.
    for kind in WINDOWS:
        window: Window | None = getattr(limits, kind)
        if window is not None:
            add_window(headers, kind.replace("_", "-"), window, now)
    return headers | retry_after_header(limits.retry_after)


def _add_anthropic(headers: dict[str, str], kind: str, window: Window, now: datetime) -> None:
    """Wire: `anthropic-ratelimit-{kind}-{limit,remaining,reset}`, the reset as a time of day."""
    prefix = f"anthropic-ratelimit-{kind}"
    _add_number(headers, f"{prefix}-limit", window.limit)
    _add_number(headers, f"{prefix}-remaining", window.remaining)
    reset_at = as_utc(window.reset_at)
    if window.reset_at is None and window.reset_after is not None:
        reset_at = later(now, window.reset_after)
    if reset_at is not None:
        headers[f"{prefix}-reset"] = reset_at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _add_openai(headers: dict[str, str], kind: str, window: Window, now: datetime) -> None:
    """Wire: `x-ratelimit-{limit,remaining,reset}-{kind}`, the reset in seconds from now."""
    _add_number(headers, f"x-ratelimit-limit-{kind}", window.limit)
    _add_number(headers, f"x-ratelimit-remaining-{kind}", window.remaining)
    seconds, reset_at = window.reset_after, as_utc(window.reset_at)
    if seconds is None and reset_at is not None:
        seconds = seconds_until(reset_at, now)
    _add_number(headers, f"x-ratelimit-reset-{kind}", seconds, "s")


def _add_number(headers: dict[str, str], name: str, value: float | None, unit: str = "") -> None:
    """Adds a number without `.0`, since clients read it with `int`; none that is not finite."""
    if value is None or not abs(value) <= sys.float_info.max:
        return
    text = str(round(value, 3)).removesuffix(".0")
    if value == int(value):
        text = str(int(value))
    headers[name] = f"{text}{unit}"
