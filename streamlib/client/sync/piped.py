"""The stream of a `SyncClient` through stages, in the client's thread, where any stage may wait."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from streamlib.client.hooks import OnEvent, call_hook
from streamlib.pipeline.opening import PipeOptions, merged
from streamlib.pipeline.reading import BatchSource
from streamlib.pipeline.stages import Stage
from streamlib.pipeline.stream import Pipeline
from streamlib.pipeline.sync_stream import Driver
from streamlib_parsers.events import ResponseEvent

if TYPE_CHECKING:
    from streamlib.client.stream import ResponseStream
    from streamlib.client.sync.loop_thread import LoopThread
    from streamlib.client.sync.stream import SyncStream


class HostedDriver:
    """Runs a pipeline in the client's thread: one call for each batch."""

    is_run = False

    def __init__(self, delivery: Pipeline[Any], loop: LoopThread) -> None:
        self.delivery = delivery
        self._loop = loop
        self._hosting: Future[None] | None = None
        """The task that has entered the pipeline."""
        self._left: anyio.Event | None = None
        """Set when that task is to leave it."""

    def enter(self) -> None:
        """Enters the pipeline."""
        opened: Future[None] = Future()
        self._hosting = self._loop.start(partial(self._host, opened))
        opened.result()

    def fill(self) -> None:
        """Waits in the loop until there is something to read, or nothing follows."""
        self._loop.call(self.delivery.fill)

    def leave(self) -> None:
        """Leaves the pipeline."""
        hosting = self._hosting
        self._hosting = None
        if hosting is not None and self._loop.is_usable:
            self._loop.call(self._leave)
            hosting.result()

    def extended(self, stages: Sequence[Stage], options: PipeOptions) -> Driver:
        """The same for further stages."""
        return HostedDriver(self.delivery.extended(stages, options), self._loop)

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


class LoopDriver(HostedDriver):
    """The same for the stream of a `SyncClient`, which it owns."""

    def __init__(self, stream: SyncStream, stages: Sequence[Stage], options: PipeOptions) -> None:
        source = HookedEvents(stream._stream, stream._on_event)
        super().__init__(Pipeline[Any](source, stages, options), stream._loop)
        self._stream = stream
        self._stages = stages
        self._options = options

    def enter(self) -> None:
        """Enters the stream, unless it is open already."""
        if self._stream.is_new:
            self._stream.__enter__()
        super().enter()

    def leave(self) -> None:
        """Closes the stream."""
        try:
            super().leave()
        finally:
            self._stream.close()

    def extended(self, stages: Sequence[Stage], options: PipeOptions) -> Driver:
        """The same for further stages."""
        together = merged(self._options, options)
        return LoopDriver(self._stream, (*self._stages, *stages), together)


class HookedEvents(BatchSource):
    """The batches of a stream, shown to the hook of its client."""

    def __init__(self, stream: ResponseStream, on_event: OnEvent | None) -> None:
        super().__init__()
        self._stream = stream
        self._on_event = on_event

    @property
    def is_new(self) -> bool:
        """Whether the stream was not entered yet."""
        return self._stream.is_new

    async def __aenter__(self) -> HookedEvents:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> HookedEvents:
        aiter(self._stream)  # raises if it was read to its end
        return self

    async def _next_batch(self) -> list[ResponseEvent]:
        batch = await self._stream._next_batch()
        if self._on_event is not None:
            for event in batch:
                await call_hook(self._on_event, event)
        return batch

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._stream.aclose()
