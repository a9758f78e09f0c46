"""The stages: each turns one event into any number of events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, overload

import msgspec

from streamlib_parsers.accumulate import Timing
from streamlib_parsers.events import (
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

DELTA_KEYS: Final[dict[type, tuple[str, ...]]] = {
    OutputTextDelta: ("index", "content_index"),
    ReasoningContentDelta: ("index", "content_index"),
    ReasoningSummaryDelta: ("index", "summary_index"),
    FunctionCallArgumentsDelta: ("index",),
    RefusalDelta: ("index", "content_index"),
}
"""Kinds of `TextDelta` -> their fields that tell which text they belong to."""

SUPERSEDED: Final = frozenset(
    {*DELTA_KEYS, MediaDelta, AnnotationAdded, ItemProgress, OutputItemAdded}
)
"""Events of an open item: its `OutputItemDone` repeats everything they contain."""


class PipelineStage(Protocol):
    """Events in, events out."""

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
    """Joins adjacent deltas of one text, so that at most one is emitted in `interval` seconds.

    The first delta of a text is emitted at once if the interval has passed.
    """

    def __init__(self, interval: float = 1 / 60, clock: Clock = time.monotonic) -> None:
        self.done = False
        self._interval = interval
        self._clock = clock
        self._buffer: list[TextDelta] = []
        """Deltas of one text since the last emitted one."""
        self._key: TextKey | None = None
        """The text of the buffered deltas."""
        self._next = float("-inf")
        """Time from which a delta may be emitted."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """A delta whose time has come, else nothing; any other event after the buffered delta."""
        if not isinstance(event, TextDelta):
            return [*self.close(), event]
        key = _text_key(event)
        events: list[ResponseEvent] = []
        if self._buffer and key != self._key:
            events = self.close()
        self._buffer.append(event)
        self._key = key
        if self._clock() >= self._next:
            events += self.close()
        return events

    def close(self) -> list[ResponseEvent]:
        """The buffered deltas as one."""
        if not self._buffer:
            return []
        deltas = self._buffer
        self._buffer = []
        self._next = self._clock() + self._interval
        if len(deltas) == 1:
            return [deltas[0]]
        return [_join(deltas)]

    def due(self) -> float | None:
        """Seconds until the buffered deltas must be emitted; None where none are."""
        if not self._buffer:
            return None
        return max(0.0, self._next - self._clock())


def coalesce(interval: float = 1 / 60, clock: Clock = time.monotonic) -> PipelineStage:
    """At most one delta of a text in `interval` seconds, for screens.

    The text stays the same, and the first token is not delayed.
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
    """Adjacent deltas of one text as one, with the number of the last."""
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
