"""Observers follow each request of the gateway, without its content and without keys.

    class Slow(Observer):
        def ended(self, exchange: Exchange) -> None:
            if exchange.seconds > 60:
                print(exchange.request_id, exchange.target)

    Gateway(table, observers=[Slow()])

The log, the metrics, the page and the spans are observers. Methods are called in the task of the
request, between two reads: they must not wait, and should be fast.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import anyio
from msgspec import Struct, field

from streamlib.gateway.log_text import log_error
from streamlib.gateway.paths import Operation
from streamlib.request.report import Change
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import TOKEN_EVENTS, ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.usage import Usage

CLIENT_LEFT: Final = 499
"""Status of a request whose client disconnected before the response; nginx logs the same."""

_log: Final = logging.getLogger("streamlib.gateway")


class Exchange(Struct, kw_only=True, eq=False):
    """One request of one client, as far as it is known. Observers read it and do not change it.

    Attributes:
        request_id: id of the request in the log and in response headers.
        wire_api: the client's wire.
        operation: what the client requests: a `response`, a `count` of tokens or a `compaction`.
        client: the client's name in the route file; None: it has none.
        requested: model that the client requested; "" if its request could not be read.
        route: pattern of the route; None if no route matches.
        target: `provider:model` that was tried last.
        target_wire: wire of that target.
        base_url: the target's address in the route; None: its provider's own.
        is_stream: whether the client requests a stream, not one body.
        in_background: whether the response outlives its request.
        trace_headers: `traceparent` and `tracestate` of the request.
        targets_tried: number of targets tried so far.
        started_at: start of the request, in seconds of the event loop's clock.
        first_token: seconds from the start to the first output of a model.
        last_token_at: time of the newest output, in seconds of the same clock.
        longest_gap: longest time between two reads with output, in seconds.
        deltas: number of events with output so far: roughly the tokens, until the usage is known.
        usage: tokens that the provider counted.
        is_usage_estimated: whether the response ended early, so that its output tokens were
            estimated from its characters.
        stop_reason: stop reason of the response.
        status: HTTP status that the client received; None before that.
        error: error that ended the request; None if it succeeded.
        upstream_request_id: id that the target gave the request; None if it gave none.
        is_refused: whether no target was tried; the error's message is then the library's own.
        report: changes and losses in translation between the two wires.
        seconds: duration from start to end; None before the end.
    """

    request_id: str
    wire_api: WireApi
    operation: Operation = "response"
    client: str | None = None
    requested: str = ""
    route: str | None = None
    target: str = ""
    target_wire: WireApi | None = None
    base_url: str | None = None
    is_stream: bool = False
    in_background: bool = False
    trace_headers: dict[str, str] = field(default_factory=dict[str, str])
    targets_tried: int = 0
    started_at: float = 0.0
    first_token: float | None = None
    last_token_at: float | None = None
    longest_gap: float = 0.0
    deltas: int = 0
    usage: Usage | None = None
    is_usage_estimated: bool = False
    stop_reason: str | None = None
    status: int | None = None
    error: ErrorInfo | None = None
    upstream_request_id: str | None = None
    is_refused: bool = False
    report: Sequence[Change] = ()
    seconds: float | None = None


class AccessRefusal(Struct, kw_only=True, frozen=True):
    """A request that may not use the gateway. Its body was not read: it starts no exchange.

    Attributes:
        reason: what was wrong: `token`, `login` (the form of the page), `session` (the page without
            a session), `host`, `origin` or `headers`.
        error: error sent to the client; the message is the library's own.
        status: HTTP status sent to the client.
        method: HTTP method, as received.
        path: path without its query; parts that look like keys are masked.
        address: address of the connection; None: unknown.
    """

    reason: str
    error: ErrorInfo
    status: int
    method: str
    path: str
    address: str | None


class Observer:
    """Sees every request of a gateway. A method that is not overridden does nothing."""

    def started(self, exchange: Exchange) -> None:
        """A request was read and has a route, or it was refused: then `ended` follows at once."""

    def target_tried(self, exchange: Exchange) -> None:
        """The request is sent to `exchange.target`."""

    def upstream_failed(self, exchange: Exchange, error: ErrorInfo) -> None:
        """`exchange.target` failed, before its first output or after it."""

    def first_token(self, exchange: Exchange) -> None:
        """The first output of a model was received."""

    def gap(self, exchange: Exchange, seconds: float) -> None:
        """More output was received, `seconds` after the output before it."""

    def ended(self, exchange: Exchange) -> None:
        """The request ended and the exchange is complete. Called once for each started request."""

    def access_refused(self, refusal: AccessRefusal) -> None:
        """Access control refused a request: no other method is called for it."""


class Watch:
    """Keeps the exchange of one request, and calls the observers."""

    def __init__(
        self,
        exchange: Exchange,
        observers: Sequence[Observer] = (),
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        """Starts to watch a request.

        Args:
            exchange: exchange of the request.
            observers: observers to call.
            clock: returns seconds.
        """
        self.exchange = exchange
        self._observers = observers
        self._clock = clock
        self._is_started = False
        """Whether the observers were told of the request."""
        exchange.started_at = clock()

    def started(self) -> None:
        """The request was read: its model and its route are known."""
        self._is_started = True
        self._call(lambda observer: observer.started(self.exchange))

    def tried(self, target: str, wire_api: WireApi, base_url: str | None) -> None:
        """The request is sent to a target."""
        exchange = self.exchange
        exchange.target = target
        exchange.target_wire = wire_api
        exchange.base_url = base_url
        exchange.upstream_request_id = None
        exchange.targets_tried += 1
        self._call(lambda observer: observer.target_tried(exchange))

    def failed(self, error: ErrorInfo, request_id: str | None = None) -> None:
        """The target that was tried last failed.

        Args:
            error: why.
            request_id: the id that the target gave the request.
        """
        self.exchange.upstream_request_id = request_id
        self._call(lambda observer: observer.upstream_failed(self.exchange, error))

    def received(self, events: Sequence[ResponseEvent]) -> None:
        """Events of one read were received. Runs for every read, so it does little."""
        count = 0
        for event in events:
            if type(event) in TOKEN_EVENTS:
                count += 1
        if not count:
            return
        exchange = self.exchange
        now = self._clock()
        last = exchange.last_token_at
        exchange.deltas += count
        exchange.last_token_at = now
        if exchange.first_token is None:
            exchange.first_token = now - exchange.started_at
            self._call(lambda observer: observer.first_token(exchange))
        # After a failed target, the wait for the next one's output is not a gap in a stream.
        elif last is not None:
            seconds = now - last
            exchange.longest_gap = max(exchange.longest_gap, seconds)
            self._call(lambda observer: observer.gap(exchange, seconds))

    def ended(self, error: ErrorInfo | None, report: Sequence[Change]) -> None:
        """The request ended.

        Args:
            error: error that ended it; None if it succeeded.
            report: changes and losses.
        """
        exchange = self.exchange
        if exchange.seconds is not None:
            return
        if not self._is_started:
            self.started()
        exchange.seconds = self._clock() - exchange.started_at
        exchange.error = error
        exchange.report = report
        if exchange.status is None and error is not None and error.kind == "cancelled":
            exchange.status = CLIENT_LEFT
        self._call(lambda observer: observer.ended(exchange))

    def _call(self, notify: Callable[[Observer], None]) -> None:
        call_observers(self._observers, notify, self.exchange.request_id)


def call_observers(
    observers: Sequence[Observer], notify: Callable[[Observer], None], name: str
) -> None:
    """Calls each observer. If one raises, the error is logged.

    Args:
        observers: observers to call.
        notify: calls a method of one observer.
        name: name of the request or refusal for the log line.
    """
    for observer in observers:
        try:
            notify(observer)
        except Exception as error:  # noqa: BLE001
            # An observer's error must not end the stream.
            _log.error("%s an observer failed: %s", name, log_error(error))
