"""Any failure of any wire as one `ErrorInfo`, named by what the caller can do about it.

The wires promise a dozen shapes; HTTP error bodies and error frames inside a stream of status 200 use the same ones:

    {"type":"error","error":{"type":"overloaded_error","message":"…"}}                      Anthropic
    {"error":{"message":"…","type":"…","param":null,"code":"…"}}                            OpenAI and its kin
    {"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[…]}}, also in a list      Google
    {"message":"…"} + x-amzn-errortype, or the exception's name as a key                    Bedrock
    {"error":{"code":429,"metadata":{"raw":"<the upstream's own JSON>","headers":{…}}}}     OpenRouter
    {"error":"…"}, {"detail":…}, {"base_resp":{…}}, a page of HTML, nothing at all          the rest

The objects of a failure are laid out flat (`_layers`), outermost first, and their codes and words collected. The kind is looked
up in `error_tables`: a daily quota; texts that outrank codes; codes; words; the HTTP status; types that only repeat a status.
Held back: what looks like a key, and what passes 2 KiB of message.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from streamlib_parsers.error_tables import (
    CODES,
    DECIDED,
    FIRST_WORDS,
    IGNORED_CODES,
    KIND_ORDER,
    REFUSED,
    STATUSES,
    TYPE_STATUSES,
    WORDS,
    Words,
    plain,
)
from streamlib_parsers.errors import RETRYABLE, ErrorInfo, ErrorKind, ParseFailure
from streamlib_parsers.events import RateLimits, Window
from streamlib_parsers.json_text import decode_any, scrub
from streamlib_parsers.rate_limits import (
    as_text,
    delay_in_message,
    parse_duration,
    parse_moment,
    parse_number,
    read_rate_limits,
)
from streamlib_parsers.redaction import redact, redact_value

# ---------------------------------------------------------------- tables

_TOP: Final = (
    "error",
    "response",
    "x_groq",
    "base_resp",
    "errors",
    "detail",
    "message",
    "innererror",
)
_INSIDE: Final = (
    "error",
    "errors",
    "metadata",
    "details",
    "detail",
    "innererror",
    "raw",
    "message",
)
_NESTED: Final = {
    "": _TOP,
    "response": ("error", "status_details"),
    "x_groq": ("error",),
    "details": ("violations",),
}
"""Where an object of the failure lies, by the key of what it lies in, else `_INSIDE`. A response's `metadata` is the caller's own."""

_SAID: Final = (
    "message",
    "Message",
    "msg",
    "error_message",
    "errorMessage",
    "status_msg",
    "detail",
    "error",
    "error_description",
)
_SAID_LESS: Final = ("raw", "details", "title")
_CODE_KEYS: Final = (
    "code",
    "error_code",
    "errorCode",
    "type",
    "__type",
    "error_type",
    "provider_code",
    "status",
    "reason",
    "status_code",
)
_STATUS_KEYS: Final = (
    "status_code",
    "status",
    "code",
    "raw_status_code",
    "http_status",
    "statusCode",
    "http_code",
    "originalStatusCode",
)
_TYPE_HEADERS: Final = ("x-amzn-errortype", ":exception-type", ":error-code")
_DELAY_KEYS: Final = ("retryDelay", "retry_after", "retry_after_seconds", "retryAfter")
_RESET_KEYS: Final = ("resets_in_seconds", "resets_at")

_QUOTA_PERIODS: Final[dict[str, ErrorKind]] = {
    "perday": "quota_exhausted",
    "perminute": "rate_limited",
    "persecond": "rate_limited",
}
"""In order: a day counts whatever `retryDelay` says beside it."""

_MOST_STEPS: Final = 256
_MOST_MESSAGES: Final = 4
_LONGEST_MESSAGE: Final = 2048
_LONGEST_TEXT: Final = 8192
_LONGEST_BODY: Final = 1 << 20
_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,200})", re.IGNORECASE)
_STATUS: Final = re.compile("[45][0-9][0-9]")
_QUOTES: Final = str.maketrans("", "", "`'\"")

FREE_TIER_REQUESTS: Final = 1000
"""Google's paid tiers allow more requests a day than this."""
FREE_TIER_DAY: Final = "This is the free tier's daily limit: wait for its reset at midnight Pacific time, enable billing, or use another model."
FREE_TIER: Final = (
    "This is a limit of the free tier: wait as asked, enable billing, or use another model."
)


class Layer(NamedTuple):
    """One object of a failure and the key it lay under, "" for the outermost."""

    key: str
    value: Mapping[str, Any]


class Fault(NamedTuple):
    """What is known of a failure before it has a kind. `words` is lower-case and has no quotation marks."""

    layers: list[Layer]
    codes: list[str]
    messages: list[str]
    words: str
    status: int | None
    limits: RateLimits


def classify(
    status: int | None,
    body: Any,
    headers: Mapping[str, str] | None = None,
    received_at: datetime | None = None,
) -> ErrorInfo:
    """The failure that `body` describes.

    status: of the HTTP answer; None inside a stream. body: a decoded JSON value, or the text or bytes of whatever came instead.
    headers: of the answer, or of the frame (Bedrock's `:exception-type`). received_at: aware; turns dates into seconds.
    """
    sent = {
        str(name).lower(): text
        for name, value in (headers or {}).items()
        if (text := as_text(value)) is not None
    }
    value = _decoded(body)
    fault = _fault(status, value, sent, received_at)
    kind = _kind(fault)
    return ErrorInfo(
        kind=kind,
        message=_message(fault, kind),
        retryable=_retryable(kind, sent),
        retry_after=_delay(fault, kind, received_at),
        status=fault.status,
        code=next((_shown(code.removeprefix("base_resp.")) for code in fault.codes), None),
        detail=_detail(value, fault.layers),
    )


# ---------------------------------------------------------------- reading


def _decoded(body: Any) -> Any:
    """The JSON value of a text that is one, or of the first `data:` line of a text that is a stream; else the text itself."""
    if isinstance(body, (bytearray, memoryview)):
        body = bytes(body)
    text = body[:_LONGEST_BODY].decode("utf-8", "replace") if isinstance(body, bytes) else body
    if not isinstance(text, str):
        return text
    lines = [line[5:] for line in text[:_LONGEST_TEXT].splitlines() if line.startswith("data:")]
    return next((value for one in [text, *lines] if (value := _json(one)) is not None), text)


def _json(text: str) -> Any:
    """A JSON object or array, None for any other text."""
    text = text.strip()
    if not text.startswith(("{", "[")) or len(text) > _LONGEST_BODY:
        return None
    try:
        return decode_any(text.encode("utf-8", "replace"))
    except ParseFailure:
        return None


def _fault(
    status: int | None, value: Any, sent: Mapping[str, str], received_at: datetime | None
) -> Fault:
    layers = _layers(value)
    messages = _messages(layers) if layers else _page(value)
    codes = list(dict.fromkeys(_codes(layers, sent)))
    words = " ".join([*messages, *codes])[:_LONGEST_TEXT].lower().translate(_QUOTES)
    codes.sort(
        key=lambda code: code.isdigit() * (1 + bool(_STATUS.fullmatch(code)))
    )  # a number says less than a name, a status least
    return Fault(
        layers, codes, messages, words, _status(status, layers), read_rate_limits(sent, received_at)
    )


def _layers(value: Any) -> list[Layer]:
    """The objects of a failure, outermost first; JSON inside a text is opened too."""
    queue, layers = deque([("", value)]), list[Layer]()
    for _ in range(_MOST_STEPS):
        if not queue:
            break
        key, one = queue.popleft()
        if isinstance(one, str):
            one = _json(one)
        if isinstance(one, dict):
            layers.append(Layer(key, one))
            queue.extend(_nested(layers[-1]))
        elif isinstance(one, (list, tuple)):
            queue.extend(
                (key, {"message": entry} if isinstance(entry, str) else entry) for entry in one[:8]
            )
    return layers


def _nested(layer: Layer) -> Iterator[tuple[str, Any]]:
    for key in _NESTED.get(layer.key, _INSIDE):
        if isinstance(layer.value.get(key), (dict, list, tuple, str)):
            yield key, layer.value[key]
    if not layer.key:
        exceptions = (
            pair for pair in list(layer.value.items())[:64] if str(pair[0]).endswith("Exception")
        )
        yield from (pair for pair in exceptions if isinstance(pair[1], dict))


def _codes(layers: Iterable[Layer], sent: Mapping[str, str]) -> Iterator[str]:
    yield from (_bare_type(sent[name]) for name in _TYPE_HEADERS if sent.get(name))
    for key, value in layers:
        if key.endswith("Exception"):
            yield key[:128]
        prefix = "base_resp." if key == "base_resp" else ""
        texts = ((as_text(value.get(name)) or "").strip() for name in _CODE_KEYS)
        yield from (
            prefix + _bare_type(text)
            for text in texts
            if text and text.lower() not in IGNORED_CODES
        )


def _bare_type(code: str) -> str:
    """AWS writes `ValidationException:http://…` in headers and `com.amazon.x#ValidationException` in bodies."""
    return (code[:256].split(":http", 1)[0].rsplit("#", 1)[-1] or code)[:128]


def _messages(layers: Iterable[Layer]) -> list[str]:
    """Everything that was said, once each."""
    said: list[str] = []
    for text in (text for layer in layers for text in _sentences(layer.value)):
        if len(said) < _MOST_MESSAGES * 4 and not any(text in earlier for earlier in said):
            said.append(text)
    return said


def _sentences(value: Mapping[str, Any]) -> Iterator[str]:
    """The texts of one object. FastAPI and Mistral name the place of a mistake beside it: `loc`, `msg`."""
    place = value.get("loc")
    prefix = (
        ".".join((as_text(part) or "")[:64] for part in place[:8]) + ": "
        if isinstance(place, list)
        else ""
    )
    for key in (*_SAID, *_SAID_LESS):
        text = value.get(key)
        if isinstance(text, str) and text.strip() and _json(text) is None:
            yield prefix + scrub(text[:_LONGEST_TEXT]).strip()


def _page(value: Any) -> list[str]:
    """What a body that is no JSON says: the title of a page, else its text."""
    text = scrub(value[:_LONGEST_TEXT]).strip() if isinstance(value, str) else ""
    title = _TITLE.search(text)
    return [title[1].strip() if title else text] if text else []


def _status(status: int | None, layers: Iterable[Layer]) -> int | None:
    """The answer's own status unless it is a success or 424, with which Bedrock wraps its model's own; else one the body tells."""
    own = status if status is not None and status >= 300 else None
    if own is not None and own != 424:
        return own
    told = (as_text(layer.value.get(key)) or "" for layer in layers for key in _STATUS_KEYS)
    return next((int(text) for text in told if _STATUS.fullmatch(text)), own)


# ---------------------------------------------------------------- the kind


def _kind(fault: Fault) -> ErrorKind:
    for find in _FINDERS:
        kind = find(fault)
        if kind is not None:
            return kind
    return "server_error"


def _by_quota(fault: Fault) -> ErrorKind | None:
    """What Google's `quotaId`s say, and daily windows in the headers: Google's message is the same for a minute and for a day."""
    quotas = " ".join(_quotas(fault))
    told: ErrorKind | None = next(
        (kind for period, kind in _QUOTA_PERIODS.items() if period in quotas), None
    )
    windows = fault.limits.windows.items() if fault.status == 429 else ()
    if told is None and any(
        name.endswith("day") and window.remaining == 0 for name, window in windows
    ):
        return "quota_exhausted"
    if (
        told is None
        and "RESOURCE_EXHAUSTED" in fault.codes
        and any("retryDelay" in layer.value for layer in fault.layers)
    ):
        return "rate_limited"
    return told


def _by_first_words(fault: Fault) -> ErrorKind | None:
    return _by_rows(FIRST_WORDS, fault)


def _by_code(fault: Fault) -> ErrorKind | None:
    kinds = {CODES.get(name) for name in map(plain, fault.codes)}
    return next((kind for kind in KIND_ORDER if kind in kinds), None)


def _by_words(fault: Fault) -> ErrorKind | None:
    return None if fault.status in DECIDED else _by_rows(WORDS, fault)


def _by_rows(rows: Iterable[Words], fault: Fault) -> ErrorKind | None:
    for row in rows:
        believed = not row.statuses or fault.status in row.statuses
        if (
            believed
            and any(word in fault.words for word in row.words)
            and not any(word in fault.words for word in row.unless)
        ):
            return row.kind
    return None


def _by_status(fault: Fault) -> ErrorKind | None:
    return _kind_of_status(fault.status) if fault.status is not None else None


def _by_type(fault: Fault) -> ErrorKind | None:
    names = [plain(code) for code in fault.codes]
    told = next((TYPE_STATUSES[name] for name in names if name in TYPE_STATUSES), None)
    if told is not None:
        return _kind_of_status(told)
    return "invalid_request" if any(name.startswith(REFUSED) for name in names) else None


def _kind_of_status(status: int) -> ErrorKind:
    return STATUSES.get(status, "server_error" if status >= 500 else "invalid_request")


_FINDERS: Final[tuple[Callable[[Fault], ErrorKind | None], ...]] = (
    _by_quota,
    _by_first_words,
    _by_code,
    _by_words,
    _by_status,
    _by_type,
)


# ---------------------------------------------------------------- what goes with it


def _message(fault: Fault, kind: ErrorKind) -> str:
    """The provider's words, keys masked, at most 2 KiB of UTF-8; whole advice after them."""
    said = _shown("; ".join(fault.messages[:_MOST_MESSAGES]))
    if not said:
        said = (f"HTTP {fault.status}" if fault.status else "an error") + " without a message"
    advice = _free_tier(fault) if kind in {"quota_exhausted", "rate_limited"} else ""
    room = _LONGEST_MESSAGE - len(advice.encode())
    return said.encode()[:room].decode("utf-8", "ignore") + advice


def _shown(text: str) -> str:
    """Valid Unicode without keys."""
    return redact(scrub(text)).encode("utf-8", "replace").decode("utf-8")


def _free_tier(fault: Fault) -> str:
    """Advice where the limit is that of Google's free tier, which the message never says."""
    quotas = _quotas(fault)
    daily = {quota: value for quota, value in quotas.items() if "perday" in quota}
    small = any(value is not None and value <= FREE_TIER_REQUESTS for value in daily.values())
    if daily and (small or any("free" in quota for quota in daily)):
        return " " + FREE_TIER_DAY
    a_day = fault.limits.windows.get("requests-per-day", Window()).limit
    return (
        " " + FREE_TIER
        if any("free" in quota for quota in quotas)
        or (a_day or FREE_TIER_REQUESTS + 1) <= FREE_TIER_REQUESTS
        else ""
    )


def _quotas(fault: Fault) -> dict[str, float | None]:
    """Google's violated quotas, `quotaId quotaMetric` in small letters, with their values."""
    violations = [layer.value for layer in fault.layers if layer.key == "violations"]
    named = (
        (
            " ".join(as_text(one.get(name)) or "" for name in ("quotaId", "quotaMetric")).lower(),
            as_text(one.get("quotaValue")),
        )
        for one in violations
    )
    return {name: parse_number(value) for name, value in named}


def _retryable(kind: ErrorKind, sent: Mapping[str, str]) -> bool:
    """By kind, unless the server knows better."""
    return {"true": True, "false": False}.get(
        sent.get("x-should-retry", "").strip().lower(), kind in RETRYABLE
    )


def _delay(fault: Fault, kind: ErrorKind, received_at: datetime | None) -> float | None:
    """Seconds the provider asks for, by header or in the body; of a quota only its own reset counts.

    `retryDelay` and "try again in" stand beside daily limits too, and are wrong there.
    """
    if fault.limits.retry_after is not None:
        return fault.limits.retry_after
    sources = _DELAYS if kind in RETRYABLE else (_own_reset,) if kind == "quota_exhausted" else ()
    return next(
        (seconds for source in sources if (seconds := source(fault, received_at)) is not None), None
    )


def _field_delay(fault: Fault, received_at: datetime | None) -> float | None:
    del received_at
    delays = (parse_duration(text) for text in _texts(fault.layers, _DELAY_KEYS))
    return next((seconds for seconds in delays if seconds is not None), None)


def _own_reset(fault: Fault, received_at: datetime | None) -> float | None:
    """Codex: `resets_in_seconds`, or `resets_at` in unix seconds."""
    delays = (_seconds_until(text, received_at) for text in _texts(fault.layers, _RESET_KEYS))
    return next((seconds for seconds in delays if seconds is not None), None)


def _seconds_until(text: str, received_at: datetime | None) -> float | None:
    moment = parse_moment(text)
    if moment is None:
        return parse_duration(text)
    return max(0.0, (moment - received_at).total_seconds()) if received_at is not None else None


def _texts(layers: Iterable[Layer], keys: Iterable[str]) -> Iterator[str]:
    texts = (as_text(layer.value.get(key)) for layer in layers for key in keys)
    return (text for text in texts if text)


def _carried_delay(fault: Fault, received_at: datetime | None) -> float | None:
    """Headers inside the body: OpenRouter's `error.metadata.headers`, a WebSocket's `headers`."""
    carried = (layer.value.get("headers") for layer in fault.layers)
    limits = (
        read_rate_limits(headers, received_at) for headers in carried if isinstance(headers, dict)
    )
    delays = (one.retry_after if one.retry_after is not None else _refill(one) for one in limits)
    return next((seconds for seconds in delays if seconds is not None), None)


def _spoken_delay(fault: Fault, received_at: datetime | None) -> float | None:
    del received_at
    return delay_in_message(fault.words)


def _refilled(fault: Fault, received_at: datetime | None) -> float | None:
    del received_at
    return _refill(fault.limits)


_DELAYS: Final = (_field_delay, _carried_delay, _own_reset, _spoken_delay, _refilled)


def _refill(limits: RateLimits) -> float | None:
    """Until every window that is used up is full again."""
    windows = (
        limits.requests,
        limits.tokens,
        limits.input_tokens,
        limits.output_tokens,
        *limits.windows.values(),
    )
    resets = [
        one.reset_after
        for one in windows
        if one and one.remaining == 0 and one.reset_after is not None
    ]
    return max(resets, default=None)


def _detail(value: Any, layers: Iterable[Layer]) -> Any:
    """The provider's error object, else all there is; keys masked, bounded."""
    if isinstance(value, str):
        return _shown(value[:_LONGEST_MESSAGE]) or None
    return redact_value(next((layer.value for layer in layers if layer.key == "error"), value))
