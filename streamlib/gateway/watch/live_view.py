"""What the page shows: the streams that are open, and the last errors. No content, no key."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import anyio

from streamlib.gateway.log_text import log_text
from streamlib.gateway.watch.observer import Exchange, Observer
from streamlib.gateway.watch.request_log import shown_message
from streamlib_parsers.errors import ErrorInfo

SHOWN_STREAMS: Final = 100
"""Open streams that are listed, the newest; the others are counted."""

SHOWN_ERRORS: Final = 30

SHOWN_CHANGES: Final = 20
"""Changes that are listed with an error."""


class LiveView(Observer):
    """Remembers what is open and what failed.

    Args:
        clock: seconds of the event loop's clock, as `Exchange.started_at`.
        now: seconds since 1970.
    """

    def __init__(
        self,
        clock: Callable[[], float] = anyio.current_time,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._now = now
        self._open: dict[str, Exchange] = {}
        """Request id -> exchange, in the order in which they started."""
        self._failures: dict[str, ErrorInfo] = {}
        """Request id -> the newest failure of one of its targets."""
        self._errors: deque[dict[str, Any]] = deque(maxlen=SHOWN_ERRORS)
        self._totals = {"ended": 0, "failed": 0, "input": 0, "output": 0}
        """Since the gateway started."""

    def started(self, exchange: Exchange) -> None:
        """Lists a stream; agents count tokens too often to show that."""
        if exchange.operation != "count":
            self._open[exchange.request_id] = exchange

    def upstream_failed(self, exchange: Exchange, error: ErrorInfo) -> None:
        """Remembers a failure; another target may make it good."""
        self._failures[exchange.request_id] = error

    def ended(self, exchange: Exchange) -> None:
        """Counts a stream, and lists its error."""
        self._open.pop(exchange.request_id, None)
        failure = self._failures.pop(exchange.request_id, None)
        if exchange.operation == "count" and exchange.error is None:
            return
        self._totals["ended"] += 1
        if exchange.usage is not None:
            self._totals["input"] += exchange.usage.input_tokens or 0
            self._totals["output"] += exchange.usage.output_tokens or 0
        error = exchange.error
        if error is not None:
            # A client that disconnects is not an error of the gateway's.
            if error.kind != "cancelled":
                self._totals["failed"] += 1
                self._errors.appendleft(self._entry(exchange, error, made_good=False))
        elif failure is not None:
            self._errors.appendleft(self._entry(exchange, failure, made_good=True))

    def _entry(self, exchange: Exchange, error: ErrorInfo, *, made_good: bool) -> dict[str, Any]:
        lost: dict[str, None] = {}
        for change in exchange.report:
            if len(lost) == SHOWN_CHANGES:
                break
            lost[log_text(f"{change.action} {change.path}: {change.reason}", 200)] = None
        return {
            "time": self._now(),
            "kind": error.kind,
            "message": shown_message(error, is_own=exchange.is_refused),
            "made_good": made_good,
            "client": exchange.client,
            "wire": exchange.wire_api,
            "requested": log_text(exchange.requested, 100),
            "model": log_text(exchange.target, 100),
            "lost": list(lost),
        }

    def snapshot(self) -> dict[str, Any]:
        """Everything that the page shows, as JSON."""
        now = self._clock()
        newest = list(self._open.values())[-SHOWN_STREAMS:]
        return {
            "totals": {"open": len(self._open), **self._totals},
            "streams": [_stream(exchange, now) for exchange in reversed(newest)],
            "errors": list(self._errors),
        }


def _stream(exchange: Exchange, now: float) -> dict[str, Any]:
    seconds = now - exchange.started_at
    last = exchange.last_token_at
    rate: float | None = None
    idle = seconds
    if exchange.first_token is not None and last is not None:
        idle = now - last
        # A delta is about a token. The first says nothing of the speed: it waited for its prompt.
        streaming = seconds - exchange.first_token
        if streaming > 0:
            rate = round((exchange.deltas - 1) / streaming, 1)
    gap: float | None = None
    if exchange.first_token is not None:
        gap = max(exchange.longest_gap, idle)
    return {
        "id": exchange.request_id,
        "client": exchange.client,
        "wire": exchange.wire_api,
        "requested": log_text(exchange.requested, 100),
        "model": log_text(exchange.target, 100),
        "target_wire": exchange.target_wire,
        "tokens": exchange.deltas,
        "rate": rate,
        "first_token": exchange.first_token,
        "gap": gap,
        "idle": idle,
        "seconds": seconds,
    }
