"""How streams are read: in lists, as text, and the response and the JSON that has arrived so far.

The client's streams and pipelines read alike; neither has a reader of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from streamlib.pipeline.attempts import StartFailure
from streamlib_parsers.accumulate import Response
from streamlib_parsers.events import (
    Created,
    Failed,
    FunctionCallArgumentsDelta,
    OutputItemDone,
    OutputTextDelta,
    RunEvent,
)
from streamlib_parsers.items import Message, ResponseItem
from streamlib_parsers.native_class import mypyc_attr
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.structured.item_views import ItemViews

T = TypeVar("T")


class Reads(Generic[T]):
    """Async iterator over what a function returns; it raises `StopAsyncIteration` at the end.

    A class and not a generator: a generator that is left early stays suspended in its source.

    Args:
        read: returns the next one: a batch, a text.
        begin: called before the first one; it raises where the source cannot be read again.
    """

    def __init__(
        self, read: Callable[[], Awaitable[T]], begin: Callable[[], object] | None = None
    ) -> None:
        self._read = read
        self._begin = begin

    def __aiter__(self) -> Reads[T]:
        return self

    def __anext__(self) -> Awaitable[T]:
        # Only the first read has a frame of its own, whose `await` raises what `begin` does.
        if self._begin is not None:
            return self._first(self._begin)
        return self._read()

    async def _first(self, begin: Callable[[], object]) -> T:
        begin()
        self._begin = None
        return await self._read()


@mypyc_attr(allow_interpreted_subclasses=True)
class BatchSource(ABC, Generic[T]):
    """A source whose events arrive in lists; iterated, it gives them one by one."""

    @property
    def report(self) -> tuple[StartFailure, ...]:
        """The starts that have failed, where it is one of several."""
        return ()

    def __init__(self) -> None:
        self._rest: deque[T] = deque()
        """Events of the last list that were not given yet."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._rest:
            self._rest.extend(await self._next_batch())
        return self._rest.popleft()

    def batches(self) -> AsyncIterator[list[T]]:
        """The events as they arrive together; first those that a loop over single ones left."""
        return Reads(self._rest_or_next)

    async def _rest_or_next(self) -> list[T]:
        rest = list(self._rest)
        self._rest.clear()
        return rest or await self._next_batch()

    @abstractmethod
    async def _next_batch(self) -> list[T]:
        """The next list; it raises `StopAsyncIteration` at the end."""


class EventLists:
    """Events of a source in lists, as they arrived together where the source has `batches`.

    A class and not a generator: a generator that is left early stays suspended in its source.
    """

    def __init__(self, source: AsyncIterable[Any]) -> None:
        self.source: AsyncIterator[Any] = aiter(source)  # raises if it was read to its end
        """Its own batches where it has some, or else its events."""
        batches = getattr(source, "batches", None)
        if batches is not None:
            self.source = batches()

    async def batch(self) -> list[Any]:
        """The next events.

        Raises:
            StopAsyncIteration: the source has ended.
        """
        got: Any = await anext(self.source)
        return got if isinstance(got, list) else [got]


class Loops:
    """The loops over a stream, which is read once.

    A loop that was left may be followed by another, which goes on from there. After one that came
    to the end, a further one would get nothing, as if the response were empty. Reading to the end
    by `anext` alone is no loop.
    """

    def __init__(self) -> None:
        self._has_begun = False
        self._has_ended = False
        """A loop came to the end of the stream, or to its failure."""

    def begin(self) -> None:
        """A loop begins.

        Raises:
            RuntimeError: Another one came to the end.
        """
        if self._has_ended:
            raise RuntimeError(
                "this stream was read to its end, and a stream is read once: "
                "what was received is in `stream.response`"
            )
        self._has_begun = True

    def end(self) -> None:
        """The stream was read to its end."""
        self._has_ended = self._has_begun


class OutputText:
    """Which deltas belong to `Response.text`: those of the agent that was asked, first choice."""

    def __init__(
        self, item: Callable[[int], ResponseItem], response: Callable[[], Response]
    ) -> None:
        self._item = item
        """The item of an index, as far as it was received."""
        self._response = response
        """The response so far, for the exception."""
        self._is_output: dict[int, bool] = {}
        """Item index to whether its text belongs to `Response.text`."""

    def of(self, event: RunEvent) -> str:
        """The text that an event adds; "" for none.

        Raises:
            StreamError: the event is the failure of the stream.
        """
        if isinstance(event, OutputTextDelta):
            if event.delta and event.agent is None and self._belongs(event.index):
                return event.delta
        elif isinstance(event, Created):
            self._is_output.clear()  # the next response of a run
        elif isinstance(event, Failed):
            # With errors="event". A str cannot say that the text is not complete.
            raise StreamError(event.error, self._response())
        return ""

    async def read(self, next_event: Callable[[], Awaitable[RunEvent]]) -> str:
        """The next text of the events that a function returns."""
        while True:
            text = self.of(await next_event())
            if text:
                return text

    def _belongs(self, index: int) -> bool:
        known = self._is_output.get(index)
        if known is None:
            item = self._item(index)
            known = isinstance(item, Message) and item.role == "assistant" and item.choice == 0
            self._is_output[index] = known
        return known


# --- the JSON of items that grow ---


def partial_view(
    views: dict[int, ItemViews], item: Callable[[int], ResponseItem], index: int, kind: object
) -> Any:
    """The live view of an item's JSON: see `ResponseStream.partial`.

    Args:
        views: those of the items that this was called for, by their index.
        item: the item of an index, as far as it was received. No method of a stream: a cycle would
            keep an abandoned one alive.
        index: `index` of the item's events.
        kind: a class to make a partial object of; None: a dict.
    """
    from streamlib.structured.item_views import ItemViews  # few streams need it

    known = views.get(index)
    if known is None:
        known = views[index] = ItemViews(partial(item, index))
    if kind is None:
        return known.plain()
    return known.typed(kind)


def update_views(views: dict[int, ItemViews], event: RunEvent) -> None:
    """Tells the views of the next event."""
    if isinstance(event, (FunctionCallArgumentsDelta, OutputTextDelta)):
        if event.index in views:
            views[event.index].feed(event.delta)
    elif isinstance(event, OutputItemDone):
        # The final item may differ from what was streamed: `partial` reads it anew.
        views.pop(event.index, None)
