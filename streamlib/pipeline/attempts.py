"""Streams that are tried one after another, until one has output.

    attempts = Attempts(next_start)
    async for start in attempts:
        async with start() as stream:
            opened = await read_opening(stream.batches())
            if opened.failure is not None:
                attempts.failed(opened.failure)  # the next one is tried
                continue
            async for events in opened: ...

Only output of the model is irrevocable: what a stream sends before it is buffered, so that a reader
of the next stream learns nothing of the one that failed, and has one `Created` and one numbering.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    Created,
    Failed,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    Passthrough,
    RateLimits,
    ResponseEvent,
    ResponseMetadata,
    TokenCount,
)
from streamlib_parsers.stream_error import StreamError

BEFORE_OUTPUT: Final = frozenset(
    {
        Created,
        Notice,
        OutputItemAdded,
        Passthrough,  # a ping of a kind that the parser does not know, for example
        RateLimits,
        ResponseMetadata,
        TokenCount,
    }
)
"""Events without output of the model."""

BUFFERED_EVENTS: Final = 1000
"""Events that are buffered before the first output, of some ten that models send; after these the
stream is taken as it is."""

Start = TypeVar("Start")


class StartFailure(NamedTuple):
    """Why a start gave no response.

    Attributes:
        number: its position among the starts.
        error: the failure of its stream, before any output.
    """

    number: int
    error: ErrorInfo


class Opened:
    """A stream whose beginning was read: an async iterator of batches, the buffered one first.

    Attributes:
        failure: why the stream ended before it had output; None: it has some, or ended well.
    """

    def __init__(
        self,
        events: list[ResponseEvent],
        batches: AsyncIterator[list[ResponseEvent]] | None = None,
        failure: ErrorInfo | None = None,
    ) -> None:
        self.failure = failure
        self._events = events
        """Events up to the first output that nobody has read."""
        self._batches = batches

    def __aiter__(self) -> Opened:
        return self

    async def __anext__(self) -> list[ResponseEvent]:
        events = self._events
        if events:
            self._events = []
            return events
        if self._batches is None:
            raise StopAsyncIteration
        return await anext(self._batches)


class Opening:
    """What the beginning of a stream decides.

    Attributes:
        is_decided: it has output, or has failed.
        failure: why it has failed before it had output.
    """

    def __init__(self) -> None:
        self.is_decided = False
        self.failure: ErrorInfo | None = None
        self._count = 0
        """Events so far."""

    def look(self, events: Sequence[ResponseEvent]) -> None:
        """Looks at the next events, until it is decided."""
        for event in events:
            if isinstance(event, Failed):
                self.failure = event.error
            self._count += 1
            if self.failure is not None or is_output(event) or self._count > BUFFERED_EVENTS:
                self.is_decided = True
                return


async def read_opening(batches: AsyncIterator[list[ResponseEvent]]) -> Opened:
    """Reads a stream up to its first output, its failure or its end.

    Args:
        batches: of a stream that reports its failure as an event.
    """
    events: list[ResponseEvent] = []
    opening = Opening()
    async for batch in batches:
        events += batch
        opening.look(batch)
        if opening.is_decided:
            break
    return Opened(events, batches, opening.failure)


def is_output(event: ResponseEvent) -> bool:
    """Whether an event has output of the model, or follows it: a delta, a finished item …"""
    # The end of an item that a failure has interrupted before its first delta.
    if isinstance(event, OutputItemDone):
        return event.item.status != "incomplete"
    return type(event) not in BEFORE_OUTPUT


class Attempts(Generic[Start]):
    """What is tried for one response: an async iterator that goes on where one has `failed`."""

    def __init__(
        self,
        next_start: Callable[[], Awaitable[Start | None]],
        on: Callable[[ErrorInfo], bool] = lambda error: error.retryable,
    ) -> None:
        """Tries nothing yet.

        Args:
            next_start: picks what is tried next; None: nothing is left. It may wait, and raises
                StreamError if nothing can be tried now.
            on: whether another one may be tried after a failure.
        """
        self.failures: list[ErrorInfo] = []
        """Why each one that was tried has failed, in order."""
        self.failure: ErrorInfo | None = None
        """Why the last one has failed, or none could be tried; None: it has not failed."""
        self._next_start = next_start
        self._on = on
        self._is_first = True

    def failed(self, error: ErrorInfo) -> None:
        """The one that is tried has failed before its output."""
        self.failures.append(error)
        self.failure = error

    def __aiter__(self) -> Attempts[Start]:
        return self

    async def __anext__(self) -> Start:
        if not self._is_first and (self.failure is None or not self._on(self.failure)):
            raise StopAsyncIteration
        start = await self.another()
        if start is None:
            raise StopAsyncIteration
        return start

    async def another(self) -> Start | None:
        """What is tried next, whether or not one has failed; None: nothing is left."""
        self._is_first = False
        try:
            start = await self._next_start()
        except StreamError as error:
            # What one that was tried has said is worth more.
            self.failure = self.failure or error.info
            return None
        if start is not None:
            self.failure = None
        return start
