"""Numbers, durations and points in time as header values and JSON fields write them.

Every function takes text as received and returns None where it is not of its kind, so that a
caller can try one form after the other. Nothing here reads a clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

CENTURY: Final = 100 * 365 * 86_400.0
"""Seconds. Longer delays become this one: no caller waits so long, and adding it to a clock does
not overflow."""

UNITS: Final = {
    1e-9: "ns",
    1e-6: "us µs μs",  # the micro sign and the Greek letter look the same
    1e-3: "ms msec msecs millisecond milliseconds",
    1.0: "s sec secs second seconds",
    60.0: "m min mins minute minutes",
    3600.0: "h hr hrs hour hours",
    86_400.0: "d day days",
}
"""Seconds -> the names of that unit, separated by spaces."""

SECONDS: Final = {name: seconds for seconds, names in UNITS.items() for name in names.split()}
"""Name of a unit -> its seconds."""

# The numbers of digits are bounded so that `float` stays fast on hostile input.
_NUMBER: Final = r"[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,4})?"
_DURATION_PART: Final = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *([a-zµμ]+)[ ,]*"
_ISO_DURATION: Final = r"p(?:([0-9]+)d)?(?:t([0-9.hms]+))?"

_HTTP_DATES: Final = (
    # Sun, 06 Nov 1994 08:49:37 GMT and Sunday, 06-Nov-94 08:49:37 GMT
    (
        r"(?:[a-z]+,? +)?(?P<day>[0-9]{1,2})[ -](?P<month>[a-z]{3})[ -](?P<year>[0-9]{4}|[0-9]{2}) "
        r"(?P<time>[0-9:]{8})(?: (?P<zone>gmt|utc|z|[+-][0-9]{4}))?"
    ),
    # Sun Nov  6 08:49:37 1994
    (
        r"[a-z]{3} (?P<month>[a-z]{3}) +(?P<day>[0-9]{1,2}) "
        r"(?P<time>[0-9:]{8}) (?P<year>[0-9]{4})(?P<zone>)"
    ),
)
_MONTHS: Final = {
    "jan": 1,
    "feb": 2,
    "mar": 3,
    "apr": 4,
    "may": 5,
    "jun": 6,
    "jul": 7,
    "aug": 8,
    "sep": 9,
    "oct": 10,
    "nov": 11,
    "dec": 12,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_DURATION_LENGTH: Final = 128
_MOMENT_LENGTH: Final = 64


@cache  # compiled at its first use: `import streamlib` would take 1 ms longer for all of them
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def as_text(value: Any) -> str | None:
    """A header's value as text; JSON carries some as numbers. None for other values."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Python refuses to print integers of thousands of digits, and to turn those of 309 into a
    # float. The comparison takes any, and is false for NaN and the infinities.
    if abs(value) < 1e21:
        return str(value)
    return None


def parse_number(text: str | None) -> float | None:
    """A non-negative decimal number in ASCII; None for other texts (`-5`, `nan`, `1_0`, `1, 2`).

    `1e999` is infinite.
    """
    if not text:
        return None
    text = text.strip()
    if not _compiled(_NUMBER).fullmatch(text):
        return None
    return float(text)


def parse_duration(text: str | None) -> float | None:
    """Seconds: `7`, `0.5`, `17ms`, `6m0s`, `1h2m3.5s`, `1d2h`, `35 seconds`, `PT1M30S`.

    Returns:
        At most a century; None for other texts.
    """
    if not text or len(text) > _DURATION_LENGTH:
        return None
    text = text.strip().lower()
    seconds = parse_number(text)
    if seconds is None:
        seconds = _sum_of_parts(_without_iso_letters(text))
    if seconds is None:
        return None
    return min(seconds, CENTURY)


def _without_iso_letters(text: str) -> str:
    """``p1dt2h`` (ISO 8601) as `1d2h`; other texts unchanged."""
    match = _compiled(_ISO_DURATION).fullmatch(text)
    if match is None:
        return text
    time = match[2] or ""
    if match[1]:
        return f"{match[1]}d{time}"
    return time


def _sum_of_parts(text: str) -> float | None:
    """Seconds of numbers with units, which must fill the text without a gap."""
    if not text:
        return None
    total = 0.0
    end = 0
    for part in _compiled(_DURATION_PART).finditer(text):
        if part.start() != end or part[2] not in SECONDS:
            return None
        total += float(part[1]) * SECONDS[part[2]]
        end = part.end()
    if end != len(text):
        return None
    return total


def parse_moment(text: str | None) -> datetime | None:
    """A point in time, in UTC: unix seconds or milliseconds, RFC 3339, an HTTP date.

    A number is unix seconds above 1e9 (September 2001) and milliseconds above 1e12; below it is
    no point in time, because the same fields carry short delays.
    """
    if not text or len(text) > _MOMENT_LENGTH:
        return None
    text = text.strip()
    number = parse_number(text)
    if number is None:
        return _parse_iso(_http_date_as_iso(text) or text)
    if number <= 1e9:
        return None
    if number > 1e12:
        number /= 1000
    return later(_EPOCH, number)


def _parse_iso(text: str) -> datetime | None:
    if "-" not in text:  # Python also reads compact forms (20261121T2000), which nobody sends
        return None
    try:
        return as_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def _http_date_as_iso(text: str) -> str | None:
    """An HTTP date as RFC 3339: the three forms of RFC 9110, and a numeric zone."""
    lowered = text.lower()
    for pattern in _HTTP_DATES:
        match = _compiled(pattern).fullmatch(lowered)
        if match is not None:
            break
    else:
        return None
    month = _MONTHS.get(match["month"])
    if month is None:
        return None
    year = match["year"]
    if len(year) == 2:
        century = "20"
        if year >= "70":
            century = "19"
        year = century + year
    zone = "+00:00"
    if match["zone"] and match["zone"][0] in "+-":
        zone = match["zone"]
    return f"{year}-{month:02}-{match['day']:0>2}T{match['time']}{zone}"


def as_utc(moment: datetime | None) -> datetime | None:
    """The same moment in UTC; one without a zone is taken to be in UTC already.

    None outside the years 1 to 9999.
    """
    if moment is None:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def later(clock: datetime | None, seconds: float) -> datetime | None:
    """`clock` plus `seconds`; None without a clock, outside the years 1 to 9999, and for NaN."""
    if clock is None:
        return None
    try:
        return clock + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None


def seconds_until(moment: datetime, now: datetime) -> float:
    """Seconds from `now` to `moment`, 0.0 where it has passed."""
    return max(0.0, (moment - now).total_seconds())
