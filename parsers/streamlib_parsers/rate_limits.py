"""Rate limits and delays, from response headers and from frames of the stream.

Providers name their headers differently, so the names are a table: one pattern a family, whose
groups tell the window and the field. The names never collide, so no provider has to be known.

    anthropic-ratelimit-input-tokens-remaining: 4000000   input_tokens.remaining
    anthropic-ratelimit-unified-5h-utilization: 0.25      windows["unified-5h"] = Window(1.0, 0.75)
    x-ratelimit-reset-requests: 6m0s                      requests.reset_after = 360.0
    x-ratelimit-limit-tokens-minute: 75000                windows["tokens-minute"], and `tokens`
    x-codex-primary-used-percent: 12.5                    windows["codex-primary"].remaining = 87.5

Headers that no family knows stay in `raw`. `received_at` is the only clock. Without it an absolute
time gives `reset_at` alone and a relative one `reset_after` alone. A reset in the past means that
the window is full now: `reset_after` is 0.0, never less.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from streamlib_parsers.durations import (
    CENTURY,
    as_text,
    as_utc,
    later,
    parse_duration,
    parse_moment,
    parse_number,
    seconds_until,
)
from streamlib_parsers.events import RateLimits, Window

# ---------------------------------------------------------------- tables


class HeaderFamily(NamedTuple):
    """One way to name headers. The groups `window` and `field` may be missing."""

    pattern: str
    window: str = ""
    """Prefix of the group `window`."""
    field: str = "limit"
    """For a header that names no field."""


_FIELD = "(?P<field>limit|remaining|reset|renewalperiod)"
FAMILIES: Final = (
    HeaderFamily("anthropic-ratelimit-(?P<window>.+)-(?P<field>limit|remaining|reset|utilization)"),
    HeaderFamily(f"anthropic-(?P<window>(?:priority|fast)-.+)-{_FIELD}"),
    HeaderFamily(f"(?:x-)?rate-?limit-{_FIELD}(?:-(?P<window>.+))?"),
    # Anthropic's OpenAI-compatible endpoint: the limits.
    HeaderFamily("x-ratelimit-(?P<window>requests|tokens)"),
    # Mistral until 2025.
    HeaderFamily(f"(?:x-)?ratelimitbysize-{_FIELD}(?:-(?P<window>.+))?", "tokens"),
    HeaderFamily(
        "x-(?P<window>codex-(?:.+-)?(?:primary|secondary))"
        "-(?P<field>used-percent|reset-at|reset-after-seconds)"
    ),
    # Cohere.
    HeaderFamily(
        "x-(?P<window>trial-endpoint-call|endpoint-monthly-call)-(?P<field>limit|remaining)"
    ),
)
USAGE_FRACTIONS: Final = {"utilization": 1.0, "used-percent": 100.0}
"""Fields that carry the used share of a window instead of counts -> the number that means all."""

UNNAMED: Final = "default"
"""The window of `x-ratelimit-limit` and similar headers, which name no unit."""

PERIODS: Final = (
    "",
    "-minute",
    "-per-minute",
    "-1m",
    "-hour",
    "-per-hour",
    "-1h",
    "-day",
    "-per-day",
    "-1d",
)
"""Suffixes of the windows that `requests` and the other main windows are taken from: the shortest
period that a provider reports."""

RELAYED: Final = "llm_provider-"
"""LiteLLM's prefix for the headers of its upstream; its own headers of the same name win."""

AZURE: Final = ("x-ms-", "apim-", "azureml-")
"""Azure's bare `reset` numbers are milliseconds on one host and seconds on the next: not read."""

UNLIMITED: Final = 2.0**62
"""Hugging Face writes an unlimited window as 2^62 or more."""

REQUEST_IDS: Final = (
    "request-id",
    "x-request-id",
    "x-oai-request-id",
    "x-amzn-requestid",
    "apim-request-id",
    "x-goog-request-id",
    "x-inference-request-id",
    "x-ms-request-id",
    "mistral-correlation-id",
    "x-ds-trace-id",
    "x-debug-trace-id",
    "x-generation-id",
    "x-kong-request-id",
    "cf-ray",
)
"""In order of preference: the provider's own before those of proxies in front of it."""

RETRY_HEADERS: Final = (
    "retry-after-ms",
    "retry-after",
    "x-ratelimit-user-retry-after",
    "x-should-retry",
)

_RAW_NAMES: Final = "|".join(map(re.escape, (*RETRY_HEADERS, *REQUEST_IDS)))
_RAW: Final = (
    rf"(?:{RELAYED})?(?:anthropic-(?:ratelimit|priority|fast)-.*|(?:x-)?rate-?limit.*"
    "|x-codex-.*(?:used-percent|window-minutes|reset-at|reset-after-seconds"
    "|limit-name|active-limit|has-credits|unlimited|balance)"
    f"|x-(?:trial-endpoint|endpoint-monthly)-call-.*|{_RAW_NAMES})"
)
"""Names of headers that are passed on in `RateLimits.raw`: all that `FAMILIES` reads, and more."""

_MAIN_WINDOWS: Final = {
    name: tuple(name + period for period in PERIODS)
    for name in ("requests", "tokens", "input-tokens", "output-tokens")
}
"""Name of a main window -> the windows that it is taken from, the first of them that was sent."""

# Limits on hostile input; real responses stay far below all of them.
_MAX_WINDOWS: Final = 256
_MAX_HEADERS: Final = 1024
_NAME_LENGTH: Final = 128  # longer names would be kept in the caches below
_VALUE_LENGTH: Final = 256


@cache  # compiled at its first use: `import streamlib` would take 1 ms longer for all of them
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


# ---------------------------------------------------------------- headers


def read_rate_limits(headers: Mapping[str, str], received_at: datetime | None = None) -> RateLimits:
    """The rate limits that response headers report.

    Args:
        headers: names in any case.
        received_at: when the headers came, aware.
    """
    readable = _readable_headers(headers)
    # First, since a response has a few of these among dozens of other headers.
    limits: dict[str, str] = {}
    for name, text in readable.items():
        if len(name) <= _NAME_LENGTH and _is_limit(name):
            limits[name] = text
    if not limits:
        return RateLimits()
    clock = as_utc(received_at)
    is_azure = any(name.removeprefix(RELAYED).startswith(AZURE) for name in readable)
    windows: dict[str, Window] = {}
    for name, fields in _fields_by_window(limits).items():
        window = _window(fields, clock, bare_is_seconds=not is_azure)
        _add_known(windows, name, window)
    raw = {name: text[:_VALUE_LENGTH] for name, text in limits.items()}
    return _limits(windows, _delay(limits, clock), _request_id(limits), raw)


@lru_cache(maxsize=256)  # every response has the same few dozen names
def _is_limit(header: str) -> bool:
    return _compiled(_RAW).fullmatch(header) is not None


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds the provider asks to wait, as received and without a cap; None where it names none.

    ``retry-after-ms`` comes first unless it is not positive (Azure sends 0 beside a correct
    ``retry-after``); then seconds; then a date in any of the three HTTP forms, which needs `now`.
    A success may carry the header too: act on it only when the status is an error.
    """
    return _delay(_readable_headers(headers), as_utc(now))


def retry_after_header(seconds: float | None) -> dict[str, str]:
    """The header for a delay; no header if the delay is unknown or endless.

    It is rounded up: HTTP has whole seconds only, and with fewer a client would come too early.
    """
    # A comparison, since `isfinite` fails at integers that are no float.
    if seconds is None or not abs(seconds) <= sys.float_info.max:
        return {}
    return {"retry-after": str(max(0, math.ceil(seconds)))}


def _delay(readable: Mapping[str, str], clock: datetime | None) -> float | None:
    milliseconds = parse_number(readable.get("retry-after-ms"))
    if milliseconds:
        return min(milliseconds / 1000, CENTURY)
    for name in ("retry-after", "x-ratelimit-user-retry-after"):
        text = readable.get(name)
        seconds = parse_duration(text)
        if seconds is not None:
            return seconds
        moment = parse_moment(text)
        if moment is not None and clock is not None:
            return seconds_until(moment, clock)
    return None


def _readable_headers(headers: Mapping[str, Any]) -> dict[str, str]:
    """The headers with text values, names lower-case; relayed ones first, so that a proxy's own
    replace them."""
    relayed: dict[str, str] = {}
    own: dict[str, str] = {}
    count = 0
    for name, value in headers.items():
        text = as_text(value)
        if text is None:
            continue
        if count == _MAX_HEADERS:
            break
        count += 1
        lowered = str(name).lower()
        if lowered.startswith(RELAYED):
            relayed[lowered] = text
        else:
            own[lowered] = text
    return relayed | own


def _fields_by_window(headers: Mapping[str, str]) -> dict[str, dict[str, str]]:
    fields: dict[str, dict[str, str]] = {}
    for name, text in headers.items():
        names = _window_and_field(name.removeprefix(RELAYED))
        if names is None:
            continue
        window, field = names
        if window in fields or len(fields) < _MAX_WINDOWS:
            fields.setdefault(window, {})[field] = text
    return fields


@lru_cache(maxsize=256)  # every response has the same few dozen names
def _window_and_field(header: str) -> tuple[str, str] | None:
    for family in FAMILIES:
        match = _compiled(family.pattern).fullmatch(header)
        if match is None:
            continue
        groups = match.groupdict()
        names = [name for name in (family.window, groups.get("window")) if name]
        window = "-".join(names) or UNNAMED
        # Mistral abbreviates: x-ratelimit-limit-req-minute.
        window = re.sub("^req(?=-|$)", "requests", window)
        return window, groups.get("field") or family.field
    return None


def _request_id(headers: Mapping[str, str]) -> str | None:
    for prefix in ("", RELAYED):
        for name in REQUEST_IDS:
            value = headers.get(prefix + name)
            if value:
                return value[:_VALUE_LENGTH]
    return None


# ---------------------------------------------------------------- windows


def _limits(
    windows: dict[str, Window], delay: float | None, request_id: str | None, raw: dict[str, str]
) -> RateLimits:
    return RateLimits(
        requests=_main_window(windows, "requests") or windows.get(UNNAMED),
        tokens=_main_window(windows, "tokens"),
        input_tokens=_main_window(windows, "input-tokens"),
        output_tokens=_main_window(windows, "output-tokens"),
        windows={name: window for name, window in windows.items() if name not in _MAIN_WINDOWS},
        retry_after=delay,
        request_id=request_id,
        raw=raw,
    )


def _main_window(windows: Mapping[str, Window], name: str) -> Window | None:
    for sent in _MAIN_WINDOWS[name]:
        if sent in windows:
            return windows[sent]
    return None


def _add_known(windows: dict[str, Window], name: str, window: Window) -> None:
    """Adds a window unless nothing is known of it."""
    if window != Window():
        windows[name] = window


def _window(
    fields: Mapping[str, str], clock: datetime | None, *, bare_is_seconds: bool = True
) -> Window:
    limit, remaining = _amounts(fields)
    refill = _refill_time(limit, remaining, parse_number(fields.get("renewalperiod")))
    if refill is not None:
        return Window(limit, remaining, later(clock, refill), refill)
    reset_at, reset_after = _reset(fields, clock, bare_is_seconds=bare_is_seconds)
    return Window(limit, remaining, reset_at, reset_after)


def _amounts(fields: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Limit and remaining; for a used share, of a limit of 1.0 (fraction) or 100.0 (percent)."""
    for field, limit in USAGE_FRACTIONS.items():
        used = parse_number(fields.get(field))
        if used is not None:
            return limit, max(0.0, limit - used)
    return _amount(fields.get("limit")), _amount(fields.get("remaining"))


def _amount(text: str | None) -> float | None:
    """A count: `100;w=60` is 100. None where it is unlimited or negative."""
    if not text:
        return None
    # Some servers append the period or further windows: "100;w=60", "100, 100;w=60".
    value = parse_number(text.partition(",")[0].partition(";")[0])
    if value is None or value >= UNLIMITED:
        return None
    return value


def _refill_time(
    limit: float | None, remaining: float | None, period: float | None
) -> float | None:
    """Seconds until Azure's window is full, which refills steadily over `period` seconds."""
    if not limit or remaining is None or period is None:
        return None
    return min(max(0.0, (limit - remaining) / limit * period), CENTURY)


def _reset(
    fields: Mapping[str, str], clock: datetime | None, *, bare_is_seconds: bool
) -> tuple[datetime | None, float | None]:
    """`reset_at` and `reset_after`, from whichever of the two was sent."""
    text = fields.get("reset") or fields.get("reset-at")
    moment = parse_moment(text)
    after = parse_duration(fields.get("reset-after-seconds"))
    if moment is not None:
        if clock is not None:
            after = seconds_until(moment, clock)
        return moment, after
    is_bare = parse_number(text) is not None
    if after is None and "renewalperiod" not in fields and (bare_is_seconds or not is_bare):
        after = parse_duration(text)
    if after is None:
        return None, None
    return later(clock, after), after


# ---------------------------------------------------------------- inside the stream


def read_in_band(
    event: Mapping[str, Any], received_at: datetime | None = None
) -> RateLimits | None:
    """Limits that a frame or an error body carries; None where it carries none.

    Codex's ``codex.rate_limits`` event; headers inside an error (OpenRouter's
    ``error.metadata.headers``, a WebSocket's ``headers``); Google's ``QuotaFailure`` (a window for
    each quota that is used up, by its ``quotaId``) and ``RetryInfo``.
    """
    clock = as_utc(received_at)
    error = _mapping(event.get("error")) or event
    for holder in (event, error, _mapping(error.get("metadata"))):
        headers = _mapping(holder.get("headers"))
        if headers:
            limits = read_rate_limits(headers, clock)
            if limits.raw:
                return limits
            return None
    windows: dict[str, Window] = {}
    for name, window in _codex_windows(event, clock).items():
        _add_known(windows, name, window)
    delay: float | None = None
    for detail in _list(error.get("details")):
        if not isinstance(detail, dict):
            continue
        windows.update(_violated_quotas(detail))
        if delay is None:
            delay = parse_duration(as_text(detail.get("retryDelay")))
    if not windows and delay is None:
        return None
    return _limits(windows, delay, None, {})


def _codex_windows(event: Mapping[str, Any], clock: datetime | None) -> dict[str, Window]:
    if event.get("type") != "codex.rate_limits":
        return {}
    limit_name = event.get("metered_limit_name") or event.get("limit_name")
    groups: list[tuple[Any, Any]] = [
        (limit_name, event.get("rate_limits")),
        ("code-review", event.get("code_review_rate_limits")),
        *_named_groups(event.get("additional_rate_limits")),
    ]
    windows: dict[str, Window] = {}
    for name, group in groups:
        if not isinstance(group, dict):
            continue
        for part in ("primary", "secondary"):
            fields = _codex_fields(group.get(part))
            windows[f"{_codex_name(name)}-{part}"] = _window(fields, clock)
    return windows


def _codex_name(limit: Any) -> str:
    if not isinstance(limit, str) or limit in ("", "codex"):
        return "codex"
    return f"codex-{limit[:64]}"


def _codex_fields(window: Any) -> dict[str, str]:
    """`used_percent`, `reset_at` and `reset_after_seconds` under the names of the headers."""
    fields: dict[str, str] = {}
    for key, value in _mapping(window).items():
        text = as_text(value)
        if text is not None:
            fields[key.replace("_", "-")] = text
    return fields


def _named_groups(additional: Any) -> Iterable[tuple[Any, Any]]:
    """Further groups of Codex's windows: an object by name, or a list with names inside."""
    if isinstance(additional, dict):
        return list(additional.items())[:_MAX_WINDOWS]
    groups: list[tuple[Any, Any]] = []
    for entry in _list(additional):
        if isinstance(entry, dict):
            groups.append((entry.get("limit_name"), entry.get("rate_limits") or entry))
    return groups


def _violated_quotas(detail: Mapping[str, Any]) -> dict[str, Window]:
    """Google's ``details[].violations[]``: a window for each quota that is used up."""
    windows: dict[str, Window] = {}
    for violation in _list(detail.get("violations")):
        if not isinstance(violation, dict):
            continue
        name = as_text(violation.get("quotaId"))
        if name:
            limit = _amount(as_text(violation.get("quotaValue")))
            windows[name[:_NAME_LENGTH]] = Window(limit, 0.0)
    return windows


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    return {}


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value[:_MAX_WINDOWS]
    return []
