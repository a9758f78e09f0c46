"""The task that reads one stream for several readers, each with a buffer of its own."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
)
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias

import anyio
import anyio.lowlevel

from streamlib.pipeline.pacing import TextDelta, joined, text_key
from streamlib.pipeline.reading import Batches
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import TEXT_DELTAS, ResponseEvent
from streamlib_parsers.stream_error import StreamError

READ_AHEAD: Final = 4096
"""Events read ahead of a slow consumer before the source has to wait: some seconds of the fastest
models."""


Slow: TypeAlias = Literal["wait", "coalesce", "fail"]
"""What happens where a branch is too far behind."""


class EventLists:
    """Events of a source in lists, as they arrived together where the source has `batches`.

    A class and not a generator: a generator that is left early stays suspended in its source.
    """

    def __init__(self, source: AsyncIterable[ResponseEvent]) -> None:
        self._lists: AsyncIterator[list[ResponseEvent]] | None = None
        """The source's own batches, where it has some."""
        batches = getattr(source, "batches", None)
        if batches is not None:
            self._lists = batches()
        self._single = aiter(source)

    async def batch(self) -> list[ResponseEvent]:
        """The next events.

        Raises:
            StopAsyncIteration: the source has ended.
        """
        if self._lists is not None:
            return await anext(self._lists)
        return [await anext(self._single)]


@asynccontextmanager
async def owned(stream: Any) -> AsyncGenerator[Any]:
    """A stream for its only reader: entered if it was not, closed at the end of the block."""
    if getattr(stream, "is_new", hasattr(stream, "__aenter__")):
        async with stream as entered:
            yield entered
        return
    try:
        yield stream
    finally:
        aclose = getattr(stream, "aclose", None)
        if aclose is not None:
            with anyio.CancelScope(shield=True):
                await aclose()


class Branch:
    """One reader of a tee."""

    def __init__(self, reader: TeeReader) -> None:
        self.buffer: deque[ResponseEvent] = deque()
        """Events not read yet. Filled by the reader's task."""
        self.closed = False
        """The branch gets no more events. Set by `aclose`."""
        self.failure: StreamError | None = None
        """Raised behind what is buffered: the branch is too slow, and gets no more events."""
        self._reader = reader

    def __aiter__(self) -> Branch:
        return self

    async def __anext__(self) -> ResponseEvent:
        await self._wait_for_event()
        event = self.buffer.popleft()
        self._reader.on_read()
        return event

    async def batch(self) -> list[ResponseEvent]:
        """All events that have arrived, at least one.

        Raises:
            StopAsyncIteration: the source has ended.
        """
        await self._wait_for_event()
        events = list(self.buffer)
        self.buffer.clear()
        self._reader.on_read()
        return events

    @property
    def takes_events(self) -> bool:
        """Whether it still gets events."""
        return not self.closed and self.failure is None

    def arrived(self) -> list[ResponseEvent]:
        """All events that have arrived, without waiting; maybe none."""
        events = list(self.buffer)
        if events:
            self.buffer.clear()
            self._reader.on_read()
        return events

    @property
    def has_ended(self) -> bool:
        """Whether the source has ended and every event was read."""
        return self._reader.ended and not self.buffer

    @property
    def error(self) -> Exception | None:
        """The failure of the source, once it has ended."""
        return self._reader.error

    async def wait(self, seconds: float, *, for_events: bool = True) -> None:
        """Waits until an event, the end of the source, or of a call (`TeeReader.start`) arrives.

        Args:
            seconds: the longest wait.
            for_events: False: only for what arrives from now on.
        """
        if for_events and (self.buffer or self._reader.ended):
            return
        if seconds == math.inf:  # no scope where there is no time
            await self._reader.next_arrival()
            return
        with anyio.move_on_after(seconds):
            await self._reader.next_arrival()

    def batches(self) -> AsyncIterator[list[ResponseEvent]]:
        """The events in lists: all that have arrived since the last one."""
        return Batches(self.batch)

    async def aclose(self) -> None:
        """Closes this branch: the others no longer wait for it."""
        self.closed = True
        self.buffer.clear()
        self._reader.on_read()

    async def _wait_for_event(self) -> None:
        await self._reader.arrival(self)
        if self.buffer:
            return
        if self.failure is not None:
            raise self.failure
        if self._reader.error is not None:
            raise self._reader.error
        raise StopAsyncIteration


class TeeReader:
    """Reads a source in one task and passes every event to each branch."""

    def __init__(
        self,
        source: AsyncIterable[ResponseEvent],
        count: int,
        ahead: int = READ_AHEAD,
        slow: Slow = "wait",
    ) -> None:
        self.branches = tuple(Branch(self) for _ in range(count))
        self.ended = False
        """The source has ended or failed."""
        self.error: Exception | None = None
        """Failure of the source, which each branch raises after the events before it."""
        self._source = source
        self._ahead = ahead
        self._slow: Slow = slow
        self._arrived = anyio.Event()
        """Set and replaced when events arrive, and at the end."""
        self._room = anyio.Event()
        """Set when a branch has read; replaced when the task waits for one."""
        self._reading = anyio.CancelScope()
        """Ends the task without the block."""
        self._group = anyio.create_task_group()

    async def __aenter__(self) -> tuple[Branch, ...]:
        await self._group.__aenter__()
        self._group.start_soon(self._read)
        return self.branches

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._group.cancel_scope.cancel()
        # Without the exception: the group would wrap it in an ExceptionGroup, and `except
        # StreamError` would not catch it. As nothing is returned, it goes on by itself.
        await self._group.__aexit__(None, None, None)

    async def arrival(self, branch: Branch) -> None:
        """Waits until the branch has an event, or the source has ended."""
        while not branch.buffer and branch.takes_events and not self.ended:
            await self._arrived.wait()

    async def next_arrival(self) -> None:
        """Waits until something arrives: an event, the end of the source or of a call."""
        await self._arrived.wait()

    def start(self, call: Callable[[], Awaitable[None]]) -> None:
        """Runs a function in the block beside the reading, and wakes who waits when it ends."""
        self._group.start_soon(self._run, call)

    async def stop(self) -> None:
        """Ends the reading; what was read stays."""
        self._reading.cancel()
        while not self.ended:
            await self._arrived.wait()

    async def _run(self, call: Callable[[], Awaitable[None]]) -> None:
        try:
            await call()
        finally:
            self._wake()

    def on_read(self) -> None:
        """Wakes the task: a branch has read, so there may be room again."""
        self._room.set()

    async def _read(self) -> None:
        try:
            with self._reading:
                await self._read_on()
        except StopAsyncIteration:
            pass
        except Exception as error:  # noqa: BLE001  # each branch raises it at its end
            self.error = error
        finally:
            self.ended = True
            self._wake()

    async def _read_on(self) -> None:
        source = EventLists(self._source)
        while True:
            events = await source.batch()
            for branch in self.branches:
                if branch.takes_events:
                    branch.buffer.extend(events)
            self._wake()
            await self._wait_for_room()

    def _relieve(self, branch: Branch) -> None:
        """Does with a branch that is far behind what `slow` says."""
        if self._slow == "coalesce":
            joined_events = _joined_neighbours(branch.buffer)
            # At least by half, or it would be joined anew for each event.
            if len(joined_events) <= self._ahead // 2:
                branch.buffer = joined_events
        elif self._slow == "fail":
            message = f"the reader is {len(branch.buffer)} events behind"
            branch.failure = StreamError(ErrorInfo("limit_exceeded", message, code="slow_reader"))

    def _wake(self) -> None:
        # An anyio event cannot be cleared, therefore a new one for the next arrival.
        self._arrived.set()
        self._arrived = anyio.Event()

    async def _wait_for_room(self) -> None:
        if self._slow != "wait" and self._is_full():
            # A source that has much at once must not make its readers seem slow.
            await anyio.lowlevel.checkpoint()
            self._relieve_slow_ones()
        while self._is_full():
            self._room = anyio.Event()
            await self._room.wait()
            self._relieve_slow_ones()

    def _relieve_slow_ones(self) -> None:
        """Where all branches are full, it is the source that is fast."""
        branches = [branch for branch in self.branches if branch.takes_events]
        full = [branch for branch in branches if len(branch.buffer) >= self._ahead]
        if len(full) < len(branches):
            for branch in full:
                self._relieve(branch)

    def _is_full(self) -> bool:
        """Whether an open branch has `ahead` events or more to read."""
        return any(
            len(branch.buffer) >= self._ahead for branch in self.branches if branch.takes_events
        )


def _joined_neighbours(events: Iterable[ResponseEvent]) -> deque[ResponseEvent]:
    """The same events, with deltas of one text that follow each other as one."""
    let_out: deque[ResponseEvent] = deque()
    deltas: list[TextDelta] = []
    for event in events:
        if not isinstance(event, TEXT_DELTAS):
            if deltas:
                let_out.append(joined(deltas))
                deltas = []
            let_out.append(event)
            continue
        if deltas and text_key(deltas[0]) != text_key(event):
            let_out.append(joined(deltas))
            deltas = []
        deltas.append(event)
    if deltas:
        let_out.append(joined(deltas))
    return let_out
