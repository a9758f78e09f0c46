"""Stages: values without state that compose.

    screen = chain(replace(PHONE, "[phone]"), smooth(), coalesce(1 / 30))
    through(events, screen)                        # a list
    async with pipe(stream, screen) as events: …   # a stream

Each use makes its own machine, so a stage may be kept, shared, and used twice at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar, overload

from streamlib.pipeline.flow import Flow
from streamlib.pipeline.machine import (
    Clock,
    Foreign,
    Machine,
    PlainMachine,
    Stage,
    without_loop,
)
from streamlib_parsers.events import ResponseEvent, RunEvent

E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
F = TypeVar("F")

METHODS = ("feed", "due", "close")
"""What every machine has; older ones have no `expire`."""


class Keep(Stage):
    """A stage that lets out the kinds of events that it gets."""

    @overload
    def __or__(self, other: Keep) -> Keep: ...
    @overload
    def __or__(self, other: Narrow[E]) -> Narrow[E]: ...
    def __or__(self, other: Any) -> Any:
        """This stage, then the other one."""
        return chain(self, other)


class Narrow(Stage, Generic[E_co]):
    """A stage that lets out other kinds of events, or some of them: `E` for type checkers."""

    @overload
    def __or__(self, other: Keep) -> Narrow[E_co]: ...
    @overload
    def __or__(self, other: Narrow[E]) -> Narrow[E]: ...
    def __or__(self, other: Any) -> Any:
        """This stage, then the other one."""
        return chain(self, other)


Same: TypeAlias = Keep | Machine
"""What may stand where the kinds of events stay the same: a stage, or a machine for one use."""
AnyStage: TypeAlias = Keep | Narrow[Any] | Machine
"""What may stand where a later stage decides the kinds of events."""


class _Chained(PlainMachine):
    """The machine of a chain: numbered, and ended as a whole stream."""

    def __init__(self, stages: Sequence[Stage], clock: Clock) -> None:
        super().__init__()
        self._flow = Flow(stages, clock)

    def feed(self, event: ResponseEvent) -> list[Any]:
        self._flow.feed(event)
        return self._let_out()

    def due(self) -> float | None:
        return self._flow.due()

    def expire(self) -> list[Any]:
        self._flow.expire()
        return self._let_out()

    def close(self) -> list[Any]:
        self._flow.close()
        return self._let_out()

    @property
    def buffered(self) -> int:
        return self._flow.buffered

    def _let_out(self) -> list[Any]:
        self.done = self._flow.stopped
        return self._flow.take()


class _Once(Keep):
    """A machine that was given in place of a stage: it serves one pipeline."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(self._take, type(machine).__name__)
        self._machine = machine

    def _take(self, clock: Clock) -> PlainMachine:
        del clock
        if getattr(self._machine, "_streamlib_used", False):
            raise RuntimeError(
                f"this {self.name} was used already, and has the state of that use: "
                "give `from_machine` a function that makes another one each time"
            )
        with suppress(AttributeError):  # it has slots: a second use cannot be told from the first
            self._machine._streamlib_used = True  # type: ignore[attr-defined]
        return Foreign(self._machine)

    def renewed(self, machine: PlainMachine, clock: Clock) -> PlainMachine:
        del machine, clock
        return Foreign(self._machine)


def from_machine(make: Callable[[Clock], Machine]) -> Keep:
    """A stage of your own.

    Args:
        make: makes a machine for each use, and for each response of a run. It gets the clock:
            simulated in tests, standing in `through`.

    Raises:
        TypeError: `make` is a machine, or nothing that can be called.
    """
    if not callable(make):
        raise TypeError("from_machine takes a function that makes a machine: a class of yours")

    def made(clock: Clock) -> PlainMachine:
        machine = make(clock)
        check_machine(machine, "the function given to from_machine returned")
        return Foreign(machine)

    return Keep(made, getattr(make, "__name__", "from_machine"))


def check_machine(machine: object, verb: str) -> None:
    """Raises TypeError for what has not the methods of a machine."""
    missing = [name for name in METHODS if not callable(getattr(machine, name, None))]
    if not hasattr(machine, "done"):
        missing.append("done")
    if missing or isinstance(machine, type):
        kind = type(machine).__name__
        methods = ", ".join(missing or METHODS)
        raise TypeError(f"{verb} a {kind}, which is no machine: it lacks {methods}")


def as_stages(arguments: Iterable[object]) -> tuple[Stage, ...]:
    """The stages, those of chains one by one; a machine becomes a stage for one use.

    Raises:
        TypeError: one of them is neither.
        ValueError: a stage follows `window`, which lets out lists.
    """
    stages: list[Stage] = []
    for entry in arguments:
        if isinstance(entry, Stage):
            stages += entry.parts
            continue
        if isinstance(entry, type):
            raise TypeError(f"{entry.__name__} is a class, not a stage: from_machine(…) makes one")
        if callable(entry) and not hasattr(entry, "feed"):
            name = getattr(entry, "__name__", type(entry).__name__)
            raise TypeError(
                f"{name} is a function, not a stage: call it, or wrap it in map_events or tap"
            )
        check_machine(entry, "a stage is expected, not")
        machine: Any = entry
        stages.append(_Once(machine))
    for stage in stages[:-1]:
        if stage.is_last:
            raise ValueError(f"{stage.name} lets out lists of events: no stage can follow it")
    return tuple(stages)


# Only the last `Narrow` decides the type: one overload for each number of stages before it.
@overload
def chain(*stages: Same) -> Keep: ...
@overload
def chain(last: Narrow[E], /, *same: Same) -> Narrow[E]: ...
@overload
def chain(s1: AnyStage, last: Narrow[E], /, *same: Same) -> Narrow[E]: ...
@overload
def chain(s1: AnyStage, s2: AnyStage, last: Narrow[E], /, *same: Same) -> Narrow[E]: ...
@overload
def chain(
    s1: AnyStage, s2: AnyStage, s3: AnyStage, last: Narrow[E], /, *same: Same
) -> Narrow[E]: ...
def chain(*stages: Any) -> Any:
    """Several stages as one, from left to right; `a | b` is ``chain(a, b)``.

    ``chain()`` changes nothing, and brackets change nothing either. A machine of it numbers its
    events, as `pipe` and `through` do; stages alone leave `seq` as it is.

    Raises:
        TypeError: one of them is no stage.
    """
    parts = as_stages(stages)
    names = ", ".join([part.name for part in parts])
    kind: type[Stage] = Keep
    if any(isinstance(part, Narrow) for part in parts):
        kind = Narrow
    return kind(
        lambda clock: _Chained(parts, clock),
        f"chain({names})",
        selecting=any(part.selecting for part in parts),
        is_async=any(part.is_async for part in parts),
        is_last=bool(parts) and parts[-1].is_last,
        parts=parts,
    )


def standing() -> float:
    """A clock that stands."""
    return 0.0


@overload
def through(  # pyright: ignore[reportOverlappingOverload]  # a list of a run may have no output
    events: Iterable[ResponseEvent], *stages: Same
) -> list[ResponseEvent]: ...
@overload
def through(events: Iterable[ResponseEvent], last: Narrow[E], /, *same: Same) -> list[E]: ...
@overload
def through(
    events: Iterable[ResponseEvent], s1: AnyStage, last: Narrow[E], /, *same: Same
) -> list[E]: ...
@overload
def through(
    events: Iterable[ResponseEvent], s1: AnyStage, s2: AnyStage, last: Narrow[E], /, *same: Same
) -> list[E]: ...
@overload
def through(
    events: Iterable[ResponseEvent],
    s1: AnyStage,
    s2: AnyStage,
    s3: AnyStage,
    last: Narrow[E],
    /,
    *same: Same,
) -> list[E]: ...
@overload
def through(events: Iterable[RunEvent], *stages: Same) -> list[RunEvent]: ...
def through(events: Iterable[RunEvent], *stages: Any) -> list[Any]:
    """A list of events through the stages, without an event loop.

    The clock stands, so a stage that waits for a time gives the same list on every run.

    Raises:
        TypeError: a stage needs an event loop, or is no stage, or something is no event.
        RuntimeError: a stage has let out an event after the terminal one, or is a machine that
            was used before.
        Exception: what a stage raised.
    """
    parts = as_stages(stages)
    without_loop(parts)
    flow = Flow(parts, standing)
    for event in events:
        flow.feed(event)
        if flow.done:
            break
    flow.close()
    if flow.error is not None:
        raise flow.error
    return flow.take()
