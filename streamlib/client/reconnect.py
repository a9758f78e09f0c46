"""An attempt that goes on over another connection, where the stream knows its position.

Experimental: docs/resume.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import anyio

from streamlib.client.attempt import Attempt, Clock, Parse
from streamlib.client.resumption import Resumption
from streamlib.client.retry import RetryPolicy
from streamlib.client.sources import ResponseSource
from streamlib.transport.deadline_timer import DeadlineTimer
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.limits import Limits
from streamlib_parsers.resumable import Position, ResumableParser

ENDED_EARLY: Final = ErrorInfo(
    "truncated", "the connection ended before the response", retryable=True
)

_log: Final = logging.getLogger("streamlib")


class ReconnectingAttempt(Attempt):
    """An attempt whose parser is kept when the connection breaks.

    It connects again as `RetryPolicy` says; the count of its retries begins anew with each event
    of the wire that is received. Arguments are those of `Attempt`, and:

    Args:
        resumption: how to go on.
        retry: how often, and after which delay.
        jitter: a random number from 0 to 1.
    """

    def __init__(
        self,
        source: ResponseSource,
        parse: Parse,
        timer: DeadlineTimer,
        wire_api: WireApi,
        limits: Limits,
        clock: Clock,
        *,
        resumption: Resumption,
        retry: RetryPolicy,
        jitter: Callable[[], float],
    ) -> None:
        super().__init__(source, parse, timer, wire_api, limits, clock)
        self._resumption = resumption
        self._retry = retry
        self._jitter = jitter
        self._failures: list[ErrorInfo] = []
        """See `reconnected`."""
        self._attempts = 0
        """Connections since the last progress."""
        self._broke_at: Position | None = None
        """The position where the last connection broke."""

    async def _end_connection(self, failure: ErrorInfo | None) -> list[ResponseEvent]:
        """The last events; none if another connection goes on."""
        if isinstance(self.parser, ResumableParser):
            # Returned with the next events: whoever closes the stream meanwhile ends it after them.
            self.pending += self._with_context(self.parser.finish_event())
        if self.parser.ended:
            self.finished = True
            return []
        while not self.finished:
            connection = self._next_connection(failure or ENDED_EARLY)
            if connection is None:
                return self._end(failure)
            delay, source = connection
            self._failures.append(failure or ENDED_EARLY)
            self.reconnected = tuple(self._failures)
            await self.close()
            await self._pause(delay)
            if self.finished:  # another task closed it meanwhile
                break
            failure = await self._connect(source)
            if failure is None:
                break
        return []

    def _next_connection(self, failure: ErrorInfo) -> tuple[float, ResponseSource] | None:
        """Seconds until the next connection, and its source; None if there is none."""
        parser = self.parser
        # Without an id or a position nothing can be resumed: the stream is truncated.
        if not isinstance(parser, ResumableParser) or parser.position is None:
            return None
        response_id = parser.response_id or self._resumption.response_id
        if response_id is None:
            return None
        if parser.position != self._broke_at:
            self._attempts = 0
        self._broke_at = parser.position
        delay = self._retry.wait(
            failure,
            self._attempts,
            self._timer.waited,
            self._jitter(),
            self._timer.deadlines.total,
        )
        if delay is None:
            return None
        self._attempts += 1
        _log.info("reconnecting in %.3g s after %s: %s", delay, parser.position, failure.kind)
        return delay, self._resumption.connect(response_id, parser.position)

    async def _pause(self, seconds: float) -> None:
        # The scope lets another task that closes the stream end the delay.
        with anyio.CancelScope() as self._scope:
            await anyio.sleep(seconds)
        self._scope = None
        self._timer.add_waited(seconds)

    async def _connect(self, source: ResponseSource) -> ErrorInfo | None:
        """Sends the request for the rest of the stream; None, or the failure."""
        parser = self.parser
        if isinstance(parser, ResumableParser):
            parser.reconnect()
        self._source = source
        self._parse = lambda headers, received_at: parser
        failure = await self._exchange(self._now)
        self._timer.restart()
        if self.finished:  # another task closed it meanwhile
            await self.close()
        if failure is not None:
            return source.redact(failure)
        return None
