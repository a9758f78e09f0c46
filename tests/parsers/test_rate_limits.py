"""Rate limits and delays of every provider's headers and frames, relative to a given clock."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.classification import classify
from streamlib_parsers.durations import CENTURY, as_text, parse_duration, parse_moment, parse_number
from streamlib_parsers.error_kinds import delay_in_message
from streamlib_parsers.events import RateLimits, Window
from streamlib_parsers.rate_limits import (
    read_in_band,
    read_rate_limits,
    retry_after,
    retry_after_header,
)
from tests.support.cases import each_case
from tests.support.shared import CORPUS, each_vector, require, vectors

NOW = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)
AFTER_A_MINUTE = NOW + timedelta(seconds=60)
CAP = 120


def every_window(limits: RateLimits) -> list[Window]:
    mains = (limits.requests, limits.tokens, limits.input_tokens, limits.output_tokens)
    return [window for window in (*mains, *limits.windows.values()) if window is not None]


# ---------------------------------------------------------------- retry-after


def seconds_of(vector: dict[str, Any], now: datetime) -> float | None:
    """The delay of a vector: from headers, from a snapshot, or from an error message."""
    if "body_message" in vector:
        return classify(429, {"error": {"message": vector["body_message"]}}).retry_after
    if "snapshot_s" in vector:
        [window] = every_window(read_rate_limits(vector["h"], now))
        return window.reset_after
    return retry_after(vector["h"], now)


@each_vector("retry_after_vectors")
def test_retry_after_vectors(vector: dict[str, Any]) -> None:
    if "retry" in vector:
        statuses = (400, 429, 503)
        assert {classify(status, "", vector["h"]).retryable for status in statuses} == {
            vector["retry"]
        }
        return
    seconds = seconds_of(vector, parsedate_to_datetime(vectors("retry_after_vectors")["now"]))
    wanted = vector.get("snapshot_s", vector.get("s"))
    if wanted == "cap":
        assert seconds is not None
        assert math.isfinite(seconds)
        assert seconds > CAP
    else:
        assert seconds == (pytest.approx(wanted) if wanted is not None else None)


def test_header_names_are_case_insensitive() -> None:
    assert retry_after({"Retry-After": "3"}) == 3
    assert read_rate_limits({"X-RateLimit-Limit-Requests": "5"}).requests == Window(5.0)


def test_retry_after_date_needs_a_clock() -> None:
    assert retry_after({"retry-after": "Sat, 21 Nov 2026 20:00:30 GMT"}) is None


def test_retry_after_ignores_zero_milliseconds_of_azure() -> None:
    assert retry_after({"retry-after-ms": "0", "retry-after": "1"}) == 1


def test_retry_after_prefers_milliseconds_up_to_a_century() -> None:
    assert retry_after({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5
    assert retry_after({"retry-after-ms": "9e99"}) == CENTURY


def test_retry_after_reads_githubs_header_last() -> None:
    assert retry_after({"x-ratelimit-user-retry-after": "9"}) == 9
    assert retry_after({"x-ratelimit-user-retry-after": "9", "retry-after": "2"}) == 2


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1)).map(  # noqa: DTZ001
        lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
    )
)
def test_parse_moment_reads_every_http_date_form(moment: datetime) -> None:
    assert parse_moment(format_datetime(moment, usegmt=True)) == moment
    assert parse_moment(moment.strftime("%a %b %d %H:%M:%S %Y")) == moment
    assert parse_moment(moment.isoformat()) == moment
    if moment.year < 2070:
        assert parse_moment(moment.strftime("%A, %d-%b-%y %H:%M:%S GMT")) == moment


# ---------------------------------------------------------------- durations and numbers

DURATIONS = [
    ("7", 7),
    ("0.5", 0.5),
    (" 7 ", 7),
    ("0s", 0),
    ("17ms", 0.017),
    ("6m0s", 360),
    ("2m59.56s", 179.56),
    ("1h2m3.5s", 3723.5),
    ("1d2h", 93_600),
    ("34s", 34),
    ("1.5µs", 1.5e-6),
    ("1.5μs", 1.5e-6),
    ("250us", 250e-6),
    ("80ns", 80e-9),
    ("35 seconds", 35),
    ("1 minute 30 seconds", 90),
    ("2 hours, 5 min", 7500),
    ("PT1M30S", 90),
    ("P1DT2H", 93_600),
    ("1e3", 1000),
    ("1e999", CENTURY),
    ("", None),
    ("s", None),
    ("-5", None),
    ("-1s", None),
    ("5 parsecs", None),
    ("1s later", None),
    ("1.2.3s", None),
    ("1_0", None),
    ("٣", None),  # an Arabic-Indic digit, which int() would take
    ("nan", None),
    ("1" * 500, None),
]


@each_case("text, seconds", DURATIONS)
def test_parse_duration(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == (pytest.approx(seconds) if seconds is not None else None)


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59_999))
def test_parse_duration_adds_the_parts_of_a_go_duration(
    days: int, hours: int, minutes: int, milliseconds: int
) -> None:
    text = f"{days}d{hours}h{minutes}m{milliseconds / 1000}s"
    assert parse_duration(text) == pytest.approx(
        days * 86_400 + hours * 3600 + minutes * 60 + milliseconds / 1000
    )


MOMENTS = [
    ("1795291260", "2026-11-21T20:01:00+00:00"),
    ("1795291260000", "2026-11-21T20:01:00+00:00"),
    ("2026-11-21T20:01:00Z", "2026-11-21T20:01:00+00:00"),
    ("2026-11-21T20:01:00.123456789Z", "2026-11-21T20:01:00.123456+00:00"),
    ("2026-11-21T21:01:00+01:00", "2026-11-21T20:01:00+00:00"),
    ("2026-11-21T20:01:00", "2026-11-21T20:01:00+00:00"),
    ("60", None),
    ("1000000000", None),
    ("1000000001", "2001-09-09T01:46:41+00:00"),
    ("1000000000001", "2001-09-09T01:46:40.001+00:00"),
    ("soon", None),
    ("2026-13-41T00:00:00Z", None),
    ("0001-01-01T00:00:00+14:00", None),
    ("9" * 30, None),
    ("Sat, 31 Feb 2026 20:00:30 GMT", None),
    ("Sat, 21 Foo 2026 20:00:30 GMT", None),
]


@each_case("text, moment", MOMENTS)
def test_parse_moment_separates_times_from_durations(text: str, moment: str | None) -> None:
    assert parse_moment(text) == (datetime.fromisoformat(moment) if moment else None)


DELAY_MESSAGES = [
    ("Please try again in 6m0s. Visit …", 360),
    ("Please try again in 28ms.", 0.028),
    ("Please retry in 22.4s.", 22.4),
    ("Please retry after 12 seconds.", 12),
    ("Try again in 35 seconds", 35),
    ("try again in about 2 hours and some", 7200),
    ("Limit resets in 1h30m", 5400),
    ("please wait 3 minutes", 180),
    ("try again later", None),
    ("retry with 3 examples", None),
    ("try again in 5 steps", None),
    ("", None),
]


@each_case("text, seconds", DELAY_MESSAGES)
def test_delay_in_message(text: str, seconds: float | None) -> None:
    assert delay_in_message(text) == (pytest.approx(seconds) if seconds is not None else None)


# ---------------------------------------------------------------- families

FAMILIES: list[tuple[str, dict[str, str], dict[str, Window]]] = [
    (
        "anthropic",
        {
            "anthropic-ratelimit-requests-limit": "1000",
            "anthropic-ratelimit-requests-remaining": "999",
            "anthropic-ratelimit-requests-reset": "2026-11-21T20:01:00Z",
            "anthropic-ratelimit-tokens-limit": "96000",
            "anthropic-ratelimit-input-tokens-remaining": "80000",
            "anthropic-ratelimit-output-tokens-limit": "16000",
        },
        {
            "requests": Window(1000, 999, AFTER_A_MINUTE, 60),
            "tokens": Window(96_000),
            "input_tokens": Window(None, 80_000),
            "output_tokens": Window(16_000),
        },
    ),
    (
        "anthropic subscription: unix seconds and shares",
        {
            "anthropic-ratelimit-unified-status": "allowed_warning",
            "anthropic-ratelimit-unified-reset": "1795291260",
            "anthropic-ratelimit-unified-5h-status": "allowed",
            "anthropic-ratelimit-unified-5h-reset": "1795291260",
            "anthropic-ratelimit-unified-5h-utilization": "0.25",
            "anthropic-ratelimit-unified-7d_oi-utilization": "1.5",
            "anthropic-ratelimit-unified-fallback-percentage": "0.5",
        },
        {
            "unified": Window(None, None, AFTER_A_MINUTE, 60),
            "unified-5h": Window(1, 0.75, AFTER_A_MINUTE, 60),
            "unified-7d_oi": Window(1, 0),
        },
    ),
    (
        "anthropic priority and fast",
        {
            "anthropic-priority-input-tokens-limit": "10",
            "anthropic-fast-output-tokens-remaining": "7",
        },
        {"priority-input-tokens": Window(10), "fast-output-tokens": Window(None, 7)},
    ),
    (
        "openai",
        {
            "x-ratelimit-limit-requests": "10000",
            "x-ratelimit-remaining-requests": "9999",
            "x-ratelimit-reset-requests": "60s",
            "x-ratelimit-limit-project-tokens": "500",
            "x-ratelimit-reset-project-tokens": "1m0s",
            "x-ratelimit-limit-input-images": "50000",
            "x-ratelimit-remaining-tokens_usage_based": "249979",
        },
        {
            "requests": Window(10_000, 9999, AFTER_A_MINUTE, 60),
            "project-tokens": Window(500, None, AFTER_A_MINUTE, 60),
            "input-images": Window(50_000),
            "tokens_usage_based": Window(None, 249_979),
        },
    ),
    (
        "azure: a bucket that refills over a period",
        {
            "x-ratelimit-limit-requests": "120",
            "x-ratelimit-remaining-requests": "60",
            "x-ratelimit-reset-requests": "500",
            "x-ratelimit-renewalperiod-requests": "120",
        },
        {"requests": Window(120, 60, AFTER_A_MINUTE, 60)},
    ),
    (
        "azure without a period: a bare number is not to be read",
        {
            "apim-request-id": "1",
            "x-ratelimit-remaining-requests": "119",
            "x-ratelimit-reset-requests": "500",
        },
        {"requests": Window(None, 119)},
    ),
    (
        "azure with a unit",
        {"apim-request-id": "1", "x-ratelimit-reset-requests": "60s"},
        {"requests": Window(None, None, AFTER_A_MINUTE, 60)},
    ),
    (
        "together: remaining above the limit, seconds",
        {
            "x-ratelimit": "false",
            "x-ratelimit-limit": "10",
            "x-ratelimit-remaining": "19",
            "x-ratelimit-reset": "60",
            "x-ratelimit-limit-tokens": "3000",
        },
        {
            "requests": Window(10, 19, AFTER_A_MINUTE, 60),
            "default": Window(10, 19, AFTER_A_MINUTE, 60),
            "tokens": Window(3000),
        },
    ),
    (
        "openrouter: milliseconds since 1970",
        {
            "X-RateLimit-Limit": "20",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": "1795291260000",
        },
        {
            "requests": Window(20, 0, AFTER_A_MINUTE, 60),
            "default": Window(20, 0, AFTER_A_MINUTE, 60),
        },
    ),
    (
        "a router's own window does not replace its upstream's",
        {"x-ratelimit-limit": "100", "x-ratelimit-limit-requests": "5000"},
        {"requests": Window(5000), "default": Window(100)},
    ),
    (
        "mistral",
        {
            "x-ratelimit-limit-req-minute": "5",
            "x-ratelimit-remaining-tokens-minute": "74932",
            "x-ratelimit-tokens-query-cost": "68",
        },
        {
            "requests": Window(5),
            "tokens": Window(None, 74_932),
            "requests-minute": Window(5),
            "tokens-minute": Window(None, 74_932),
        },
    ),
    (
        "mistral until 2025",
        {
            "ratelimitbysize-limit": "500000",
            "ratelimitbysize-reset": "60",
            "x-ratelimitbysize-remaining-month": "997342940",
        },
        {
            "tokens": Window(500_000, None, AFTER_A_MINUTE, 60),
            "tokens-month": Window(None, 997_342_940),
        },
    ),
    (
        "cerebras",
        {"x-ratelimit-limit-requests-day": "14400", "x-ratelimit-reset-tokens-minute": "60.0"},
        {
            "requests": Window(14_400),
            "tokens": Window(None, None, AFTER_A_MINUTE, 60),
            "requests-day": Window(14_400),
            "tokens-minute": Window(None, None, AFTER_A_MINUTE, 60),
        },
    ),
    (
        "hugging face: 2^63 and more is unlimited",
        {
            "x-ratelimit-remaining-requests-minute": "1998",
            "x-ratelimit-remaining-requests-day": "2879998",
            "x-ratelimit-remaining-tokens-day": str(2**62),
        },
        {
            "requests": Window(None, 1998),
            "requests-minute": Window(None, 1998),
            "requests-day": Window(None, 2_879_998),
        },
    ),
    (
        "nous: two windows of each",
        {
            "x-ratelimit-limit-tokens": "10",
            "x-ratelimit-limit-tokens-1h": "100",
            "x-ratelimit-reset-tokens-1h": "60.0",
        },
        {"tokens": Window(10), "tokens-1h": Window(100, None, AFTER_A_MINUTE, 60)},
    ),
    (
        "digitalocean: unix seconds",
        {
            "x-ratelimit-limit-tokens-per-minute": "9",
            "x-ratelimit-limit-tokens-per-day": "99",
            "x-ratelimit-reset-requests": "1795291260",
        },
        {
            "requests": Window(None, None, AFTER_A_MINUTE, 60),
            "tokens": Window(9),
            "tokens-per-minute": Window(9),
            "tokens-per-day": Window(99),
        },
    ),
    (
        "litellm: what it relays fills what it does not say itself",
        {
            "x-ratelimit-limit-requests": "15000",
            "llm_provider-x-ratelimit-limit-requests": "1",
            "llm_provider-x-ratelimit-reset-requests": "1m0s",
        },
        {"requests": Window(15_000, None, AFTER_A_MINUTE, 60)},
    ),
    (
        "the openai-shaped endpoint of anthropic",
        {"x-ratelimit-requests": "4000", "x-ratelimit-tokens": "5"},
        {"requests": Window(4000), "tokens": Window(5)},
    ),
    (
        "cohere",
        {
            "x-trial-endpoint-call-limit": "20",
            "x-trial-endpoint-call-remaining": "19",
            "x-endpoint-monthly-call-limit": "1000",
        },
        {"trial-endpoint-call": Window(20, 19), "endpoint-monthly-call": Window(1000)},
    ),
    (
        "codex: percent used, further limits by name",
        {
            "x-codex-primary-used-percent": "12.5",
            "x-codex-primary-window-minutes": "300",
            "x-codex-primary-reset-at": "1795291260",
            "x-codex-secondary-used-percent": "120",
            "x-codex-spark-primary-used-percent": "1",
            "x-codex-spark-primary-reset-after-seconds": "60",
        },
        {
            "codex-primary": Window(100, 87.5, AFTER_A_MINUTE, 60),
            "codex-secondary": Window(100, 0),
            "codex-spark-primary": Window(100, 99, AFTER_A_MINUTE, 60),
        },
    ),
    (
        "the draft of the IETF",
        {"ratelimit-limit": "100;w=60", "ratelimit-remaining": "50", "ratelimit-reset": "60"},
        {
            "requests": Window(100, 50, AFTER_A_MINUTE, 60),
            "default": Window(100, 50, AFTER_A_MINUTE, 60),
        },
    ),
    ("nothing", {"content-type": "text/event-stream"}, {}),
    (
        "placeholders of a cassette",
        {"x-ratelimit-limit-requests": "X-RATELIMIT-LIMIT-REQUESTS-XXX"},
        {},
    ),
    ("a negative number is unknown", {"x-ratelimit-remaining-requests": "-1"}, {}),
]


def windows_by_name(limits: RateLimits) -> dict[str, Window]:
    mains = {
        "requests": limits.requests,
        "tokens": limits.tokens,
        "input_tokens": limits.input_tokens,
        "output_tokens": limits.output_tokens,
    }
    return {**{name: window for name, window in mains.items() if window}, **limits.windows}


@each_case("headers, windows", [case[1:] for case in FAMILIES])
def test_read_rate_limits_knows_every_family(
    headers: dict[str, str], windows: dict[str, Window]
) -> None:
    assert windows_by_name(read_rate_limits(headers, NOW)) == windows


@each_case("headers, windows", [case[1:] for case in FAMILIES])
def test_read_rate_limits_without_a_clock(
    headers: dict[str, str], windows: dict[str, Window]
) -> None:
    for name, window in windows_by_name(read_rate_limits(headers)).items():
        wanted = windows[name]
        assert (window.limit, window.remaining) == (wanted.limit, wanted.remaining)
        assert (window.reset_at, window.reset_after) in {
            (None, None),
            (wanted.reset_at, None),
            (None, wanted.reset_after),
        }
        assert (window.reset_at or window.reset_after) is not None or wanted.reset_after is None


def test_reset_after_is_zero_when_the_reset_has_passed() -> None:
    headers = {"anthropic-ratelimit-tokens-reset": "2026-11-21T19:59:59Z"}
    assert read_rate_limits(headers, NOW).tokens == Window(
        None, None, NOW - timedelta(seconds=1), 0.0
    )


def test_read_rate_limits_accepts_a_clock_of_any_zone() -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-8)))
    headers = {"x-ratelimit-reset-requests": "60"}
    window = read_rate_limits(headers, elsewhere).requests
    assert window is not None
    assert window.reset_at == AFTER_A_MINUTE
    assert window.reset_at.tzinfo is UTC


def test_raw_has_limits_and_ids_but_no_secrets() -> None:
    limits = read_rate_limits(
        {
            "X-RateLimit-Limit-Requests": "5",
            "x-codex-primary-window-minutes": "300",
            "anthropic-ratelimit-unified-status": "allowed",
            "Retry-After": "2",
            "x-should-retry": "true",
            "request-id": "req_1",
            "authorization": "Bearer canary",
            "x-api-key": "canary",
            "set-cookie": "canary",
            "x-codex-turn-state": "canary",
            "content-type": "text/event-stream",
        }
    )
    assert limits.retry_after == 2
    assert limits.request_id == "req_1"
    assert limits.raw == {
        "x-ratelimit-limit-requests": "5",
        "x-codex-primary-window-minutes": "300",
        "anthropic-ratelimit-unified-status": "allowed",
        "retry-after": "2",
        "x-should-retry": "true",
        "request-id": "req_1",
    }


REQUEST_IDS = [
    "request-id",
    "x-request-id",
    "x-oai-request-id",
    "x-amzn-requestid",
    "apim-request-id",
    "x-goog-request-id",
    "cf-ray",
]


@pytest.mark.parametrize("name", REQUEST_IDS)
def test_request_id_is_read_under_every_name(name: str) -> None:
    assert read_rate_limits({name: "r1"}).request_id == "r1"
    assert read_rate_limits({"llm_provider-" + name: "r1"}).request_id == "r1"


def test_request_id_prefers_the_providers_own() -> None:
    assert read_rate_limits({"cf-ray": "edge", "x-request-id": "own"}).request_id == "own"


# ---------------------------------------------------------------- recordings


def recorded_headers() -> list[tuple[str, dict[str, str]]]:
    """Every set of response headers in the corpus that has a limit with a number.

    Cassettes with placeholders instead of numbers are excluded.
    """
    sets = []
    for path in sorted(require(CORPUS / "data").glob("*/*.meta.json")):
        headers = dict(json.loads(path.read_bytes()).get("response_headers") or [])
        if any(is_limit(*header) for header in headers.items()):
            sets.append((path.name, headers))
    return sets


def is_limit(name: str, value: str) -> bool:
    names = ("ratelimit-", "ratelimitbysize-", "call-limit")
    return any(part in name.lower() for part in names) and value[:1].isdigit()


def test_every_recorded_header_set_gives_a_window() -> None:
    sets = recorded_headers()
    assert len(sets) >= 240
    unread = [name for name, headers in sets if not every_window(read_rate_limits(headers, NOW))]
    assert not unread


def test_every_recorded_limit_header_is_in_raw() -> None:
    for name, headers in recorded_headers():
        raw = read_rate_limits(headers, NOW).raw
        sent = {header.lower() for header in headers if "ratelimit" in header.lower()}
        assert sent <= raw.keys(), name


# ---------------------------------------------------------------- inside the stream


def test_read_in_band_codex_event_equals_its_headers() -> None:
    event = {
        "type": "codex.rate_limits",
        "plan_type": "pro",
        "rate_limits": {
            "allowed": True,
            "primary": {
                "used_percent": 7,
                "window_minutes": 300,
                "reset_after_seconds": 13168,
                "reset_at": 1795291260,
            },
            "secondary": {"used_percent": 29.5, "window_minutes": 10080, "reset_after_seconds": 60},
        },
        "code_review_rate_limits": {"primary": {"used_percent": 100}},
        "additional_rate_limits": [
            {"limit_name": "spark", "rate_limits": {"primary": {"used_percent": 0}}}
        ],
    }
    limits = read_in_band(event, NOW)
    assert limits is not None
    assert limits.windows == {
        "codex-primary": Window(100, 93, AFTER_A_MINUTE, 60),
        "codex-secondary": Window(100, 70.5, AFTER_A_MINUTE, 60),
        "codex-code-review-primary": Window(100, 0),
        "codex-spark-primary": Window(100, 100),
    }


def test_read_in_band_codex_limits_by_name() -> None:
    event = {
        "type": "codex.rate_limits",
        "limit_name": "plus",
        "rate_limits": {"primary": {"used_percent": 2}},
        "additional_rate_limits": {"spark": {"primary": {"used_percent": 1}}},
    }
    limits = read_in_band(event)
    assert limits is not None
    assert limits.windows == {
        "codex-plus-primary": Window(100, 98),
        "codex-spark-primary": Window(100, 99),
    }


def test_read_in_band_codex_times_without_a_clock() -> None:
    event = {
        "type": "codex.rate_limits",
        "rate_limits": {"primary": {"reset_after_seconds": 60, "reset_at": 1795291260}},
    }
    limits = read_in_band(event)
    assert limits is not None
    assert limits.windows == {"codex-primary": Window(None, None, AFTER_A_MINUTE, 60)}


def test_read_in_band_headers_of_an_openrouter_error() -> None:
    headers = {
        "X-RateLimit-Limit": 20,
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": 1795291260000,
    }
    limits = read_in_band(
        {
            "error": {
                "message": "Rate limit exceeded",
                "code": 429,
                "metadata": {"headers": headers},
            }
        },
        NOW,
    )
    assert limits is not None
    assert limits.requests == Window(20, 0, AFTER_A_MINUTE, 60)


def test_read_in_band_headers_of_a_websocket_error() -> None:
    event = {
        "type": "error",
        "status": 429,
        "error": {"type": "usage_limit_reached"},
        "headers": {"x-codex-primary-used-percent": "100"},
    }
    limits = read_in_band(event)
    assert limits is not None
    assert limits.windows == {"codex-primary": Window(100, 0)}


def test_read_in_band_google_quota_and_delay() -> None:
    details = [
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "PerDay-FreeTier", "quotaValue": "50"}],
        },
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "22.5s"},
    ]
    limits = read_in_band({"error": {"code": 429, "details": details}})
    assert limits is not None
    assert limits.windows == {"PerDay-FreeTier": Window(50, 0)}
    assert limits.retry_after == 22.5


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "response.created"},
        {"type": "codex.rate_limits", "rate_limits": {"allowed": True}},
        {"error": {"message": "no"}},
        {"headers": {"content-type": "x", "authorization": "Bearer canary"}},
    ],
)
def test_read_in_band_is_none_without_limits(event: dict[str, Any]) -> None:
    assert read_in_band(event) is None


# ---------------------------------------------------------------- hostile input

KNOWN_NAMES = sorted(
    {name for _, headers, _ in FAMILIES for name in headers}
    | {"retry-after", "retry-after-ms", "x-codex-" + "a-" * 60 + "primary-reset-at"}
)
VALUES = st.text(max_size=40) | st.from_regex(
    r"[0-9]{1,25}[a-z.:,T+-]{0,3}[0-9]{0,5}[hmsZ]?", fullmatch=True
)
HEADERS = st.dictionaries(st.sampled_from(KNOWN_NAMES) | st.text(max_size=30), VALUES, max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=12) | st.sampled_from(["error", "headers", "details", "metadata"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
CLOCKS = st.none() | st.datetimes(timezones=st.just(UTC))


def is_sound(window: Window) -> bool:
    numbers = [
        number
        for number in (window.limit, window.remaining, window.reset_after)
        if number is not None
    ]
    return all(math.isfinite(number) and number >= 0 for number in numbers) and (
        window.reset_at is None or window.reset_at.tzinfo is UTC
    )


@given(HEADERS, CLOCKS)
def test_read_rate_limits_of_random_headers(
    headers: dict[str, str], clock: datetime | None
) -> None:
    limits = read_rate_limits(headers, clock)
    assert all(is_sound(window) for window in every_window(limits))
    assert limits.retry_after is None or 0 <= limits.retry_after <= CENTURY or clock is not None


@given(
    st.dictionaries(st.text(max_size=12), JSON, max_size=5)
    | st.fixed_dictionaries({"type": st.just("codex.rate_limits"), "rate_limits": JSON}),
    CLOCKS,
)
def test_read_in_band_of_random_frames(event: dict[str, Any], clock: datetime | None) -> None:
    limits = read_in_band(event, clock)
    assert limits is None or all(is_sound(window) for window in every_window(limits))


@given(st.text(max_size=200))
def test_parsing_random_text(text: str) -> None:
    assert parse_number(text) is None or text.isascii() or text.strip().isascii()
    assert parse_duration(text) is None or parse_duration(text) >= 0  # type: ignore[operator]
    moment = parse_moment(text)
    assert moment is None or moment.tzinfo is UTC
    assert delay_in_message(text) is None or delay_in_message(text) >= 0  # type: ignore[operator]


def test_header_with_a_name_too_long_is_no_limit() -> None:
    """Names are kept in caches of the process: 256 of 64 KB each were."""
    limits = read_rate_limits({"x-ratelimit-" + "a" * 60_000: "1", "retry-after": "3"})
    assert limits.raw == {"retry-after": "3"}


def test_read_rate_limits_bounds_a_flood_of_headers() -> None:
    limits = read_rate_limits({f"x-ratelimit-limit-w{n}": "9" for n in range(20_000)})
    assert len(limits.windows) == 256
    limits = read_rate_limits({f"x-ratelimit-limit-w{n}": "9" * 10_000 for n in range(20_000)})
    assert {len(text) for text in limits.raw.values()} == {256}
    assert sum(len(name) + len(text) for name, text in limits.raw.items()) < 1 << 20


@pytest.mark.parametrize(("before", "seconds"), [(1023, 7.0), (1024, None)])
def test_rate_limits_read_a_thousand_headers(before: int, seconds: float | None) -> None:
    headers = {f"x-{number}": "1" for number in range(before)} | {"retry-after": "7"}
    assert read_rate_limits(headers).retry_after == seconds


@pytest.mark.parametrize(("length", "seconds"), [(128, 7.0), (129, None)])
def test_duration_has_a_longest_text(length: int, seconds: float | None) -> None:
    assert parse_duration("7".ljust(length)) == seconds


def test_numbers_too_long_for_text_are_no_header_values() -> None:
    assert as_text(10**21 - 1) == "9" * 21
    assert as_text(10**21) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0"), (7, "7"), (7.01, "8"), (-3.2, "0"), (1e300, str(int(1e300)))],
)
def test_delay_is_a_whole_number_of_seconds(seconds: float, text: str) -> None:
    assert retry_after_header(seconds) == {"retry-after": text}


@pytest.mark.parametrize("seconds", [None, float("inf"), float("-inf"), float("nan")])
def test_delay_without_a_number_is_no_header(seconds: float | None) -> None:
    assert retry_after_header(seconds) == {}
