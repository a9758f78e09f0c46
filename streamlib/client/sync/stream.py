"""A response while it streams, for code without an event loop.

    with client.stream(prompt, model="anthropic:claude-opus-5") as stream:
        for event in stream: ...
    stream.response

Events are awaited in the client's thread, one call for each read, and delivered in the reader's: so
`snapshot` holds what was delivered and nothing more.
"""

from __future__ import annotations

import inspect
import threading
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from streamlib.client.cursor import Cursor
from streamlib.client.hooks import OnEvent
from streamlib.client.stream import ResponseStream
from streamlib.client.stream_config import StreamConfig
from streamlib.client.stream_state import ENDED
from streamlib.client.sync.loop_thread import LoopThread
from streamlib.pipeline.item_streams import sync_items
from streamlib.pipeline.machine import PipeOptions
from streamlib.pipeline.opening import pipe as pipe_method
from streamlib.pipeline.reading import OutputText
from streamlib.pipeline.statements import SyncOnly
from streamlib.request.build import Request
from streamlib.structured.stream_items import EventItems
from streamlib_parsers.accumulate import Response, Timing
from streamlib_parsers.errors import ErrorInfo, IncompleteOutput
from streamlib_parsers.events import (
    Completed,
    Failed,
    RateLimits,
    ResponseEvent,
)
from streamlib_parsers.items import ResponseItem
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.client.sync import SyncClient
    from streamlib.pipeline.machine import Stage
    from streamlib.pipeline.sync_stream import Driver

T = TypeVar("T")


class LockedStream(ResponseStream):
    """A stream that waits in one thread and delivers in another."""

    def __init__(self, config: StreamConfig) -> None:
        super().__init__(config)
        self.lock = threading.RLock()
        """Held while events are delivered, or the response is read. Never while waiting."""

    @property
    def has_ended(self) -> bool:
        """Whether it was closed, or read to its end."""
        return self._state in ENDED

    @property
    def response(self) -> Response:
        """See `ResponseStream`."""
        with self.lock:
            return super().response

    @property
    def cursor(self) -> Cursor | None:
        """See `ResponseStream`."""
        with self.lock:
            return super().cursor

    async def fill(self) -> bool:
        """Waits until there is an event to deliver; False at the end."""
        if self._pending:
            return True
        try:
            await self._exclusive(self._fill)
        except StopAsyncIteration:
            return False
        return True

    async def read_all(self) -> None:
        """Reads to the end."""
        async for _ in self.batches():
            pass

    def next_events(self) -> list[ResponseEvent]:
        """The events that `take_batch` would deliver."""
        with self.lock:
            events = list(self._pending)
        if len(events) > 1 and type(events[-1]) is Failed and self._config.errors == "raise":
            events.pop()  # raised by the call after it
        return events

    def item(self, index: int) -> ResponseItem:
        """The item of an index, as far as it was delivered."""
        with self.lock:
            return self._accumulator.item(index)

    def take(self) -> ResponseEvent | None:
        """Delivers the next event; None if it must be waited for."""
        with self.lock:
            if not self._pending:
                return None
            return _without_waiting(self.__anext__())

    def take_batch(self) -> list[ResponseEvent] | None:
        """Delivers every event that is there; None if one must be waited for."""
        with self.lock:
            if not self._pending:
                return None
            return _without_waiting(self._next_batch())

    def _accumulate_replayed(self) -> None:
        with self.lock:
            super()._accumulate_replayed()

    def abandon(self) -> None:
        """Leaves the connection to the next stream of the client, which closes it."""
        self._config.orphans.append(self._attempt)

    def _accumulate_remaining(self) -> None:
        with self.lock:
            self._accumulate_replayed()
            for event in (*self._pending, *self._attempt.pending):
                # Ctrl-C between taking an event and feeding it leaves the accumulator without it.
                # The terminal event needs no other: the response is `cancelled`.
                with suppress(ValueError):
                    self._accumulator.feed(event)
                self._undelivered.append(event)
            self._pending.clear()
            self._attempt.pending.clear()

    def __del__(self) -> None:
        """Nothing: `SyncStream` closes what was abandoned."""


class SyncStream(SyncOnly):
    """One response as an iterator of events. Used with `with`; created by `SyncClient.stream`.

    It has one reader, and is read once: once a loop came to the end, a further one is a
    RuntimeError. Any thread may look at `snapshot`, and may `close` it: a reader that waits
    then ends with `cancelled`.
    """

    def __init__(
        self,
        client: SyncClient,
        loop: LoopThread,
        stream: LockedStream,
        on_event: OnEvent | None,
    ) -> None:
        self._client = client
        """Kept alive: a client that is garbage-collected closes its streams."""
        self._loop = loop
        self._stream = stream
        self._on_event = on_event

    def __repr__(self) -> str:
        return repr(self._stream).replace("ResponseStream", "SyncStream")

    # --- the response so far ---

    @property
    def response(self) -> Response:
        """The response accumulated from the events delivered so far, after the end from all."""
        return self._stream.response

    @property
    def snapshot(self) -> Response:
        """The same as `response`, under a name that tells that it may be incomplete."""
        return self._stream.response

    @property
    def timing(self) -> Timing:
        """Times of the response, in seconds since its request was sent."""
        return self._stream.timing

    @property
    def rate_limits(self) -> RateLimits | None:
        """Remaining rate limits, as far as the headers or the stream reported them."""
        return self._stream.rate_limits

    @property
    def request(self) -> Request:
        """The request; it holds no key."""
        return self._stream.request

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers, names in lower case."""
        return self._stream.headers

    @property
    def status(self) -> int | None:
        """HTTP status of the response."""
        return self._stream.status

    @property
    def cursor(self) -> Cursor | None:
        """The reader's position, as `ResponseStream.cursor`."""
        return self._stream.cursor

    @property
    def reconnected(self) -> Sequence[ErrorInfo]:
        """The failures after which another connection went on (``resume=True``)."""
        return self._stream.reconnected

    @property
    def retried(self) -> tuple[ErrorInfo, ...]:
        """The failures after which the request was sent again."""
        return self._stream.retried

    @overload
    def partial(self, index: int, kind: None = None) -> dict[str, Any]: ...
    @overload
    def partial(self, index: int, kind: type[T]) -> T: ...
    @overload
    def partial(self, index: int, kind: object) -> Any: ...
    def partial(self, index: int, kind: object = None) -> Any:
        """The JSON of an item as far as it was delivered: a call's arguments, or a message's text.

        Args:
            index: `index` of the item's events.
            kind: a class to make a partial object of: fields that are not there yet are `UNSET`.
                Without it, a dict.

        Raises:
            LookupError: the item has neither arguments nor text.
        """
        with self._stream.lock:
            return self._stream.partial(index, kind)

    def rest(self) -> list[ResponseEvent]:
        """The events that no iteration delivered, once the stream is closed; else none."""
        return self._stream.rest()

    # --- life cycle ---

    def __enter__(self) -> SyncStream:
        try:
            self._client._opened(self._stream)
            self._loop.call(self._stream.__aenter__)
        except BaseException:
            self.close()  # Ctrl-C: without its `with` block nobody else would
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        except BaseException:
            self.close()  # Ctrl-C came before it could begin
            raise

    def close(self) -> None:
        """Ends the stream and closes its connection. A second call does nothing.

        Any thread may call it; in a process that was forked it does nothing.
        """
        if not self._stream.is_new and not self._stream.has_ended and self._loop.is_usable:
            self._loop.call(self._stream.aclose)

    def __del__(self) -> None:
        # Without `_stream`, `__init__` failed.
        stream: LockedStream | None = getattr(self, "_stream", None)
        if stream is None or stream.is_new or stream.has_ended:
            return
        if self._loop.is_usable:
            # In another thread: a finalizer may run anywhere, and must not wait for the loop.
            closing = threading.Thread(target=self._loop.call, args=(stream.aclose,), daemon=True)
            closing.start()
        else:
            stream.abandon()
        warnings.warn(
            f"a stream created at {stream._created_at} was never closed: use `with`",
            ResourceWarning,
            stacklevel=1,
            source=self,
        )

    # --- reading ---

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet."""
        return self._stream.is_new

    items: ClassVar = sync_items
    """A stream for each item: ``for item in stream.items()``; see `streamlib.pipeline`."""

    pipe: ClassVar = pipe_method
    """The events through stages: ``with stream.pipe(coalesce(1 / 30)) as events``.

    They run in the client's thread, so every kind of stage works; see `streamlib.pipeline`.
    """

    def _pipe_driver(self, stages: Sequence[Stage], options: PipeOptions) -> Driver:
        """What runs a pipeline in the client's thread."""
        from streamlib.client.sync.piped import HookedEvents, LoopDriver

        events = HookedEvents(self._stream, self._on_event)
        return LoopDriver(self, events, self._client, stages, options)

    def __iter__(self) -> SyncStream:
        aiter(self._stream)  # raises if it was read to its end
        return self

    def __next__(self) -> ResponseEvent:
        while True:
            if self._on_event is not None:
                self._show(self._on_event, self._stream.next_events()[:1])
            event = self._stream.take()
            if event is not None:
                return event
            self._wait()

    def batches(self) -> Iterator[list[ResponseEvent]]:
        """The same events in lists, one list per read."""
        return _Reads(self._next_batch, self)

    def text(self) -> Iterator[str]:
        """The text of the same events: ``for text in stream.text(): print(text, end="")``.

        Joined, it is `Response.text`: no reasoning, no refusals, the first choice.

        Raises:
            StreamError: the stream failed, with errors="event" too.
        """
        output = OutputText(self._stream.item, lambda: self.response)

        def next_text() -> str:
            while True:
                text = output.of(next(self))
                if text:
                    return text

        return _Reads(next_text, self)

    @overload
    def json_items(self, pointer: str, kind: type[T]) -> Iterator[T]: ...
    @overload
    def json_items(self, pointer: str, kind: object) -> Iterator[Any]: ...
    def json_items(self, pointer: str, kind: Any) -> Iterator[Any]:
        """The elements of a list in the response, each as soon as it is closed, validated.

        Args:
            pointer: JSON pointer of the list, as for `streamlib.structured.json_items`.
            kind: class of one element, or of the value.

        Raises:
            StreamError: the stream failed, after everything that was closed before.
            IncompleteOutput: the response ended at a limit, refused, or calls tools first.
            InvalidOutput: a value is not of the class, the text is not JSON, or nothing is at
                the pointer.
            ValueError: that is not a JSON pointer.
        """
        return _JsonItems(self, EventItems(pointer, kind))

    def _next_batch(self) -> list[ResponseEvent]:
        while True:
            if self._on_event is not None:
                self._show(self._on_event, self._stream.next_events())
            batch = self._stream.take_batch()
            if batch is not None:
                return batch
            self._wait()

    def _read_all(self) -> None:
        """Reads to the end, in one call unless a hook is called in this thread."""
        if self._on_event is None:
            self._loop.call(self._stream.read_all)
            return
        for _ in self:
            pass

    def _wait(self) -> None:
        """Waits in the loop for events to deliver.

        Raises:
            StopIteration: there are none.
        """
        if self._stream.is_new:
            raise RuntimeError("use `with` on the stream")
        if not self._loop.call(self._stream.fill):
            raise StopIteration

    def _show(self, on_event: OnEvent, events: list[ResponseEvent]) -> None:
        """Calls the hook with events that come next, in the reader's thread."""
        try:
            for event in events:
                result = on_event(event)
                if inspect.isawaitable(result):
                    self._loop.call(_awaited, result)
        except (StopIteration, StopAsyncIteration) as error:
            self.close()
            # It would end the reader's loop as if the response were complete.
            raise RuntimeError(f"a hook raised {type(error).__name__}") from error
        except BaseException:
            self.close()
            raise


class _Reads(Generic[T]):
    """Iterator over what a function returns of a stream: its batches, or its texts."""

    def __init__(self, read: Callable[[], T], stream: SyncStream) -> None:
        self._read = read
        self._stream = stream
        self._has_begun = False

    def __iter__(self) -> _Reads[T]:
        return self

    def __next__(self) -> T:
        if not self._has_begun:
            iter(self._stream)  # raises if it was read to its end
            self._has_begun = True
        return self._read()


class _JsonItems(Generic[T]):
    """Iterator over the elements of a list in a response."""

    def __init__(self, stream: SyncStream, items: EventItems[T]) -> None:
        self._stream = iter(stream)
        self._items = items
        self._ready: deque[T] = deque()
        """Values that are closed and not given yet."""
        self._has_ended = False
        """Whether the terminal event was read."""

    def __iter__(self) -> _JsonItems[T]:
        return self

    def __next__(self) -> T:
        while not self._ready:
            self._ready.extend(self._items.take())
            if self._ready:
                break
            if self._has_ended:
                next(self._stream, None)  # tells the stream that it was read to its end
                raise StopIteration
            event = next(self._stream, None)
            if event is None:
                raise IncompleteOutput("not_ended")
            self._has_ended = isinstance(event, (Completed, Failed))
            try:
                self._ready.extend(self._items.feed(event))
            except StreamError as error:
                error.response = self._stream.response
                raise
        return self._ready.popleft()


async def _awaited(waiting: Awaitable[None]) -> None:
    await waiting


def _without_waiting(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that has nothing to wait for, outside any event loop."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    coroutine.close()
    raise RuntimeError("a stream with pending events waited")
