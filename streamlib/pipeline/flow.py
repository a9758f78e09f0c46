"""Events through stages: numbered anew, a response at a time, ended as a whole stream.

    source ──▶ machines ──▶ number ──▶ machines from the first selecting stage on ──▶ reader
                             └ `events.response` and `events.text()` are made of these events

It does no I/O. What reads the source (`stream`, `sync_stream`, `through`) calls `feed`, `expire`
and `close`, and takes the events out of `ready`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias, get_args

from msgspec.structs import replace

from streamlib.pipeline.endings import TERMINAL, OpenItems
from streamlib.pipeline.machine import (
    EVENT_KINDS,
    Clock,
    Each,
    ErrorMode,
    PlainMachine,
    Select,
    Stage,
)
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed, Notice, ResponseEvent, RunEvent
from streamlib_parsers.items import CallOutput

CALL_OUTPUTS: Final = frozenset(get_args(CallOutput))
STAGE_FAILED: Final = "stage_failed"
"""Code of the failure that an exception of a stage becomes."""
ORDINARY: Final = EVENT_KINDS - TERMINAL


Selected: TypeAlias = tuple[RunEvent | None, list[Any]]
"""An event before the first selecting stage, and what the reader gets of it. The event is None for
what a stage lets out without one, because its time has come."""


class Flow:
    """One use of some stages.

    Attributes:
        ready: what nobody has taken yet: events; with `keeps_whole`, behind a selecting stage,
            `Selected` pairs.
        done: the source is to be read no further.
        stopped: a stage has ended the stream.
        error: what a stage raised, to be raised after the events in `ready`.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        clock: Clock,
        errors: ErrorMode = "raise",
        *,
        keeps_whole: bool = False,
    ) -> None:
        self.ready: deque[Any] = deque()
        self.keeps_whole = keeps_whole
        self.done = False
        self.stopped = False
        self.error: Exception | None = None
        self.stages = tuple(stages)
        self.selects = any(stage.selecting for stage in self.stages)
        self.machines: list[PlainMachine] = [stage.make(clock) for stage in self.stages]
        """The machines of the current response, in the order of their stages."""
        self._clock = clock
        self._errors: ErrorMode = errors
        self._first_selecting = len(self.stages)
        if self.selects:
            self._first_selecting = [stage.selecting for stage in self.stages].index(True)
        self._has_front = self._first_selecting > 0
        self._items: OpenItems | None = None
        """What was let out before the first selecting stage, where this may have to end it."""
        self._seq: int | None = None
        """`seq` of the next event before the first selecting stage; None: that of the source."""
        self.is_over = False
        """The source has sent the terminal event of the current response."""
        self._has_ended = False
        """The terminal event was let out."""
        self._has_ended_selection = False
        """The reader of a selection got it, too."""
        self._is_closed = False
        """The source has ended, or a stage has ended the stream."""
        self._reported: Exception | None = None
        """What a stage raised, once it was made an event or the error to raise."""
        self._begin()

    # --- the source's side ---

    def feed(self, event: RunEvent) -> None:
        """Takes an event of the source; what is none ends the stream, with a TypeError."""
        if (self.is_over or type(event) not in ORDINARY) and not self._begins_or_ends(event):
            return
        if not self.stages:
            self.ready.append(event)
            return
        if self._seq is None:
            self._seq = event.seq  # type: ignore[union-attr]
        if self._is_shortest and self._back is not None:
            self.ready.extend(self._back.feed(event))  # type: ignore[arg-type]
            if self._back.done:
                self._end_by_back(self._back)
            return
        front = self._front
        events = front.feed(event)  # type: ignore[arg-type]
        if events:
            self._let_out(events)
        if front.done:
            self._settle()

    def due(self) -> float | None:
        """Seconds until `expire` is to be called; None: no stage waits for a time."""
        due = self._front.due()
        if self._front.done and not self._is_closed:
            return 0.0  # asked for its time, a machine has failed
        if self._back is not None:
            later = self._back.due()
            if self._back.done and not self.stopped:
                return 0.0
            if due is None or (later is not None and later < due):
                due = later
        return due

    def expire(self) -> bool:
        """Lets out what one stage must let out now; whether there is something to read."""
        self._let_out(self._front.expire())
        if not self.ready and self._back is not None:
            self._let_out_selected(None, self._back.expire())
            if self._back.done and not self.stopped:
                self._end_by_back(self._back)
        if self._is_closed or self._front.done:
            self._settle()
        return bool(self.ready)

    def close(self) -> None:
        """The source has ended. What the stages hold is let out, unless they wait for calls."""
        self.done = True
        self._settle()

    def _fail(self, error: Exception) -> None:
        self.error = self.error or error
        self.done = self.stopped = True

    # --- what stages are asked for ---

    @property
    def waiting(self) -> bool:
        """Whether a stage runs calls whose events are still to come."""
        return any(machine.waiting for machine in self.machines)

    @property
    def full(self) -> bool:
        """Whether the next event of the source has to wait for a call of a stage."""
        if self.is_over and self.waiting:
            return True
        return any(machine.full for machine in self.machines)

    @property
    def buffered(self) -> int:
        """Characters that the stages hold."""
        return sum(machine.buffered for machine in self.machines)

    def calls(self) -> list[Callable[[], Awaitable[None]]]:
        """What is to be awaited beside the stream."""
        return [call for machine in self.machines for call in machine.calls()]

    @property
    def interruption(self) -> BaseException | None:
        """What a call was interrupted by, such as Ctrl-C, if the reader did not get it."""
        for machine in self.machines:
            if machine.interruption is not None:
                return machine.interruption
        return None

    def take(self) -> list[Any]:
        """Everything that is ready, as the reader gets it.

        Raises:
            Exception: what a stage raised, once nothing before it is left.
        """
        if self.ready or self.error is None:
            events = list(self.ready)
            self.ready.clear()
            return events
        raise self.error

    # --- one response ---

    def _begin(self) -> None:
        """A response begins: the rows of its machines."""
        may_end = False
        self._front = Row(self.machines[: self._first_selecting])
        self._back: Row | None = None
        if self.selects:
            self._back = Row(self.machines[self._first_selecting :], keeps_endings=False)
            may_end = any(not isinstance(machine, Each) for machine in self._back.machines)
        if may_end or self._errors == "event":
            self._items = OpenItems()
        self._is_short = self._back is None and self._items is None
        self._is_shortest = not (self._has_front or self.keeps_whole or self._items)

    def _begins_or_ends(self, event: RunEvent) -> bool:
        """Whether an event that is no ordinary one goes through the stages."""
        kind = type(event)
        if kind in CALL_OUTPUTS:
            self._pass(event)
            return False
        if kind not in EVENT_KINDS:
            self._fail(TypeError(f"the source has sent a {kind.__name__}, which is no event"))
            return False
        if self.is_over:
            self._next_response()
        self.is_over = kind in TERMINAL
        return True

    def _next_response(self) -> None:
        """The next response of a run: each stage has a machine of its own for it."""
        self._finish_response()
        self.machines = [
            stage.renewed(machine, self._clock)
            for stage, machine in zip(self.stages, self.machines, strict=True)
        ]
        self._seq = None
        self._has_ended = self._has_ended_selection = False
        self._begin()

    def _finish_response(self) -> None:
        self._let_out(self._front.close())
        if self._back is not None:
            self._let_out_selected(None, self._back.close())

    def _pass(self, output: RunEvent) -> None:
        """An output between two responses, which no stage changes."""
        if self.is_over:
            self._finish_response()
        if self._back is None:
            self.ready.append(output)
        else:
            self._let_out_selected(output, [output])

    def _let_out(self, events: Iterable[ResponseEvent]) -> None:
        """Events of the machines before the first selecting one."""
        back = self._back
        for event in events:
            if self._has_ended and (back is None or not back.done):
                # A stage would make two responses of one.
                kind = type(event).__name__
                message = f"a stage has let out a {kind} after the terminal event"
                self._fail(RuntimeError(message))
                return
            if self._is_short:
                # As `_numbered`, in half the time.
                seq = self._seq or 0
                self._seq = seq + 1
                self._has_ended = type(event) in TERMINAL
                self.ready.append(event if event.seq == seq else replace(event, seq=seq))
            elif back is None:
                self.ready.append(self._numbered(event))
            elif back.done:
                return  # a stage behind the selection has ended the response
            else:
                numbered = self._numbered(event)
                self._let_out_selected(numbered, back.feed(numbered))
                if back.done and not self.stopped:
                    self._end_by_back(back)

    def _numbered(self, event: ResponseEvent, *, is_added: bool = False) -> ResponseEvent:
        """The event with the next number, noted as let out."""
        if self._items is not None:
            self._items.feed(event)
        if not (self._has_front or is_added):
            # Nothing has changed it, and a source of its own numbers keeps them.
            self._seq = event.seq + 1
            return event
        seq = self._seq or 0
        self._seq = seq + 1
        if type(event) in TERMINAL:
            self._has_ended = True
        if event.seq == seq:
            return event
        return replace(event, seq=seq)

    def _let_out_selected(self, source: RunEvent | None, events: list[Any]) -> None:
        if self.is_over and any(type(event) in TERMINAL for event in events):
            self._has_ended_selection = True
        if not self.keeps_whole:
            self.ready.extend(events)
        elif source is not None or events:
            self.ready.append((source, events))

    # --- endings ---

    def _settle(self) -> None:
        """The source has ended, or a stage before the first selecting one has ended the stream.

        Called again while stages wait for their calls.
        """
        if self._front.done:
            self.done = self.stopped = True
        self._is_closed = True
        self._let_out(self._front.close())
        if self._front.waiting:
            return
        self._report(self._front)
        if self._back is not None:
            self._let_out_selected(None, self._back.close())
            self._report(self._back)

    def _end_by_back(self, back: Row) -> None:
        """A stage behind a selection has ended the stream.

        The response before the selection ends as the stage says; what the selection leaves of the
        ending is what the reader gets.
        """
        self.done = self.stopped = self._is_closed = True
        if back.ending:
            notices = [event.detail for event in back.ending if isinstance(event, Notice)]
            self._end(back.ending[-1], "".join(notices))
        self._report(back)
        self._let_out_selected(None, back.close())

    def _report(self, row: Row) -> None:
        """What a stage of the row raised: a `Failed` event, or the exception itself."""
        error = row.failure
        if error is None or error is self._reported:
            return
        self._reported = error
        self.done = self.stopped = True
        if self._errors == "event":
            message = f"a stage raised {type(error).__name__}"
            failed = Failed(ErrorInfo("internal", message, code=STAGE_FAILED), seq=self._seq or 0)
            if self._end(failed):
                return
            if row is self._back and not self._has_ended_selection:
                # The response before the selection is whole; what the reader has of it is not.
                self._let_out_selected(None, row.feed_ending(failed))
                return
        self._fail(error)

    def _end(self, terminal: Any, detail: str = "") -> bool:
        """Ends the response before the first selecting stage; whether it had not ended."""
        endings = self._items.end(terminal, detail) if self._items is not None else []
        for event in endings:
            numbered = self._numbered(event, is_added=True)
            if self._back is None:
                self.ready.append(numbered)
            else:
                self._let_out_selected(numbered, self._back.feed_ending(numbered))
        return bool(endings)


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
        self.machines = _fused(machines)
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
        for position in range(len(self.machines)):
            due = self._due(position)
            if due is not None and (soonest is None or due < soonest):
                soonest = due
        return soonest

    def expire(self) -> list[ResponseEvent]:
        """What the first machine whose time has come lets out, through those behind it."""
        for position, machine in enumerate(self.machines):
            due = self._due(position)
            if due is None or due > 0 or position == self._without_time:
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

    def _due(self, position: int) -> float | None:
        """When one machine is due; at once where it has failed to tell."""
        if position == self._without_time:
            return None
        try:
            return self.machines[position].due()
        except Exception as error:  # noqa: BLE001  # raised after the events before it
            self._without_time = position
            self._fail(position, error)
            return 0.0

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
            is_selecting = isinstance(machine, Select)
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


def _fused(machines: Sequence[PlainMachine]) -> list[PlainMachine]:
    """The machines, with neighbours that are mere functions as one: a call less for each."""
    row: list[PlainMachine] = []
    for machine in machines:
        last = row[-1] if row else None
        if isinstance(machine, Each) and isinstance(last, Each) and type(machine) is type(last):
            row[-1] = type(machine)(last.functions + machine.functions)
        else:
            row.append(machine)
    return row
