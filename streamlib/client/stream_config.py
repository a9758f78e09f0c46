"""How a `ResponseStream` is made: its source, its parser and its rules."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, get_args

import anyio
from msgspec import Struct

from streamlib.client.attempt import Attempt, Clock, Parse
from streamlib.client.reconnect import ReconnectingAttempt
from streamlib.client.resumption import Resumption
from streamlib.client.retry import NO_RETRY, RetryPolicy
from streamlib.client.sources import BytesSource, ResponseSource
from streamlib.client.watch import NOBODY, StreamWatch
from streamlib.request.build import Request
from streamlib.request.mistakes import check_word
from streamlib.request.prompt import Prompt
from streamlib.transport.deadline_timer import DeadlineTimer
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers.items import WireApi
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.protocol import Parser

ErrorMode: TypeAlias = Literal["raise", "event"]
"""What a failure does: raises `StreamError`, or is delivered as the event `Failed`."""

ERROR_MODES: Final = get_args(ErrorMode)


def check_errors(errors: ErrorMode) -> None:
    """Refuses an unknown mode: a misspelt one would turn every exception off.

    Raises:
        ValueError: `errors` is not an `ErrorMode`.
    """
    check_word("errors", errors, ERROR_MODES)


def wall_clock() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def no_jitter() -> float:
    """Jitter for streams that do not retry."""
    return 0.0


class StreamConfig(Struct, frozen=True, kw_only=True):
    """Configuration of one stream.

    Attributes:
        source: where responses come from; each attempt sends to it anew.
        parse: creates the parser of a response.
        wire_api: the wire API of the responses.
        request: what is sent; None for bytes that the caller provides.
        limits: limits of what is read.
        deadlines: time limits for each kind of wait.
        retry: when a failed request is sent again.
        errors: whether a failure is raised or delivered.
        clock: seconds, on a clock that runs steadily.
        now: the current time with a time zone, for signatures and rate limits.
        jitter: a random number from 0 to 1, for the delay before a retry.
        orphans: attempts of streams that were garbage-collected while open, shared by the streams
            of a client. The garbage collector cannot await the closing of a connection: the next
            stream does.
        resumption: how the stream is resumed where it broke; None if it cannot be.
        prompt: what the request was built from; None where the caller gave a `Request`.
        watch: is told of the stream.
    """

    source: ResponseSource
    parse: Parse
    wire_api: WireApi
    request: Request | None = None
    limits: Limits = LIMITS
    deadlines: Deadlines = Deadlines()
    retry: RetryPolicy = NO_RETRY
    errors: ErrorMode = "raise"
    clock: Clock = anyio.current_time
    now: Callable[[], datetime] = wall_clock
    jitter: Callable[[], float] = no_jitter
    orphans: list[Attempt] = []
    resumption: Resumption | None = None
    prompt: Prompt | None = None
    watch: StreamWatch = NOBODY

    def __post_init__(self) -> None:
        check_errors(self.errors)

    def new_attempt(self, timer: DeadlineTimer) -> Attempt:
        """The next attempt of the stream."""
        resumption = self.resumption
        if resumption is None or not resumption.automatic:
            return Attempt(self.source, self.parse, timer, self.wire_api, self.limits, self.clock)
        return ReconnectingAttempt(
            self.source,
            self.parse,
            timer,
            self.wire_api,
            self.limits,
            self.clock,
            resumption=resumption,
            retry=self.retry,
            jitter=self.jitter,
        )


def config_of_chunks(
    chunks: AsyncIterable[bytes],
    parser: Parser,
    deadlines: Deadlines,
    errors: ErrorMode,
    limits: Limits,
    clock: Clock,
) -> StreamConfig:
    """The configuration of a stream over bytes from anywhere, read by `parser`."""
    return StreamConfig(
        source=BytesSource(chunks),
        parse=lambda headers, received_at: parser,
        wire_api=parser.wire_api,
        limits=limits,
        deadlines=deadlines,
        errors=errors,
        clock=clock,
    )
