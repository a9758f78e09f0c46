"""Stages are values: kept, shared, used twice at once; wrong ones are refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from streamlib import (
    Completed,
    Failed,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    Text,
    TokenCount,
    accumulate,
)
from streamlib.pipeline import (
    Clock,
    Keep,
    Machine,
    Pipeline,
    aggregate,
    chain,
    coalesce,
    from_machine,
    guard,
    limit,
    map_async,
    map_events,
    only,
    pipe,
    smooth,
    stop_at,
    tap,
    through,
    timeout,
    until,
    window,
    without,
    words,
)
from streamlib.testing import echo_response
from streamlib.testing.invariants import check, log
from tests.support.cases import each_case
from tests.support.events_source import EventsSource

EVENTS = echo_response(Prompt(input="hello there, how are you?", reasoning="low"))


class Doubling:
    """A machine of a user: each notice twice; it counts what it was fed."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.done = False
        self.fed = 0
        self.clock = clock

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        self.fed += 1
        if isinstance(event, Notice):
            return [event, event]
        return [event]

    def due(self) -> float | None:
        return None

    def expire(self) -> list[ResponseEvent]:
        return []

    def close(self) -> list[ResponseEvent]:
        return []


def test_stage_used_twice_gives_the_same() -> None:
    """The second use of an `until` gave nothing."""
    stage = chain(until(lambda event: event.seq == 9), coalesce(1))
    assert log(through(EVENTS, stage)) == log(through(EVENTS, stage))


async def test_stage_is_used_twice_at_once() -> None:
    stage = coalesce(1.0) | without(TokenCount)
    source = EventsSource(EVENTS), EventsSource(EVENTS)
    async with pipe(source[0], stage) as first, pipe(source[1], stage) as second:
        pairs = [(await anext(first), await anext(second)) for _ in range(4)]
    assert all(one == two for one, two in pairs)


def test_chains_are_equal_however_they_are_bracketed() -> None:
    a, b, c = coalesce(1), until(lambda event: event.seq == 20), tap(str)
    expected = log(through(EVENTS, a, b, c))
    for stage in (chain(a, chain(b, c)), chain(chain(a, b), c), a | b | c, chain(a | b, c)):
        assert log(through(EVENTS, stage)) == expected
    assert log(through(EVENTS, chain())) == log(EVENTS)
    assert log(through(EVENTS, chain(), a, chain())) == log(through(EVENTS, a))


def test_numbers_begin_with_those_of_the_source() -> None:
    resumed = EVENTS[10:]
    seqs = [event.seq for event in through(resumed, coalesce(1))]
    assert seqs == list(range(10, 10 + len(seqs)))


def test_inserted_events_are_numbered() -> None:
    """They had the number 0."""

    def notify(event: ResponseEvent) -> ResponseEvent | list[ResponseEvent]:
        if isinstance(event, OutputItemDone):
            return [event, Notice("seen", index=event.index)]
        return event

    events = through(EVENTS, map_events(notify))
    assert [event.seq for event in events] == list(range(len(events)))
    check(events)


def test_selection_keeps_the_numbers_of_the_originals() -> None:
    before = through(EVENTS, coalesce(1))
    for stage in (only(OutputTextDelta), without(TokenCount), aggregate()):
        selected = through(EVENTS, coalesce(1), stage)
        assert [event.seq for event in selected] == [
            event.seq
            for event in before
            if any(event is one for one in selected) or event in selected
        ]
        assert selected


def test_machine_alone_leaves_numbers() -> None:
    machine = without(TokenCount).machine()
    assert [one.seq for event in EVENTS for one in machine.feed(event)] == [
        event.seq for event in EVENTS if not isinstance(event, TokenCount)
    ]


def test_machine_of_a_chain_numbers() -> None:
    machine = chain(coalesce(1), tap(str)).machine(lambda: 0.0)
    events = [one for event in EVENTS for one in machine.feed(event)] + machine.close()
    assert log(events) == log(through(EVENTS, coalesce(1)))


@pytest.mark.parametrize("clock", [time.monotonic, lambda: 5.0], ids=["real", "standing"])
def test_from_machine_gets_the_clock(clock: Callable[[], float]) -> None:
    made: list[Doubling] = []

    def make(clock: Clock) -> Machine:
        made.append(Doubling(clock))
        return made[-1]

    with pipe(EVENTS, from_machine(make), clock=clock) as events:
        assert list(events) == EVENTS
    assert made[0].clock is clock


def test_machine_given_directly_serves_once() -> None:
    machine = Doubling()
    assert through(EVENTS, machine) == EVENTS
    with pytest.raises(RuntimeError, match="used already"):
        through(EVENTS, machine)


class Stopping(Doubling):
    """Has seen enough after three events."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        self.done = self.fed == 12
        return super().feed(event)


def test_users_machine_ends_as_a_whole_stream() -> None:
    events = through(EVENTS, from_machine(Stopping))
    check(events)
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.error.code) == ("cancelled", "stopped_by_stage")


async def nothing(event: ResponseEvent) -> ResponseEvent:
    return event


class Broken(Doubling):
    """Returns what it is given."""

    def __init__(self, returned: Any) -> None:
        super().__init__()
        self.returned = returned

    def feed(self, event: ResponseEvent) -> Any:
        return self.returned


class Unended:
    """Has the methods of a machine, but `done`."""

    def feed(self, event: ResponseEvent) -> list[ResponseEvent]:
        return [event]

    def due(self) -> None:
        return None

    def close(self) -> list[ResponseEvent]:
        return []


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (print, "print is a function, not a stage"),
        (coalesce, "call it"),
        (Doubling, "is a class"),
        (3, "no machine"),
        (Unended(), "lacks done"),
        (None, "no machine"),
    ],
    ids=["print", "coalesce", "class", "number", "unended", "none"],
)
def test_what_is_no_stage_is_refused_at_construction(stage: Any, message: str) -> None:
    uses: list[Callable[[Any], Any]] = [chain, partial(pipe, EVENTS), partial(through, EVENTS)]
    for use in uses:
        with pytest.raises(TypeError, match=message):
            use(stage)
    with pytest.raises(TypeError, match=message):
        _ = coalesce(1) | stage


@pytest.mark.parametrize("returned", [None, "text", ["text"], [None], 3], ids=repr)
def test_stage_that_returns_no_event_is_named(returned: Any) -> None:
    with pytest.raises(TypeError, match=r"Broken\.feed returned"):
        through(EVENTS, Broken(returned))


@pytest.mark.parametrize(
    "returned", ["text", ["text"], 3, [EVENTS[0], None]], ids=["text", "texts", "number", "none"]
)
def test_mapped_value_that_is_no_event_is_named(returned: Any) -> None:
    with pytest.raises(TypeError, match="function of map_events returned"):
        through(EVENTS, map_events(lambda _: returned))


def test_event_after_the_terminal_one_is_an_error() -> None:
    stage = map_events(lambda event: [event, Notice("late")])
    with pytest.raises(RuntimeError, match="a Notice after the terminal event"):
        through(EVENTS, stage)


def test_source_that_sends_no_event_is_an_error() -> None:
    with pytest.raises(TypeError, match="the source has sent a str"):
        through(["a"], tap(str))  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def test_no_stage_follows_a_window() -> None:
    with pytest.raises(ValueError, match="no stage can follow"):
        chain(window(3), tap(str))


@each_case(
    "make",
    [
        partial(coalesce, -1),
        partial(coalesce, float("nan")),
        partial(smooth, lag=-0.1),
        partial(smooth, "line"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        timeout,
        partial(timeout, gap=0),
        partial(timeout, total=-1),
        partial(timeout, gap=10**400),
        partial(limit, seconds=10**400),
        partial(coalesce, 10**400),
        only,
        without,
        window,
        partial(window, 0),
        partial(window, seconds=0),
        partial(map_async, nothing, 0),
    ],
)
def test_wrong_number_is_refused_at_construction(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        make()


@pytest.mark.parametrize("make", [tap, map_events, until])
def test_async_function_is_refused_at_construction(make: Any) -> None:
    with pytest.raises(TypeError, match="map_async"):
        make(nothing)
    with pytest.raises(TypeError, match="takes a function"):
        make(3)


def test_async_stage_is_refused_without_a_loop() -> None:
    stage = coalesce(1) | map_async(nothing)
    for use in (lambda: through(EVENTS, stage), stage.machine, lambda: pipe(EVENTS, stage)):
        with pytest.raises(TypeError, match="no event loop"):
            use()


def test_pipe_refuses_what_cannot_be_iterated() -> None:
    with pytest.raises(TypeError, match="is no stream"):
        pipe(3, tap(str))  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_exception_of_a_stage_leaves_a_list() -> None:
    def fail(event: ResponseEvent) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        through(EVENTS, coalesce(1), tap(fail))


async def test_exception_comes_after_the_events_before_it() -> None:
    """Unwrapped, and the source is closed."""
    more: list[list[Keep]] = [[], [coalesce(0.0)], [map_async(nothing)]]
    for stages in more:
        source = EventsSource(EVENTS)
        seen: list[ResponseEvent] = []
        with pytest.raises(LookupError, match="mine"):
            await read_into(seen, pipe(source, tap(failing_at(9)), *stages))
        assert log(through(seen, coalesce(1))) == log(through(EVENTS[:9], coalesce(1)))
        assert source.closed == 1


async def read_into(seen: list[ResponseEvent], pipeline: Pipeline[ResponseEvent]) -> None:
    """One by one: the events before an error must be seen."""
    async with pipeline as events:
        async for event in events:
            seen.append(event)


def failing_at(seq: int) -> Callable[[ResponseEvent], None]:
    def fail(event: ResponseEvent) -> None:
        if event.seq == seq:
            raise LookupError("mine")

    return fail


@each_case("seq", range(0, len(EVENTS), 5))
async def test_exception_becomes_an_event_when_asked(seq: int) -> None:
    source = EventsSource(EVENTS)
    async with pipe(source, tap(failing_at(seq)), coalesce(0.0), errors="event") as piped:
        events = [event async for event in piped]
    check([event for event in events if event.seq >= 0])
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.error.code) == ("internal", "stage_failed")
    assert "mine" not in repr(events)
    assert piped.response == accumulate(events)
    assert source.closed == 1


async def test_exception_behind_a_selection_ends_the_response() -> None:
    def fail(event: ResponseEvent) -> None:
        raise LookupError("mine")

    stages = (aggregate(), tap(fail))
    async with pipe(EventsSource(EVENTS), *stages, errors="event") as piped:
        events = [event async for event in piped]
    assert isinstance(events[-1], Failed)
    assert piped.response.error == events[-1].error


async def test_exception_in_a_selection_that_is_over_is_an_event() -> None:
    """The response before it is whole; its reader has not got the end."""

    async def refuse(unit: str) -> bool:
        await anyio.sleep(0.02)
        raise LookupError("mine")

    stages = (aggregate(), guard(refuse))
    async with pipe(EventsSource(EVENTS), *stages, errors="event") as piped:
        events = [event async for event in piped]
    assert [type(event) for event in events[-1:]] == [Failed]
    assert piped.response == accumulate(EVENTS)


@pytest.mark.parametrize("errors", ["raise", "event"])
async def test_exception_of_due_is_that_of_a_stage(errors: Any) -> None:
    class Undecided(Doubling):
        def due(self) -> float | None:
            raise LookupError("mine")

    stage = from_machine(Undecided)
    events: list[ResponseEvent] = []
    with anyio.fail_after(5):
        try:
            async with pipe(EventsSource(EVENTS), stage, errors=errors) as piped:
                async for event in piped:
                    events.append(event)
        except LookupError:
            assert errors == "raise"
        else:
            assert isinstance(events[-1], Failed)
            check(events)


@pytest.mark.parametrize("stage", [until(lambda event: True), stop_at("two")])
def test_selection_that_ends_leaves_out_what_follows(stage: Keep) -> None:
    """Also of the events that a stage before the selection lets out together."""
    texts = (
        Message("assistant", status="incomplete"),
        Message("assistant", (Text("one two three"),)),
    )
    events: list[ResponseEvent] = [
        OutputItemAdded(0, texts[0]),
        OutputTextDelta(0, 0, "one two three"),
        OutputItemDone(0, texts[1]),
        Completed(),
    ]
    out = through(events, words(), only(OutputTextDelta), stage)
    assert [event.delta for event in out] == ["one "]


def test_stop_iteration_of_a_stage_does_not_end_a_loop() -> None:
    def stop(event: ResponseEvent) -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"), pipe(EVENTS, tap(stop)) as events:
        list(events)


def test_stage_that_invents_an_end_stays_the_last() -> None:
    """A stage may end a response; the rest of the source is refused, not read as another one."""
    stage = map_events(lambda event: Completed() if event.seq == 5 else event)
    with pytest.raises(RuntimeError, match="after the terminal event"):
        through(EVENTS, stage)


@each_case("count", range(len(EVENTS)))
async def test_block_may_be_left_at_any_event(count: int) -> None:
    source = EventsSource(EVENTS)
    with anyio.fail_after(5):
        async with pipe(source, coalesce(0.0), map_async(nothing), tap(str)) as events:
            for _ in range(min(count, 5)):
                await anext(events)
    assert source.closed == 1
