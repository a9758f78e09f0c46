"""What a function or a machine of a user may not return or raise: an error, nothing shown, nothing
left open, on both event loops and without one."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import pytest

from streamlib import Completed, Notice, OutputItemAdded, OutputTextDelta, ResponseEvent
from streamlib.pipeline import (
    fallback,
    filter_events,
    from_machine,
    guard,
    map_async,
    map_events,
    map_text,
    merge,
    pipe,
    race,
    replace,
    share,
    tap,
    tee,
    until,
)
from streamlib.testing import MODEL, sync_loopback
from streamlib.testing.stage_samples import message_of
from tests.support.cases import each_case
from tests.support.events_source import EventsSource
from tests.support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]

EVENTS = message_of(["One is fine. ", "Two is secret. ", "Three too. "])


class Stopped(BaseException):
    """No `Exception`, as what `pytest.fail` raises."""


def is_fine(unit: str) -> bool:
    return "secret" not in unit


async def is_fine_later(unit: str) -> bool:
    return is_fine(unit)


async def no_verdict(unit: str) -> AsyncGenerator[bool]:
    yield is_fine(unit)


async def never(unit: str) -> bool:
    await anyio.sleep_forever()
    return is_fine(unit)


async def fails_or_hangs(unit: str) -> bool:
    if "secret" in unit:
        raise KeyError("secret")
    return "One" in unit or await never(unit)


def stops(unit: str) -> bool:
    raise Stopped(unit)


class Machine:
    """A machine that does nothing."""

    def __init__(self, _: object = None) -> None:
        self.done = False

    def feed(self, event: ResponseEvent) -> Any:
        return [event]

    def due(self) -> Any:
        return None

    def expire(self) -> Any:
        return []

    def close(self) -> Any:
        return []


def returning(value: Any) -> Callable[..., Any]:
    def method(*_: object) -> Any:
        return value

    return method


def own(**results: Any) -> Any:
    """A stage of a machine whose methods return these."""
    methods = {name: returning(result) for name, result in results.items()}
    return from_machine(type("Own", (Machine,), methods))


class GoesOn(Machine):
    def feed(self, event: ResponseEvent) -> Any:
        return [event, Notice("late")] if isinstance(event, Completed) else [event]


def raises_at_once(_: object) -> Any:
    raise ZeroDivisionError


ASYNC: dict[str, tuple[Callable[[], Any], type[BaseException], str]] = {
    "async generator": (lambda: guard(no_verdict), TypeError, ""),  # type: ignore[arg-type]
    "text": (lambda: guard(lambda unit: "no"), TypeError, ""),  # type: ignore[arg-type]
    "nothing": (lambda: guard(lambda unit: None), TypeError, ""),  # type: ignore[arg-type]
    "text, watched": (lambda: guard(str.upper, mode="watch"), TypeError, "One is fine. "),  # type: ignore[arg-type]
    "raises while others hang": (lambda: guard(fails_or_hangs), KeyError, "One is fine. "),
    "no Exception": (lambda: guard(stops), Stopped, ""),
    "map_async": (lambda: map_async(lambda event: "x"), TypeError, ""),  # type: ignore[arg-type, return-value]
}
"""A stage that awaits something, what is raised, and the text that may be shown."""

PLAIN: dict[str, tuple[Callable[[], Any], type[BaseException]]] = {
    "filter_events, async": (lambda: filter_events(lambda event: is_fine_later("")), TypeError),
    "until, async": (lambda: until(lambda event: is_fine_later("")), TypeError),
    "tap, async": (lambda: tap(lambda event: is_fine_later("")), TypeError),
    "map_events": (lambda: map_events(returning("x")), TypeError),
    "map_text": (lambda: map_text(lambda unit: None), TypeError),  # type: ignore[arg-type]
    "replace": (lambda: replace("One", lambda match: None), TypeError),  # type: ignore[arg-type, return-value]
    "feed, nothing": (lambda: own(feed=None), TypeError),
    "feed, a text": (lambda: own(feed=["x"]), TypeError),
    "due, no number": (lambda: own(due=math.nan), TypeError),
    "due, no float": (lambda: own(due=10**400), TypeError),
    "due, a text": (lambda: own(due="1"), TypeError),
    "no machine": (lambda: from_machine(lambda clock: None), TypeError),  # type: ignore[arg-type, return-value]
    "no machine at all": (lambda: from_machine(raises_at_once), ZeroDivisionError),
    "ends, and goes on": (lambda: from_machine(GoesOn), RuntimeError),
}


def text_of(events: list[Any]) -> str:
    return "".join([event.delta for event in events if isinstance(event, OutputTextDelta)])


async def read(stage: Any, source: EventsSource[ResponseEvent], shown: list[Any]) -> None:
    with anyio.fail_after(60):
        async with pipe(source, stage) as events:
            async for event in events:
                shown.append(event)


@pytest.mark.parametrize("name", ASYNC)
async def test_awaited_function_ends_the_stream_with_its_error(name: str) -> None:
    make, kind, text = ASYNC[name]
    source, shown = EventsSource(EVENTS, pause=1), list[Any]()
    with pytest.raises(kind):
        await read(make(), source, shown)
    assert text_of(shown).startswith(text)
    assert text or not text_of(shown)
    assert source.closed > 0


@each_case("name", PLAIN)
async def test_function_without_loop_ends_the_stream_too(name: str) -> None:
    make, kind = PLAIN[name]
    source = EventsSource(EVENTS)
    with pytest.raises(kind):
        await read(make(), source, [])
    assert source.closed > 0


@each_case("name", PLAIN)
def test_function_ends_a_sync_pipeline_too(name: str) -> None:
    make, kind = PLAIN[name]
    with pytest.raises(kind), pipe(iter(EVENTS), make()) as events:
        list(events)


@pytest.mark.parametrize("mode", ["hold", "watch"])
async def test_guard_whose_check_hangs_is_left_whole(mode: Any) -> None:
    source, shown = EventsSource(EVENTS), list[Any]()
    with anyio.move_on_after(5) as scope:
        async with pipe(source, guard(never, mode=mode)) as events:
            async for event in events:
                shown.append(event)
    assert scope.cancelled_caught
    assert source.closed > 0
    assert text_of(shown) == ("" if mode == "hold" else text_of(EVENTS))
    assert not any(isinstance(event, Completed) for event in shown)


async def test_machine_given_twice_closes_its_source() -> None:
    machine: Any = Machine()
    source = EventsSource(EVENTS)
    with pytest.raises(RuntimeError, match="used already"):
        async with pipe(source, machine, machine):
            pass
    assert source.closed == 1


def test_machine_that_is_always_due_does_not_hang() -> None:
    silent = own(feed=[], due=0.0)
    with pipe(iter(EVENTS), silent) as events:
        assert list(events) == []


def test_function_may_return_what_is_true() -> None:
    with pipe(iter(EVENTS), filter_events(lambda event: getattr(event, "item", None))) as events:
        assert isinstance(next(events), OutputItemAdded)


async def test_operator_with_tasks_names_the_client_it_needs() -> None:
    expected = "takes streams of `Client`, not a SyncStream"
    with sync_loopback() as client:
        stream: Any = client.stream("Hi", MODEL)
        for operator in (tee, share, lambda source: merge({"a": source})):
            with pytest.raises(TypeError, match=expected):
                operator(stream)
        with pytest.raises(TypeError, match=expected):
            async with fallback([lambda: stream]):
                pass


def test_starts_are_functions() -> None:
    for operator in (fallback, race):
        for starts in (lambda: None, [None], {"a": print}):
            with pytest.raises(TypeError, match=r"starts are a list of functions: \[lambda"):
                operator(starts)  # type: ignore[arg-type]
