"""Tasks that read streams for others: their blocks, and a reader with several branches."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import groupby
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from streamlib.pipeline.reading import BatchSource, EventLists
from streamlib.pipeline.streamed_texts import TextKey, joined, text_key
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import TEXT_DELTAS, ResponseEvent
from streamlib_parsers.stream_error import StreamError

READ_AHEAD: Final = 4096
"""Events read ahead of a slow consumer before the source has to wait: some seconds of the fastest
models."""

Slow: TypeAlias = Literal["wait", "coalesce", "fail"]
"""What happens where a branch is too far behind."""


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


class Signal:
    """Wakes all tasks that wait for it. What it tells of is looked at before each wait."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None
        """None while nobody waits: most signals wake nobody."""

    def set(self) -> None:
        """Wakes those that wait now."""
        if self._event is not None:
            self._event.set()
            self._event = None  # it cannot be cleared

    async def wait(self) -> None:
        """Waits for the next `set`."""
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()


async def leave_group(group: TaskGroup, error: object = None) -> None:
    """Ends a task group whose block is left: cancels its tasks, and waits for them.

    Args:
        group: the group, entered by `__aenter__`.
        error: the exception of the block, which goes on by itself: the group would wrap it in an
            `ExceptionGroup`, and `except StreamError` would not catch it.
    """
    group.cancel_scope.cancel()
    if isinstance(error, anyio.get_cancelled_exc_class()):
        # The group waits under a cancellation of its own. Raised in place of that of asyncio
        # (`Task.cancel`, Ctrl-C) it would look like one of anyio, which a scope further out ends.
        await group.__aexit__(type(error), error, error.__traceback__)
    else:
        await group.__aexit__(None, None, None)


class TaskBlock:
    """Base of what has tasks of its own: they are cancelled at the end of its block."""

    _group: TaskGroup
    """Made at the entry: before, there may be no event loop."""

    async def _begin_tasks(self) -> None:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await leave_group(self._group, error)


async def read_lists(
    source: AsyncIterable[Any], take: Callable[[list[Any]], Awaitable[object]]
) -> None:
    """Hands on the events of a source, in lists, until it ends."""
    lists = EventLists(source)
    while True:
        try:
            events = await lists.batch()
        except StopAsyncIteration:
            return
        await take(events)


async def read_owned(
    source: AsyncIterable[Any], take: Callable[[list[Any]], Awaitable[object]]
) -> None:
    """The same of a source that is entered if it was not, and closed at the end."""
    async with owned(source) as stream:
        await read_lists(stream, take)


class Branch(BatchSource[ResponseEvent]):
    """One reader of a tee."""

    def __init__(self, reader: TeeReader) -> None:
        super().__init__()
        self.buffer: deque[ResponseEvent] = deque()
        """Events not read yet. Filled by the reader's task."""
        self.closed = False
        """The branch gets no more events. Set by `aclose`."""
        self.failure: StreamError | None = None
        """Raised behind what is buffered: the branch is too slow, and gets no more events."""
        self._reader = reader

    @property
    def takes_events(self) -> bool:
        """Whether it still gets events."""
        return not self.closed and self.failure is None

    @property
    def has_ended(self) -> bool:
        """Whether the source has ended and every event was read."""
        return self._reader.ended and not self.buffer

    @property
    def error(self) -> Exception | None:
        """The failure of the source, once it has ended."""
        return self._reader.error

    def arrived(self) -> list[ResponseEvent]:
        """All events that have arrived, without waiting; maybe none."""
        events = list(self.buffer)
        if events:
            self.buffer.clear()
            self._reader.room.set()
        return events

    async def wait(self, *, for_events: bool = True) -> None:
        """Waits until an event, the end of the source, or of a call (`TeeReader.start`) arrives.

        Args:
            for_events: False: only for what arrives from now on.
        """
        if not (for_events and (self.buffer or self._reader.ended)):
            await self._reader.arrival.wait()

    async def aclose(self) -> None:
        """Closes this branch: the others no longer wait for it."""
        self.closed = True
        self.buffer.clear()
        self._reader.room.set()

    async def _next_batch(self) -> list[ResponseEvent]:
        while not self.buffer and self.takes_events and not self._reader.ended:
            await self._reader.arrival.wait()
        if self.buffer:
            return self.arrived()
        error = self.failure or self._reader.error
        if error is not None:
            raise of_one_reader(error) if len(self._reader.branches) > 1 else error
        raise StopAsyncIteration


class TeeReader(TaskBlock):
    """Reads a source in one task and passes every event to each branch.

    Args:
        source: what is read.
        count: number of branches.
        ahead: the most events that a branch may be behind.
        slow: what happens with one that is.
        is_owner: the source is entered if it was not, and closed at the end.
    """

    def __init__(
        self,
        source: Any,
        count: int,
        ahead: int = READ_AHEAD,
        slow: Slow = "wait",
        *,
        is_owner: bool = False,
    ) -> None:
        self.branches = tuple(Branch(self) for _ in range(count))
        self.ended = False
        """The source has ended or failed."""
        self.error: Exception | None = None
        """Failure of the source, which each branch raises after the events before it."""
        self.arrival = Signal()
        """Events, the end of the source or of a call."""
        self.room = Signal()
        """A branch has read, so there may be room again."""
        self._source = source
        self._ahead = ahead
        self._slow: Slow = slow
        self._is_owner = is_owner
        self.scope = anyio.CancelScope()
        """Ends the task without the block."""

    async def __aenter__(self) -> tuple[Branch, ...]:
        await self._begin_tasks()
        self._group.start_soon(self.run)
        return self.branches

    def start(self, call: Callable[[], Awaitable[None]]) -> None:
        """Runs a function in the block beside the reading, and wakes who waits when it ends."""
        self._group.start_soon(self._run_call, call)

    async def stop(self) -> None:
        """Ends the reading; what was read stays."""
        self.scope.cancel()
        while not self.ended:
            await self.arrival.wait()

    async def _run_call(self, call: Callable[[], Awaitable[None]]) -> None:
        try:
            await call()
        finally:
            self.arrival.set()

    async def run(self) -> None:
        """Reads the source to its end, in a task of the block."""
        try:
            with self.scope:
                await self._read()
        except Exception as error:  # noqa: BLE001  # each branch raises it at its end
            self.error = error
        finally:
            self.ended = True
            self.arrival.set()

    async def _read(self) -> None:
        read = read_owned if self._is_owner else read_lists
        await read(self._source, self._pass_on)

    async def _pass_on(self, events: list[ResponseEvent]) -> None:
        """Gives events to the branches, and waits until all have room for more."""
        for branch in self.branches:
            if branch.takes_events:
                branch.buffer.extend(events)
        self.arrival.set()
        if self._slow != "wait" and self._full():
            # A source that has much at once must not make its readers seem slow.
            await anyio.lowlevel.checkpoint()
            self._relieve_slow_ones()
        while self._full():
            await self.room.wait()
            self._relieve_slow_ones()

    def _full(self) -> list[Branch]:
        """The open branches with `ahead` events or more to read."""
        return [
            branch
            for branch in self.branches
            if branch.takes_events and len(branch.buffer) >= self._ahead
        ]

    def _relieve_slow_ones(self) -> None:
        full = self._full()
        if all(branch in full for branch in self.branches if branch.takes_events):
            return  # it is the source that is fast
        for branch in full:
            self._relieve(branch)

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


def of_one_reader(error: Exception) -> Exception:
    """The same failure for one of several readers: each adds to it what came out for that one."""
    if not isinstance(error, StreamError):
        return error
    kind = type(error)
    own = kind.__new__(kind)  # its own class may take other arguments
    own.args = error.args
    own.__cause__ = error.__cause__
    vars(own).update(vars(error))
    return own.with_traceback(error.__traceback__)


def _joined_neighbours(events: Iterable[ResponseEvent]) -> deque[ResponseEvent]:
    """The same events, with deltas of one text that follow each other as one."""
    let_out: deque[ResponseEvent] = deque()
    for key, neighbours in groupby(events, _text_of):
        if key is None:
            let_out.extend(neighbours)
        else:
            deltas: list[Any] = list(neighbours)
            let_out.append(joined(deltas))
    return let_out


def _text_of(event: ResponseEvent) -> TextKey | None:
    return text_key(event) if isinstance(event, TEXT_DELTAS) else None
