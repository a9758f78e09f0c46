"""One stream for several readers, and several streams for one.

    async with tee(stream, 2) as (screen, log): ...   # readers that read at once
    async with share(stream) as shared: ...           # readers that come whenever they want
    async with merge({"a": a, "b": b}) as pairs: ...  # the name of a stream and its event

All of them enter a stream that was not entered, and close it with their block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from functools import partial
from typing import Any, Final, Generic, Self, TypeVar, get_args

import anyio

from streamlib.pipeline.branches import (
    READ_AHEAD,
    Signal,
    Slow,
    TaskBlock,
    TeeReader,
    of_one_reader,
    owned,
    read_lists,
    read_owned,
)
from streamlib.pipeline.event_stages import map_events
from streamlib.pipeline.machine import PipeOptions, Stage
from streamlib.pipeline.numbers import check_count
from streamlib.pipeline.reading import BatchSource, EventLists
from streamlib.pipeline.statements import check_async
from streamlib.pipeline.stream import Pipeline
from streamlib_parsers.events import Failed, ResponseEvent, RunEvent
from streamlib_parsers.stream_error import StreamError

Name = TypeVar("Name")


class ReaderStream(Pipeline[ResponseEvent]):
    """What one of several readers gets: a stream like any other, that is open from the start."""

    has_task = True

    def __init__(self, source: AsyncIterable[ResponseEvent], *stages: Stage) -> None:
        super().__init__(source, stages, PipeOptions())
        self._begin(anyio.current_time)
        self._reading = EventLists(source).source

    async def __aenter__(self) -> Self:
        return self


# --- readers that read at once ---


class Tee:
    """The block of `tee`: at its entry the branches."""

    def __init__(self, reader: TeeReader) -> None:
        self._reader = reader

    async def __aenter__(self) -> tuple[ReaderStream, ...]:
        branches = await self._reader.__aenter__()
        return tuple([ReaderStream(branch, map_events(_unchanged)) for branch in branches])

    async def __aexit__(self, *error: Any) -> None:
        await self._reader.__aexit__(*error)


def _unchanged(event: Any) -> Any:
    """With this stage a pipeline numbers what it lets out: joined deltas leave gaps."""
    return event


def tee(
    source: AsyncIterable[ResponseEvent],
    count: int = 2,
    *,
    slow: Slow = "wait",
    ahead: int = READ_AHEAD,
) -> Tee:
    """``async with tee(stream, 2) as (screen, log):`` passes the same events to each branch.

    A branch is a stream like any other. One task of the block reads the source. Memory is bounded:
    a branch is at most `ahead` events behind. Close a branch that is no longer read (`aclose`).

    Args:
        source: the stream; it is entered if it was not, and closed with the block.
        count: number of branches.
        slow: what happens where a branch is `ahead` events behind: the source waits for it
            ("wait"); its deltas are joined, and the source waits only where that does not help
            ("coalesce"); it ends with `limit_exceeded` behind what it has, and the others go on
            ("fail").
        ahead: the most events that a branch may be behind.

    Raises:
        TypeError: `source` is a stream without an event loop, or none.
        ValueError: `count` or `ahead` is less than 1, or `slow` is none of the three.
    """
    check_count("count", count)
    check_count("ahead", ahead)
    check_async("tee", source)
    if slow not in get_args(Slow):
        raise ValueError(f"slow is one of {', '.join(get_args(Slow))}, not {slow!r}")
    return Tee(TeeReader(source, count, ahead, slow, is_owner=True))


# --- readers that come at any time ---


class Share(TaskBlock):
    """One stream for any number of readers, each from the beginning, whenever it comes.

    It keeps all events, and reads on only where a reader has read them. Readers may be cancelled
    and leave: the stream goes on for the others.
    """

    def __init__(self, source: AsyncIterable[ResponseEvent]) -> None:
        self.events: list[ResponseEvent] = []
        """All that was read so far."""
        self._source = source
        self._has_ended = False
        self._error: Exception | None = None
        """Failure of the source, which each reader raises after the events before it."""
        self._wanted = 0
        """How many events the reader that is ahead of the others needs."""
        self._wants = Signal()
        self._arrived = Signal()

    async def __aenter__(self) -> Self:
        await self._begin_tasks()
        self._group.start_soon(self._read)
        return self

    def reader(self) -> ReaderStream:
        """A stream of all events, from the first one on."""
        return ReaderStream(_FromTheStart(self))

    async def events_from(self, position: int) -> list[ResponseEvent]:
        """The events from a position on, at least one.

        Raises:
            StopAsyncIteration: the source has ended.
        """
        while position >= len(self.events):
            if self._error is not None:
                raise of_one_reader(self._error)
            if self._has_ended:
                raise StopAsyncIteration
            self._wanted = position + 1
            self._wants.set()
            await self._arrived.wait()
        return self.events[position:]

    async def _read(self) -> None:
        try:
            async with owned(self._source) as stream:
                await self._wait_for_readers()
                await read_lists(stream, self._keep)
        except Exception as error:  # noqa: BLE001  # each reader raises it at its end
            self._error = error
        finally:
            self._has_ended = True
            self._arrived.set()

    async def _keep(self, events: list[ResponseEvent]) -> None:
        self.events += events
        self._arrived.set()
        await self._wait_for_readers()

    async def _wait_for_readers(self) -> None:
        while self._wanted <= len(self.events):
            await self._wants.wait()


class _FromTheStart(BatchSource[ResponseEvent]):
    """The events of a `Share` for one reader."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self._share = share
        self._position = 0

    async def _next_batch(self) -> list[ResponseEvent]:
        events = await self._share.events_from(self._position)
        self._position += len(events)
        return events


def share(source: AsyncIterable[ResponseEvent]) -> Share:
    """One stream for readers that come at any time, each from the beginning.

        async with share(client.stream(prompt, model)) as shared:
            async for event in shared.reader(): ...

    Args:
        source: the stream; it is entered if it was not, and closed with the block.

    Raises:
        TypeError: `source` is a stream without an event loop, or none.
    """
    check_async("share", source)
    return Share(source)


# --- several streams for one reader ---


class Merge(TaskBlock, Generic[Name]):
    """Pairs of a name and an event: ``async with merge({…}) as pairs: async for … in pairs``.

    A task for each stream reads ahead, at most `ahead` events. Where several have arrived, their
    streams take turns, so that a fast one does not hide the others.
    """

    def __init__(self, streams: Mapping[Name, AsyncIterable[RunEvent]], ahead: int) -> None:
        check_count("ahead", ahead)
        self._inputs = [_Input(name, stream) for name, stream in streams.items()]
        self._ahead = ahead
        self._ready: deque[_Input[Name]] = deque()
        """Streams that have events to deliver, each once, in the order of their turns."""
        self._reading = 0
        """Streams that have not ended."""
        self._crash: Exception | None = None
        """What is no failure of a stream; raised after the events before it."""
        self._arrived = Signal()

    async def __aenter__(self) -> Self:
        await self._begin_tasks()
        self._reading = len(self._inputs)
        for each in self._inputs:
            self._group.start_soon(self._read, each)
        return self

    def __aiter__(self) -> AsyncIterator[tuple[Name, RunEvent]]:
        return self

    async def __anext__(self) -> tuple[Name, RunEvent]:
        while not self._ready:
            if self._crash is not None:
                raise self._crash
            if not self._reading:
                raise StopAsyncIteration
            await self._arrived.wait()
        turn = self._ready.popleft()
        event = turn.events.popleft()
        if turn.events:
            self._ready.append(turn)
        turn.room.set()
        return turn.name, event

    async def _read(self, each: _Input[Name]) -> None:
        try:
            await read_owned(each.stream, partial(self._keep, each))
        except StreamError as error:
            self._add(each, [Failed(error.info)])
        except Exception as error:  # noqa: BLE001  # the reader raises it
            self._crash = error
        finally:
            self._reading -= 1
            self._arrived.set()

    async def _keep(self, each: _Input[Name], events: list[Any]) -> None:
        self._add(each, events)
        while len(each.events) >= self._ahead:
            await each.room.wait()

    def _add(self, each: _Input[Name], events: list[Any]) -> None:
        if not each.events:
            self._ready.append(each)
        each.events.extend(events)
        self._arrived.set()


class _Input(Generic[Name]):
    """One of the streams."""

    def __init__(self, name: Name, stream: Any) -> None:
        self.name: Final = name
        self.stream = stream
        self.events: deque[RunEvent] = deque()
        """Events that nobody has read."""
        self.room = Signal()
        """Set when an event was read."""


def merge(
    streams: Mapping[Name, AsyncIterable[RunEvent]], *, ahead: int = READ_AHEAD
) -> Merge[Name]:
    """Several streams as one, of pairs: the name of a stream and its next event.

        async with merge({"a": client.stream(p, "a:x"), "b": client.stream(p, "b:y")}) as pairs:
            async for name, event in pairs: ...

    Streams that were not entered are entered; all are closed with the block. A stream that fails
    ends with `Failed`, and the others go on.

    Args:
        streams: streams or runs, by name.
        ahead: events that are read ahead of the reader, for each stream.

    Raises:
        TypeError: one of them is a stream without an event loop, or none.
        ValueError: `ahead` is less than 1.
    """
    for source in streams.values():
        check_async("merge", source)
    return Merge(streams, ahead)
