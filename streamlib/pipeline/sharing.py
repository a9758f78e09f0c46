"""One stream for several readers: `tee` for those who read at once, `share` for late ones too."""

from __future__ import annotations

from collections.abc import AsyncIterable
from types import TracebackType
from typing import Any, Self, get_args

import anyio

from streamlib.pipeline.branches import READ_AHEAD, EventLists, Slow, TeeReader, owned
from streamlib.pipeline.event_stages import map_events
from streamlib.pipeline.opening import PipeOptions
from streamlib.pipeline.reading import BatchSource
from streamlib.pipeline.stages import Stage
from streamlib.pipeline.stream import Pipeline
from streamlib_parsers.events import ResponseEvent


class ReaderStream(Pipeline[ResponseEvent]):
    """What one of several readers gets: a stream like any other, that is open from the start."""

    has_task = True

    def __init__(self, source: AsyncIterable[ResponseEvent], *stages: Stage) -> None:
        super().__init__(source, stages, PipeOptions())
        self._begin(anyio.current_time)
        self._open_source()

    async def __aenter__(self) -> Self:
        return self


class Tee:
    """The block of `tee`: at its entry the branches."""

    def __init__(
        self, source: AsyncIterable[ResponseEvent], count: int, ahead: int, slow: Slow
    ) -> None:
        self._reader = TeeReader(source, count, ahead, slow)

    async def __aenter__(self) -> tuple[ReaderStream, ...]:
        branches = await self._reader.__aenter__()
        return tuple([ReaderStream(branch, map_events(_unchanged)) for branch in branches])

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._reader.__aexit__(kind, error, traceback)


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
        source: the events; its owner closes it.
        count: number of branches.
        slow: what happens where a branch is `ahead` events behind: the source waits for it
            ("wait"); its deltas are joined, and the source waits only where that does not help
            ("coalesce"); it ends with `limit_exceeded` behind what it has, and the others go on
            ("fail").
        ahead: the most events that a branch may be behind.

    Raises:
        ValueError: `count` or `ahead` is less than 1, or `slow` is none of the three.
    """
    if count < 1 or ahead < 1:
        raise ValueError("a tee has at least one branch, and room for at least one event")
    if slow not in get_args(Slow):
        raise ValueError(f"slow is one of {', '.join(get_args(Slow))}, not {slow!r}")
    return Tee(source, count, ahead, slow)


class Share:
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
        self._wanted = anyio.Event()
        """Set where a reader needs the next events; replaced when they are asked for."""
        self._arrived = anyio.Event()
        """Set and replaced when events arrive, and at the end."""
        self._group = anyio.create_task_group()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._group.start_soon(self._read)
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
                raise self._error
            if self._has_ended:
                raise StopAsyncIteration
            self._wanted.set()
            await self._arrived.wait()
        return self.events[position:]

    async def _read(self) -> None:
        try:
            async with owned(self._source) as stream:
                await self._read_on(EventLists(stream))
        except Exception as error:  # noqa: BLE001  # each reader raises it at its end
            self._error = error
        finally:
            self._has_ended = True
            self._arrived.set()

    async def _read_on(self, lists: EventLists) -> None:
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            try:
                self.events += await lists.batch()
            except StopAsyncIteration:
                return
            self._arrived.set()
            self._arrived = anyio.Event()


class _FromTheStart(BatchSource):
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
    """
    return Share(source)


def _unchanged(event: Any) -> Any:
    """With this stage a pipeline numbers what it lets out: joined deltas leave gaps."""
    return event
