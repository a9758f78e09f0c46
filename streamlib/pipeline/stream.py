"""A stream through stages."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Sequence
from types import TracebackType
from typing import Any, Generic, Self, overload

from streamlib.pipeline.chain import Chain
from streamlib.pipeline.stages import Coalesce, E, Only, PipelineStage
from streamlib.pipeline.tee import Batches, Branch, TeeReader
from streamlib_parsers.events import ResponseEvent


class Pipeline(Generic[E]):
    """A stream through stages: ``async with pipe(…) as events: async for event in events``."""

    def __init__(
        self, source: AsyncIterable[ResponseEvent], stages: Sequence[PipelineStage]
    ) -> None:
        self._source = source
        self._chain = Chain(stages)
        self._is_timed = any(isinstance(stage, Coalesce) for stage in stages)
        """A stage emits after a time, so a task has to read the source meanwhile."""
        self._reader: TeeReader | None = None
        """Owner of that task; None without a timed stage."""
        self._branch: Branch | None = None
        """The reader's only branch."""
        self._batches: Batches | None = None
        """The source, read directly, without a timed stage."""
        self._emitted: deque[Any] = deque()
        """Events that have passed all stages and are not read yet: `E`."""
        self._ended = False
        """The source has ended, or a stage has ended the pipeline."""
        self._error: Exception | None = None
        """Failure of the source, raised after the events before it."""

    async def __aenter__(self) -> Self:
        if self._is_timed:
            self._reader = TeeReader(self._source, 1)
            [self._branch] = await self._reader.__aenter__()
        else:
            self._batches = Batches(self._source)
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

    async def __anext__(self) -> E:
        while not self._emitted:
            if self._ended:
                raise self._error or StopAsyncIteration
            await self._fill()
        event: E = self._emitted.popleft()
        return event

    async def _fill(self) -> None:
        """Passes the next events of the source through the stages, or emits what is due."""
        due = self._chain.due()
        if due is not None and self._branch is not None and not await self._branch.wait(due):
            self._emitted.extend(self._chain.close())
            return
        try:
            batch = await self._next_batch()
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

    async def _next_batch(self) -> list[ResponseEvent]:
        if self._branch is not None:
            return await self._branch.batch()
        if self._batches is not None:
            return await self._batches.batch()
        raise RuntimeError("a pipeline is read inside `async with`")

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
def pipe(source: AsyncIterable[ResponseEvent], *stages: PipelineStage) -> Pipeline[Any]:
    """`source` through the stages, left to right.

    The source stays its owner's: close it where it was opened.
    """
    return Pipeline(source, stages)
