"""A stream through stages."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterable, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

import anyio.lowlevel

from streamlib.pipeline.chain import Chain
from streamlib.pipeline.stages import E, Only, PipelineStage, Simple
from streamlib.pipeline.tee import Branch, EventLists, TeeReader
from streamlib_parsers.events import ResponseEvent, RunEvent

AnyE_co = TypeVar("AnyE_co", bound=RunEvent, covariant=True)


class Pipeline(Generic[AnyE_co]):
    """A stream through stages: ``async with pipe(…) as events: async for event in events``."""

    def __init__(
        self, source: AsyncIterable[ResponseEvent], stages: Sequence[PipelineStage]
    ) -> None:
        self._source = source
        self._chain = Chain(stages)
        self._is_timed = any(type(stage).due is not Simple.due for stage in stages)
        """A stage may emit after a time, so a task has to read the source meanwhile. A `Simple` one
        buffers nothing; of any other, a user's own too, only `due` knows."""
        self._reader: TeeReader | None = None
        """Owner of that task; None without a timed stage."""
        self._branch: Branch | None = None
        """The reader's only branch."""
        self._batches: EventLists | None = None
        """The source, read directly, without a timed stage."""
        self._emitted: deque[Any] = deque()
        """Events that have passed all stages and are not read yet: `AnyE_co`."""
        self._ended = False
        """The source has ended, or a stage has ended the pipeline."""
        self._error: Exception | None = None
        """Failure of the source, raised after the events before it."""

    async def __aenter__(self) -> Self:
        if self._is_timed:
            self._reader = TeeReader(self._source, 1)
            [self._branch] = await self._reader.__aenter__()
        else:
            self._batches = EventLists(self._source)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._reader is not None:
            await self._reader.__aexit__(kind, error, traceback)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyE_co:
        while not self._emitted:
            if self._ended:
                raise self._error or StopAsyncIteration
            await self._fill()
        event: AnyE_co = self._emitted.popleft()
        return event

    async def _fill(self) -> None:
        """Passes the next events of the source through the stages, or emits what is due."""
        if self._branch is not None:
            await self._fill_in_time(self._branch)
            return
        if self._batches is None:
            raise RuntimeError("a pipeline is read inside `async with`")
        try:
            batch = await self._batches.batch()
        except StopAsyncIteration:
            self._end()
            return
        except Exception as error:  # noqa: BLE001  # raised again after the buffered events
            self._error = error
            self._end()
            return
        for event in batch:
            self._emitted.extend(self._chain.feed(event))
            if self._chain.done:
                self._end()
                return

    async def _fill_in_time(self, branch: Branch) -> None:
        """The same where a stage emits after a time.

        What has arrived is joined before anything is let out, and only one delta is let out then:
        while a slow screen draws it, those after it grow.
        """
        arrived = branch.arrived()
        due = self._chain.due()
        if not arrived and due is not None and due <= 0:
            # A caller that draws without a pause has not let the reader's task read.
            await anyio.lowlevel.checkpoint()
            arrived = branch.arrived()
        for event in arrived:
            self._emitted.extend(self._chain.hold(event))
            if self._chain.done:
                self._end()
                return
        if self._emitted:
            return
        self._emitted.extend(self._chain.release())
        if self._emitted:
            return
        due = self._chain.due()
        if due is None:
            # Nothing is buffered, so there is nothing to do before the next event.
            due = math.inf
        if await branch.wait(due) and branch.has_ended:
            self._error = branch.error
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._emitted.extend(self._chain.close())


# Only the last stage decides the type of the events: one overload for each number of stages before.
@overload
def pipe(source: AsyncIterable[ResponseEvent], last: Only[E], /) -> Pipeline[E]: ...
@overload
def pipe(
    source: AsyncIterable[ResponseEvent], s1: PipelineStage, last: Only[E], /
) -> Pipeline[E]: ...
@overload
def pipe(
    source: AsyncIterable[ResponseEvent], s1: PipelineStage, s2: PipelineStage, last: Only[E], /
) -> Pipeline[E]: ...
@overload
def pipe(
    source: AsyncIterable[ResponseEvent],
    s1: PipelineStage,
    s2: PipelineStage,
    s3: PipelineStage,
    last: Only[E],
    /,
) -> Pipeline[E]: ...
@overload
def pipe(
    source: AsyncIterable[ResponseEvent], *stages: PipelineStage
) -> Pipeline[ResponseEvent]: ...
@overload
def pipe(source: AsyncIterable[RunEvent], *stages: PipelineStage) -> Pipeline[RunEvent]: ...
def pipe(source: AsyncIterable[Any], *stages: PipelineStage) -> Pipeline[Any]:
    """`source` through the stages, left to right.

    The source stays its owner's: close it where it was opened. It may be a run, such as an
    `agent`'s: the stages of this module pass the outputs between its responses on.
    """
    return Pipeline(source, stages)
