"""One stream for several readers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Final

import anyio

from streamlib_parsers.events import ResponseEvent

READ_AHEAD: Final = 4096
"""Events read ahead of a slow consumer before the source has to wait: some seconds of the fastest
models."""


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


class Branch:
    """One reader of a tee."""

    def __init__(self, reader: TeeReader) -> None:
        self.buffer: deque[ResponseEvent] = deque()
        """Events not read yet. Filled by the reader's task."""
        self.closed = False
        """The branch gets no more events. Set by `aclose`."""
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

    async def aclose(self) -> None:
        """Closes this branch: the others no longer wait for it."""
        self.closed = True
        self.buffer.clear()
        self._reader.on_read()

    async def _wait_for_event(self) -> None:
        await self._reader.arrival(self)
        if self.buffer:
            return
        if self._reader.error is not None:
            raise self._reader.error
        raise StopAsyncIteration


class TeeReader:
    """Reads a source in one task and passes every event to each branch."""

    def __init__(
        self, source: AsyncIterable[ResponseEvent], count: int, ahead: int = READ_AHEAD
    ) -> None:
        self.branches = tuple(Branch(self) for _ in range(count))
        self.ended = False
        """The source has ended or failed."""
        self.error: Exception | None = None
        """Failure of the source, which each branch raises after the events before it."""
        self._source = source
        self._ahead = ahead
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
        while not branch.buffer and not self.ended:
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
                if not branch.closed:
                    branch.buffer.extend(events)
            self._wake()
            await self._wait_for_room()

    def _wake(self) -> None:
        # An anyio event cannot be cleared, therefore a new one for the next arrival.
        self._arrived.set()
        self._arrived = anyio.Event()

    async def _wait_for_room(self) -> None:
        while self._is_full():
            self._room = anyio.Event()
            await self._room.wait()

    def _is_full(self) -> bool:
        """Whether an open branch has `ahead` events or more to read."""
        return any(
            len(branch.buffer) >= self._ahead for branch in self.branches if not branch.closed
        )


def tee(
    source: AsyncIterable[ResponseEvent], count: int = 2, *, ahead: int = READ_AHEAD
) -> TeeReader:
    """``async with tee(stream, 2) as (screen, log):`` passes the same events to each branch.

    One task of the block reads the source. Memory is bounded: where a branch is `ahead` events
    ahead of the slowest one, the source waits. Close a branch that is no longer read (`aclose`).

    Args:
        source: the events; its owner closes it.
        count: number of branches.
        ahead: events by which a branch may be ahead of the slowest.
    """
    return TeeReader(source, count, ahead)
