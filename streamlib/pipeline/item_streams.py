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

ItemT = TypeVar("ItemT", bound="_Item")


class _Item:
    """One item of a stream.

    Attributes:
        index: `index` of the events.
        item: the item: at first as it was added, complete at the end.
    """

    def __init__(self, added: OutputItemAdded) -> None:
        self.index = added.index
        self.item: ResponseItem = added.item
        self._events: deque[ResponseEvent] = deque()
        """Events that nobody has read."""
        self._has_ended = False

    def take(self, event: Any) -> None:
        """Takes an event of the item."""
        self._events.append(event)
        if isinstance(event, OutputItemDone):
            self.item = event.item
            self.end()

    def end(self) -> None:
        """No event follows."""
        self._has_ended = True

    @property
    def is_served(self) -> bool:
        """Whether a reader need not wait."""
        return bool(self._events) or self._has_ended


class _Items(Generic[ItemT]):
    """Gives each event to its item."""

    def __init__(self, make: Callable[[OutputItemAdded], ItemT]) -> None:
        self._make = make
        self._waiting: deque[ItemT] = deque()
        """Items that nobody was given."""
        self._open: dict[int, ItemT] = {}
        """Items that have not ended, by index."""
        self._has_ended = False

    def take(self, event: Any) -> None:
        """Takes an event of the stream."""
        if isinstance(event, OutputItemAdded):
            item = self._make(event)
            self._open[event.index] = item
            self._waiting.append(item)
        index = getattr(event, "index", None)
        if index not in self._open:
            return
        self._open[index].take(event)
        if isinstance(event, OutputItemDone):
            del self._open[index]

    def end(self) -> None:
        """The stream has ended."""
        self._has_ended = True
        for item in self._open.values():
            item.end()

    @property
    def is_served(self) -> bool:
        """Whether a reader need not wait."""
        return bool(self._waiting) or self._has_ended


class ItemStream(_Item):
    """The events of one item, from its `OutputItemAdded` to its `OutputItemDone`."""

    def __init__(self, owner: ItemStreams, added: OutputItemAdded) -> None:
        super().__init__(added)
        self._owner = owner

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ResponseEvent:
        while not self._events:
            if self._has_ended:
                raise StopAsyncIteration
            await self._owner.read_for(self)
        return self._events.popleft()

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
        self._error: Exception | None = None
        """Failure of the stream, which every reader raises after its events."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ItemStream:
        while not self._waiting:
            if self._has_ended:
                raise StopAsyncIteration
            await self.read_for(self)
        return self._waiting.popleft()

    async def read_for(self, reader: _Item | _Items[Any]) -> None:
        """Reads one event, unless another reader has served this one in the meantime."""
        async with self._reading:
            if reader.is_served:
                return
            if self._error is not None:
                raise self._error
            try:
                self.take(await anext(self._stream))
            except StopAsyncIteration:
                self.end()
            except Exception as error:
                self._error = error
                raise


class SyncItemStream(_Item):
    """The same as `ItemStream`, with `for`."""

    def __init__(self, owner: SyncItemStreams, added: OutputItemAdded) -> None:
        super().__init__(added)
        self._owner = owner

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ResponseEvent:
        while not self._events:
            if self._has_ended:
                raise StopIteration
            self._owner.read()
        return self._events.popleft()

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
        while not self._waiting:
            if self._has_ended:
                raise StopIteration
            self.read()
        return self._waiting.popleft()

    def read(self) -> None:
        """Reads one event."""
        try:
            self.take(next(self._stream))
        except StopIteration:
            self.end()


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
