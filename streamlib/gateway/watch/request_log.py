"""Logs one line for each request: without content or keys, and always on a single line.

Refusals by access control are logged too, up to a limit. Lines are text for people; with
`--log-format json` each is one JSON object for log collectors.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from streamlib.gateway.log_text import log_name, log_text, server_of
from streamlib.gateway.watch.observer import AccessRefusal, Exchange, Observer
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.redaction import redact
from streamlib_parsers.usage import Usage

PROVIDER_CHARACTERS: Final = 300
"""Characters of a provider's message in a log line: what is wrong comes first, and a value of the
request that it quotes is cut."""

QUOTING: Final[frozenset[ErrorKind]] = frozenset({"invalid_request", "invalid_history"})
"""Failures whose messages may quote the request that was refused."""

_UNREADABLE: Final = re.compile(r"(?P<what>not a request of \w{1,20}): (?P<why>.*)", re.DOTALL)
"""The message of a decoder, whose reason may quote a value of the request."""

_KEY: Final = r"[\w.\[\]]{1,100}"
"""A key of the body, with dots between those of nested objects, and numbers in lists."""

_SAFE_REASONS: Final = tuple(
    (re.compile(pattern, re.DOTALL), shown)
    for pattern, shown in (
        # Names of types and keys alone.
        (r"(Expected `[\w |]{1,40}`, got `\w{1,20}`(?: in (?:the body|" + _KEY + "))?)", r"\1"),
        (rf"((?:the body|a key|{_KEY}) has a value of the wrong type)", r"\1"),
        (r"('(?:model|messages|contents|input)' is missing or unknown)", r"\1"),
        (r"(Input data was truncated)", r"\1"),
        # Before a value. First, since a value that is cut may end like a position.
        (rf"({_KEY}) is (?:an?|tokens|not) [^']{{1,100}} not .*", r"\1 has a wrong value"),
        # Behind a value.
        (r".*? - at `([\w.\[\]$]{0,200})`", r"at \1"),
        (rf"Invalid enum value '.* in ({_KEY})", r"\1 has a wrong value"),
        (r".*?\(byte (\d{1,12})\)", r"at byte \1"),
        (rf".* is missing or unknown( in {_KEY})?", r"a key or a value is missing or unknown\1"),
    )
)
"""Reasons of decoders, and what is shown of each: nothing that a request holds but its keys."""

LOGGED_CHANGES: Final = 100
"""Limit of changes of a report that are examined for the log, which shows some ten."""

LOGGED_REFUSALS: Final = 60
"""Limit of refusals by access control that are logged in a minute; the metrics count all."""

FIELDS: Final = "streamlib_fields"
"""Attribute of a log record that holds the fields of its JSON line."""

_log: Final = logging.getLogger("streamlib.gateway")


class RequestLog(Observer):
    """Logs a line to `streamlib.gateway` for each request that ended or was refused access.

    Args:
        clock: returns seconds, for the limit of refusals.
        with_content: whether messages that may quote a request are logged.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, with_content: bool = False
    ) -> None:
        self._clock = clock
        self._with_content = with_content
        self._minute_began = -math.inf
        """Time of the first refusal in the current minute, in seconds of the clock."""
        self._refusals = 0
        """Number of refusals since then."""
        self._left_out = 0
        """Number of refusals that were not logged since the last logged one."""

    def ended(self, exchange: Exchange) -> None:
        """Logs the line of a request."""
        quotes = self._with_content
        fields = fields_of(exchange, with_content=quotes)
        _log.info("%s", summary(exchange, with_content=quotes), extra={FIELDS: fields})

    def access_refused(self, refusal: AccessRefusal) -> None:
        """Logs the line of a refusal, unless the limit of this minute is reached."""
        now = self._clock()
        if now - self._minute_began >= 60:
            self._minute_began = now
            self._refusals = 0
        self._refusals += 1
        if self._refusals > LOGGED_REFUSALS:
            self._left_out += 1
            return
        fields = refusal_fields(refusal, self._left_out)
        self._left_out = 0
        _log.warning("%s", refusal_line(fields), extra={FIELDS: fields})


def refusal_fields(refusal: AccessRefusal, left_out: int) -> dict[str, Any]:
    """The fields of a refusal's JSON line.

    Args:
        refusal: the refusal.
        left_out: number of refusals before it that were not logged.
    """
    return {
        "message": "access refused",
        "status": refusal.status,
        "reason": refusal.reason,
        "error": refusal.error.kind,
        "error_message": log_text(refusal.error.message),
        "method": log_name(refusal.method),
        "path": log_name(refusal.path),
        "address": refusal.address and log_name(refusal.address),
        "left_out": left_out,
    }


def refusal_line(fields: Mapping[str, Any]) -> str:
    """The line of a refusal as text.

    Args:
        fields: result of `refusal_fields`.
    """
    source = f"{fields['method']} {fields['path']} from {fields['address'] or 'unknown'}"
    line = f"access refused: {source}: {fields['status']}, {fields['error_message']}"
    if fields["left_out"]:
        line += f"; {fields['left_out']} before it were not logged"
    return line


def summary(exchange: Exchange, *, with_content: bool = False) -> str:
    """The line of a request as text.

    Args:
        exchange: the request.
        with_content: whether a message that may quote the request is in it.
    """
    if exchange.is_refused and exchange.error is not None:
        error = exchange.error
        message = shown_message(error, is_own=True, with_content=with_content) or error.kind
        who = f" for {log_name(exchange.client)}" if exchange.client else ""
        return f"{exchange.request_id} {_purpose(exchange)}{who} refused: {message}"
    target = log_name(exchange.target)
    if exchange.operation == "count" and not target:
        target = "an estimate"
    line = f"{exchange.request_id} {_purpose(exchange)} {log_name(exchange.requested)} -> {target}"
    if exchange.base_url:
        line += f" at {server_of(exchange.base_url)}"
    if exchange.client:
        line += f" for {log_name(exchange.client)}"
    line += f": {_result(exchange)}"
    # A count of tokens uses no tokens.
    if exchange.operation != "count":
        line += f", {_tokens(exchange)}"
    paths = changed_paths(exchange)
    if paths:
        line += f", report: {log_text(', '.join(paths))}"
    return line


def _purpose(exchange: Exchange) -> str:
    if exchange.operation == "response":
        return exchange.wire_api
    return f"{exchange.wire_api} {exchange.operation}"


def changed_paths(exchange: Exchange) -> list[str]:
    """Paths of changes, each once: a long history repeats the same change many times."""
    changes = exchange.report[:LOGGED_CHANGES]
    return list(dict.fromkeys([f"{change.action} {change.path}" for change in changes]))


def shown_message(
    error: ErrorInfo, *, is_own: bool = False, with_content: bool = False
) -> str | None:
    """The message of a failure, on one line, without keys; None if nothing of it may be shown.

    Args:
        error: the failure.
        is_own: whether the library wrote the message, not a provider (`Exchange.is_refused`).
        with_content: whether a message of the library may quote the request.
    """
    if not is_own:
        return log_text(redact(error.message), PROVIDER_CHARACTERS)
    if error.kind in QUOTING and not with_content:
        return _without_quotes(error)
    return log_text(error.message)


def error_text(error: ErrorInfo, request_id: str | None = None) -> str:
    """A target's failure in a line of the log: its kind, then what the provider said.

    Args:
        error: the failure.
        request_id: the id that the provider gave the request.
    """
    details = [shown_message(error) or "no message"]
    if error.code is not None:
        details.append(f"code {log_name(redact(error.code))}")
    if request_id is not None:
        details.append(f"request {log_name(redact(request_id))}")
    return f"{error.kind} ({', '.join(details)})"


def _without_quotes(error: ErrorInfo) -> str | None:
    """What is wrong with a request, and where, without the value."""
    unreadable = _UNREADABLE.fullmatch(error.message)
    if unreadable is None:
        return error.code and f"{error.kind}: {log_name(error.code)}"
    for pattern, shown in _SAFE_REASONS:
        match = pattern.fullmatch(unreadable["why"])
        if match is not None:
            return f"{unreadable['what']}: {match.expand(shown)}"
    return unreadable["what"]


def _result(exchange: Exchange) -> str:
    if exchange.error is not None:
        return error_text(exchange.error, exchange.upstream_request_id)
    if exchange.stop_reason is not None:
        return log_name(exchange.stop_reason)
    if exchange.operation == "response":
        return "nothing"
    return "done"


def _tokens(exchange: Exchange) -> str:
    usage = exchange.usage
    if usage is None:
        return "no usage"
    output = str(usage.output_tokens)
    if exchange.is_usage_estimated:
        output = f"about {output}"
    return f"{usage.input_tokens}+{output} tokens"


def fields_of(exchange: Exchange, *, with_content: bool = False) -> dict[str, Any]:
    """The fields of a request's JSON line; None is unknown, times are seconds.

    Args:
        exchange: the request.
        with_content: whether a message that may quote the request is in it.
    """
    usage = exchange.usage or Usage()
    lost = Counter(change.action for change in exchange.report)
    message: str | None = None
    if exchange.error is not None:
        message = shown_message(
            exchange.error, is_own=exchange.is_refused, with_content=with_content
        )
    return {
        **_request_fields(exchange),
        "stream": exchange.is_stream,
        "background": exchange.in_background,
        "targets_tried": exchange.targets_tried,
        "status": exchange.status,
        "stop_reason": exchange.stop_reason,
        **_error_fields(exchange.error, message, exchange.upstream_request_id),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_input_tokens,
        "output_estimated": exchange.is_usage_estimated,
        "first_token": _rounded(exchange.first_token),
        "longest_gap": _rounded(exchange.longest_gap),
        "seconds": _rounded(exchange.seconds),
        "report": dict(lost),
        "changes": [log_text(path) for path in changed_paths(exchange)],
    }


def failed_target_fields(exchange: Exchange, target: str, error: ErrorInfo) -> dict[str, Any]:
    """The fields of the JSON line of a failure after which the next target is tried.

    Args:
        exchange: the request.
        target: the target that failed, `provider:model`.
        error: its failure.
    """
    return {
        "message": "trying the next target",
        **_request_fields(exchange),
        "model": log_name(target),
        **_error_fields(error, shown_message(error), exchange.upstream_request_id),
    }


def cooldown_fields(
    target: str, base_url: str | None, seconds: float, error: ErrorInfo
) -> dict[str, Any]:
    """The fields of the JSON line of a target that cools down.

    Args:
        target: the target, `provider:model`.
        base_url: its address in the route; None: its provider's own.
        seconds: how long it cools down.
        error: its last failure.
    """
    return {
        "message": "cools down",
        "model": log_name(target),
        "server": base_url and server_of(base_url),
        "cooldown": _rounded(seconds),
        **_error_fields(error, shown_message(error), None),
    }


def _request_fields(exchange: Exchange) -> dict[str, Any]:
    """Whose request it is, and for what."""
    return {
        "request_id": exchange.request_id,
        "client": exchange.client,
        "wire_api": exchange.wire_api,
        "operation": exchange.operation,
        "route": exchange.route,
        "requested_model": log_name(exchange.requested),
        "model": log_name(exchange.target),
    }


def _error_fields(
    error: ErrorInfo | None, message: str | None, request_id: str | None
) -> dict[str, Any]:
    """What failed, with the id that the provider gave the request."""
    code = error and error.code
    return {
        "error": error and error.kind,
        "error_message": message,
        "error_code": code and log_name(redact(code)),
        "upstream_request_id": request_id and log_name(redact(request_id)),
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


def _time_of(record: logging.LogRecord) -> str:
    """When a record was made, in UTC: `2026-11-23T03:20:41.118Z`."""
    created = datetime.fromtimestamp(record.created, UTC)
    return created.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TextFormatter(logging.Formatter):
    """Formats a record as its time (UTC) and its text."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return f"{_time_of(record)} {super().format(record)}"


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object: `time` (UTC), `level`, `logger`, `message`, and the
    fields of a request."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, Any] = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        fields = getattr(record, FIELDS, None)
        if fields is None:
            line["message"] = record.getMessage()
        else:
            line["message"] = "request"
            line.update(fields)  # those of other lines than a request's include a message
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()
