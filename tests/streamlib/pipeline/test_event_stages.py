"""Stages that look at events one by one, and how they end a stream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from streamlib import (
    Completed,
    Created,
    ErrorInfo,
    Failed,
    FunctionCall,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    TokenCount,
    accumulate,
    encoder,
    parser,
)
from streamlib.pipeline import (
    READ_AHEAD,
    Keep,
    OpenItems,
    aggregate,
    coalesce,
    filter_events,
    guard,
    map_async,
    map_events,
    map_text,
    only,
    pipe,
    tap,
    through,
    until,
    window,
    without,
)
from streamlib.testing import echo_response
from streamlib.testing.invariants import check, log
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case
from tests.support.events_source import EventsSource

EVENTS = echo_response(Prompt(input="hello there, how are you?", reasoning="low"))
TEXT = accumulate(EVENTS).text


async def at_once(events: list[ResponseEvent]) -> AsyncIterator[ResponseEvent]:
    for event in events:
        yield event


async def nothing(event: ResponseEvent) -> None:
    del event


def is_delta(event: ResponseEvent) -> bool:
    return isinstance(event, OutputTextDelta)


def test_without_and_only_share_the_events() -> None:
    kept = through(EVENTS, only(OutputTextDelta))
    rest = through(EVENTS, without(OutputTextDelta))
    assert sorted([*kept, *rest], key=lambda event: event.seq) == EVENTS


def test_filter_events_keeps_what_is_true() -> None:
    kept = through(EVENTS, filter_events(lambda event: event.seq % 2))
    assert log(kept) == log([event for event in EVENTS if event.seq % 2])


def test_tap_sees_every_event() -> None:
    seen: list[ResponseEvent] = []
    assert through(EVENTS, tap(seen.append)) == seen == EVENTS


def test_map_events_drops_changes_and_adds() -> None:
    def change(event: ResponseEvent) -> ResponseEvent | list[ResponseEvent] | None:
        match event:
            case TokenCount():
                return None
            case OutputItemDone():
                return [Notice("one"), event, Notice("two")]
            case _:
                return event

    events = through(EVENTS, map_events(change), map_events(lambda event: event))
    check(events)
    done = sum(isinstance(event, OutputItemDone) for event in EVENTS)
    assert sum(isinstance(event, Notice) for event in events) == 2 * done


@each_case("seq", range(len(EVENTS)))
def test_until_ends_as_a_whole_stream(seq: int) -> None:
    """Items stayed open, and there was no terminal event."""
    events = through(EVENTS, until(lambda event: event.seq == seq))
    check(events)
    assert log(events[: seq + 1]) == log(EVENTS[: seq + 1])
    failed = events[-1]
    if seq == len(EVENTS) - 1:
        assert len(events) == len(EVENTS)
    else:
        assert isinstance(failed, Failed)
        assert (failed.error.kind, failed.error.code) == ("cancelled", "stopped_by_stage")
        assert accumulate(events).status == "cancelled"


@each_case("wire", WIRE_APIS)
def test_encoder_behind_until_ends_its_response(wire: Any) -> None:
    """Encoders of Messages and Chat ended in the middle, and Vercel's said "truncated"."""
    events = through(EVENTS, until(is_delta))
    encode = encoder(wire)
    parse = parser(wire)
    body = b"".join([encode.feed(event) for event in events]) + encode.close()
    response = accumulate([*parse.feed(body), *parse.close()])
    assert response.text == "You"
    assert response.status in ("failed", "cancelled")


def test_until_ends_items_that_are_open_together() -> None:
    events: list[ResponseEvent] = [
        OutputItemAdded(0, Message("assistant")),
        OutputItemAdded(1, FunctionCall("c", "f")),
        OutputTextDelta(0, 0, "a"),
        Notice("x"),
    ]
    ended = through(events, until(lambda event: isinstance(event, Notice)))
    done = [event for event in ended if isinstance(event, OutputItemDone)]
    assert [(one.index, one.item.status) for one in done] == [(0, "incomplete"), (1, "incomplete")]
    assert [event.seq for event in ended] == list(range(len(ended)))


def test_ending_names_the_agent_of_an_item() -> None:
    items = OpenItems()
    items.feed(OutputItemAdded(0, Message("assistant", agent="sub"), agent="sub"))
    ending = items.end(Completed(stop_reason="length"))
    assert (ending[0].agent, ending[-1].agent) == ("sub", None)


def test_completed_ending_names_the_response() -> None:
    items = OpenItems()
    for event in EVENTS[:20]:
        items.feed(event)
    *_, notice, completed = items.end(Completed(stop_reason="length"), "enough")
    assert notice == Notice("stopped_by_stage", "enough")
    assert isinstance(completed, Completed)
    whole = accumulate(EVENTS)
    assert (completed.response_id, completed.model) == (whole.response_id, whole.model)
    assert [choice.stop_reason for choice in completed.choices] == ["length"]
    assert completed.usage is None
    assert items.end(Failed(ErrorInfo("cancelled", ""))) == []


def test_ending_completes_text_but_no_call() -> None:
    items = OpenItems()
    items.feed(OutputItemAdded(0, Message("assistant")))
    items.feed(OutputItemAdded(1, FunctionCall("c", "f")))
    for completed in (0, 1):
        other = OpenItems()
        other.feed(OutputItemAdded(0, Message("assistant")))
        other.feed(OutputItemAdded(1, FunctionCall("c", "f")))
        ending = other.end(Completed(stop_reason="stop"), completed=completed)
        statuses = [event.item.status for event in ending if isinstance(event, OutputItemDone)]
        assert statuses == ["completed" if completed == 0 else "incomplete", "incomplete"]


def test_until_behind_a_selection_ends_the_response_before_it() -> None:
    """The selection stays one: its type would lie otherwise."""
    with pipe(EVENTS, only(OutputTextDelta), until(lambda event: event.seq > 18)) as deltas:
        events = list(deltas)
    assert all(isinstance(event, OutputTextDelta) for event in events)
    assert deltas.response.status == "cancelled"
    assert deltas.response.text == "".join(event.delta for event in events)


def test_until_behind_aggregate_shows_its_ending() -> None:
    stop = until(lambda event: isinstance(event, OutputItemDone))
    events = through(EVENTS, aggregate(), stop)
    assert isinstance(events[-1], Failed)
    assert accumulate(events).status == "cancelled"


@pytest.mark.parametrize("count", [1, 2, 5, 1000])
def test_window_has_so_many_events(count: int) -> None:
    windows = through(EVENTS, window(count))
    starts = range(0, len(EVENTS), count)
    assert windows == [EVENTS[start : start + count] for start in starts]


def test_window_with_the_terminal_event_does_not_wait() -> None:
    """Nothing after it would end the window, until the source is closed."""
    machine = window(1000).make(lambda: 0.0)
    assert [machine.feed(event) for event in EVENTS[:-1]] == [[]] * (len(EVENTS) - 1)
    assert machine.feed(EVENTS[-1]) == [EVENTS]


def test_window_is_due_so_long_after_its_first_event() -> None:
    now = [100.0]
    machine = window(seconds=2.0).make(lambda: now[0])
    for event in EVENTS[:2]:
        machine.feed(event)
        now[0] += 0.5
    assert machine.due() == 1.0
    assert machine.expire() == [EVENTS[:2]]
    assert machine.due() is None
    machine.feed(EVENTS[2])
    assert machine.due() == 2.0
    now[0] += 7.0
    assert machine.due() == 0.0


def test_window_without_seconds_is_never_due() -> None:
    machine = window(events=3).make(lambda: 0.0)
    machine.feed(EVENTS[0])
    assert machine.due() is None


async def test_window_lasts_so_many_seconds() -> None:
    deltas: list[ResponseEvent] = [OutputTextDelta(0, 0, "a"), OutputTextDelta(0, 0, "b")]
    async with pipe(EventsSource(deltas, stall=30), window(seconds=0.02)) as windows:
        with anyio.fail_after(5):
            assert await anext(windows) == deltas


# --- async ---


class Counting:
    """An async function that counts how many of its calls run."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.cancelled = 0

    async def __call__(self, event: ResponseEvent) -> ResponseEvent:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await anyio.sleep(0.001 * (event.seq % 3))
        except BaseException:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return event


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_map_async_keeps_order_and_is_bounded(concurrency: int) -> None:
    function = Counting()
    source = EventsSource(EVENTS)
    async with pipe(source, map_async(function, concurrency), coalesce(0.0)) as piped:
        events = [event async for event in piped]
    check(events)
    assert accumulate(events) == accumulate(EVENTS)
    assert function.most == concurrency
    assert function.running == 0


async def test_map_async_is_cancelled_with_the_pipeline() -> None:
    function = Counting()

    async def slowly(event: ResponseEvent) -> ResponseEvent:
        if event.seq >= 2:
            await anyio.sleep(30)
        return await function(event)

    with anyio.fail_after(5):
        async with pipe(EventsSource(EVENTS), map_async(slowly)) as events:
            assert await anext(events) == EVENTS[0]
            assert await anext(events) == EVENTS[1]
    assert function.running == 0


@pytest.mark.parametrize("kind", [map_async, guard, map_text])
def test_call_that_somebody_cancels_is_a_failure(kind: Callable[[Any], Keep]) -> None:
    async def wait_for_a_cancelled_task(argument: Any) -> Any:
        task = asyncio.ensure_future(asyncio.sleep(30))
        task.cancel()
        await task

    source = EventsSource(EVENTS)

    async def read() -> None:
        async with pipe(source, kind(wait_for_a_cancelled_task)) as piped:
            async for _ in piped:
                pass

    async def main() -> None:
        with pytest.raises(RuntimeError, match="was cancelled"):
            await read()
        assert source.closed == 1

    asyncio.run(main())


async def test_map_async_may_drop_and_add() -> None:
    async def change(event: ResponseEvent) -> list[ResponseEvent] | None:
        if isinstance(event, TokenCount):
            return None
        if isinstance(event, Completed):
            return [Notice("end"), event]
        return [event]

    async with pipe(EventsSource(EVENTS), map_async(change)) as piped:
        events = [event async for event in piped]
    check(events)
    assert not any(isinstance(event, TokenCount) for event in events)
    assert isinstance(events[-2], Notice)


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_map_async_goes_on_when_all_it_holds_is_dropped(concurrency: int) -> None:
    async def leave_out_notices(event: ResponseEvent) -> ResponseEvent | None:
        return None if isinstance(event, Notice) else event

    notices: list[ResponseEvent] = [Notice("x", seq=seq) for seq in range(1, 20)]
    events = [Created("r"), *notices, Completed("r", seq=20)]
    with anyio.fail_after(5):
        async with pipe(at_once(events), map_async(leave_out_notices, concurrency)) as piped:
            assert [type(event) async for event in piped] == [Created, Completed]


async def test_map_async_starts_many_calls_in_linear_time() -> None:
    count = 4000
    machine = map_async(nothing, count).make(time.monotonic)
    start = time.process_time()
    for seq in range(count):
        machine.feed(Notice("x", seq=seq))
        machine.due()
        [call] = machine.calls()
        if seq % 2:
            await call()
    assert time.process_time() - start < 1.5


async def test_interrupted_call_ends_the_block_that_was_left() -> None:
    """Its turn never came: what the user pressed Ctrl-C for must not be lost."""

    async def interrupt(event: ResponseEvent) -> ResponseEvent:
        if event.seq == 3:
            raise KeyboardInterrupt
        if event.seq > 0:
            await anyio.sleep(30)
        return event

    async def leave_early() -> None:
        async with pipe(at_once(EVENTS), map_async(interrupt)) as piped:
            await anext(piped)
            await anyio.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        await leave_early()


async def test_interrupted_call_is_raised_once() -> None:
    async def interrupt(event: ResponseEvent) -> ResponseEvent:
        if event.seq == 0:
            raise KeyboardInterrupt
        return event

    async with pipe(EventsSource(EVENTS), map_async(interrupt)) as piped:
        with pytest.raises(KeyboardInterrupt):
            await anext(piped)


async def test_map_async_raises_after_the_events_before() -> None:
    async def fail(event: ResponseEvent) -> ResponseEvent:
        await anyio.sleep(0.001 * (10 - event.seq % 10))
        if event.seq == 6:
            raise LookupError("mine")
        return event

    seen: list[ResponseEvent] = []
    source = EventsSource(EVENTS)

    async def read() -> None:
        async with pipe(source, map_async(fail)) as events:
            async for event in events:
                seen.append(event)

    with pytest.raises(LookupError, match="mine"):
        await read()
    assert seen == EVENTS[:6]
    assert source.closed == 1


async def test_until_behind_map_async_starts_no_more_calls() -> None:
    function = Counting()
    source = EventsSource(EVENTS)
    stages = (map_async(function, 2), until(is_delta))
    async with pipe(source, *stages) as piped:
        events = [event async for event in piped]
        assert source.closed == 1
    check(events)
    assert accumulate(events).text == "You"


async def test_source_waits_for_calls_that_take_their_time() -> None:
    """What is read ahead is bounded, however many events the source has."""

    async def hang(event: ResponseEvent) -> ResponseEvent:
        await anyio.sleep(30 * event.seq)
        return event

    many: list[ResponseEvent] = [Notice("x", seq=n) for n in range(30_000)]
    source = EventsSource(many)
    async with pipe(source, map_async(hang, 2)) as events:
        assert await anext(events) == many[0]
        with anyio.move_on_after(0.5):
            await anext(events)
    assert source.sent <= 2 * READ_AHEAD + 10
