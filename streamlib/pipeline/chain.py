"""Several stages as one, and a list of events through them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

from streamlib.pipeline.stages import Coalesce, E, Only, PipelineStage
from streamlib_parsers.events import ResponseEvent


class Chain:
    """Stages in a row, as one stage."""

    def __init__(self, stages: Sequence[PipelineStage]) -> None:
        self._stages = stages

    @property
    def done(self) -> bool:
        """Whether a stage has ended the pipeline."""
        return any(stage.done for stage in self._stages)

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event through every stage."""
        return self._feed_from(0, [event])

    def hold(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event through every stage; where `Coalesce` joins deltas, `release` lets them out."""
        events = [event]
        for stage in self._stages:
            feed = stage.feed
            if isinstance(stage, Coalesce):
                feed = stage.hold
            events = [emitted for event in events for emitted in feed(event)]
        return events

    def release(self) -> list[ResponseEvent]:
        """What one stage must emit now, through the stages after it; nothing where none must."""
        for index, stage in enumerate(self._stages):
            due = stage.due()
            if isinstance(stage, Coalesce):
                events = stage.release()
            elif due is not None and due <= 0:
                events = stage.close()
            else:
                continue
            if events:
                return self._feed_from(index + 1, events)
        return []

    def close(self) -> list[ResponseEvent]:
        """What each stage has buffered, through the stages after it."""
        events: list[ResponseEvent] = []
        for index, stage in enumerate(self._stages):
            events += self._feed_from(index + 1, stage.close())
        return events

    def due(self) -> float | None:
        """Seconds until the first stage must emit what it has buffered; None where none must."""
        soonest: float | None = None
        for stage in self._stages:
            due = stage.due()
            if due is not None and (soonest is None or due < soonest):
                soonest = due
        return soonest

    def _feed_from(self, index: int, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """Events through the stages from `index` on."""
        for stage in self._stages[index:]:
            events = [emitted for event in events for emitted in stage.feed(event)]
        return events


# Only the last stage decides the type of the events: one overload for each number of stages before.
@overload
def through(events: Iterable[ResponseEvent], last: Only[E], /) -> list[E]: ...
@overload
def through(events: Iterable[ResponseEvent], s1: PipelineStage, last: Only[E], /) -> list[E]: ...
@overload
def through(
    events: Iterable[ResponseEvent], s1: PipelineStage, s2: PipelineStage, last: Only[E], /
) -> list[E]: ...
@overload
def through(
    events: Iterable[ResponseEvent],
    s1: PipelineStage,
    s2: PipelineStage,
    s3: PipelineStage,
    last: Only[E],
    /,
) -> list[E]: ...
@overload
def through(events: Iterable[ResponseEvent], *stages: PipelineStage) -> list[ResponseEvent]: ...
def through(events: Iterable[ResponseEvent], *stages: PipelineStage) -> list[Any]:
    """A list of events through the stages, without an event loop."""
    chain = Chain(stages)
    emitted: list[ResponseEvent] = []
    for event in events:
        emitted += chain.feed(event)
        if chain.done:
            break
    return emitted + chain.close()
