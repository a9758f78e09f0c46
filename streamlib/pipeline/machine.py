"""Machines: what runs while a stage is used. They know no loop, no task and no clock but their own.

    source event ── feed ──▶ machine ── feed ──▶ machine ──▶ events of the reader
                              │ due: in how many seconds `expire` has to be called
                              └ close: the source has ended

A `Stage` makes one for each use.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import Any, Final, Literal, Never, Protocol, TypeAlias, TypedDict, get_args

from streamlib.pipeline.endings import STOPPED_BY_CALLER, OpenItems
from streamlib.pipeline.numbers import is_seconds
from streamlib_parsers.events import Failed, ResponseEvent

Clock: TypeAlias = Callable[[], float]
"""Seconds, on a clock that runs steadily."""

ErrorMode: TypeAlias = Literal["raise", "event"]
"""What an exception of a stage becomes: itself, or a `Failed` event."""


class PipeOptions(TypedDict, total=False):
    """Options of `pipe`.

    Attributes:
        errors: what an exception of a stage becomes: itself, after the events before it ("raise");
            or the end of the response ("event"): `Failed`, kind ``internal``, code
            ``stage_failed``.
        clock: seconds, for stages that wait for a time; by default the event loop's.
    """

    errors: ErrorMode
    clock: Clock | None


EachFunction: TypeAlias = Callable[[ResponseEvent], Any]
"""What becomes of one event (another one, a list, None), or whether it is selected."""

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

    interruption: BaseException | None = None
    """What one of its calls raised that is no `Exception`, until it is raised to the reader."""

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
    """

    def __init__(self, functions: Sequence[EachFunction]) -> None:
        super().__init__()
        self.functions = tuple(functions)

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """What the functions make of the event, one after the other."""
        functions = iter(self.functions)
        for function in functions:
            result = function(event)
            if result is event:
                continue
            if result is None:
                return []
            if isinstance(result, list):
                # The iterator is half used: these are the functions behind this one.
                rest = Each(tuple(functions))
                let_out: list[ResponseEvent] = []
                for each in result:
                    let_out += rest.feed(each)
                return let_out
            event = result
        return [event]


class Select(Each):
    """The events for which every function is true."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        """The event, or nothing."""
        for function in self.functions:
            result = function(event)
            if not result:
                return []
            if type(result) is CoroutineType:
                refuse_coroutine(result)
        return [event]


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
        """The machine's time, checked."""
        due = self._machine.due()
        if due is not None and not is_seconds(due):
            raise TypeError(f"{self._name}.due returned {due!r:.100}, no number of seconds")
        return due

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


def refuse_coroutine(result: CoroutineType[Any, Any, Any]) -> Never:
    """Raises TypeError for what an async function returned: nobody awaits it, and it is true."""
    result.close()
    raise TypeError("a function of a stage is async: map_async awaits one")


def check_event(event: object, verb: str) -> None:
    """Raises TypeError, with the verb and the kind, for what is no event."""
    if type(event) not in EVENT_KINDS:
        raise TypeError(f"{verb} a {type(event).__name__}, which is no event")


class Stage:
    """Base of the two kinds of stages.

    Args:
        make: makes the machine of one use.
        name: for messages.
        selecting: what it lets out is a selection: it keeps its numbers and has no brackets.
        is_async: it awaits something, so it needs an event loop.
        is_last: it lets out lists, so no stage can follow it.
        parts: the stages that it is a chain of.
    """

    def __init__(
        self,
        make: Callable[[Clock], PlainMachine],
        name: str,
        *,
        selecting: bool = False,
        is_async: bool = False,
        is_last: bool = False,
        parts: Sequence[Stage] | None = None,
    ) -> None:
        self.make = make
        self.name = name
        self.selecting = selecting
        self.is_async = is_async
        self.is_last = is_last
        self.parts: tuple[Stage, ...] = (self,)
        if parts is not None:
            self.parts = tuple(parts)

    def __repr__(self) -> str:
        return self.name

    def machine(self, clock: Clock = time.monotonic) -> Machine:
        """A machine for one use, without event loop.

        Args:
            clock: seconds, for stages that wait for a time.

        Raises:
            TypeError: the stage awaits something.
        """
        without_loop(self.parts)
        return self.make(clock)

    def renewed(self, machine: PlainMachine, clock: Clock) -> PlainMachine:
        """The machine for the next response of a run: another one, unless the stage counts on."""
        del machine
        return self.make(clock)


def without_loop(stages: Sequence[Stage]) -> None:
    """Raises TypeError if a stage needs an event loop."""
    for stage in stages:
        if stage.is_async:
            raise TypeError(
                f"{stage.name} awaits something, and there is no event loop: use it in `pipe`, "
                "over a stream of a client, or over an async iterable"
            )
