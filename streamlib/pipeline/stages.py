"""The stages: each turns one event into any number of events."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, overload

import msgspec

from streamlib_parsers.accumulate import Timing
from streamlib_parsers.events import (
    DELTA_KEYS,
    AnnotationAdded,
    Completed,
    Failed,
    FunctionCallArgumentsDelta,
    ItemProgress,
    MediaDelta,
    OutputItemAdded,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    RefusalDelta,
    ResponseEvent,
)

E = TypeVar("E", bound=ResponseEvent)
E2 = TypeVar("E2", bound=ResponseEvent)
E3 = TypeVar("E3", bound=ResponseEvent)

Clock: TypeAlias = Callable[[], float]

TextDelta: TypeAlias = (
    OutputTextDelta
    | ReasoningContentDelta
    | ReasoningSummaryDelta
    | FunctionCallArgumentsDelta
    | RefusalDelta
)
"""Deltas that can be joined."""

TextKey: TypeAlias = tuple[type[TextDelta], int, int]
"""The text that a delta belongs to: its kind, the item's index, the part's or paragraph's index."""

SUPERSEDED: Final = frozenset(
    {*DELTA_KEYS, MediaDelta, AnnotationAdded, ItemProgress, OutputItemAdded}
)
"""Events of an open item: its `OutputItemDone` repeats everything they contain."""


BEGINNING: Final = float("-inf")
"""The time before the first delta."""


class PipelineStage(Protocol):
    """Events in, events out.

    Any object with these methods is a stage, yours too. `pipe` calls `close` when `due` has passed,
    although no further event arrived.
    """

    done: bool
    """Ends the pipeline before its source ends."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The events to emit now."""
        ...

    def close(self) -> list[ResponseEvent]:
        """The events still buffered: at the end, and when `due` has passed."""
        ...

    def due(self) -> float | None:
        """Seconds until buffered events must be emitted by `close`; None where none are."""
        ...


class Simple:
    """A stage that buffers nothing: one function from an event to events."""

    def __init__(self, function: Callable[[ResponseEvent], list[ResponseEvent]]) -> None:
        self.done = False
        """Set by subclasses to end the pipeline."""
        self._function = function

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The events to emit now."""
        return self._function(event)

    def close(self) -> list[ResponseEvent]:
        """An empty list: nothing is buffered."""
        return []

    def due(self) -> float | None:
        """Always None: nothing is buffered."""
        return None


class Only(Simple, Generic[E]):
    """Emits only events of some kinds. `E` is the union of these kinds, for type checkers."""

    def __init__(self, kinds: frozenset[type[ResponseEvent]]) -> None:
        def select(event: ResponseEvent) -> list[ResponseEvent]:
            if type(event) in kinds:
                return [event]
            return []

        super().__init__(select)


# One overload for each number of kinds: of `*kinds: type[E]` mypy makes their common base class.
@overload
def only(kind: type[E], /) -> Only[E]: ...
@overload
def only(kind: type[E], second: type[E2], /) -> Only[E | E2]: ...
@overload
def only(kind: type[E], second: type[E2], third: type[E3], /) -> Only[E | E2 | E3]: ...
@overload
def only(*kinds: type[ResponseEvent]) -> Only[ResponseEvent]: ...
def only(*kinds: type[Any]) -> Only[Any]:
    """Only events of these kinds.

    As the last stage of `pipe` or `through` it narrows the type of their events (up to three
    kinds): after `only(OutputTextDelta)`, `event.delta` needs no check.
    """
    return Only(frozenset(kinds))


def aggregate() -> PipelineStage:
    """Complete items without deltas."""

    def select(event: ResponseEvent) -> list[ResponseEvent]:
        if type(event) in SUPERSEDED:
            return []
        return [event]

    return Simple(select)


class Until(Simple):
    """Ends the pipeline after the first event that meets a condition; that event is emitted."""

    def __init__(self, found: Callable[[ResponseEvent], bool]) -> None:
        super().__init__(self._check)
        self._condition = found

    def _check(self, event: ResponseEvent) -> list[ResponseEvent]:
        # A stage before this one may emit several events for the one that ended it.
        if self.done:
            return []
        self.done = self._condition(event)
        return [event]


def until(found: Callable[[ResponseEvent], bool]) -> PipelineStage:
    """Everything up to and including the first event for which `found` is true; then the end."""
    return Until(found)


class Measure(Simple):
    """Counts and times events without changing them.

    Attributes:
        events: number of events so far.
        characters: text in deltas so far.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__(self._measure)
        self.events = 0
        self.characters = 0
        self._clock = clock
        self._start = clock()
        """Time at which the stage was made."""
        self._last = self._start
        """Time of the latest event."""
        self._first: float | None = None
        """Time of the first delta."""
        self._gap = 0.0
        """Longest time between two events."""

    def _measure(self, event: ResponseEvent) -> list[ResponseEvent]:
        now = self._clock()
        self.events += 1
        self._gap = max(self._gap, now - self._last)
        self._last = now
        if isinstance(event, TextDelta):
            self.characters += len(event.delta)
            if self._first is None:
                self._first = now
        return [event]

    @property
    def timing(self) -> Timing:
        """First token and last event, in seconds since the stage was made, and the longest wait
        between two events."""
        first = None
        if self._first is not None:
            first = self._first - self._start
        return Timing(first_token=first, last=self._last - self._start, longest_gap=self._gap)


class Coalesce:
    """Joins the deltas of each text, so that each is drawn at most once in `interval` seconds.

    Deltas of several texts are buffered side by side, one joined delta for each, and let out
    together in the order in which they were first seen. Any other event lets out what is buffered,
    and follows it. If the interval has passed, a delta is let out at once: the first is never late.
    """

    def __init__(self, interval: float = 1 / 60, clock: Clock = time.monotonic) -> None:
        self.done = False
        self._interval = interval
        self._clock = clock
        self._buffered: dict[TextKey, list[TextDelta]] = {}
        """Deltas of each text since its last emitted one, in the order of their first."""
        self._round: deque[TextKey] = deque()
        """The texts that `release` lets out before the interval begins again."""
        self._next = BEGINNING
        """Time from which deltas may be emitted."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """All buffered deltas if their time has come or the event is another kind; else nothing."""
        events = self.hold(event)
        if not events and self._buffered and self._clock() >= self._next:
            return self.close()
        return events

    def hold(self, event: ResponseEvent) -> list[ResponseEvent]:
        """As `feed`, but time lets out only the very first delta: `release` lets out the others.

        For events that have arrived together: all of them are joined before one is let out.
        """
        if not isinstance(event, TextDelta):
            return [*self.close(), event]
        self._buffered.setdefault(_text_key(event), []).append(event)
        if self._next == BEGINNING:
            return self.close()
        return []

    def release(self) -> list[ResponseEvent]:
        """The delta of one text whose time has come, with all that has arrived of it; else nothing.

        A slow screen asks for the next one when it has drawn this one. Until then that one grows.
        """
        if not self._round:
            now = self._clock()
            if not self._buffered or now < self._next:
                return []
            self._round.extend(self._buffered)
            self._next = now + self._interval
        return [_join(self._buffered.pop(self._round.popleft()))]

    def close(self) -> list[ResponseEvent]:
        """All buffered deltas, one of each text."""
        if not self._buffered:
            return []
        events: list[ResponseEvent] = [_join(deltas) for deltas in self._buffered.values()]
        self._buffered.clear()
        self._round.clear()
        self._next = self._clock() + self._interval
        return events

    def due(self) -> float | None:
        """Seconds until buffered deltas must be emitted; None where none are."""
        if self._round:
            return 0.0
        if not self._buffered:
            return None
        return max(0.0, self._next - self._clock())


def coalesce(interval: float = 1 / 60, clock: Clock = time.monotonic) -> PipelineStage:
    """At most one delta of each text in `interval` seconds, for screens.

    Each text stays the same and in order, and the first token is not delayed. Deltas of texts that
    grow at once are no longer interleaved within an interval; they keep their order towards every
    other event. A screen that draws slowly gets, each time, all that has arrived of a text.
    """
    return Coalesce(interval, clock)


def _text_key(event: TextDelta) -> TextKey:
    match event:
        case ReasoningSummaryDelta():
            return type(event), event.index, event.summary_index
        case FunctionCallArgumentsDelta():
            return type(event), event.index, 0
        case _:
            return type(event), event.index, event.content_index


def _join(deltas: list[TextDelta]) -> TextDelta:
    """Deltas of one text as one, with the number of the last."""
    if len(deltas) == 1:
        return deltas[0]
    changes: dict[str, Any] = {"delta": "".join([event.delta for event in deltas])}
    logprobs: list[Any] = []
    for event in deltas:
        if isinstance(event, (OutputTextDelta, ReasoningContentDelta, RefusalDelta)):
            logprobs += event.logprobs or ()
    if logprobs:
        changes["logprobs"] = tuple(logprobs)
    return msgspec.structs.replace(deltas[-1], **changes)


def ended(event: ResponseEvent) -> bool:
    """Whether an event is the terminal one of its stream."""
    return isinstance(event, (Completed, Failed))
