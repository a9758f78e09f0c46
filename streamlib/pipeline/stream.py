"""A stream through stages, which is a stream like any other."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

import anyio
import anyio.lowlevel

from streamlib.pipeline.branches import Branch, TeeReader
from streamlib.pipeline.delivery import NOT_ENTERED, Delivery
from streamlib.pipeline.flow import Flow
from streamlib.pipeline.item_streams import items as items_method
from streamlib.pipeline.machine import PipeOptions, PlainMachine, Stage
from streamlib.pipeline.opening import pipe as pipe_method
from streamlib.pipeline.reading import EventLists, OutputText, Reads
from streamlib.pipeline.statements import AsyncOnly
from streamlib_parsers.events import RunEvent

CLOSING_SECONDS: Final = 2.0
"""How long closing a source may take once its reader was cancelled."""

E = TypeVar("E")
Event_co = TypeVar("Event_co", covariant=True)


class Pipeline(AsyncOnly, Delivery, Generic[Event_co]):
    """A stream through stages: ``async with pipe(…) as events: async for event in events``.

    It owns its source from its entry: a source that was not entered is entered, and the source is
    closed when a stage ends the stream, when an exception leaves a stage, and when the block ends.
    A task reads ahead only where a stage waits for a time or for a call; it lives in the block.
    """

    has_task = False
    """Whether a task reads its source, so that a cancelled read of the pipeline loses nothing."""

    def __init__(
        self,
        source: AsyncIterable[Any],
        stages: Sequence[Stage],
        options: PipeOptions,
    ) -> None:
        super().__init__(source, stages, options.get("errors", "raise"))
        self.is_run: bool = getattr(source, "is_run", False)
        """Whether the source is a run of several responses."""
        self._source: Any = source
        self._options = options
        self._has_entered_source = False
        self._reader: TeeReader | None = None
        """Owner of the task that reads ahead; None where no stage needs one."""
        self._branch: Branch | None = None
        """The reader's only branch."""
        self._arrived: deque[RunEvent] = deque()
        """Events of the source that the stages did not take yet."""
        self._reading: AsyncIterator[RunEvent | list[RunEvent]]
        """The source, read directly, where no stage needs a task: its batches, if it has some."""
        self._is_read = False
        """The source is read no further: it is closed, or about to be."""
        self._is_closed = False
        """Closing the source has come to its end."""

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet."""
        return self._flow is None

    # --- life cycle ---

    async def __aenter__(self) -> Self:
        if self._flow is not None:
            raise RuntimeError("a pipeline is used once: `pipe` makes another one")
        try:
            flow = self._begin(self._options.get("clock") or anyio.current_time)
            if getattr(self._source, "is_new", False):
                self._source = await self._source.__aenter__()
                self._has_entered_source = True
            if _needs_task(flow):
                self._reader = TeeReader(self._source, 1)
                [self._branch] = await self._reader.__aenter__()
            else:
                self._reading = EventLists(self._source).source
        except BaseException:
            await self._leave_source(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end_early()
        await self.leave(kind, error, traceback)

    async def leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leaves the block of the source; what has come out can still be taken."""
        try:
            if self._reader is not None:
                reader = self._reader
                self._reader = None
                await reader.__aexit__(kind, error, traceback)
        finally:
            await self._leave_source(kind, error, traceback)
        interruption = self._flow.interruption if self._flow is not None else None
        if interruption is not None:
            raise interruption

    async def aclose(self) -> None:
        """Ends the stream and closes its source. A second call does nothing."""
        if self._flow is not None:
            self._flow.done = True
        await self._close_source()

    async def _leave_source(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_read = True
        if self._has_entered_source:
            self._has_entered_source = False
            await self._source.__aexit__(kind, error, traceback)
        elif not self._is_closed:
            await self._close()

    async def _close_source(self) -> None:
        """Closes the source while the block goes on."""
        if not self._is_read:
            self._is_read = True
            await self._close()

    async def _close(self) -> None:
        # A reader that is cancelled closes its source all the same. Where asyncio cancels the task
        # itself, which no scope keeps off, the end of the block closes it once more.
        with anyio.move_on_after(CLOSING_SECONDS, shield=True):
            if self._reader is not None:
                await self._reader.stop()
            aclose: Callable[[], Awaitable[object]] | None
            aclose = getattr(self._source, "aclose", None)
            if aclose is not None:
                await aclose()
        self._is_closed = True

    # --- reading ---

    def __aiter__(self) -> AsyncIterator[Event_co]:
        self._loops.begin()
        return self

    async def __anext__(self) -> Event_co:
        while True:
            if not (self._ready or self._selected):
                await self._fill()
            event: Event_co | None = self._take()
            if event is not None:
                return event

    def batches(self) -> AsyncIterator[list[Event_co]]:
        """The same events in lists: what the stages made of one read of the source."""
        return Reads(self._next_batch, self._loops.begin)

    def text(self) -> AsyncIterator[str]:
        """The text that comes out, of the first choice; joined, it is `response.text`.

        Behind a selecting stage it is the text before that stage.

        Raises:
            StreamError: the stream failed. Where `until` ended it, the text just ends.
        """
        text = OutputText(self.item, lambda: self.response)
        return Reads(partial(text.read, self._next_whole), self._loops.begin)

    items: ClassVar = items_method

    pipe: ClassVar = pipe_method
    """The events through further stages: see `streamlib.pipeline.pipe`."""

    def extended(self, stages: Sequence[Stage], options: PipeOptions) -> Pipeline[Any]:
        """The same source through further stages: a pipeline that was not entered has no use."""
        return Pipeline(self._source, (*self._stages, *stages), {**self._options, **options})

    async def _next_batch(self) -> list[Event_co]:
        batch = [await anext(self)]
        event: Event_co | None = self._take()
        while event is not None:
            batch.append(event)
            event = self._take()
        return batch

    async def fill(self) -> None:
        """Waits until there is something to read, or nothing follows."""
        flow = self._flow
        try:
            while flow is not None and not flow.ready and not (flow.done and not flow.waiting):
                await self._fill()
        except StopAsyncIteration:
            pass

    async def _next_whole(self) -> Any:
        """The next event before the first selecting stage."""
        while True:
            event = self._take_whole()
            if event is not None:
                if self._is_silent_end(event):
                    self._loops.end()
                    raise StopAsyncIteration
                return event
            await self._fill()

    async def _fill(self) -> None:
        """Passes the next events of the source through the stages, or lets out what is due.

        Raises:
            StopAsyncIteration: there is nothing more to read.
        """
        flow = self._flow
        if flow is None:
            raise RuntimeError(NOT_ENTERED)
        if flow.done and not flow.waiting:
            await self._finish(flow)
        try:
            if self._branch is not None and self._reader is not None:
                await self._fill_in_time(flow, self._reader, self._branch)
            else:
                # Not in a method of its own: each coroutine more is 0.1 us for each event.
                try:
                    got = await anext(self._reading)
                except Exception as error:  # noqa: BLE001  # raised after the events before it
                    if not isinstance(error, StopAsyncIteration):
                        self._fail_source(flow, error)
                    flow.close()
                else:
                    self._feed_all(flow, got)
            if flow.done and not self._is_read:
                await self._close_source()
        except BaseException:
            # What was read is lost. A task that reads ahead goes on, and loses nothing.
            if self._branch is None and not self.has_task:
                flow.done = True
                await self._close_source()
            raise

    async def _finish(self, flow: Flow) -> None:
        flow.close()
        if flow.ready or flow.waiting:
            return
        await self._close_source()
        error = self._end_error()
        if error is not None:
            raise error
        raise StopAsyncIteration

    def _feed_all(self, flow: Flow, got: RunEvent | list[RunEvent]) -> None:
        """What was read: one event, or a batch."""
        if not isinstance(got, list):
            self._feed(flow, got)
            return
        for event in got:
            self._feed(flow, event)
            if flow.done:
                return

    async def _fill_in_time(self, flow: Flow, reader: TeeReader, branch: Branch) -> None:
        """The same where a stage waits for a time or a call.

        What has arrived is joined before anything is let out, and only one delta is let out then:
        while a slow screen draws it, those after it grow.
        """
        self._feed_arrived(flow, reader, branch)
        due = flow.due()
        if not flow.ready and due is not None and due <= 0:
            # A caller that draws without a pause has not let the reader's task read.
            await anyio.lowlevel.checkpoint()
            self._feed_arrived(flow, reader, branch)
        if flow.ready or self._expire(flow, reader):
            return
        if flow.done and not flow.waiting:
            return
        if branch.has_ended and not (self._arrived or flow.done or flow.waiting):
            if branch.error is not None and self._source_error is None:
                self._fail_source(flow, branch.error)
            # A stage that still lets out text in its own time is asked first.
            if not flow.waiting:
                flow.close()
            self._start_calls(flow, reader)
            return
        if self._arrived and not (flow.done or flow.full):
            return  # the stage has dropped what it was full of, and takes more
        await self._wait(flow, reader, branch)

    async def _wait(self, flow: Flow, reader: TeeReader, branch: Branch) -> None:
        """Waits until there is something to let out; one scope, however many events arrive."""
        takes_events = not (self._arrived or flow.done or branch.has_ended)
        with anyio.CancelScope() as scope:
            while True:
                due = flow.due()
                scope.deadline = math.inf
                if due is not None:
                    scope.deadline = anyio.current_time() + due
                await branch.wait(for_events=takes_events)
                if not takes_events or branch.has_ended:
                    return
                self._feed_arrived(flow, reader, branch)
                due = flow.due()
                is_due = due is not None and due <= 0
                if is_due or flow.ready or flow.done or self._arrived:
                    return

    def _feed_arrived(self, flow: Flow, reader: TeeReader, branch: Branch) -> None:
        """Passes what has arrived through the stages, as far as they take it."""
        arrived = self._arrived
        if not arrived:  # else a stage is full, and the reading has to wait for it
            arrived.extend(branch.arrived())
        while arrived and not (flow.done or flow.full):
            self._feed(flow, arrived.popleft())
            self._start_calls(flow, reader)

    def _expire(self, flow: Flow, reader: TeeReader) -> bool:
        """Lets out what is due; whether there is something to read."""
        due = flow.due()
        if due is None or due > 0:
            return False
        is_ready = flow.expire()
        if self._measures:
            self._look(flow)
        self._start_calls(flow, reader)
        return is_ready

    def _start_calls(self, flow: Flow, reader: TeeReader) -> None:
        for call in flow.calls():
            reader.start(call)


def _needs_task(flow: Flow) -> bool:
    """Whether a stage has to be woken while the source is silent."""
    for stage, machine in zip(flow.stages, flow.machines, strict=True):
        if stage.is_async or type(machine).due is not PlainMachine.due:
            return True
    return False
