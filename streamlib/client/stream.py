"""A response while it streams: events one by one or in batches, what they add up to at any moment, and a connection that is closed
when the block ends, however it ends.

    async with client.stream(prompt, model="anthropic:claude-opus-5") as stream:
        async for event in stream: ...
    stream.response                       # whole, or what came before a break, a cancellation or an error

A class, not an async generator: leaving a loop leaves nothing half run. No task is started and no timeout scope outlives a call.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import anyio
import msgspec
from msgspec import Struct

from streamlib.client.attempt import Attempt, BytesSource, Clock, Parse, Source
from streamlib.client.retry import NO_RETRY, RetryPolicy
from streamlib.errors import StreamError
from streamlib.request.build import Request
from streamlib.transport.deadlines import Deadlines, DeadlineTimer
from streamlib_parsers.accumulate import Accumulator, Response, Timing
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    Failed,
    FunctionCallArgumentsDelta,
    MediaDelta,
    Notice,
    OutputItemDone,
    OutputTextDelta,
    RateLimits,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
)
from streamlib_parsers.items import FunctionCall, ServerToolCall, WireApi
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.protocol import Parser

if TYPE_CHECKING:
    from streamlib_parsers.json_fragments import IncrementalJson

ErrorMode: TypeAlias = Literal["raise", "event"]

TOKEN_EVENTS: Final = frozenset(
    {
        OutputTextDelta,
        ReasoningContentDelta,
        FunctionCallArgumentsDelta,
        ReasoningSummaryDelta,
        RefusalDelta,
        MediaDelta,
    }
)
"""Events that bring something a model wrote."""

RETRY_SAFE_EVENTS: Final = frozenset({RateLimits, Notice, Failed})
"""Events that say nothing of an answer: after these alone, a request may be sent again."""

CANCELLED: Final = ErrorInfo("cancelled", "the stream was closed before its end")

_log: Final = logging.getLogger("streamlib")


def check_errors(errors: ErrorMode) -> None:
    """A misspelt word would turn every exception off."""
    if errors not in get_args(ErrorMode):
        raise ValueError(f"errors is one of {', '.join(get_args(ErrorMode))}, not {errors!r}")


def wall_clock() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


class StreamConfig(Struct, frozen=True):
    """How one stream is made: where its bytes come from, and the rules it keeps.

    orphans: attempts of streams that were dropped open. The collector cannot wait for a connection to close: the next stream does.
    """

    source: Source
    parse: Parse
    wire_api: WireApi
    request: Request | None = None
    limits: Limits = LIMITS
    deadlines: Deadlines = Deadlines()
    retry: RetryPolicy = NO_RETRY
    errors: ErrorMode = "raise"
    clock: Clock = anyio.current_time
    now: Callable[[], datetime] = wall_clock
    jitter: Callable[[], float] = lambda: 0.0
    orphans: list[Attempt] = []

    def __post_init__(self) -> None:
        check_errors(self.errors)


class ResponseStream:
    """One response. Made by `Client.stream`, or by `ResponseStream.from_chunks` from bytes of any origin; used with `async with`.

    It has one reader; `streamlib.pipeline.tee(stream, 2)` gives its events to several.
    """

    def __init__(self, plan: StreamConfig) -> None:
        self.retried: tuple[ErrorInfo, ...] = ()
        """The failures after which the request was sent again."""
        self._plan = plan
        self._watch = DeadlineTimer(plan.deadlines)
        self._accumulator = Accumulator()
        self._attempt = self._new_attempt()
        self._pending: deque[ResponseEvent] = deque()
        self._views: dict[int, IncrementalJson] = {}
        self._pause: anyio.CancelScope | None = None
        self._entered = self._busy = self._has_output = self._closed = False
        self._cancelled = False
        self._sent = 0.0
        self._first_byte: float | None = None
        self._first_token: float | None = None
        self._last: float | None = None
        self._made_at = _caller()

    @classmethod
    def from_chunks(
        cls,
        chunks: AsyncIterable[bytes],
        parser: Parser,
        *,
        deadlines: Deadlines | None = None,
        errors: ErrorMode = "raise",
        limits: Limits = LIMITS,
        clock: Clock = anyio.current_time,
    ) -> ResponseStream:
        """The stream of bytes that come from anywhere: aiohttp, botocore, a file, a recording. The iterator is closed with it."""

        def given(headers: Mapping[str, str] | None, received_at: datetime | None) -> Parser:
            return parser

        return cls(
            StreamConfig(
                BytesSource(chunks),
                given,
                parser.wire_api,
                None,
                limits,
                deadlines or Deadlines(),
                NO_RETRY,
                errors,
                clock,
            )
        )

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._entered else "new"
        return f"<ResponseStream {self._plan.wire_api} {state}>"

    # --- what is known ---

    @property
    def response(self) -> Response:
        """What the events given out so far add up to; after the end, however it came, with everything that was received."""
        response = self._accumulator.response
        return msgspec.structs.replace(response, timing=self._timing(response))

    @property
    def snapshot(self) -> Response:
        """The response so far: the same as `response`, by the name it has while streaming."""
        return self.response

    @property
    def timing(self) -> Timing:
        """Seconds since the request that was answered was sent. `longest_gap` is waiting alone, without what the caller did meanwhile."""
        return self._timing(self._accumulator.response)

    @property
    def rate_limits(self) -> RateLimits | None:
        """What is left, as far as the headers or the stream said."""
        held = (event for event in self._attempt.pending if isinstance(event, RateLimits))
        return self._accumulator.response.rate_limits or next(held, None)

    @property
    def request(self) -> Request:
        """What was asked; it holds no key. LookupError for bytes that somebody else asked for."""
        if self._plan.request is None:
            raise LookupError("a stream over given bytes has no request")
        return self._plan.request

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers, names in lower case."""
        return self._attempt.headers

    @property
    def status(self) -> int | None:
        """The answer's HTTP status."""
        return self._attempt.status

    def partial(self, index: int) -> dict[str, Any]:
        """The arguments of the call at `index` as far as they have come: a live view, the same growing object each time. Only the text
        that is new is read, so it may be asked for after every delta.
        """
        from streamlib_parsers.json_fragments import (
            IncrementalJson,
        )  # few streams are looked at in this way

        view = self._views.get(index)
        if view is None:
            item = self._accumulator.item(index)
            if not isinstance(item, (FunctionCall, ServerToolCall)):
                raise LookupError(f"item {index} has no arguments")
            view = self._views[index] = IncrementalJson()
            view.feed(item.arguments)
        value = view.partial()
        return value if isinstance(value, dict) else {}

    # --- its life ---

    async def __aenter__(self) -> ResponseStream:
        if self._entered:
            raise RuntimeError("a stream is entered once: ask the client for another")
        self._entered = True
        await self._exclusive(self._open)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the stream; allowed from another task, whose `async for` then ends with `cancelled`. Twice is once."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._attempt.finished and not self._busy:
                await self._attempt.drain()
        finally:
            await self._close_connection()

    def __del__(self) -> None:
        if getattr(self, "_entered", False) and not self._closed:
            self._plan.orphans.append(self._attempt)
            warnings.warn(
                f"a stream made at {self._made_at} was never closed: use `async with`",
                ResourceWarning,
                stacklevel=1,
                source=self,
            )

    # --- reading ---

    def __aiter__(self) -> ResponseStream:
        return self

    async def __anext__(self) -> ResponseEvent:
        if not self._pending:
            await self._exclusive(self._fill)
        event = self._pending.popleft()
        self._accumulator.feed(event)
        if self._views:
            self._update_views(event)
        if type(event) is Failed and self._plan.errors == "raise":
            raise StreamError(event.error, self.response)
        return event

    def batches(self) -> AsyncIterator[list[ResponseEvent]]:
        """The same events, as many at a time as came together: one await for each read, not for each event."""
        return _Batches(self)

    async def _batch(self) -> list[ResponseEvent]:
        if not self._pending:
            await self._exclusive(self._fill)
        if type(self._pending[0]) is Failed:
            return [await anext(self)]
        last = (
            self._pending.pop()
            if type(self._pending[-1]) is Failed and self._plan.errors == "raise"
            else None
        )
        batch = list(self._pending)
        self._pending.clear()
        self._pending.extend([last] if last is not None else [])
        for event in batch:
            self._accumulator.feed(event)
            if self._views:
                self._update_views(event)
        return batch

    async def _exclusive(self, step: Callable[[], Awaitable[None]]) -> None:
        """Runs a step that waits: one at a time; when it is cancelled, the connection is closed before the cancellation goes on."""
        if not self._entered:
            raise RuntimeError("use `async with` on the stream")
        if self._busy:
            raise RuntimeError("another task is reading this stream")
        self._busy = True
        try:
            await step()
        except StopAsyncIteration:
            raise
        except BaseException:
            self._closed, self._busy = True, False
            await self._close_connection()
            raise
        finally:
            self._busy = False

    async def _open(self) -> None:
        """Sends the request until there is an answer to read, or no further try is worth it."""
        while self._plan.orphans:
            await self._plan.orphans.pop().close()
        while True:
            self._sent = self._plan.clock()
            failure = await self._attempt.open(self._plan.now)
            self._first_byte = (
                self._attempt.last_read_at - self._sent
                if self._attempt.status is not None
                else None
            )
            if failure is None or not await self._wait_for_retry(failure):
                return

    async def _fill(self) -> None:
        """Reads until there are events to give, else ends the iteration."""
        events = await self._attempt.read() if not self._closed else []
        if events and type(events[-1]) is Failed:
            events = await self._retry_if_unstarted(events)
        if events:
            self._has_output = True
            self._time(events)
            self._pending.extend(events)
        elif not self._pending:
            await self._finish()

    async def _retry_if_unstarted(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """A failure that is the very first of its answer, or the first events of another answer."""
        while events and isinstance(failed := events[-1], Failed):
            await self._attempt.close()
            if (
                self._has_output
                or not all(type(event) in RETRY_SAFE_EVENTS for event in events)
                or not await self._wait_for_retry(failed.error)
            ):
                return [] if self._cancelled else events
            await self._open()
            events = await self._attempt.read()
        return events

    async def _wait_for_retry(self, failure: ErrorInfo) -> bool:
        """Waits as the policy says and makes ready for another try; False where there is none."""
        plan, watch = self._plan, self._watch
        wait = plan.retry.wait(
            failure, len(self.retried), watch.waited, plan.jitter(), plan.deadlines.total
        )
        if wait is None or self._closed:
            return False
        _log.info("trying again in %.3g s after %s (status %s)", wait, failure.kind, failure.status)
        self.retried += (failure,)
        with anyio.CancelScope() as self._pause:
            await anyio.sleep(wait)
        self._pause = None
        watch.add_waited(wait)
        self._attempt = self._new_attempt()
        if self._closed:
            self._cancelled = True
            self._pending.extend(self._attempt.abort(CANCELLED))
        return not self._closed

    async def _finish(self) -> None:
        """The end of the iteration: an error for a stream that was closed before its own end."""
        if not self._closed:
            self._closed = True
            try:
                await self._attempt.drain()
            finally:
                await self._attempt.close()
        if self._cancelled and self._plan.errors == "raise":
            raise StreamError(CANCELLED, self.response)
        raise StopAsyncIteration

    async def _close_connection(self) -> None:
        """Closes the connection now; what was received stays."""
        if not self._attempt.finished:
            self._cancelled = True
            self._pending.extend(self._attempt.abort(CANCELLED))
        self._attempt.interrupt()
        if self._pause is not None:
            self._pause.cancel()
        try:
            await self._attempt.close()
        finally:
            if not self._busy:
                self._accumulate_remaining()

    def _accumulate_remaining(self) -> None:
        """What was received and not given out belongs to the response."""
        for event in (*self._pending, *self._attempt.pending):
            self._accumulator.feed(event)
        self._pending.clear()
        self._attempt.pending.clear()

    def _update_views(self, event: ResponseEvent) -> None:
        """Keeps the views of arguments up with the events."""
        if isinstance(event, FunctionCallArgumentsDelta) and event.index in self._views:
            self._views[event.index].feed(event.delta)
        elif isinstance(event, OutputItemDone):
            self._views.pop(event.index, None)  # the final item may differ from what was streamed

    # --- help ---

    def _new_attempt(self) -> Attempt:
        plan = self._plan
        return Attempt(plan.source, plan.parse, self._watch, plan.wire_api, plan.limits, plan.clock)

    def _time(self, events: list[ResponseEvent]) -> None:
        if type(events[0]) in TOKEN_EVENTS or any(type(event) in TOKEN_EVENTS for event in events):
            self._last = self._attempt.last_read_at - self._sent
            self._first_token = self._last if self._first_token is None else self._first_token

    def _timing(self, response: Response) -> Timing:
        first, last = self._first_token, self._last
        written = response.usage.output_tokens if response.usage else None
        speed = (
            written / (last - first)
            if written and first is not None and last is not None and last > first
            else None
        )
        return Timing(self._first_byte, first, last, speed, self._watch.longest_gap)


class _Batches:
    def __init__(self, stream: ResponseStream) -> None:
        self._stream = stream

    def __aiter__(self) -> _Batches:
        return self

    async def __anext__(self) -> list[ResponseEvent]:
        return await self._stream._batch()


def _caller() -> str:
    """The line outside this package that made the stream."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("streamlib."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
