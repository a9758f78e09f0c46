"""A pipeline for code without an event loop: ``with pipe(events, …) as events: for event in …``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from streamlib.pipeline.delivery import NOT_ENTERED, Delivery, ResponseSoFar
from streamlib.pipeline.item_streams import sync_items
from streamlib.pipeline.machine import PipeOptions, Stage, without_loop
from streamlib.pipeline.opening import pipe as pipe_method
from streamlib.pipeline.reading import OutputText
from streamlib.pipeline.statements import SyncOnly

E = TypeVar("E")
T = TypeVar("T")
Event_co = TypeVar("Event_co", covariant=True)


class Driver(Protocol):
    """Fills a pipeline for a thread that may wait."""

    is_run: bool

    @property
    def delivery(self) -> Delivery:
        """What it fills."""
        ...

    def enter(self) -> None:
        """Enters the source, and makes the machines."""
        ...

    def fill(self) -> None:
        """Passes further events through the stages, or nothing where the source has ended."""
        ...

    def leave(self) -> None:
        """Closes the source."""
        ...


class SyncPipeline(SyncOnly, ResponseSoFar, Generic[Event_co]):
    """A stream through stages, as `Pipeline`, with `with` and `for`."""

    def __init__(
        self,
        make: Callable[[Sequence[Stage], PipeOptions], Driver],
        stages: Sequence[Stage] = (),
        options: PipeOptions | None = None,
    ) -> None:
        self._make = make
        """Makes the driver: for a source, through these stages."""
        self._stages = stages
        self._options = options or PipeOptions()
        self._driver = make(self._stages, self._options)
        self._take = self._driver.delivery._take
        self.is_run = self._driver.is_run
        """Whether the source is a run of several responses."""
        self._has_entered = False

    @property
    def _delivery(self) -> Delivery:
        return self._driver.delivery

    # --- life cycle ---

    @property
    def is_new(self) -> bool:
        """Whether it was not entered yet."""
        return not self._has_entered

    def __enter__(self) -> Self:
        if self._has_entered:
            raise RuntimeError("a pipeline is used once: `pipe` makes another one")
        self._has_entered = True
        try:
            self._driver.enter()
        except BaseException:
            self._driver.leave()  # Ctrl-C: without its `with` block nobody else would
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._driver.leave()
        self._delivery._end_early()

    def close(self) -> None:
        """Ends the stream and closes its source. A second call does nothing."""
        self._driver.leave()

    items: ClassVar = sync_items

    pipe: ClassVar = pipe_method
    """The events through further stages: see `streamlib.pipeline.pipe`."""

    def extended(self, stages: Sequence[Stage], options: PipeOptions) -> SyncPipeline[Any]:
        """The same source through further stages: a pipeline that was not entered has no use."""
        together: PipeOptions = {**self._options, **options}
        return SyncPipeline(self._make, (*self._stages, *stages), together)

    # --- reading ---

    def __iter__(self) -> Iterator[Event_co]:
        self._delivery._loops.begin()
        return self

    def __next__(self) -> Event_co:
        while True:
            event: Event_co | None = self._take()
            if event is not None:
                return event
            self._fill()

    def batches(self) -> Iterator[list[Event_co]]:
        """The same events in lists: what the stages made of one read of the source."""
        for event in self:
            batch = [event]
            more: Event_co | None = self._take()
            while more is not None:
                batch.append(more)
                more = self._take()
            yield batch

    def text(self) -> Iterator[str]:
        """The text that comes out, of the first choice: see `Pipeline.text`."""
        iter(self)  # raises if it was read to its end: here, not at the first text
        return self._texts()

    def _texts(self) -> Iterator[str]:
        delivery = self._delivery
        output = OutputText(delivery.item, lambda: self.response)
        while True:
            event = delivery._take_whole()
            if event is None:
                try:
                    self._fill()
                except StopIteration:
                    return
            elif delivery._is_silent_end(event):
                delivery._loops.end()
                return
            elif text := output.of(event):
                yield text

    def _fill(self) -> None:
        """Passes further events through the stages.

        Raises:
            StopIteration: there is nothing more to read.
        """
        flow = self._delivery._flow
        if flow is None:
            raise RuntimeError(NOT_ENTERED)
        if not flow.done or flow.waiting:
            try:
                self._driver.fill()
            except BaseException:
                flow.done = True
                self._driver.leave()
                raise
            if flow.done and not flow.waiting:
                self._driver.leave()
            return
        flow.close()
        if flow.ready:
            return
        self._driver.leave()
        error = self._delivery._end_error()
        if error is not None:
            raise error
        raise StopIteration


class IterableDriver:
    """Reads an iterable: a list, a generator. Time passes only where an event arrives."""

    def __init__(
        self,
        source: Iterable[Any],
        stages: Sequence[Stage],
        options: PipeOptions,
    ) -> None:
        without_loop(stages)
        self.delivery: Delivery = Delivery(source, stages, options.get("errors", "raise"))
        self.is_run = bool(getattr(source, "is_run", False))
        self._source = source
        self._options = options
        self._events: Iterator[Any] = iter(())
        self._is_closed = False

    def enter(self) -> None:
        """Begins to read the iterable."""
        self.delivery._begin(self._options.get("clock") or time.monotonic)
        self._events = iter(self._source)

    def fill(self) -> None:
        """One event through the stages, and what is due then."""
        delivery = self.delivery
        flow = delivery._flow
        if flow is None:
            raise RuntimeError(NOT_ENTERED)
        if flow.done:
            flow.close()
            return
        try:
            event = next(self._events)
        except StopIteration:
            flow.close()
            return
        except Exception as error:  # noqa: BLE001  # raised again after the events before it
            delivery._fail_source(flow, error)
            flow.close()
            return
        delivery._feed(flow, event)
        due = flow.due()
        if not flow.ready and due is not None and due <= 0:
            flow.expire()

    def leave(self) -> None:
        """Closes the iterable, if it can be closed."""
        if self._is_closed:
            return
        self._is_closed = True
        close = getattr(self._source, "close", None)
        if close is not None:
            close()
