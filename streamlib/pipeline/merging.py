"""Several streams as one: the events of each with its name, as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import anyio

from streamlib.pipeline.branches import READ_AHEAD, EventLists, owned
from streamlib_parsers.events import Failed, RunEvent
from streamlib_parsers.stream_error import StreamError

Name = TypeVar("Name")


class Merge(Generic[Name]):
    """Pairs of a name and an event: ``async with merge({…}) as pairs: async for … in pairs``.

    A task for each stream reads ahead, at most `ahead` events. Where several have arrived, their
    streams take turns, so that a fast one does not hide the others.
    """

    def __init__(self, streams: Mapping[Name, AsyncIterable[RunEvent]], ahead: int) -> None:
        if ahead < 1:
            raise ValueError(f"ahead is a number of events from 1 on, not {ahead!r}")
        self._inputs = [_Input(name, stream) for name, stream in streams.items()]
        self._ahead = ahead
        self._ready: deque[_Input[Name]] = deque()
        """Streams that have events to deliver, each once, in the order of their turns."""
        self._reading = 0
        """Streams that have not ended."""
        self._crash: Exception | None = None
        """What is no failure of a stream; raised after the events before it."""
        self._arrived = anyio.Event()
        self._group = anyio.create_task_group()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._reading = len(self._inputs)
        for each in self._inputs:
            self._group.start_soon(self._read, each)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._group.cancel_scope.cancel()
        # Without the exception: the group would wrap it in an ExceptionGroup.
        await self._group.__aexit__(None, None, None)

    def __aiter__(self) -> AsyncIterator[tuple[Name, RunEvent]]:
        return self

    async def __anext__(self) -> tuple[Name, RunEvent]:
        while not self._ready:
            if self._crash is not None:
                raise self._crash
            if not self._reading:
                raise StopAsyncIteration
            self._arrived = anyio.Event()
            await self._arrived.wait()
        turn = self._ready.popleft()
        event = turn.events.popleft()
        if turn.events:
            self._ready.append(turn)
        turn.room.set()
        return turn.name, event

    async def _read(self, each: _Input[Name]) -> None:
        try:
            async with owned(each.stream) as stream:
                await self._read_on(each, stream)
        except StreamError as error:
            self._add(each, [Failed(error.info)])
        except Exception as error:  # noqa: BLE001  # the reader raises it
            self._crash = error
        finally:
            self._reading -= 1
            self._arrived.set()

    async def _read_on(self, each: _Input[Name], stream: Any) -> None:
        lists = EventLists(stream)
        while True:
            try:
                events = await lists.batch()
            except StopAsyncIteration:
                return
            self._add(each, events)
            while len(each.events) >= self._ahead:
                each.room = anyio.Event()
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
        self.room = anyio.Event()
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
        ValueError: `ahead` is less than 1.
    """
    return Merge(streams, ahead)
