"""One stream as several: an item each. Streams have it as their method `items`."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, Self, TypeVar

import anyio

from streamlib_parsers.events import (
    TEXT_DELTAS,
    OutputItemAdded,
    OutputItemDone,
    ResponseEvent,
)
from streamlib_parsers.items import ResponseItem

T = TypeVar("T")
ItemT = TypeVar("ItemT", bound="_Item")


class _Queue(Generic[T]):
    """What has arrived for one reader."""

    def __init__(self) -> None:
        self.arrived: deque[T] = deque()
        """What was not read yet."""
        self.has_ended = False
        """Nothing follows."""


class _Item(_Queue[ResponseEvent]):
    """One item of a stream.

    Attributes:
        index: `index` of the events.
        item: the item: at first as it was added, complete at the end.
    """

    def __init__(self, added: OutputItemAdded) -> None:
        super().__init__()
        self.index = added.index
        self.item: ResponseItem = added.item


class _Items(_Queue[ItemT]):
    """Gives each event to its item."""

    def __init__(self, make: Callable[[OutputItemAdded], ItemT]) -> None:
        super().__init__()
        self._make = make
        self._open: dict[int, ItemT] = {}
        """Items that have not ended, by index."""
        self._error: Exception | None = None
        """Failure of the stream, which every reader raises after its events."""

    def _take(self, event: Any) -> None:
        """Takes an event of the stream."""
        if isinstance(event, OutputItemAdded):
            item = self._make(event)
            self._open[event.index] = item
            self.arrived.append(item)
        index = getattr(event, "index", None)
        if index not in self._open:
            return
        item = self._open[index]
        item.arrived.append(event)
        if isinstance(event, OutputItemDone):
            item.item = event.item
            item.has_ended = True
            del self._open[index]

    def _end(self) -> None:
        """The stream has ended."""
        self.has_ended = True
        for item in self._open.values():
            item.has_ended = True


class ItemStream(_Item):
    """The events of one item, from its `OutputItemAdded` to its `OutputItemDone`."""

    def __init__(self, owner: ItemStreams, added: OutputItemAdded) -> None:
        super().__init__(added)
        self._owner = owner

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ResponseEvent:
        return await _next(self, self._owner)

    async def text(self) -> AsyncIterator[str]:
        """The text of a message or of reasoning, or the arguments of a call."""
        async for event in self:
            if isinstance(event, TEXT_DELTAS) and event.delta:
                yield event.delta


class ItemStreams(_Items[ItemStream]):
    """The items of a stream, each as soon as it begins.

    Whoever needs the next event reads the stream, one at a time; events of other items are kept for
    their readers.
    """

    def __init__(self, stream: AsyncIterable[ResponseEvent]) -> None:
        super().__init__(partial(ItemStream, self))
        self._stream = aiter(stream)
        self._reading = anyio.Lock()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ItemStream:
        return await _next(self, self)

    async def read_for(self, reader: _Queue[Any]) -> None:
        """Reads one event, unless another reader has served this one in the meantime."""
        async with self._reading:
            if reader.arrived or reader.has_ended:
                return
            if self._error is not None:
                raise self._error
            try:
                self._take(await anext(self._stream))
            except StopAsyncIteration:
                self._end()
            except Exception as error:
                self._error = error
                raise


async def _next(reader: _Queue[T], owner: ItemStreams) -> T:
    while not reader.arrived:
        if reader.has_ended:
            raise StopAsyncIteration
        await owner.read_for(reader)
    return reader.arrived.popleft()


class SyncItemStream(_Item):
    """The same as `ItemStream`, with `for`."""

    def __init__(self, owner: SyncItemStreams, added: OutputItemAdded) -> None:
        super().__init__(added)
        self._owner = owner

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ResponseEvent:
        return _sync_next(self, self._owner)

    def text(self) -> Iterator[str]:
        """The text of a message or of reasoning, or the arguments of a call."""
        for event in self:
            if isinstance(event, TEXT_DELTAS) and event.delta:
                yield event.delta


class SyncItemStreams(_Items[SyncItemStream]):
    """The same as `ItemStreams`, with `for`, for one thread."""

    def __init__(self, stream: Iterable[ResponseEvent]) -> None:
        super().__init__(partial(SyncItemStream, self))
        self._stream = iter(stream)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> SyncItemStream:
        return _sync_next(self, self)

    def read(self) -> None:
        """Reads one event."""
        if self._error is not None:
            raise self._error
        try:
            self._take(next(self._stream))
        except StopIteration:
            self._end()
        except Exception as error:
            self._error = error
            raise


def _sync_next(reader: _Queue[T], owner: SyncItemStreams) -> T:
    while not reader.arrived:
        if reader.has_ended:
            raise StopIteration
        owner.read()
    return reader.arrived.popleft()


def items(stream: AsyncIterable[ResponseEvent]) -> ItemStreams:
    """The same events, a stream for each item: ``async for item in stream.items()``.

        async for item in stream.items():
            if isinstance(item.item, Message):
                async for text in item.text(): ...

    The items come in the order of their beginnings. Read one after the other, or each in a task of
    its own while others grow. Events of no item are in `stream.response`. What is not read is
    buffered, at most the response.
    """
    return ItemStreams(stream)


def sync_items(stream: Iterable[ResponseEvent]) -> SyncItemStreams:
    """The same events, a stream for each item: ``for item in stream.items()``; see `items`."""
    return SyncItemStreams(stream)
