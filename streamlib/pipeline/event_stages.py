"""Stages that look at events one by one: select, change, watch, count, end."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any, Final, TypeVar, overload

from streamlib.pipeline.calls import Call, SlotMachine
from streamlib.pipeline.endings import STOPPED_BY_CALLER, TERMINAL, OpenItems
from streamlib.pipeline.machine import (
    Clock,
    Each,
    PlainMachine,
    Select,
    check_event,
    refuse_coroutine,
)
from streamlib.pipeline.numbers import check_count, check_seconds
from streamlib.pipeline.stages import Keep, Narrow
from streamlib_parsers.events import (
    DELTA_KEYS,
    AnnotationAdded,
    Completed,
    Failed,
    ItemProgress,
    MediaDelta,
    OutputItemAdded,
    ResponseEvent,
)

E = TypeVar("E", bound=ResponseEvent)
E2 = TypeVar("E2", bound=ResponseEvent)
E3 = TypeVar("E3", bound=ResponseEvent)

SUPERSEDED: Final = frozenset(
    {*DELTA_KEYS, MediaDelta, AnnotationAdded, ItemProgress, OutputItemAdded}
)
"""Events of an open item: its `OutputItemDone` repeats everything they contain."""


# --- a selection: what is left keeps its numbers ---


# One overload for each number of kinds: of `*kinds: type[E]` mypy makes their common base class.
@overload
def only(kind: type[E], /) -> Narrow[E]: ...
@overload
def only(kind: type[E], second: type[E2], /) -> Narrow[E | E2]: ...
@overload
def only(kind: type[E], second: type[E2], third: type[E3], /) -> Narrow[E | E2 | E3]: ...
@overload
def only(*kinds: type[ResponseEvent]) -> Narrow[ResponseEvent]: ...
def only(*kinds: type[Any]) -> Narrow[Any]:
    """Only events of these kinds: ``only(OutputTextDelta)``.

    It narrows the type of the events (up to three kinds): behind ``only(OutputTextDelta)``,
    `event.delta` needs no check. A selection; 0.1 us an event; buffers nothing.
    """
    selected = _kinds("only", kinds)
    machine = _selecting(lambda event: type(event) in selected)
    return Narrow(machine, _shown("only", kinds), selecting=True)


def without(*kinds: type[ResponseEvent]) -> Keep:
    """All events but those of these kinds: ``without(TokenCount)``. A selection, as `only`."""
    left_out = _kinds("without", kinds)
    machine = _selecting(lambda event: type(event) not in left_out)
    return Keep(machine, _shown("without", kinds), selecting=True)


def filter_events(keep: Callable[[ResponseEvent], object]) -> Keep:
    """The events for which `keep` is true: ``filter_events(lambda event: event.seq % 2)``.

    A selection; the time of the function and 0.1 us an event; buffers nothing.
    """
    _check_function("filter_events", keep)
    return Keep(_selecting(keep), "filter_events()", selecting=True)


def aggregate() -> Keep:
    """Complete items without deltas: for a log, or a store. A selection; buffers nothing."""
    machine = _selecting(lambda event: type(event) not in SUPERSEDED)
    return Keep(machine, "aggregate()", selecting=True)


def _selecting(keep: Callable[[ResponseEvent], object]) -> Callable[[Clock], PlainMachine]:
    return lambda _: Select([keep])


def window(events: int | None = None, seconds: float | None = None) -> Narrow[list[ResponseEvent]]:
    """Events in lists: ``window(events=100, seconds=1.0)``, for a writer of bulks.

    A list is let out when it has `events` events, when its first is `seconds` old, and with the
    terminal event. A selection, and the last stage of its pipeline; buffers one list.

    Raises:
        ValueError: neither limit is given, or one is not positive.
    """
    if events is None and seconds is None:
        raise ValueError("window needs a number of events, of seconds, or both")
    if events is not None:
        check_count("events", events)
    if seconds is not None:
        check_seconds("seconds", seconds)

    def make(clock: Clock) -> PlainMachine:
        return _Window(events, seconds, clock)

    return Narrow(make, "window()", selecting=True, is_last=True)


class _Window(PlainMachine):
    """Collects events; what it lets out are lists of them."""

    def __init__(self, events: int | None, seconds: float | None, clock: Clock) -> None:
        super().__init__()
        self._count = events
        self._seconds = seconds
        self._clock = clock
        self._events: list[ResponseEvent] = []
        self._began = 0.0

    def feed(self, event: ResponseEvent) -> list[Any]:
        if not self._events:
            self._began = self._clock()
        self._events.append(event)
        if len(self._events) == self._count or type(event) in TERMINAL:
            return self.close()
        return []

    def due(self) -> float | None:
        if self._seconds is None or not self._events:
            return None
        return max(0.0, self._began + self._seconds - self._clock())

    def expire(self) -> list[Any]:
        return self.close()

    def close(self) -> list[Any]:
        if not self._events:
            return []
        events = self._events
        self._events = []
        return [events]


# --- one function for each event ---

Mapped = TypeVar("Mapped", bound=ResponseEvent)


def map_events(
    function: Callable[[ResponseEvent], Mapped | list[Mapped] | None],
) -> Narrow[Mapped]:
    """What a function makes of each event: another event, a list of them, or None for none.

    For events that stand alone (notices, metadata, usage). To change text use ``replace`` or
    ``map_text``: the text is repeated in `OutputItemDone`, which a function of one event cannot
    know. The time of the function and 0.2 us an event; buffers nothing.

    Raises:
        TypeError: the function awaits something, which `map_async` is for; or, while the stream
            is read, it returned something that is no event.
    """
    _check_function("map_events", function)

    def apply(event: ResponseEvent) -> ResponseEvent | list[ResponseEvent] | None:
        result: Any = function(event)
        if result is event or result is None:
            return result
        return _checked(result, "the function of map_events returned")

    return Narrow(lambda _: Each([apply]), "map_events()")


def tap(function: Callable[[ResponseEvent], object]) -> Keep:
    """All events, each shown to a function first: ``tap(print)``. What it returns is ignored."""
    _check_function("tap", function)

    def show(event: ResponseEvent) -> ResponseEvent:
        result = function(event)
        if type(result) is CoroutineType:
            refuse_coroutine(result)
        return event

    return Keep(lambda _: Each([show]), "tap()")


def map_async(
    function: Callable[[ResponseEvent], Awaitable[ResponseEvent | list[ResponseEvent] | None]],
    concurrency: int = 4,
) -> Keep:
    """As `map_events` with an async function; the events keep their order.

    At most `concurrency` calls run at once, in a task each; they are cancelled where the pipeline
    is left. Buffers as many events. It needs an event loop: `through` refuses it.

    Raises:
        ValueError: `concurrency` is not positive.
        TypeError: that is no function; or, while the stream is read, it returned something that
            is no event.
    """
    if not callable(function):
        raise TypeError("map_async takes an async function")
    check_count("concurrency", concurrency)
    return Keep(lambda _: _MapAsync(function, concurrency), "map_async()", is_async=True)


class _MapAsync(SlotMachine):
    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        return self.take([event])

    def arguments(self, event: ResponseEvent) -> list[ResponseEvent]:
        return [event]

    def checked(self, result: Any) -> list[ResponseEvent]:
        if result is None:
            return []
        events = _checked(result, "the function of map_async returned")
        return events if isinstance(events, list) else [events]

    def finished(self, event: ResponseEvent, calls: list[Call]) -> list[ResponseEvent]:
        del event
        return list(calls[0].result)


class _Until(PlainMachine):
    def __init__(self, found: Callable[[ResponseEvent], object]) -> None:
        super().__init__()
        self._condition = found
        self._items = OpenItems()

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        if self.done:
            return []
        self._items.feed(event)
        found = self._condition(event)
        if type(found) is CoroutineType:
            refuse_coroutine(found)
        if not found:
            return [event]
        self.done = True
        self.ending = self._items.end(Failed(STOPPED_BY_CALLER))
        return [event, *self.ending]


def until(found: Callable[[ResponseEvent], object]) -> Keep:
    """Everything up to and including the first event for which `found` is true.

    Then open items end as incomplete, and the response with `Failed`: kind ``cancelled``, code
    ``stopped_by_stage``. If that event is the terminal one, nothing is added. The source is
    closed, so that the rest is not billed. Buffers the open item.
    """
    _check_function("until", found)
    return Keep(lambda _: _Until(found), "until()")


def ended(event: ResponseEvent) -> bool:
    """Whether an event is the terminal one of its response."""
    return isinstance(event, (Completed, Failed))


# --- checks ---


def _kinds(name: str, kinds: tuple[Any, ...]) -> frozenset[type]:
    if not kinds:
        raise ValueError(f"{name} needs at least one kind of event")
    for kind in kinds:
        if not isinstance(kind, type):
            raise TypeError(f"{name} takes classes of events, not {kind!r}")
    return frozenset(kinds)


def _shown(name: str, kinds: tuple[type, ...]) -> str:
    return f"{name}({', '.join(kind.__name__ for kind in kinds)})"


def _check_function(name: str, function: object) -> None:
    """Raises TypeError for what cannot be called for an event without a loop."""
    if not callable(function):
        raise TypeError(f"{name} takes a function of an event, not {function!r}")
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{name} takes no async function: use map_async")


def _checked(result: Any, verb: str) -> ResponseEvent | list[ResponseEvent]:
    """What a user's function returned, if it is an event or a list of events."""
    if isinstance(result, (list, tuple)):
        events: list[ResponseEvent] = list(result)
        for entry in events:
            check_event(entry, f"{verb} a list with")
        return events
    check_event(result, verb)
    event: ResponseEvent = result
    return event
