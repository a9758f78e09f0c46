"""Machines: what runs while a stage is used. They know no loop, no task and no clock but their own.

    source event ── feed ──▶ machine ── feed ──▶ machine ──▶ events of the reader
                              │ due: in how many seconds `expire` has to be called
                              └ close: the source has ended

`Row` runs several in a row, as one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias, get_args

from streamlib.pipeline.endings import STOPPED_BY_CALLER, OpenItems
from streamlib_parsers.events import Failed, ResponseEvent

Clock: TypeAlias = Callable[[], float]
"""Seconds, on a clock that runs steadily."""

EachFunction: TypeAlias = Callable[[ResponseEvent], "ResponseEvent | list[ResponseEvent] | None"]
"""What becomes of one event: another one, several, or none."""

EVENT_KINDS: Final = frozenset(get_args(ResponseEvent))


class Machine(Protocol):
    """Events in, events out; one for each use of a stage.

    Whoever runs it calls `expire` while `due()` is 0 or less, also where no event arrives, and
    nothing after `close`. It may also have ``buffered``, the number of characters that it holds.
    """

    done: bool
    """It has ended the stream: it gets nothing more, and the source is closed."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The events to let out now; their `seq` is set later."""
        ...

    def due(self) -> float | None:
        """Seconds until `expire` is to be called; None: it does not wait for a time."""
        ...

    def expire(self) -> list[ResponseEvent]:
        """The events to let out because their time has come."""
        ...

    def close(self) -> list[ResponseEvent]:
        """The events to let out because the source has ended."""
        ...


class PlainMachine:
    """A machine that buffers nothing and waits for nothing; the base of those of this package.

    A machine that overrides `due` has to be woken in time: only then does a task read ahead.
    """

    ending: Sequence[ResponseEvent] = ()
    """What `OpenItems.end` has returned, where the machine has ended the stream."""

    def __init__(self) -> None:
        self.done = False

    @property
    def buffered(self) -> int:
        """Characters that it holds."""
        return 0

    @property
    def waiting(self) -> bool:
        """It lets out what it has in time, or when its calls have ended: the end waits for it."""
        return False

    @property
    def full(self) -> bool:
        """It takes no further event for now."""
        return False

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event itself."""
        return [event]

    def due(self) -> float | None:
        """None."""
        return None

    def expire(self) -> list[ResponseEvent]:
        """Nothing."""
        return []

    def close(self) -> list[ResponseEvent]:
        """Nothing."""
        return []

    def calls(self) -> list[Callable[[], Awaitable[None]]]:
        """What is to be awaited beside the stream, each once; it keeps its own result.

        When one has ended, `due` is 0, and `expire` lets out what waited for it.
        """
        return []


class Each(PlainMachine):
    """One function for each event. Neighbours in a row become one of these.

    Args:
        functions: from left to right.
        selects: they only leave out events.
    """

    def __init__(self, functions: Sequence[EachFunction], *, selects: bool = False) -> None:
        super().__init__()
        self.selects = selects
        self.functions = tuple(functions)

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """What the functions make of the event, one after the other."""
        position = 0
        for function in self.functions:
            position += 1
            result = function(event)
            if result is event:
                continue
            if result is None:
                return []
            if isinstance(result, list):
                return self._feed_several(position, result)
            event = result
        return [event]

    def _feed_several(self, start: int, events: Iterable[ResponseEvent]) -> list[ResponseEvent]:
        """Events through the functions from `start` on."""
        rest = Each(self.functions[start:])
        let_out: list[ResponseEvent] = []
        for event in events:
            let_out += rest.feed(event)
        return let_out


class Foreign(PlainMachine):
    """A machine that a user wrote: what it returns is checked, and it ends as a whole stream."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine
        self._name = type(machine).__name__
        # Such a machine may have one method for both, as all had before 0.3.
        self._expire: Callable[[], Any] = getattr(machine, "expire", machine.close)
        self._items = OpenItems()

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The machine's events, checked."""
        return self._checked("feed", self._machine.feed(event))

    def due(self) -> float | None:
        """The machine's time."""
        return self._machine.due()

    def expire(self) -> list[ResponseEvent]:
        """The machine's events, checked."""
        return self._checked("expire", self._expire())

    def close(self) -> list[ResponseEvent]:
        """The machine's events, checked."""
        return self._checked("close", self._machine.close())

    @property
    def buffered(self) -> int:
        """Characters that the machine holds, where it counts them."""
        count: int = getattr(self._machine, "buffered", 0)
        return count

    def _checked(self, method: str, events: Any) -> list[ResponseEvent]:
        if not isinstance(events, (list, tuple)):
            kind = type(events).__name__
            raise TypeError(f"{self._name}.{method} returned a {kind}, not a list of events")
        let_out: list[ResponseEvent] = list(events)
        for event in let_out:
            check_event(event, f"{self._name}.{method} returned")
            self._items.feed(event)
        if self._machine.done and not self.done:
            self.done = True
            self.ending = self._items.end(Failed(STOPPED_BY_CALLER))
            let_out += self.ending
        return let_out


def check_event(event: object, verb: str) -> None:
    """Raises TypeError, with the verb and the kind, for what is no event."""
    if type(event) not in EVENT_KINDS:
        raise TypeError(f"{verb} a {type(event).__name__}, which is no event")


class Row:
    """Machines in a row. An exception of one ends the row: it is kept in `failure`.

    Args:
        machines: from left to right.
        keeps_endings: False: what a machine adds to end the stream is in `ending` alone.
    """

    def __init__(self, machines: Sequence[PlainMachine], *, keeps_endings: bool = True) -> None:
        self.ending: Sequence[ResponseEvent] = ()
        """What the machine that has ended the stream has added."""
        self.done = False
        """A machine has ended the stream, or has failed."""
        self.ended_by = -1
        """The position of that machine."""
        self.failure: Exception | None = None
        """What the machine raised."""
        self._without_time = -1
        """The position of a machine whose `due` has raised: it is not asked again."""
        self.machines = fused(machines)
        self._single = self.machines[0] if len(self.machines) == 1 else None
        self._keeps_endings = keeps_endings
        self._closing: int | None = None
        """The position of the first machine that is not closed, once `close` was called."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event through every machine."""
        single = self._single
        if single is None:
            return self._feed_from(0, [event])
        # Most rows have one machine, all the more as functions are fused.
        try:
            events = single.feed(event)
        except Exception as error:  # noqa: BLE001  # raised after the events before it
            self._fail(0, error)
            return []
        if single.done and not self.done:
            return self._end_by(0, events)
        return events

    def due(self) -> float | None:
        """Seconds until a machine's time has come; None where none waits for one."""
        soonest: float | None = None
        for position, machine in enumerate(self.machines):
            if position == self._without_time:
                continue
            try:
                due = machine.due()
            except Exception as error:  # noqa: BLE001  # raised after the events before it
                self._without_time = position
                self._fail(position, error)
                return 0.0
            if due is not None and (soonest is None or due < soonest):
                soonest = due
        return soonest

    def expire(self) -> list[ResponseEvent]:
        """What the first machine whose time has come lets out, through those behind it."""
        for position, machine in enumerate(self.machines):
            if position == self._without_time:
                continue
            due = machine.due()
            if due is None or due > 0:
                continue
            events = self._step(position, machine.expire)
            events = self._feed_from(position + 1, events)
            if self._closing is not None:
                events += self._go_on_closing()
            if events or self.done:
                return events
        return []

    def close(self) -> list[ResponseEvent]:
        """What the machines hold, each through those behind it.

        A machine that waits for its calls keeps those behind it open: `waiting` is true then, and
        `expire` goes on. Behind a machine that has ended the stream only those are closed.
        """
        if self._closing is None:
            self._closing = self.ended_by + 1
        return self._go_on_closing()

    @property
    def waiting(self) -> bool:
        """Whether a machine runs calls whose events are still to come."""
        return any(machine.waiting for machine in self.machines)

    @property
    def full(self) -> bool:
        """Whether a machine takes no further event for now."""
        return any(machine.full for machine in self.machines)

    def calls(self) -> list[Callable[[], Awaitable[None]]]:
        """What is to be awaited beside the stream."""
        calls: list[Callable[[], Awaitable[None]]] = []
        for machine in self.machines:
            calls += machine.calls()
        return calls

    def _go_on_closing(self) -> list[ResponseEvent]:
        let_out: list[ResponseEvent] = []
        while self._closing is not None and self._closing < len(self.machines):
            position = self._closing
            machine = self.machines[position]
            if not machine.done:
                events = self._step(position, machine.close)
                let_out += self._feed_from(position + 1, events)
            if machine.waiting:
                break
            self._closing = max(position, self.ended_by) + 1
        return let_out

    def _feed_from(self, start: int, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """Events through the machines from `start` on."""
        for position in range(start, len(self.machines)):
            machine = self.machines[position]
            if len(events) == 1:
                try:
                    events = machine.feed(events[0])
                except Exception as error:  # noqa: BLE001  # raised after the events before it
                    self._fail(position, error)
                    return []
            elif events:
                events = self._feed_several(position, machine, events)
            if machine.done and position > self.ended_by:
                events = self._end_by(position, events)
            if not events:
                return []
        return events

    def feed_ending(self, event: ResponseEvent) -> list[ResponseEvent]:
        """An event of the ending through what selects, and what stands behind the ended machine."""
        events = [event]
        for position, machine in enumerate(self.machines):
            is_behind = position > self.ended_by
            is_selecting = isinstance(machine, Each) and machine.selects
            if is_selecting or (is_behind and not machine.done):
                events = self._feed_several(position, machine, events)
        return events

    def _feed_several(
        self, position: int, machine: PlainMachine, events: Iterable[ResponseEvent]
    ) -> list[ResponseEvent]:
        let_out: list[ResponseEvent] = []
        try:
            for event in events:
                let_out += machine.feed(event)
                if machine.done:
                    break
        except Exception as error:  # noqa: BLE001  # raised after the events before it
            self._fail(position, error)
        return let_out

    def _step(
        self, position: int, method: Callable[[], list[ResponseEvent]]
    ) -> list[ResponseEvent]:
        """Calls `expire` or `close` of the machine at a position."""
        events: list[ResponseEvent] = []
        try:
            events = method()
        except Exception as error:  # noqa: BLE001  # raised after the events before it
            self._fail(position, error)
        if self.machines[position].done and position > self.ended_by:
            events = self._end_by(position, events)
        return events

    def _end_by(self, position: int, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """A machine has ended the stream; what is left of the events that it let out."""
        self.done = True
        self.ended_by = position
        self.ending = self.machines[position].ending
        if self._keeps_endings or not self.ending:
            return events
        return events[: -len(self.ending)]

    def _fail(self, position: int, error: Exception) -> None:
        self.failure = self.failure or error
        self.done = True
        self.ended_by = max(self.ended_by, position)


def fused(machines: Sequence[PlainMachine]) -> list[PlainMachine]:
    """The machines, with neighbours that are mere functions as one: a call less for each."""
    row: list[PlainMachine] = []
    for machine in machines:
        last = row[-1] if row else None
        if isinstance(machine, Each) and isinstance(last, Each) and machine.selects is last.selects:
            row[-1] = Each(last.functions + machine.functions, selects=last.selects)
        else:
            row.append(machine)
    return row
