"""What a pipeline hands to its reader, and what it knows of the response: no I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from streamlib.pipeline.attempts import StartFailure
from streamlib.pipeline.endings import TERMINAL
from streamlib.pipeline.flow import CALL_OUTPUTS, ORDINARY, Flow
from streamlib.pipeline.machine import Clock, ErrorMode, PlainMachine, Stage
from streamlib.pipeline.measure import Measure, MeasuredUse
from streamlib.pipeline.reading import BatchSource, Loops, partial_view, update_views
from streamlib_parsers.accumulate import Accumulator, Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed, ResponseEvent, RunEvent
from streamlib_parsers.items import ResponseItem
from streamlib_parsers.stream_error import StreamError

if TYPE_CHECKING:
    from streamlib.structured.item_views import ItemViews

T = TypeVar("T")

LEFT_EARLY: Final = ErrorInfo("cancelled", "the pipeline was left before its end")

NOT_ENTERED: Final = "a pipeline is read inside its `with` block"


class ResponseSoFar:
    """Base of pipelines: what has come out."""

    @property
    def _delivery(self) -> Delivery:
        """What hands out the events, and has accumulated them."""
        raise NotImplementedError

    @property
    def response(self) -> Response:
        """What has come out so far: of the events before the first selecting stage.

        In a run it is the current response, as `run.response` is.
        """
        return self._delivery._responding._accumulator.response

    @property
    def snapshot(self) -> Response:
        """The same as `response`, under a name that tells that it may be incomplete."""
        return self.response

    @property
    def report(self) -> tuple[StartFailure, ...]:
        """The starts of `fallback` or `race` that have failed, in order; of another stream none."""
        upstream = self._delivery._upstream
        if isinstance(upstream, (BatchSource, ResponseSoFar)):
            return upstream.report
        return ()

    @property
    def buffered(self) -> int:
        """Characters that the stages hold."""
        flow = self._delivery._flow
        return 0 if flow is None else flow.buffered

    def of(self, measure: Measure) -> MeasuredUse:
        """What a `Measure` among the stages has seen of this stream.

        Raises:
            LookupError: it is none of the stages.
            RuntimeError: the pipeline was not entered.
        """
        flow = self._delivery._flow
        if flow is None:
            raise RuntimeError(NOT_ENTERED)
        for stage, machine in zip(flow.stages, flow.machines, strict=True):
            if stage is measure and isinstance(machine, MeasuredUse):
                return machine
        raise LookupError("this Measure is not among the stages of the pipeline")

    @overload
    def partial(self, index: int, kind: None = None) -> dict[str, Any]: ...
    @overload
    def partial(self, index: int, kind: type[T]) -> T: ...
    @overload
    def partial(self, index: int, kind: object) -> Any: ...
    def partial(self, index: int, kind: object = None) -> Any:
        """The JSON of an item as far as it came out: a call's arguments, or a message's text.

        See `ResponseStream.partial`.

        Args:
            index: `index` of the item's events.
            kind: a class to make a partial object of; without it, a dict.

        Raises:
            LookupError: the item has neither arguments nor text.
        """
        delivery = self._delivery._responding
        return partial_view(delivery._views, delivery._accumulator.item, index, kind)

    def item(self, index: int) -> ResponseItem:
        """The item of an index, as far as it came out.

        Raises:
            KeyError: no item with this index has started.
        """
        return self._delivery._responding._accumulator.item(index)


class Delivery(ResponseSoFar):
    """The events of a `Flow`, one by one, and the response that they make.

    Args:
        source: what the events come from.
        stages: from left to right.
        errors: what an exception of a stage becomes.
    """

    def __init__(self, source: object, stages: Sequence[Stage], errors: ErrorMode) -> None:
        if errors not in ("raise", "event"):
            raise ValueError(f'errors is "raise" or "event", not {errors!r}')
        self._upstream: object = getattr(source, "_delivery", source)
        """The source, or what a sync pipeline delivers."""
        self._stages = tuple(stages)
        self._errors: ErrorMode = errors
        self._flow: Flow | None = None
        """Made when the pipeline is entered."""
        self._measures: list[MeasuredUse] = []
        """The machines of `Measure` stages."""
        self._ready: deque[Any] = deque()
        """`ready` of the flow."""
        self._selected: deque[Any] = deque()
        """Events of one pair that are not delivered yet."""
        self._accumulator = Accumulator()
        """The delivered events of the current response, before the first selecting stage."""
        self._views: dict[int, ItemViews] = {}
        """Item index to the views of its JSON, for items that `partial` was called for."""
        self._is_over = False
        """The terminal event of the current response was delivered."""
        self._source_error: Exception | None = None
        """What the source raised; raised again after the events before it."""
        self._skips_failed = False
        """The `Failed` that stands for `_source_error` is not delivered."""
        self._loops = Loops()
        self._has_raised = False
        """The reader has read to the end, however it ended."""

    @property
    def _delivery(self) -> Delivery:
        return self

    @property
    def is_selection(self) -> bool:
        """Whether the events are not all of a response, because a stage selects."""
        return self._responding is not self or any(stage.selecting for stage in self._stages)

    @property
    def _responding(self) -> Delivery:
        """The pipeline that knows the response: where the source is a selection, that of it."""
        upstream = self._upstream
        if isinstance(upstream, Delivery) and upstream.is_selection:
            return upstream._responding
        return self

    # --- filling ---

    def _begin(self, clock: Clock) -> Flow:
        flow = Flow(self._stages, clock, self._errors, keeps_whole=True)
        self._flow = flow
        self._ready = flow.ready
        self._measures = [use for use in flow.machines if isinstance(use, MeasuredUse)]
        return flow

    def _feed(self, flow: Flow, event: RunEvent) -> None:
        flow.feed(event)
        if self._measures:
            self._look(flow)

    def _look(self, flow: Flow) -> None:
        """Tells each `Measure` which stages hold text."""
        pairs: list[tuple[Stage, PlainMachine]] = list(
            zip(self._stages, flow.machines, strict=True)
        )
        for use in self._measures:
            use.look(pairs)

    def _fail_source(self, flow: Flow, error: Exception) -> None:
        """The source has raised: the stages let out what they hold; then it is raised again."""
        self._source_error = error
        # A run may fail between two responses: the one before is complete.
        if isinstance(error, StreamError) and not (flow.done or flow.is_over):
            self._skips_failed = True
            flow.feed(Failed(error.info))

    # --- delivering ---

    def _take(self) -> Any:
        """The next event, or None: there is none for now."""
        if self._selected:
            return self._selected.popleft()
        ready = self._ready
        while ready:
            entry = ready.popleft()
            if type(entry) in ORDINARY and not (self._is_over or self._views):
                # As `_note`, in half the time.
                try:  # noqa: SIM105  # `suppress` costs as much as the rest
                    self._accumulator.feed(entry)
                except (TypeError, ValueError):
                    pass  # of a list made by hand, or a selection: there is no response
                return entry
            if type(entry) is tuple:
                self._select(*entry)
                if self._selected:
                    return self._selected.popleft()
            elif self._note(entry):
                return entry
        return None

    def _select(self, source: RunEvent | None, events: list[Any]) -> None:
        """Takes a pair: what the reader gets of an event before the first selecting stage."""
        is_delivered = source is None or self._note(source)
        for event in events:
            if is_delivered or type(event) is not Failed:
                self._selected.append(event)

    def _take_whole(self) -> Any:
        """The next event before the first selecting stage, or None: there is none for now."""
        ready = self._ready
        self._selected.clear()
        while ready:
            entry = ready.popleft()
            event = entry[0] if type(entry) is tuple else entry
            if event is not None and self._note(event):
                return event
        return None

    def _note(self, event: RunEvent) -> bool:
        """Adds an event to the response; whether it is delivered."""
        kind = type(event)
        if self._is_over:
            if kind in CALL_OUTPUTS:
                return True
            self._accumulator = Accumulator()
            self._views.clear()
            self._is_over = False
        try:  # noqa: SIM105  # `suppress` costs as much as the rest
            self._accumulator.feed(event)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            pass  # of a list made by hand, or a selection: there is no response
        if self._views:
            update_views(self._views, event)
        if kind in TERMINAL:
            self._is_over = True
            return not (kind is Failed and self._skips_failed)
        return True

    def _is_silent_end(self, event: ResponseEvent) -> bool:
        """Whether a stage has ended the text with this event, as the reader wished."""
        is_ours = self._flow is not None and self._flow.stopped
        return is_ours and isinstance(event, Failed) and event.error.kind == "cancelled"

    def _end_early(self) -> None:
        """The reader has left before the end: the response is cancelled, as that of a stream."""
        if self._flow is None or self._is_over or self._has_raised:
            return
        for event in self._accumulator.endings(LEFT_EARLY):
            self._accumulator.feed(event)

    def _end_error(self) -> Exception | None:
        """What is raised after the last event, once; None: nothing."""
        self._loops.end()
        if self._has_raised:
            return None
        self._has_raised = True
        error = self._source_error
        if self._flow is not None and self._flow.error is not None:
            error = self._flow.error
        if isinstance(error, StreamError):
            # Nothing of what the stages changed is to be seen in it.
            error.response = self.response
            if self._skips_failed and error.response.error is not None:
                error.info = error.response.error
            error.args = (error.info, error.response)
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            # It would end the reader's loop as if the response were complete.
            other = RuntimeError(f"a stage raised {type(error).__name__}")
            other.__cause__ = error
            return other
        return error
