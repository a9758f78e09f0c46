"""One stream as several: an item each. Streams have it as their method `items`."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any, Self

import anyio

from streamlib_parsers.events import (
    TEXT_DELTAS,
    OutputItemAdded,
    OutputItemDone,
    ResponseEvent,
)
from streamlib_parsers.items import ResponseItem


class ItemStream:
    """The events of one item, from its `OutputItemAdded` to its `OutputItemDone`.

    Attributes:
        index: `index` of the events.
        item: the item: at first as it was added, complete at the end.
    """

    def __init__(self, owner: ItemStreams, added: OutputItemAdded) -> None:
        self.index = added.index
        self.item: ResponseItem = added.item
        self._owner = owner
        self._events: deque[ResponseEvent] = deque()
        """Events that nobody has read."""
        self._has_ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ResponseEvent:
        while not self._events:
            if self._has_ended:
                raise StopAsyncIteration
            await self._owner.read_on(lambda: bool(self._events) or self._has_ended)
        return self._events.popleft()

    async def text(self) -> AsyncIterator[str]:
        """The text of a message or of reasoning, or the arguments of a call."""
        async for event in self:
            if isinstance(event, TEXT_DELTAS) and event.delta:
                yield event.delta

    def take(self, event: Any) -> None:
        """Takes an event of the item."""
        self._events.append(event)
        if isinstance(event, OutputItemDone):
            self.item = event.item
            self.end()

    def end(self) -> None:
        """No event follows."""
        self._has_ended = True


class ItemStreams:
    """The items of a stream, each as soon as it begins.

    Whoever needs the next event reads the stream, one at a time; events of other items are kept for
    their readers.
    """

    def __init__(self, stream: AsyncIterable[ResponseEvent]) -> None:
        self._stream = aiter(stream)
        self._begun: deque[ItemStream] = deque()
        """Items that nobody was given."""
        self._open: dict[int, ItemStream] = {}
        """Items that have not ended, by index."""
        self._reading = anyio.Lock()
        self._has_ended = False
        self._error: Exception | None = None
        """Failure of the stream, which every reader raises after its events."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ItemStream:
        while not self._begun:
            if self._has_ended:
                raise StopAsyncIteration
            await self.read_on(lambda: bool(self._begun))
        return self._begun.popleft()

    async def read_on(self, is_served: Callable[[], bool]) -> None:
        """Reads one event, unless another reader has served this one in the meantime."""
        async with self._reading:
            if is_served():
                return
            if self._error is not None:
                raise self._error
            if self._has_ended:
                return
            try:
                self._take(await anext(self._stream))
            except StopAsyncIteration:
                self._end()
            except Exception as error:
                self._error = error
                raise

    def _take(self, event: Any) -> None:
        if isinstance(event, OutputItemAdded):
            item = ItemStream(self, event)
            self._open[event.index] = item
            self._begun.append(item)
        item_of_event = self._open.get(getattr(event, "index", None))  # type: ignore[arg-type]
        if item_of_event is None:
            return
        item_of_event.take(event)
        if isinstance(event, OutputItemDone):
            del self._open[event.index]

    def _end(self) -> None:
        self._has_ended = True
        for item in self._open.values():
            item.end()


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
