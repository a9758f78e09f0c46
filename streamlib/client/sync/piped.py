"""The stream of a `SyncClient` through stages, in the client's thread, where any stage may wait."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from streamlib.client.hooks import OnEvent, call_hook
from streamlib.client.sync.loop_thread import result_of
from streamlib.pipeline.flow import CALL_OUTPUTS
from streamlib.pipeline.machine import PipeOptions, Stage
from streamlib.pipeline.reading import BatchSource, EventLists
from streamlib.pipeline.stream import Pipeline
from streamlib_parsers.events import ResponseEvent, RunEvent

if TYPE_CHECKING:
    from streamlib.client.sync import SyncClient, SyncStream


class HostedSource(Protocol):
    """The stream of a response, or a run."""

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet."""
        ...

    async def __aenter__(self) -> AsyncIterable[RunEvent]: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

    def __aiter__(self) -> AsyncIterator[RunEvent]: ...

    async def aclose(self) -> None:
        """Closes its connection."""
        ...


class HostedDriver:
    """Runs a pipeline in the client's thread: one call for each batch."""

    def __init__(
        self,
        pipeline: Pipeline[Any],
        client: SyncClient,
        stages: Sequence[Stage] = (),
        options: PipeOptions | None = None,
    ) -> None:
        self.delivery = pipeline
        if stages or options:
            self.delivery = pipeline.extended(stages, options or PipeOptions())
        self.is_run: bool = pipeline.is_run
        self._client = client
        """Kept alive: a client that is garbage-collected closes its connections."""
        self._loop = client._connections.loop
        self._hosting: Future[None] | None = None
        """The task that enters the pipeline, and leaves it."""
        self._has_begun = False
        """Whether there may be such a task: set first, since Ctrl-C may come at any line."""
        self._is_left = False
        """Whether that task is to leave the pipeline, or not to enter it."""
        self._left: anyio.Event | None = None
        """Set when that task is to leave it."""
        self._ended: anyio.Event | None = None
        """Set when it has."""
        self._opening: anyio.CancelScope | None = None
        """The scope of that task, while it enters the pipeline."""

    def enter(self) -> None:
        """Enters the pipeline."""
        opened: Future[None] = Future()
        self._has_begun = True
        self._hosting = self._loop.start(partial(self._host, opened))
        result_of(opened)

    def fill(self) -> None:
        """Waits in the loop until there is something to read, or nothing follows."""
        self._loop.call(self.delivery.fill)

    def leave(self) -> None:
        """Leaves the pipeline."""
        has_begun, self._has_begun = self._has_begun, False
        if has_begun and self._loop.is_usable:
            self._loop.call(self._leave)
            if self._hosting is not None:
                self._hosting.result()

    async def _host(self, opened: Future[None]) -> None:
        """Enters and leaves the pipeline: its group of tasks belongs to one task."""
        self._left, self._ended = anyio.Event(), anyio.Event()
        try:
            with anyio.CancelScope() as self._opening:
                if not self._is_left:
                    await self._stay(opened)
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)
        finally:
            self._ended.set()

    async def _stay(self, opened: Future[None]) -> None:
        """Enters the pipeline, and waits until it is to be left."""
        await self.delivery.__aenter__()
        try:
            self._opening = None
            opened.set_result(None)
            if self._left is not None:
                await self._left.wait()
        finally:
            # Not `__aexit__`: the reader, in its thread, has not taken the last events yet.
            await self.delivery.leave(*sys.exc_info())

    async def _leave(self) -> None:
        self._is_left = True
        if self._opening is not None:  # Ctrl-C came while it was entered
            self._opening.cancel()
        if self._left is not None and self._ended is not None:
            self._left.set()
            await self._ended.wait()


class LoopDriver(HostedDriver):
    """The same for the stream of a `SyncClient`, which it owns."""

    def __init__(
        self,
        stream: SyncStream,
        events: HookedEvents,
        client: SyncClient,
        stages: Sequence[Stage],
        options: PipeOptions,
    ) -> None:
        super().__init__(Pipeline[Any](events, stages, options), client)
        self._stream = stream

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


class HookedEvents(BatchSource[ResponseEvent]):
    """The batches of a stream, shown to the hook of its client."""

    def __init__(self, stream: HostedSource, on_event: OnEvent | None) -> None:
        super().__init__()
        self.is_run: bool = getattr(stream, "is_run", False)
        """Whether its events are those of several responses."""
        self._stream = stream
        self._on_event = on_event
        self._lists: EventLists | None = None
        """The batches of the stream, once it is read."""

    @property
    def is_new(self) -> bool:
        """Whether the stream was not entered yet."""
        return self._stream.is_new

    async def __aenter__(self) -> HookedEvents:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stream.__aexit__(kind, error, traceback)

    def __aiter__(self) -> HookedEvents:
        self._lists = EventLists(self._stream)  # raises if it was read to its end
        return self

    async def _next_batch(self) -> list[ResponseEvent]:
        if self._lists is None:
            self._lists = EventLists(self._stream)
        batch = await self._lists.batch()
        if self._on_event is not None:
            for event in batch:
                if type(event) not in CALL_OUTPUTS:  # of a run: no events of a response
                    await call_hook(self._on_event, event)
        return batch

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._stream.aclose()
