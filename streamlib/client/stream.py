"""A response while it streams: its events, one by one or in batches, and the response so far.

    async with client.stream(prompt, model="anthropic:claude-opus-5") as stream:
        async for event in stream: ...
    stream.response          # complete, or what was received before an error or a cancellation

The connection is closed when the block ends, however it ends. No task is started, no timeout scope
outlives a call, and leaving the loop leaves no suspended frame, as that of a generator would.
"""

from __future__ import annotations

import logging
import warnings
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar, overload

import anyio
import msgspec

from streamlib.client.attempt import Clock
from streamlib.client.call_site import call_site
from streamlib.client.cursor import Cursor
from streamlib.client.stream_config import ErrorMode, StreamConfig, config_of_chunks
from streamlib.client.stream_state import (
    BUSY,
    ENDED,
    TRANSITIONS,
    StreamAction,
    StreamState,
    next_state,
    shown_state,
)
from streamlib.client.stream_timing import StreamTimes
from streamlib.client.watch import NOBODY
from streamlib.pipeline.item_streams import items as items_method
from streamlib.pipeline.opening import pipe as pipe_method
from streamlib.pipeline.reading import Loops, OutputText, Reads, partial_view, update_views
from streamlib.pipeline.statements import AsyncOnly
from streamlib.request.build import Request
from streamlib.transport.deadline_timer import DeadlineTimer
from streamlib.transport.deadlines import NO_DEADLINES, Deadlines
from streamlib_parsers.accumulate import Accumulator, Response, Timing
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    Failed,
    Notice,
    RateLimits,
    ResponseEvent,
)
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.native_class import mypyc_attr
from streamlib_parsers.protocol import Parser
from streamlib_parsers.resumable import ResumableParser
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.structured.item_views import ItemViews

RETRY_SAFE_EVENTS: Final = frozenset({RateLimits, Notice, Failed})
"""Events that hold nothing of a response: a request may be sent again if there were no others."""

CANCELLED: Final = ErrorInfo("cancelled", "the stream was closed before its end")

T = TypeVar("T")

_log: Final = logging.getLogger("streamlib")

# Used in every read: a member of an enum costs 0.07 us to look up, a name of the module 0.02.
_READING: Final = StreamState.READING
_WAIT: Final = StreamAction.WAIT
_RESUME: Final = StreamAction.RESUME


@mypyc_attr(allow_interpreted_subclasses=True)
class ResponseStream(AsyncOnly):
    """One response as an async iterator of events. Used with `async with`.

    Created by `Client.stream`, or by `ResponseStream.from_chunks` over bytes of any origin. It has
    one reader, and is read once; `streamlib.pipeline.tee(stream, 2)` passes its events to several.
    """

    def __init__(self, config: StreamConfig) -> None:
        self.retried: tuple[ErrorInfo, ...] = ()
        """The failures after which the request was sent again."""
        self._config = config
        self._state = StreamState.NEW
        """Changed by `_move` alone."""
        self._timer = DeadlineTimer(config.deadlines)
        self._accumulator = Accumulator()
        """Every delivered event; after the close also those that were received and not read."""
        self._attempt = config.new_attempt(self._timer)
        """The current attempt; replaced before each retry."""
        self._pending: deque[ResponseEvent] = deque()
        """Events that were read and are not delivered yet."""
        self._undelivered: list[ResponseEvent] = []
        """Events that nobody read when the stream was closed: for `rest`."""
        self._loops = Loops()
        self._views: dict[int, ItemViews] = {}
        """Item index to the views of its JSON, for items that `partial` was called for."""
        self._pause: anyio.CancelScope | None = None
        """The scope of the delay before a retry, while it lasts."""
        self._times = StreamTimes(self._timer)
        self._created_at = call_site()
        """File and line that created the stream, for the warning about an unclosed one."""

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
        """A stream over bytes from anywhere: aiohttp, botocore, a file, a recording.

        Args:
            chunks: the response body; closed together with the stream.
            parser: a new parser of the body's wire API.
            deadlines: time limits for each kind of wait; by default there is none. With deadlines,
                each read has a timeout scope (about 10 us), and `aclose` from another task wakes
                the reader at once instead of at the next chunk.
            errors: "raise", or "event" to receive `Failed` instead of an exception.
            limits: limits of what is read.
            clock: seconds, on a clock that runs steadily.
        """
        waits = NO_DEADLINES if deadlines is None else deadlines
        return cls(config_of_chunks(chunks, parser, waits, errors, limits, clock))

    def __repr__(self) -> str:
        return f"<ResponseStream {self._config.wire_api} {shown_state(self._state)}>"

    # --- the response so far ---

    @property
    def response(self) -> Response:
        """The response accumulated from the events delivered so far.

        After the end, whatever it was, it holds everything that was received.
        """
        response = self._accumulator.response
        return msgspec.structs.replace(response, timing=self._times.timing(response))

    @property
    def snapshot(self) -> Response:
        """The same as `response`, under a name that tells that it may be incomplete."""
        return self.response

    @property
    def timing(self) -> Timing:
        """Times of the response, in seconds since its request was sent.

        `longest_gap` counts waiting alone, not what the caller does between two events.
        """
        return self._times.timing(self._accumulator.response)

    @property
    def rate_limits(self) -> RateLimits | None:
        """Remaining rate limits, as far as the headers or the stream reported them."""
        delivered = self._accumulator.response.rate_limits
        if delivered is not None:
            return delivered
        for event in self._attempt.pending:  # from the headers, not delivered yet
            if isinstance(event, RateLimits):
                return event
        return None

    @property
    def request(self) -> Request:
        """The request; it holds no key.

        Raises:
            LookupError: the stream was created by `from_chunks`.
        """
        if self._config.request is None:
            raise LookupError("a stream over bytes has no request")
        return self._config.request

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers, names in lower case."""
        return self._attempt.headers

    @property
    def status(self) -> int | None:
        """HTTP status of the response."""
        return self._attempt.status

    @property
    def cursor(self) -> Cursor | None:
        """The reader's position, for `Client.resume` and `Client.cancel`. Experimental.

        None before the first event, and where nothing can be resumed: the request was not for a
        background response (``background``) or not for its stream, the wire has no such streams
        (all but responses and interactions), or the server numbers no events.
        """
        resumption = self._config.resumption
        parser = self._attempt.parser
        if resumption is None or not isinstance(parser, ResumableParser):
            return None
        undelivered = len(self._pending) + len(self._attempt.pending) + len(self._undelivered)
        return resumption.cursor(parser, undelivered)

    @property
    def reconnected(self) -> Sequence[ErrorInfo]:
        """The failures after which another connection went on (``resume=True``)."""
        return self._attempt.reconnected

    @overload
    def partial(self, index: int, kind: None = None) -> dict[str, Any]: ...
    @overload
    def partial(self, index: int, kind: type[T]) -> T: ...
    @overload
    def partial(self, index: int, kind: object) -> Any: ...
    def partial(self, index: int, kind: object = None) -> Any:
        """The JSON of an item, as far as it was received: a call's arguments, or a message's text.

        Cheap enough to be called after every delta: only the new text is read. Never raises for
        what the text holds. Texts are shown as they grow; numbers, dates and the like once they are
        complete.

        Args:
            index: `index` of the item's events.
            kind: a class to make a partial object of, without its validation: fields that are not
                there yet are `UNSET`. Without it, a dict.

        Returns:
            A live view: the same object each time, which grows until its item is done.

        Raises:
            LookupError: the item has neither arguments nor text.
            TypeError: the class's library cannot read the class.
        """
        return partial_view(self._views, self._accumulator.item, index, kind)

    # --- life cycle ---

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet: a reader that owns it enters it then."""
        return self._state is StreamState.NEW

    def _move(self, action: StreamAction) -> None:
        # `next_state` without its call: this runs twice per read.
        following = TRANSITIONS[self._state].get(action)
        self._state = following or next_state(self._state, action)

    async def __aenter__(self) -> Self:
        self._move(StreamAction.ENTER)
        watch = NOBODY if self._state in ENDED else self._config.watch  # a closed one sends nothing
        with watch.opening():
            await self._exclusive(self._open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the stream. A second call does nothing.

        Another task may call it: the reader's `async for` then ends with `cancelled`.
        """
        if self._state in ENDED:
            return
        response_ended = self._attempt.finished
        self._end()
        # While a task waits in the stream, the connection is not ours to read.
        if response_ended and self._state not in BUSY:
            await self._drain_and(self._close_connection)
        else:
            await self._close_connection()

    def __del__(self) -> None:
        # Without `_state`, `__init__` failed.
        state = getattr(self, "_state", StreamState.NEW)
        if state is StreamState.NEW or state in ENDED:
            return
        self._config.orphans.append(self._attempt)
        warnings.warn(
            f"a stream created at {self._created_at} was never closed: use `async with`",
            ResourceWarning,
            stacklevel=1,
            source=self,
        )

    # --- reading ---

    def __aiter__(self) -> ResponseStream:
        self._loops.begin()
        return self

    async def __anext__(self) -> ResponseEvent:
        if not self._pending:
            await self._exclusive(self._fill)
        event = self._pending.popleft()
        self._accumulator.feed(event)
        if self._views:  # few streams have any: no call per event
            update_views(self._views, event)
        if type(event) is Failed and self._config.errors == "raise":
            self._loops.end()
            raise StreamError(event.error, self.response)
        return event

    def rest(self) -> list[ResponseEvent]:
        """The events that no iteration delivered, once the stream is closed; else none.

        A reader whose task is cancelled, or that leaves its loop, receives no further event. What
        had been received, the ends of open items and the terminal event are here, for a log that
        must be complete. They are part of `response` already.
        """
        return list(self._undelivered)

    def batches(self) -> AsyncIterator[list[ResponseEvent]]:
        """The same events in lists, one list per read: one await per read instead of per event.

        For work that is done once per read. In a burst it saves 6 % of the time per event; where
        each event arrives alone, as a model writes them, it takes a tenth longer.
        """
        return Reads(self._next_batch, self.__aiter__)

    items: ClassVar = items_method
    """A stream for each item: ``async for item in stream.items()``; see `streamlib.pipeline`."""

    # `ClassVar`, else the compiled class has it as an attribute that is no method.
    pipe: ClassVar = pipe_method
    """The events through stages: ``stream.pipe(coalesce(1 / 30))``; see `streamlib.pipeline`."""

    def text(self) -> AsyncIterator[str]:
        """The text of the same events: ``async for text in stream.text(): print(text, end="")``.

        Joined, it is `Response.text`: no reasoning, no refusals, the first choice. Only where
        several texts are open at once do they come as the provider sent them. Leaving the loop,
        closing and cancelling are as for events, which may be read before, and after a loop that
        was left. Why the text ended is in `response.stop_reason`: the token limit raises nothing.

        Raises:
            StreamError: the stream failed, with errors="event" too.
        """
        text = OutputText(self._accumulator.item, lambda: self.response)
        return Reads(partial(text.read, self.__anext__), self.__aiter__)

    async def _next_batch(self) -> list[ResponseEvent]:
        if not self._pending:
            await self._exclusive(self._fill)
        # A failure alone: raised, or returned as the last batch.
        if type(self._pending[0]) is Failed:
            return [await anext(self)]
        batch = list(self._pending)
        self._pending.clear()
        # A failure that will be raised waits until the events before it are delivered.
        if type(batch[-1]) is Failed and self._config.errors == "raise":
            self._pending.append(batch.pop())
        for event in batch:
            self._accumulator.feed(event)
            if self._views:
                update_views(self._views, event)
        return batch

    async def _exclusive(self, step: Callable[[], Awaitable[None]]) -> None:
        """Runs a step that waits; only one at a time.

        If the step fails or is cancelled, the connection is closed before the exception goes on.
        """
        self._move(_WAIT)
        try:
            await step()
        except StopAsyncIteration:
            self._move(_RESUME)
            raise
        except BaseException:
            self._end()
            # Before the close, which adds undelivered events to the response only if no task waits.
            self._move(_RESUME)
            await self._close_connection()
            raise
        self._move(_RESUME)

    async def _open(self) -> None:
        """Sends the request, until there is a response to read or a failure to deliver."""
        if self._state in ENDED:  # closed before it was entered
            return
        orphans = self._config.orphans
        while orphans:
            await orphans.pop().close()
        while True:
            self._times.start(self._config.clock())
            failure = await self._attempt.open(self._config.now)
            if self._attempt.status is not None:
                self._times.note_headers(self._attempt.last_read_at)
            if failure is None:
                return
            delay = self._retry_delay([], failure)
            if delay is None:
                return
            self._begin_retry(delay, failure)
            if not await self._pause_before_retry(delay):
                return

    async def _fill(self) -> None:
        """Reads the next events to deliver, or ends the iteration."""
        events: list[ResponseEvent] = []
        if self._state not in ENDED:
            events = await self._attempt.read()
        # A failure ends an attempt: it can only be the last event of a read.
        if events and type(events[-1]) is Failed:
            events = await self._retry_if_unstarted(events)
        if self._config.resumption is not None:
            self._accumulate_replayed()
        if events:
            if self._state is not _READING:  # in READING, `DELIVER` would change nothing
                self._move(StreamAction.DELIVER)
            self._times.note_events(events, self._attempt.last_read_at)
            self._config.watch.received(events, self._attempt.last_read_at)
            self._pending.extend(events)
        elif not self._pending:
            await self._finish()

    async def _retry_if_unstarted(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """Sends the request again if the response failed before it began.

        Args:
            events: events of one read, the last of them `Failed`.

        Returns:
            The same events, or the first ones of another attempt.
        """
        while events:
            failed = events[-1]
            if not isinstance(failed, Failed):
                break
            ended_attempt = self._attempt
            delay = self._retry_delay(events, failed.error)
            if delay is None:
                try:
                    await ended_attempt.close()
                except BaseException:
                    self._pending.extend(events)  # the reader is cancelled: for `rest`
                    raise
                break
            # Before anything is awaited: whoever closes the stream from here on ends the next
            # attempt, and with it the response, as cancelled.
            self._begin_retry(delay, failed.error)
            # Its connection is free before the delay, not after it.
            await ended_attempt.close()
            if not await self._pause_before_retry(delay):
                return []  # `_pending` holds the end of the stream already
            await self._open()
            events = await self._attempt.read()
        return events

    def _retry_delay(self, events: list[ResponseEvent], failure: ErrorInfo) -> float | None:
        """Seconds until the request is sent again; None if it is not.

        Args:
            events: what the failed attempt yielded and nobody received yet.
            failure: why it failed.
        """
        if self._state is _READING or self._state in ENDED:
            return None
        resumption = self._config.resumption
        if resumption is not None and not resumption.may_send_again(self._attempt.status):
            return None
        for event in events:
            if type(event) not in RETRY_SAFE_EVENTS:
                return None
        config = self._config
        # Not of a connection that is taken up again: there the response goes on.
        within = config.retry.within
        if within is not None and self._timer.waited >= within:
            return None
        return config.retry.wait(
            failure,
            len(self.retried),
            self._timer.waited,
            config.jitter(),
            config.deadlines.total,
        )

    def _begin_retry(self, delay: float, failure: ErrorInfo) -> None:
        _log.info("retrying in %.3g s after %s (status %s)", delay, failure.kind, failure.status)
        self.retried += (failure,)
        self._attempt = self._config.new_attempt(self._timer)

    async def _pause_before_retry(self, delay: float) -> bool:
        """Waits as the policy says; False if another task closed the stream meanwhile."""
        if self._state in ENDED:
            return False
        # The scope lets another task that closes the stream end the delay.
        with anyio.CancelScope() as self._pause:
            await anyio.sleep(delay)
        self._pause = None
        self._timer.add_waited(delay)
        return self._state not in ENDED

    async def _finish(self) -> None:
        """Ends the iteration; with an error if the stream was closed before the response's end."""
        if self._state not in ENDED:
            self._move(StreamAction.CLOSE)
            await self._drain_and(self._attempt.close)
            self._config.watch.ended(self)
        if self._state is StreamState.CANCELLING and self._config.errors == "raise":
            raise StreamError(CANCELLED, self.response)
        self._loops.end()
        raise StopAsyncIteration

    def _end(self) -> None:
        """Marks the stream closed, and ends an attempt that has not ended by itself."""
        if self._attempt.finished:
            self._move(StreamAction.CLOSE)
        else:
            self._move(StreamAction.CANCEL)
            self._pending.extend(self._attempt.abort(CANCELLED))

    async def _drain_and(self, close: Callable[[], Awaitable[None]]) -> None:
        """Reads what follows the response, then closes, even if the reader is cancelled."""
        # No `await` in a `finally`: mypyc raises again there what was handled (docs/compiled.md).
        try:
            await self._attempt.drain()
        except BaseException:
            await close()
            raise
        await close()

    async def _close_connection(self) -> None:
        """Closes the connection and wakes a task that waits; what was received stays."""
        self._attempt.interrupt()
        if self._pause is not None:
            self._pause.cancel()
        try:
            await self._attempt.close()
        finally:
            # A task that still waits delivers its events itself.
            if self._state not in BUSY:
                self._accumulate_remaining()
            self._config.watch.ended(self)

    def _accumulate_remaining(self) -> None:
        """Adds events that were received and not delivered to the response."""
        self._accumulate_replayed()
        for event in (*self._pending, *self._attempt.pending):
            self._accumulator.feed(event)
            self._undelivered.append(event)
        self._pending.clear()
        self._attempt.pending.clear()

    def _accumulate_replayed(self) -> None:
        """Adds what was delivered before the cursor of this stream to the response."""
        parser = self._attempt.parser
        if not isinstance(parser, ResumableParser):
            return
        for event in parser.replayed:
            if isinstance(event, RateLimits):
                event = self._config.source.redact_rate_limits(event)  # noqa: PLW2901
            self._accumulator.feed(event)
        parser.replayed.clear()
