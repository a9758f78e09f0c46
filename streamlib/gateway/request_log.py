"""One line of the log for each request: no content, no key, nothing that starts a line of its own.

Refusals of access control have a line too, up to a bound. As text, for a person; or with
`--log-format json` one object a line, for what collects logs.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from streamlib.gateway.log_text import log_name, log_text, server_of
from streamlib.gateway.observer import AccessRefusal, Exchange, Observer
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.usage import Usage

LOGGED_MESSAGES: Final[frozenset[ErrorKind]] = frozenset(
    {"connection", "stalled", "deadline", "authentication", "permission"}
)
"""Failures whose messages are the library's own and reveal no content: the log has them."""

LOGGED_CHANGES: Final = 100
"""Changes of a report that are looked at for the log, which shows some ten."""

LOGGED_REFUSALS: Final = 60
"""Refusals of access control that are logged within a minute; the metrics count all."""

FIELDS: Final = "streamlib_fields"
"""Attribute of a log record with the fields of its JSON line."""

_log: Final = logging.getLogger("streamlib.gateway")


class RequestLog(Observer):
    """Writes a line to the logger `streamlib.gateway` when a request has ended, and one when access
    control has refused one.

    Args:
        clock: seconds, for the bound on refusals.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._minute_began = -math.inf
        """When the first of the newest refusals came."""
        self._refusals = 0
        """Since then."""
        self._left_out = 0
        """Refusals without a line, since the last line."""

    def ended(self, exchange: Exchange) -> None:
        """Writes the line of a request."""
        _log.info("%s", summary(exchange), extra={FIELDS: fields_of(exchange)})

    def access_refused(self, refusal: AccessRefusal) -> None:
        """Writes the line of a refusal, unless there were too many within a minute."""
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
        refusal: what was refused.
        left_out: refusals before it that have no line.
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
    """The line of a refusal for a person.

    Args:
        fields: what `refusal_fields` returned.
    """
    source = f"{fields['method']} {fields['path']} from {fields['address'] or 'unknown'}"
    line = f"access refused: {source}: {fields['status']}, {fields['error_message']}"
    if fields["left_out"]:
        line += f"; {fields['left_out']} before it were not logged"
    return line


def summary(exchange: Exchange) -> str:
    """The line for a person."""
    if exchange.is_refused and exchange.error is not None:
        message = shown_message(exchange.error, is_own=True)
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
    # A count uses none.
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
    """What was changed or lost, each once: a long history has the same change many times."""
    changes = exchange.report[:LOGGED_CHANGES]
    return list(dict.fromkeys([f"{change.action} {change.path}" for change in changes]))


def shown_message(error: ErrorInfo, *, is_own: bool = False) -> str | None:
    """The message of a failure, where it reveals no content.

    Args:
        error: the failure.
        is_own: no provider has written it: `Exchange.is_refused`.
    """
    if is_own or error.kind in LOGGED_MESSAGES:
        return log_text(error.message)
    return None


def _result(exchange: Exchange) -> str:
    error = exchange.error
    if error is not None:
        message = shown_message(error)
        return f"{error.kind} ({message})" if message else error.kind
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


def fields_of(exchange: Exchange) -> dict[str, Any]:
    """The fields of a request's JSON line; None is unknown, times are in seconds."""
    usage = exchange.usage or Usage()
    lost = Counter(change.action for change in exchange.report)
    kind: str | None = None
    message: str | None = None
    if exchange.error is not None:
        kind = exchange.error.kind
        message = shown_message(exchange.error, is_own=exchange.is_refused)
    return {
        "request_id": exchange.request_id,
        "client": exchange.client,
        "wire_api": exchange.wire_api,
        "operation": exchange.operation,
        "route": exchange.route,
        "requested_model": log_name(exchange.requested),
        "model": log_name(exchange.target),
        "stream": exchange.is_stream,
        "background": exchange.in_background,
        "targets_tried": exchange.targets_tried,
        "status": exchange.status,
        "stop_reason": exchange.stop_reason,
        "error": kind,
        "error_message": message,
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


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object: `time` (UTC), `level`, `logger`, `message`, and the
    fields of a request."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        created = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": created.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        fields = getattr(record, FIELDS, None)
        if fields is None:
            line["message"] = record.getMessage()
        else:
            line["message"] = "request"
            line.update(fields)  # those of a refusal have a message of their own
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()
