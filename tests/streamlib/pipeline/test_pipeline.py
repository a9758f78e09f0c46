"""Stages change when events arrive, never their content; buffered events are emitted in time, and
no task is left running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Completed,
    ErrorInfo,
    Failed,
    FunctionCall,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    StreamError,
    accumulate,
    agent,
)
from streamlib.durable import open_log
from streamlib.pipeline import (
    Keep,
    Measure,
    aggregate,
    coalesce,
    ended,
    only,
    pipe,
    tee,
    through,
    until,
)
from streamlib.testing import MODEL, echo_response, scripted
from streamlib.testing.invariants import join_deltas
from tests.support.cases import each_case
from tests.support.events_source import EventsSource
from tests.support.loops import asyncio_alone

EVENTS = echo_response(Prompt(input="hello there, how are you?", reasoning="low"))


class Ticks:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def driven(machine: Any, event: ResponseEvent) -> list[Any]:
    """What a machine lets out for an event, and because its time has come then."""
    events: list[Any] = machine.feed(event)
    while machine.due() is not None and machine.due() <= 0:
        events += machine.expire()
    return events


async def collect(stream: Any) -> list[ResponseEvent]:
    return [event async for event in stream]


def test_only_keeps_the_given_kinds() -> None:
    assert {type(event) for event in through(EVENTS, only(OutputTextDelta, Completed))} == {
        OutputTextDelta,
        Completed,
    }


def test_aggregate_keeps_items_and_the_response() -> None:
    events = through(EVENTS, aggregate())
    assert not any(isinstance(event, OutputTextDelta) for event in events)
    assert accumulate(events) == accumulate(EVENTS)


def test_until_ends_with_the_matching_event() -> None:
    events = through(EVENTS, until(lambda event: isinstance(event, OutputItemDone)))
    assert [type(event) for event in events[-2:]] == [OutputItemDone, Failed]
    assert sum(isinstance(event, OutputItemDone) for event in events) == 1


def test_measure_keeps_every_event() -> None:
    ticks = Ticks()
    measure = Measure()
    with pipe(EVENTS, measure, clock=ticks) as events:
        ticks.now = 2.0
        assert list(events) == EVENTS
    use = events.of(measure)
    assert (use.events, use.timing.first_token, use.timing.longest_gap) == (
        len(EVENTS),
        2.0,
        2.0,
    )


def test_coalesce_emits_first_delta_then_one_per_interval() -> None:
    ticks = Ticks()
    stage = coalesce(1.0).machine(ticks)
    deltas = [OutputTextDelta(0, 0, text, seq=n) for n, text in enumerate("abcdef")]
    assert [event.delta for event in stage.feed(deltas[0])] == ["a"]  # type: ignore[union-attr]
    assert stage.feed(deltas[1]) == []
    assert stage.due() == 1.0
    ticks.now = 0.5
    assert (stage.feed(deltas[2]), stage.due()) == ([], 0.5)
    ticks.now = 1.0
    assert [event.delta for event in driven(stage, deltas[3])] == ["bcd"]
    assert stage.feed(deltas[4]) == []
    assert [event.delta for event in stage.close()] == ["e"]  # type: ignore[union-attr]


@given(st.lists(st.floats(0, 0.1), min_size=len(EVENTS), max_size=len(EVENTS)))
def test_coalesce_keeps_order_and_text(pauses: list[float]) -> None:
    ticks = Ticks()
    stage = coalesce(0.05).machine(ticks)
    out: list[ResponseEvent] = []
    for event, pause in zip(EVENTS, pauses, strict=True):
        ticks.now += pause
        out += driven(stage, event)
    out += stage.close()
    assert join_deltas(out) == join_deltas(EVENTS)
    assert accumulate(out) == accumulate(EVENTS)


async def test_pipe_applies_stages_left_to_right() -> None:
    has_newline = until(lambda event: "\n" in event.delta)  # type: ignore[union-attr]
    async with pipe(EventsSource(EVENTS), only(OutputTextDelta), has_newline) as events:
        collected = await collect(events)
    assert "\n" in collected[-1].delta  # type: ignore[union-attr]


DELTAS: list[ResponseEvent] = [OutputTextDelta(0, 0, "a"), OutputTextDelta(0, 0, "b")]


async def test_batches_of_a_pipeline_are_read_once() -> None:
    async with pipe(EventsSource(EVENTS)) as piped:
        assert [event async for batch in piped.batches() for event in batch] == EVENTS
        with pytest.raises(RuntimeError, match="read to its end"):
            await anext(piped.batches())


async def test_second_reading_fails_when_it_is_awaited() -> None:
    """Of several reads that are gathered, the others are awaited too."""
    async with pipe(EventsSource(EVENTS)) as piped:
        assert [event async for event in piped] == EVENTS
        for second in (anext(piped.batches()), anext(piped.text())):
            with pytest.raises(RuntimeError, match="read to its end"):
                await second


async def test_pipe_emits_buffered_deltas_when_no_event_arrives() -> None:
    async with pipe(EventsSource(DELTAS, stall=30), coalesce(0.02)) as events:
        with anyio.fail_after(5):
            first = await anext(events)
            second = await anext(events)
            assert [first.delta, second.delta] == ["a", "b"]  # type: ignore[union-attr]


class Collecting:
    """A machine of a user: it collects events, and emits them when their time has come."""

    def __init__(self, seconds: float | None) -> None:
        self.done = False
        self._seconds = seconds
        self._events: list[ResponseEvent] = []
        self._began = 0.0

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        self._events.append(event)
        self._began = time.monotonic()
        return []

    def close(self) -> list[ResponseEvent]:
        events = self._events
        self._events = []
        return events

    def expire(self) -> list[ResponseEvent]:
        return self.close()

    def due(self) -> float | None:
        if self._seconds is None or not self._events:
            return None
        return self._began + self._seconds - time.monotonic()


async def test_pipe_emits_what_a_users_stage_has_due() -> None:
    async with pipe(EventsSource(DELTAS, stall=30), Collecting(0.02)) as events:
        with anyio.fail_after(5):
            assert [await anext(events), await anext(events)] == DELTAS


async def test_pipe_leaves_stages_that_are_not_due() -> None:
    """A stage that collects until the end emitted whenever another stage was due."""
    async with pipe(EventsSource(DELTAS, stall=30), coalesce(0.01), Collecting(None)) as events:
        with anyio.move_on_after(0.05) as scope:
            await anext(events)
        assert scope.cancelled_caught


@pytest.mark.parametrize("pause", [0.0, 0.001])
async def test_pipe_with_coalesce_keeps_the_text(pause: float) -> None:
    async with pipe(EventsSource(EVENTS, pause), coalesce(0.01)) as events:
        assert accumulate(await collect(events)) == accumulate(EVENTS)


@pytest.mark.parametrize("timed", [False, True])
async def test_pipe_raises_a_source_error_after_earlier_events(timed: bool) -> None:
    seen: list[ResponseEvent] = []
    stages: list[Keep] = []
    if timed:
        stages.append(coalesce(10))
    async with pipe(EventsSource(DELTAS, then=ValueError("gone")), *stages) as events:
        with pytest.raises(ValueError, match="gone"):
            await _into(events, seen)
    assert "".join(event.delta for event in seen) == "ab"  # type: ignore[union-attr]


async def test_tee_passes_every_event_to_each_branch() -> None:
    async with tee(EventsSource(EVENTS), 3) as branches:
        received: list[list[ResponseEvent]] = [[], [], []]
        async with anyio.create_task_group() as group:
            for branch, events in zip(branches, received, strict=True):
                group.start_soon(_into, branch, events)
    assert received == [EVENTS] * 3


async def _into(branch: Any, seen: list[ResponseEvent]) -> None:
    async for event in branch:
        seen.append(event)  # one by one: the events before an error must be seen


async def test_tee_source_waits_for_a_stalled_branch() -> None:
    """Memory is bounded: the source is read at most `ahead` events before the slowest branch."""
    many: list[ResponseEvent] = [OutputTextDelta(0, 0, "x", seq=n) for n in range(10_000)]
    async with tee(EventsSource(many), 2, ahead=50) as (fast, stalled):
        early: list[ResponseEvent] = []
        with anyio.move_on_after(0.2):
            await _into(fast, early)
        assert len(early) == 50
        await stalled.aclose()
        with anyio.fail_after(10):
            await _into(fast, early)
    assert len(early) == 10_000


async def test_leaving_early_leaves_no_task_running() -> None:
    with anyio.fail_after(5):
        async with pipe(EventsSource(EVENTS, stall=30), coalesce(0.01)) as events:
            assert await anext(events) == EVENTS[0]
        async with tee(EventsSource(EVENTS, stall=30), 2) as (branch, _):
            assert await anext(branch) == EVENTS[0]


def test_ended_is_true_for_the_terminal_event_only() -> None:
    assert [ended(event) for event in EVENTS].count(True) == 1


def failing() -> EventsSource[ResponseEvent]:
    return EventsSource(EVENTS[:2], then=StreamError(ErrorInfo("overloaded", "busy")))


async def read_all(block: Any) -> None:
    async with block as events:
        async for _ in events[0] if isinstance(events, tuple) else events:
            pass


@pytest.mark.parametrize("stage", [coalesce, aggregate])
async def test_pipe_raises_the_streams_own_error(stage: Callable[[], Keep]) -> None:
    """C3: not wrapped in an ExceptionGroup by a stage that needs a task."""
    with pytest.raises(StreamError, match="busy"):
        await read_all(pipe(failing(), stage()))


async def test_tee_raises_the_streams_own_error() -> None:
    """C3."""
    with pytest.raises(StreamError, match="busy"):
        await read_all(tee(failing(), 2))


def coalesced(events: EventsSource[ResponseEvent]) -> Any:
    return pipe(events, coalesce())


@pytest.mark.parametrize("open_block", [coalesced, tee])
async def test_error_of_the_caller_leaves_the_block_unwrapped(open_block: Any) -> None:
    """C3."""
    with pytest.raises(LookupError, match="mine"):
        async with open_block(failing()):
            raise LookupError("mine")


@pytest.mark.parametrize("open_block", [coalesced, tee])
async def test_cancelled_block_ends_only_with_its_scope(open_block: Any) -> None:
    """C3: the cancellation neither escapes the scope nor is lost within it."""
    after = False
    with anyio.move_on_after(0.02) as scope:
        async with open_block(EventsSource(EVENTS, stall=30)):
            await anyio.sleep(30)
        after = True
    assert scope.cancelled_caught
    assert not after
    await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def running_call() -> AsyncGenerator[object]:
    """The block of a run whose call does not return."""

    async def hang() -> None:
        await anyio.sleep_forever()

    async with (
        scripted([[FunctionCall("", "hang", "{}")], "Done."]) as client,
        agent(client, "Go.", [hang], model=MODEL) as run,
    ):
        with anyio.move_on_after(0.1):
            await collect(run)
        yield run


@asyncio_alone
@each_case("make", [lambda: tee(EventsSource(EVENTS, stall=30), 2), open_log, running_call])
async def test_asyncios_own_cancellation_is_no_scopes(make: Callable[[], Any]) -> None:
    """A scope further out took it for its own, and the block's task went on."""
    entered = asyncio.Event()

    async def serve_one() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)

    async def serve() -> None:
        async with anyio.create_task_group() as connections:
            connections.start_soon(serve_one)
            await anyio.sleep_forever()

    async def use() -> None:
        async with anyio.create_task_group() as server:
            server.start_soon(serve)
            async with make():
                entered.set()
                await anyio.sleep_forever()

    task = asyncio.create_task(use())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_grouped_errors_of_the_caller_stay_grouped() -> None:
    """C3: only what the block itself adds is taken off."""
    with pytest.raises(ExceptionGroup):
        async with tee(failing(), 2):
            raise ExceptionGroup("mine", [LookupError("mine")])
