"""The stream of a `SyncClient` through stages, in the client's thread, where any stage may wait."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from streamlib.client.hooks import call_hook
from streamlib.pipeline.opening import PipeOptions, merged
from streamlib.pipeline.reading import Batches
from streamlib.pipeline.stages import Stage
from streamlib.pipeline.stream import Pipeline
from streamlib.pipeline.sync_stream import Driver
from streamlib_parsers.events import ResponseEvent

if TYPE_CHECKING:
    from streamlib.client.sync.stream import SyncStream


class LoopDriver:
    """Runs a pipeline in the client's thread: one call for each batch."""

    is_run = False

    def __init__(self, stream: SyncStream, stages: Sequence[Stage], options: PipeOptions) -> None:
        self.delivery = Pipeline[Any](_HookedEvents(stream), stages, options)
        self._stream = stream
        self._stages = stages
        self._options = options
        self._hosting: Future[None] | None = None
        """The task that has entered the pipeline."""
        self._left: anyio.Event | None = None
        """Set when that task is to leave it."""

    def enter(self) -> None:
        """Enters the stream, unless it is open already."""
        if self._stream.is_new:
            self._stream.__enter__()
        opened: Future[None] = Future()
        self._hosting = self._stream._loop.start(partial(self._host, opened))
        opened.result()

    def fill(self) -> None:
        """Waits in the loop until there is something to read, or nothing follows."""
        self._stream._loop.call(self.delivery.fill)

    def leave(self) -> None:
        """Closes the stream."""
        hosting = self._hosting
        self._hosting = None
        try:
            if hosting is not None and self._stream._loop.is_usable:
                self._stream._loop.call(self._leave)
                hosting.result()
        finally:
            self._stream.close()

    async def _host(self, opened: Future[None]) -> None:
        """Enters and leaves the pipeline: its group of tasks belongs to one task."""
        self._left = anyio.Event()
        try:
            async with self.delivery:
                opened.set_result(None)
                await self._left.wait()
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)

    async def _leave(self) -> None:
        if self._left is not None:
            self._left.set()

    def extended(self, stages: Sequence[Stage], options: PipeOptions) -> Driver:
        """The same for further stages."""
        together = merged(self._options, options)
        return LoopDriver(self._stream, (*self._stages, *stages), together)


class _HookedEvents:
    """The batches of a stream, shown to the hook of its client."""

    def __init__(self, stream: SyncStream) -> None:
        self._stream = stream

    def __aiter__(self) -> _HookedEvents:
        return self

    async def __anext__(self) -> ResponseEvent:
        raise NotImplementedError  # `batches` is what a pipeline reads

    def batches(self) -> AsyncIterator[list[ResponseEvent]]:
        """The events of each read."""
        aiter(self._stream._stream)  # raises if it was read to its end
        return Batches(self._next)

    async def _next(self) -> list[ResponseEvent]:
        batch = await self._stream._stream._next_batch()
        if self._stream._on_event is not None:
            for event in batch:
                await call_hook(self._stream._on_event, event)
        return batch

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._stream._stream.aclose()
