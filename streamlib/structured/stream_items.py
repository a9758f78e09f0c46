"""The elements of a list in a response that streams, each as soon as it is closed."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Generic, TypeVar, overload

from streamlib.structured.item_reader import JsonItems
from streamlib_parsers.accumulate import NO_OUTPUT, Response
from streamlib_parsers.errors import IncompleteOutput, InvalidOutput
from streamlib_parsers.events import (
    Completed,
    Failed,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    OutputTextDelta,
    RefusalDelta,
    ResponseEvent,
)
from streamlib_parsers.items import ResponseItem
from streamlib_parsers.outputs import is_output_call, is_output_message
from streamlib_parsers.stream_error import StreamError

T = TypeVar("T")


class EventItems(Generic[T]):
    """The elements of a list in the events of a response: `json_items` without I/O.

    The JSON is that of the first choice's text, or of the call where a prompt has
    ``structured="tool"``.
    """

    def __init__(self, pointer: str, kind: type[T]) -> None:
        """Args:
            pointer: JSON pointer of the list, or of another value.
            kind: Class of one element, or of the value.

        Raises:
            ValueError: that is not a JSON pointer.
            TypeError: the class's library cannot read the class.
        """
        self._pointer = pointer
        self._kind = kind
        self._items: dict[int, JsonItems[T]] = {}
        """Index of an item to what is read of it."""
        self._is_call = False
        """Whether the output is the arguments of a call."""
        self._is_refused = False
        self._behind: JsonItems[T] | None = None
        """What closed a wrong value after right ones, which are given before it is raised."""
        JsonItems(pointer, kind)  # a wrong pointer fails here, not at the first text

    def feed(self, event: ResponseEvent) -> list[T]:
        """Reads the next event.

        Returns:
            The values that it closes.

        Raises:
            InvalidOutput: a value is not of the class, or the response ended without one. Values of
                the same event before it are returned first: then the next `take` raises.
            IncompleteOutput: the response ended early, refused, or calls tools first.
            StreamError: the response failed.
        """
        if isinstance(event, (OutputTextDelta, FunctionCallArgumentsDelta)):
            items = self._items.get(event.index)
            if items is None:
                return []
            values = items.feed(event.delta)
            if items.is_behind:
                self._behind = items
            return values
        if isinstance(event, OutputItemAdded):
            self._begin(event.index, event.item)
        elif isinstance(event, RefusalDelta) and event.agent is None:
            self._is_refused = True
        elif isinstance(event, Failed):
            raise StreamError(event.error)
        elif isinstance(event, Completed):
            return self._end(event)
        return []

    def take(self) -> list[T]:
        """Values that the last `feed` closed after a wrong one.

        Raises:
            InvalidOutput: a value is not of the class; those before it were returned by `feed`.
        """
        if self._behind is None:
            return []
        items, self._behind = self._behind, None
        try:
            return items.feed("")
        finally:
            if items.is_behind:
                self._behind = items

    def _begin(self, index: int, item: ResponseItem) -> None:
        is_call = is_output_call(item)
        if item.choice == 0 and (is_call or is_output_message(item)):
            self._items[index] = JsonItems(self._pointer, self._kind)
            self._is_call = self._is_call or is_call

    def _end(self, completed: Completed) -> list[T]:
        if completed.stop_reason in NO_OUTPUT:
            raise IncompleteOutput(completed.stop_reason)
        if self._is_refused:
            raise IncompleteOutput("refusal")
        if completed.stop_reason == "tool_calls" and not self._is_call:
            raise IncompleteOutput("tool_calls")
        failure = InvalidOutput("the response has no output")
        for items in self._items.values():
            try:
                return items.close()
            except InvalidOutput as error:  # a remark before the output, perhaps
                failure = error
        raise failure


class _StreamItems(Generic[T]):
    """Async iterator of `json_items`.

    A class and not a generator: a generator that is left early stays suspended in its stream.
    """

    def __init__(self, stream: AsyncIterable[ResponseEvent], items: EventItems[T]) -> None:
        self._stream = stream
        self._events = aiter(stream)
        self._items = items
        self._ready: deque[T] = deque()
        """Values that are closed and not given yet."""
        self._has_ended = False
        """Whether the terminal event was read."""

    def __aiter__(self) -> _StreamItems[T]:
        return self

    async def __anext__(self) -> T:
        while not self._ready:
            self._ready.extend(self._items.take())
            if self._ready:
                break
            if self._has_ended:
                await anext(self._events, None)  # tells the stream that it was read to its end
                raise StopAsyncIteration
            try:
                event = await anext(self._events)
            except StopAsyncIteration:
                raise IncompleteOutput("not_ended") from None
            self._read(event)
        return self._ready.popleft()

    def _read(self, event: ResponseEvent) -> None:
        self._has_ended = isinstance(event, (Completed, Failed))
        try:
            self._ready.extend(self._items.feed(event))
        except StreamError as error:
            response = getattr(self._stream, "response", None)
            if isinstance(response, Response):
                error.response = response
            raise


@overload
def json_items(
    stream: AsyncIterable[ResponseEvent], pointer: str, kind: type[T]
) -> AsyncIterator[T]: ...
@overload
def json_items(
    stream: AsyncIterable[ResponseEvent], pointer: str, kind: object
) -> AsyncIterator[Any]: ...
def json_items(stream: AsyncIterable[ResponseEvent], pointer: str, kind: Any) -> AsyncIterator[Any]:
    """The elements of a list in a response, each as soon as it is closed, validated.

        async for city in json_items(stream, "/cities", City): ...

    Args:
        stream: a stream, or any events of one response.
        pointer: JSON pointer of the list: ``/cities``; "" for one that was asked for by
            `Prompt(output_schema=list[City])`, as `partial` with ``list[City]`` reads it
            (``/value``, the key of the object that it is asked for in, is the same place).
            Anything else that is there, as a named sub-object, comes as the only value; a null
            is none.
        kind: class of one element, or of the value.

    Raises:
        StreamError: the stream failed, after everything that was closed before.
        IncompleteOutput: the response ended at a limit, refused, or calls tools first.
        InvalidOutput: a value is not of the class, the text is not JSON, or nothing is at the
            pointer; `path` names what failed.
        ValueError: that is not a JSON pointer.
        TypeError: the class's library cannot read the class.
    """
    return _StreamItems(stream, EventItems(pointer, kind))
