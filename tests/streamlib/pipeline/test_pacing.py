"""Stages of time under a simulated clock, and under those of both loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import (
    Completed,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    StreamError,
    TokenCount,
    Usage,
    accumulate,
)
from streamlib.pipeline import Keep, Measure, coalesce, pipe, smooth, through, timeout
from streamlib.testing import echo_response
from streamlib.testing.invariants import check, join_deltas
from tests.support.events_source import EventsSource
from tests.support.virtual_time import anyio_backend  # noqa: F401  # the fixture

EVENTS = echo_response(Prompt(input="hello there, how are you?", reasoning="low"))


class Ticks:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def paced(machine: Any, ticks: Ticks, arrivals: Sequence[tuple[float, ResponseEvent]]) -> list[Any]:
    """What a machine lets out, with its times; each event arrives at its time."""
    let_out: list[Any] = []

    def until(end: float) -> None:
        while (due := machine.due()) is not None and ticks.now + due <= end:
            ticks.now += due
            let_out.extend([(ticks.now, event) for event in machine.expire()])
        ticks.now = max(ticks.now, end)

    for time, event in arrivals:
        until(time)
        let_out.extend([(ticks.now, one) for one in machine.feed(event)])
    until(1e6)
    return let_out + [(ticks.now, event) for event in machine.close()]


def delta(text: str, index: int = 0) -> OutputTextDelta:
    return OutputTextDelta(index, 0, text)


WORDS = [f"word{n} " for n in range(40)]


def test_smooth_spreads_a_burst_evenly() -> None:
    ticks = Ticks()
    machine = smooth(lag=1.0).machine(ticks)
    out = paced(machine, ticks, [(0.0, delta(word)) for word in WORDS])
    assert [event.delta for _, event in out] == WORDS
    times = [time for time, _ in out]
    assert times[0] == 0.0
    # The last one leaves when it has waited for the lag.
    assert 1.0 - 1e-9 <= times[-1] <= 1.0
    gaps = [after - before for before, after in pairwise(times)]
    assert max(gaps) <= 1.5 / len(WORDS) + 1e-9


@given(
    st.lists(st.tuples(st.floats(0, 0.4), st.text("ab c\n", min_size=1, max_size=20)), max_size=30),
    st.sampled_from(["word", "character"]),
)
def test_smooth_is_never_later_than_its_lag(pieces: list[tuple[float, str]], by: Any) -> None:
    ticks = Ticks()
    machine = smooth(by=by, lag=0.5).machine(ticks)
    arrivals: list[tuple[float, ResponseEvent]] = []
    arrived: list[float] = []
    now = 0.0
    for pause, text in pieces:
        now += pause
        arrivals.append((now, delta(text)))
        arrived += [now] * len(text)
    out = paced(machine, ticks, arrivals)
    assert "".join(event.delta for _, event in out) == "".join(text for _, text in pieces)
    shown = [time for time, event in out for _ in event.delta]
    assert all(at - came <= 0.5 + 1e-9 for at, came in zip(shown, arrived, strict=True))


def test_smooth_lets_out_whole_words() -> None:
    ticks = Ticks()
    machine = smooth(lag=1.0).machine(ticks)
    pieces = ["Go ", "hel", "lo wo", "rld", " an", "d"]
    out = paced(machine, ticks, [(0.0, delta(piece)) for piece in pieces])
    assert [event.delta for _, event in out] == ["Go ", "hello ", "world ", "and"]


@pytest.mark.parametrize("stage", [smooth(lag=1.0), coalesce(1.0)])
def test_first_text_is_not_late_behind_an_empty_delta(stage: Keep) -> None:
    ticks = Ticks()
    out = paced(stage.machine(ticks), ticks, [(0.0, delta("")), (0.1, delta("Go"))])
    assert [(time, event.delta) for time, event in out] == [(0.0, ""), (0.1, "Go")]


def test_smooth_keeps_what_stands_behind_text() -> None:
    events = through(EVENTS, smooth())
    assert join_deltas(events) == join_deltas(EVENTS)
    ticks = Ticks()
    machine = smooth(lag=1.0).machine(ticks)
    out = paced(machine, ticks, [(0.1 * event.seq / len(EVENTS), event) for event in EVENTS])
    assert join_deltas([event for _, event in out]) == join_deltas(EVENTS)


def test_smooth_of_text_without_spaces_is_linear() -> None:
    """Each delta was joined to the whole word before it."""
    machine = smooth().machine(lambda: 0.0)
    for _ in range(100_000):
        machine.feed(delta("字"))
    assert machine.buffered == 100_000 - 1  # type: ignore[attr-defined]
    rest: list[Any] = machine.close()
    assert sum(len(event.delta) for event in rest) == 100_000 - 1


async def test_end_of_a_smooth_stream_waits_for_its_text() -> None:
    began = anyio.current_time()
    async with pipe(EventsSource(EVENTS), smooth(lag=2.0)) as piped:
        timed = [(anyio.current_time() - began, event) async for event in piped]
    check([event for _, event in timed])
    assert accumulate([event for _, event in timed]) == accumulate(EVENTS)
    assert timed[0][0] == 0.0
    assert 0.5 <= timed[-1][0] <= 2.0 + 1e-6


async def test_buffered_characters_can_be_read() -> None:
    deltas = [delta("first "), delta("second "), delta("third")]
    async with pipe(EventsSource(deltas, stall=30), coalesce(100.0)) as events:
        assert events.buffered == 0
        await anext(events)
        with anyio.move_on_after(1):
            await anext(events)
        assert events.buffered == len("second third")


@pytest.mark.parametrize("stage", [coalesce(1.0), smooth(), smooth("character")], ids=str)
def test_buffered_characters_are_counted(stage: Keep) -> None:
    """They are asked for after each event where a `Measure` is among the stages."""
    ticks = Ticks()
    machine: Any = stage.machine(ticks)
    inside = 0
    for number, event in enumerate([*EVENTS, *EVENTS]):
        ticks.now += 0.01
        inside += len(getattr(event, "delta", ""))
        let_out = machine.feed(event)
        if number % 7 == 0 and machine.due() == 0:
            let_out += machine.expire()
        inside -= sum(len(getattr(one, "delta", "")) for one in let_out)
        assert machine.buffered == inside
    machine.close()
    assert machine.buffered == 0


# --- timeout ---


def is_whole(events: list[ResponseEvent], kind: str) -> Failed:
    check(events)
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert failed.error.kind == kind
    assert failed.error.code == "stopped_by_stage"
    return failed


@pytest.mark.parametrize("count", [0, 3, 12, 20])
async def test_timeout_ends_a_silent_stream(count: int) -> None:
    source = EventsSource(EVENTS[:count], stall=1000)
    began = anyio.current_time()
    async with pipe(source, timeout(gap=5.0)) as piped:
        events = [event async for event in piped]
        assert source.closed == 1
    assert is_whole(events, "stalled").error.retryable
    assert anyio.current_time() - began == pytest.approx(5.0)


async def test_timeout_ends_a_long_stream() -> None:
    source = EventsSource(EVENTS, pause=1.0)
    async with pipe(source, timeout(gap=5.0, total=10.5)) as piped:
        events = [event async for event in piped]
    is_whole(events, "deadline")
    assert source.sent == 10


async def test_timeout_leaves_a_stream_that_is_in_time() -> None:
    async with pipe(EventsSource(EVENTS, pause=1.0), timeout(gap=1.5, total=100.0)) as piped:
        assert [event async for event in piped] == EVENTS


async def test_text_of_a_stalled_stream_raises() -> None:
    async with pipe(EventsSource(EVENTS[:20], stall=1000), timeout(gap=5.0)) as piped:
        with pytest.raises(StreamError, match="no event for 5 s"):
            "".join([text async for text in piped.text()])
    assert piped.response.status == "failed"


# --- measure ---


async def test_measure_has_percentiles_and_rates() -> None:
    measure = Measure()
    async with pipe(EventsSource(EVENTS, pause=0.5), measure) as piped:
        assert [event async for event in piped] == EVENTS
    use = piped.of(measure)
    assert list(measure.uses) == [use]
    assert use.p50 == pytest.approx(0.5)
    first = next(n for n, event in enumerate(EVENTS) if hasattr(event, "delta"))
    assert use.first_token == pytest.approx(0.5 * (first + 1))
    assert use.characters == sum(len(getattr(event, "delta", "")) for event in EVENTS)
    usage = accumulate(EVENTS).usage
    assert usage is not None
    assert use.tokens_per_second is not None
    assert use.output_tokens == usage.output_tokens
    row = use.row()
    assert row["events"] == len(EVENTS)
    assert row["p50"] == use.p50


async def test_measure_has_no_rate_where_no_token_was_counted() -> None:
    """A response that was stopped: Messages reports 0 tokens when it begins."""
    measure = Measure()
    usage = Usage(input_tokens=3, output_tokens=0)
    events = [
        msgspec.structs.replace(event, usage=usage)
        if isinstance(event, (TokenCount, Completed))
        else event
        for event in EVENTS
    ]
    async with pipe(EventsSource(events, pause=0.5), measure) as piped:
        async for _ in piped:
            pass
    assert piped.of(measure).output_tokens == 0
    assert piped.of(measure).tokens_per_second is None


async def test_measure_counts_each_use_apart() -> None:
    measure = Measure()
    for _ in range(2):
        async with pipe(EventsSource(EVENTS), measure) as piped:
            assert [event async for event in piped] == EVENTS
    assert [use.events for use in measure.uses] == [len(EVENTS)] * 2


async def test_measure_is_readable_while_it_runs() -> None:
    measure = Measure()
    async with pipe(EventsSource(EVENTS), measure) as piped:
        await anext(piped)
        assert piped.of(measure).events == 1
        with pytest.raises(LookupError, match="not among the stages"):
            piped.of(Measure())


async def test_measure_knows_how_long_a_stage_held_text() -> None:
    measure = Measure()
    arguments: list[ResponseEvent] = [
        OutputItemAdded(0, FunctionCall("c", "f")),
        *[FunctionCallArgumentsDelta(0, "x") for _ in range(10)],
    ]
    async with pipe(EventsSource(arguments, pause=1.0), measure, coalesce(100.0)) as piped:
        async for _ in piped:
            pass
    held = piped.of(measure).buffered_seconds
    assert held["coalesce(100)"] == pytest.approx(8.0, abs=1.1)
    assert piped.of(measure).row()["buffered coalesce(100)"] == held["coalesce(100)"]
