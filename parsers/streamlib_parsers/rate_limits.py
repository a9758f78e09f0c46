"""What is left and how long to wait, from response headers and from frames of the stream.

The wires promise nothing in common, so the names are a table: one pattern a family, its groups saying which window and which
field a header is about. The header names themselves never collide, and no provider has to be known.

    anthropic-ratelimit-input-tokens-remaining: 4000000     input_tokens.remaining
    anthropic-ratelimit-unified-5h-utilization: 0.25        windows["unified-5h"] = Window(1.0, 0.75)
    x-ratelimit-reset-requests: 6m0s                        requests.reset_after = 360.0
    x-ratelimit-limit-tokens-minute: 75000                  windows["tokens-minute"], and `tokens`
    x-codex-primary-used-percent: 12.5                      windows["codex-primary"] = Window(100.0, 87.5)

Nothing is held back: what no table knows stays in `raw`. `received_at` is the only clock. Without it an absolute time gives
`reset_at` alone and a relative one `reset_after` alone. A reset in the past means "full now": `reset_after` is 0.0, never less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from streamlib_parsers.events import RateLimits, Window

# ---------------------------------------------------------------- tables


class Family(NamedTuple):
    """One way to name headers: groups `window` and `field` of the pattern, either may be missing."""

    pattern: re.Pattern[str]
    window: str = ""
    """Put before the group `window`."""
    field: str = "limit"
    """For a header that names no field."""


_WHICH = "(?P<field>limit|remaining|reset|renewalperiod)"
FAMILIES: Final = (
    Family(
        re.compile(
            "anthropic-ratelimit-(?P<window>.+)-(?P<field>limit|remaining|reset|utilization)"
        )
    ),
    Family(re.compile(f"anthropic-(?P<window>(?:priority|fast)-.+)-{_WHICH}")),
    Family(re.compile(f"(?:x-)?rate-?limit-{_WHICH}(?:-(?P<window>.+))?")),
    Family(
        re.compile("x-ratelimit-(?P<window>requests|tokens)")
    ),  # the OpenAI-shaped endpoint of Anthropic: the limits
    Family(
        re.compile(f"(?:x-)?ratelimitbysize-{_WHICH}(?:-(?P<window>.+))?"), "tokens"
    ),  # Mistral until 2025
    Family(
        re.compile(
            "x-(?P<window>codex-(?:.+-)?(?:primary|secondary))-(?P<field>used-percent|reset-at|reset-after-seconds)"
        )
    ),
    Family(
        re.compile(
            "x-(?P<window>trial-endpoint-call|endpoint-monthly-call)-(?P<field>limit|remaining)"
        )
    ),  # Cohere
)
USAGE_FRACTIONS: Final = {"utilization": 1.0, "used-percent": 100.0}
"""Fields that tell the used share of a window instead of counts, and how much the whole is."""

UNNAMED: Final = "default"
"""The window of `x-ratelimit-limit` and its like, which say of nothing how much."""

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
"""Where `requests` and the other main windows come from: the shortest period that a provider tells about."""

RELAYED: Final = "llm_provider-"
"""LiteLLM's prefix for the headers of its upstream; its own headers of the same name win."""

AZURE: Final = ("x-ms-", "apim-", "azureml-")
"""Azure's bare `reset` numbers are milliseconds on one host and seconds on the next: not to be read at all."""

UNLIMITED: Final = 2.0**62
CENTURY: Final = 100 * 365 * 86_400.0
"""Longer delays are given as this one: no caller waits so long, and adding it to a clock does not overflow."""

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
    "x-generation-id",
    "x-kong-request-id",
    "cf-ray",
)
"""In order of preference: the provider's own before those of what stands in front of it."""

RETRY_HEADERS: Final = (
    "retry-after-ms",
    "retry-after",
    "x-ratelimit-user-retry-after",
    "x-should-retry",
)

_KEPT: Final = re.compile(
    rf"(?:{RELAYED})?(?:anthropic-(?:ratelimit|priority|fast)-.*|(?:x-)?rate-?limit.*"
    "|x-codex-.*(?:used-percent|window-minutes|reset-at|reset-after-seconds|limit-name|active-limit|has-credits|unlimited|balance)"
    f"|x-(?:trial-endpoint|endpoint-monthly)-call-.*|{'|'.join(map(re.escape, (*RETRY_HEADERS, *REQUEST_IDS)))})"
)
_MOST_HEADERS: Final = 256
_LONGEST_VALUE: Final = 256

_SECONDS: Final = {
    unit: seconds
    for seconds, units in {
        1e-9: "ns",
        1e-6: "us µs μs",
        1e-3: "ms msec msecs millisecond milliseconds",
        1.0: "s sec secs second seconds",
        60.0: "m min mins minute minutes",
        3600.0: "h hr hrs hour hours",
        86_400.0: "d day days",
    }.items()
    for unit in units.split()
}
_NUMBER: Final = re.compile(r"[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,4})?")
_PIECE: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *([a-zµμ]+)[ ,]*")
_ISO_DURATION: Final = re.compile(r"p(?:([0-9]+)d)?(?:t([0-9.hms]+))?")
_UNIT: Final = "|".join(sorted(_SECONDS, key=len, reverse=True))
_ASKED: Final = re.compile(
    rf"(?:try again|retry|retrying|reset|resets|wait)(?: again)?(?: in| after| for)?(?: about)? "
    rf"((?:[0-9]{{1,12}}(?:\.[0-9]{{1,12}})? ?(?:{_UNIT})(?![a-zµμ])[ ,]*){{1,6}})"
)
_HTTP_DATES: Final = (
    re.compile(
        r"(?:[a-z]+,? +)?(?P<day>[0-9]{1,2})[ -](?P<month>[a-z]{3})[ -](?P<year>[0-9]{4}|[0-9]{2}) "
        r"(?P<time>[0-9:]{8})(?: (?P<zone>gmt|utc|z|[+-][0-9]{4}))?"
    ),
    re.compile(
        r"[a-z]{3} (?P<month>[a-z]{3}) +(?P<day>[0-9]{1,2}) (?P<time>[0-9:]{8}) (?P<year>[0-9]{4})(?P<zone>)"
    ),
)
_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


# ---------------------------------------------------------------- headers


def read_rate_limits(headers: Mapping[str, str], received_at: datetime | None = None) -> RateLimits:
    """What the response headers say of limits. Names in any case; `received_at` is the aware time at which they came."""
    sent = _lowered(headers)
    clock = _utc(received_at)
    bare_is_seconds = not any(name.removeprefix(RELAYED).startswith(AZURE) for name in sent)
    fields = _fields_by_window(sent)
    windows = _windows(
        {name: _window(one, clock, bare_is_seconds=bare_is_seconds) for name, one in fields.items()}
    )
    raw = {name: text[:_LONGEST_VALUE] for name, text in sent.items() if _KEPT.fullmatch(name)}
    return _limits(windows, retry_after(sent, clock), _request_id(sent), raw)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds the provider asks to wait, as received and without a cap; None where nothing usable was said.

    `retry-after-ms` comes first unless it is not positive (Azure sends 0 beside a true `retry-after`); then seconds; then a date
    in any of the three HTTP forms, which needs `now`. May stand on a success too: act on it only when the status is an error.
    """
    sent = _lowered(headers)
    milliseconds = parse_number(sent.get("retry-after-ms"))
    if milliseconds:
        return min(milliseconds / 1000, CENTURY)
    delays = (
        _delay(sent.get(name), _utc(now))
        for name in ("retry-after", "x-ratelimit-user-retry-after")
    )
    return next((seconds for seconds in delays if seconds is not None), None)


def _delay(text: str | None, now: datetime | None) -> float | None:
    seconds = parse_duration(text)
    moment = parse_moment(text) if seconds is None else None
    return _until(moment, now) if moment is not None and now is not None else seconds


def _lowered(headers: Mapping[str, Any]) -> dict[str, str]:
    """The headers that can be read, names lower-case; relayed ones first, so that a proxy's own replace them."""
    texts = ((str(name).lower(), as_text(value)) for name, value in headers.items())
    sent = [(name, text) for name, text in texts if text is not None][: _MOST_HEADERS * 4]
    return dict(sorted(sent, key=lambda pair: not pair[0].startswith(RELAYED)))


def _fields_by_window(sent: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for name, text in sent.items():
        place = _place(name.removeprefix(RELAYED))
        if place and (len(found) < _MOST_HEADERS or place[0] in found):
            found.setdefault(place[0], {})[place[1]] = text
    return found


def _place(name: str) -> tuple[str, str] | None:
    """Which window and which field of it a header is about."""
    for family in FAMILIES:
        match = family.pattern.fullmatch(name) if len(name) <= 128 else None
        if match:
            groups = match.groupdict()
            window = (
                "-".join(part for part in (family.window, groups.get("window")) if part) or UNNAMED
            )
            return re.sub("^req(?=-|$)", "requests", window), groups.get("field") or family.field
    return None


def _request_id(sent: Mapping[str, str]) -> str | None:
    names = (prefix + name for prefix in ("", RELAYED) for name in REQUEST_IDS)
    return next((sent[name][:_LONGEST_VALUE] for name in names if sent.get(name)), None)


# ---------------------------------------------------------------- windows


def _limits(
    windows: dict[str, Window], delay: float | None, request_id: str | None, raw: dict[str, str]
) -> RateLimits:
    mains = ("requests", "tokens", "input-tokens", "output-tokens")
    requests, tokens, input_tokens, output_tokens = (_main(windows, name) for name in mains)
    return RateLimits(
        requests=requests or windows.get(UNNAMED),
        tokens=tokens,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        windows={name: window for name, window in windows.items() if name not in mains},
        retry_after=delay,
        request_id=request_id,
        raw=raw,
    )


def _main(windows: Mapping[str, Window], name: str) -> Window | None:
    return next((windows[name + period] for period in PERIODS if name + period in windows), None)


def _windows(found: Mapping[str, Window]) -> dict[str, Window]:
    """Those of which anything is known."""
    return {name: window for name, window in found.items() if window != Window()}


def _window(
    fields: Mapping[str, str], clock: datetime | None, *, bare_is_seconds: bool = True
) -> Window:
    limit, remaining = _amounts(fields)
    refill = _refill(limit, remaining, parse_number(fields.get("renewalperiod")))
    if refill is not None:
        return Window(limit, remaining, _later(clock, refill), refill)
    return Window(limit, remaining, *_reset(fields, clock, bare_is_seconds=bare_is_seconds))


def _amounts(fields: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Limit and remaining; where a share is told, of a limit of 1.0 (utilization) or 100.0 (percent)."""
    for field, whole in USAGE_FRACTIONS.items():
        used = parse_number(fields.get(field))
        if used is not None:
            return whole, max(0.0, whole - used)
    return _amount(fields.get("limit")), _amount(fields.get("remaining"))


def _amount(text: str | None) -> float | None:
    """A count. `100;w=60` is 100; 2^62 and more is how Hugging Face writes unlimited; a negative number says nothing."""
    value = parse_number(re.split("[,;]", text, maxsplit=1)[0]) if text else None
    return value if value is not None and value < UNLIMITED else None


def _refill(limit: float | None, remaining: float | None, period: float | None) -> float | None:
    """Azure's buckets fill steadily over `period`: seconds until full again."""
    if not limit or remaining is None or period is None:
        return None
    return min(max(0.0, (limit - remaining) / limit * period), CENTURY)


def _reset(
    fields: Mapping[str, str], clock: datetime | None, *, bare_is_seconds: bool
) -> tuple[datetime | None, float | None]:
    """(reset_at, reset_after) from whichever of the two was sent."""
    text = fields.get("reset") or fields.get("reset-at")
    moment = parse_moment(text)
    after = parse_duration(fields.get("reset-after-seconds"))
    if moment is not None:
        return moment, _until(moment, clock) if clock is not None else after
    if (
        after is None
        and (bare_is_seconds or parse_number(text) is None)
        and "renewalperiod" not in fields
    ):
        after = parse_duration(text)
    return (_later(clock, after), after) if after is not None else (None, None)


# ---------------------------------------------------------------- numbers, durations, moments


def parse_number(text: str | None) -> float | None:
    """A non-negative decimal number in ASCII; None for anything else (`-5`, `nan`, `1_0`, `1, 2`). `1e999` is infinite."""
    text = text.strip() if text else ""
    return float(text) if _NUMBER.fullmatch(text) else None


def parse_duration(text: str | None) -> float | None:
    """Seconds: `7`, `0.5`, `17ms`, `6m0s`, `1h2m3.5s`, `1d2h`, `35 seconds`, `PT1M30S`. At most a century; None for anything else."""
    said = text.strip().lower() if text and len(text) <= 128 else ""
    seconds = parse_number(said)
    iso = _ISO_DURATION.fullmatch(said)
    if iso:
        said = (f"{iso[1]}d" if iso[1] else "") + (iso[2] or "")
    if seconds is None:
        seconds = _sum_of_pieces(said)
    return None if seconds is None else min(seconds, CENTURY)


def _sum_of_pieces(text: str) -> float | None:
    total, end = 0.0, 0
    for piece in _PIECE.finditer(text):
        if piece.start() != end or piece[2] not in _SECONDS:
            return None
        total += float(piece[1]) * _SECONDS[piece[2]]
        end = piece.end()
    return total if text and end == len(text) else None


def parse_moment(text: str | None) -> datetime | None:
    """An absolute time, in UTC: unix seconds (above 1e9), unix milliseconds (above 1e12), RFC 3339, an HTTP date."""
    text = text.strip() if text and len(text) <= 64 else ""
    number = parse_number(text)
    if number is not None:
        return _later(_EPOCH, number / 1000 if number > 1e12 else number) if number > 1e9 else None
    return _iso(_http_date(text) or text)


def _iso(text: str) -> datetime | None:
    try:
        return _utc(datetime.fromisoformat(text)) if "-" in text else None
    except (ValueError, OverflowError):
        return None


def _http_date(text: str) -> str | None:
    """An HTTP date as RFC 3339: the three forms of RFC 9110, and a numeric zone."""
    match = next((found for form in _HTTP_DATES if (found := form.fullmatch(text.lower()))), None)
    if match is None or match["month"] not in _MONTHS:
        return None
    year = (
        match["year"]
        if len(match["year"]) == 4
        else ("20" if match["year"] < "70" else "19") + match["year"]
    )
    zone = match["zone"] if match["zone"] and match["zone"][0] in "+-" else "+00:00"
    return f"{year}-{_MONTHS.index(match['month']) + 1:02}-{match['day']:0>2}T{match['time']}{zone}"


def _utc(moment: datetime | None) -> datetime | None:
    """In UTC; a naive time is taken to be that already."""
    if moment is None:
        return None
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _later(clock: datetime | None, seconds: float) -> datetime | None:
    try:
        return clock + timedelta(seconds=seconds) if clock is not None else None
    except OverflowError:
        return None


def _until(moment: datetime, now: datetime | None) -> float | None:
    return max(0.0, (moment - now).total_seconds()) if now is not None else None


def as_text(value: Any) -> str | None:
    """A header's value as text; JSON carries some as numbers. None for what cannot be one."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return str(value) if math.isfinite(value) and abs(value) < 1e21 else None


# ---------------------------------------------------------------- inside the stream


def read_in_band(
    event: Mapping[str, Any], received_at: datetime | None = None
) -> RateLimits | None:
    """Limits that a frame or an error body carries; None where it has none.

    Codex's `codex.rate_limits` event; headers inside an error (OpenRouter's `error.metadata.headers`, a WebSocket's `headers`);
    Google's QuotaFailure (a window for each quota that is used up, by its `quotaId`) and RetryInfo.
    """
    clock = _utc(received_at)
    error = _mapping(event.get("error")) or event
    details = [one for one in _list(error.get("details")) if isinstance(one, dict)]
    windows = _windows({**_codex_windows(event, clock), **_used_up(details)})
    carried = next(
        (
            found
            for holder in _header_holders(event, error)
            if (found := _mapping(holder.get("headers")))
        ),
        None,
    )
    if carried:
        limits = read_rate_limits(carried, clock)
        return limits if limits.raw else None
    delay = next(
        (
            seconds
            for one in details
            if (seconds := parse_duration(as_text(one.get("retryDelay")))) is not None
        ),
        None,
    )
    return _limits(windows, delay, None, {}) if windows or delay is not None else None


def delay_in_message(text: str) -> float | None:
    """Seconds asked for in a message: `Please try again in 6m0s.`, `retry in 22.4s`, `retry after 12 seconds`, `wait 3 minutes`."""
    match = _ASKED.search(text[:4096].lower())
    return parse_duration(match[1]) if match else None


def _header_holders(
    event: Mapping[str, Any], error: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    yield from (event, error, _mapping(error.get("metadata")))


def _codex_windows(event: Mapping[str, Any], clock: datetime | None) -> dict[str, Window]:
    if event.get("type") != "codex.rate_limits":
        return {}
    named = event.get("metered_limit_name") or event.get("limit_name")
    groups = [
        (named, event.get("rate_limits")),
        ("code-review", event.get("code_review_rate_limits")),
    ]
    groups += _named_groups(event.get("additional_rate_limits"))
    return {
        f"{_codex_name(name)}-{part}": _window(_codex_fields(group.get(part)), clock)
        for name, group in groups
        if isinstance(group, dict)
        for part in ("primary", "secondary")
    }


def _codex_name(limit: Any) -> str:
    return (
        f"codex-{limit[:64]}" if isinstance(limit, str) and limit not in ("", "codex") else "codex"
    )


def _codex_fields(window: Any) -> dict[str, str]:
    """`used_percent`, `reset_at` and `reset_after_seconds` as the headers call them."""
    texts = ((key.replace("_", "-"), as_text(value)) for key, value in _mapping(window).items())
    return {key: text for key, text in texts if text is not None}


def _named_groups(additional: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(additional, dict):
        return list(additional.items())[:_MOST_HEADERS]
    return [
        (one.get("limit_name"), one.get("rate_limits") or one)
        for one in _list(additional)
        if isinstance(one, dict)
    ]


def _used_up(details: Iterable[dict[str, Any]]) -> dict[str, Window]:
    violations = (
        one
        for detail in details
        for one in _list(detail.get("violations"))
        if isinstance(one, dict)
    )
    named = ((as_text(one.get("quotaId")), one.get("quotaValue")) for one in violations)
    return {name[:128]: Window(_amount(as_text(value)), 0.0) for name, value in named if name}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value[:_MOST_HEADERS] if isinstance(value, list) else []
