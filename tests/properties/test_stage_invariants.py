"""What holds of every stage and of every pair of them, on recordings of every wire.

A whole stream in is a whole stream out; brackets between stages change nothing; a list, an
iterable and both event loops give the same; a pipeline may be left anywhere. The default run takes
a seeded sample of the recordings and of the pairs; `-m slow` takes more.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import anyio
import pytest

from streamlib import (
    Completed,
    ErrorInfo,
    Failed,
    FunctionCallOutput,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseEvent,
    StreamError,
    TokenCount,
    accumulate,
    parser,
)
from streamlib.pipeline import (
    Measure,
    aggregate,
    chain,
    coalesce,
    filter_events,
    map_async,
    map_events,
    only,
    pipe,
    smooth,
    tap,
    through,
    timeout,
    until,
    window,
    without,
)
from streamlib.testing.invariants import check
from streamlib.testing.stage_samples import samples
from tests.support.cases import each_case
from tests.support.events_source import EventsSource
from tests.support.shared import WIRES, recordings
from tests.support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]

SAMPLE = 3
"""Recordings of each wire in the default run."""
LONGEST = 300
"""Events of a recording: longer ones show nothing more, and take the time of many."""
PAIRS = 40
"""Pairs of stages in the default run."""


def ignored(event: ResponseEvent) -> None:
    del event


def with_notices(event: ResponseEvent) -> list[ResponseEvent]:
    """A notice before each item."""
    if isinstance(event, OutputItemAdded):
        return [Notice("item"), event]
    return [event]


def without_counts(event: ResponseEvent) -> ResponseEvent | None:
    if isinstance(event, TokenCount):
        return None
    return event


def is_second_item(event: ResponseEvent) -> bool:
    return isinstance(event, OutputItemAdded) and event.index == 1


def is_odd(event: ResponseEvent) -> bool:
    return event.seq % 2 == 1


async def with_notices_later(event: ResponseEvent) -> list[ResponseEvent]:
    await anyio.sleep(0.01 * (event.seq % 3))
    return with_notices(event)


WHOLE: dict[str, Callable[[], Any]] = {
    "chain": chain,
    "tap": lambda: tap(ignored),
    "inserts": lambda: map_events(with_notices),
    "drops": lambda: map_events(without_counts),
    "coalesce": lambda: coalesce(0.1),
    "smooth": smooth,
    "timeout": lambda: timeout(gap=1_000, total=10_000),
    "Measure": Measure,
    "until": lambda: until(is_second_item),
}
"""Stages that let out whole streams, without an event loop."""
SELECTING: dict[str, Callable[[], Any]] = {
    "only": lambda: only(OutputTextDelta, OutputItemDone, Completed),
    "without": lambda: without(OutputTextDelta),
    "filter_events": lambda: filter_events(is_odd),
    "aggregate": aggregate,
}
STAGES = {**WHOLE, **SELECTING}
EVERY: dict[str, Callable[[], Any]] = {**STAGES, "window": lambda: window(events=3)}


@cache
def streams(count: int) -> list[tuple[str, list[ResponseEvent]]]:
    """Recordings of every wire by name, and made-up responses of all kinds."""
    chosen = random.Random(32)  # the same on every run
    found: list[tuple[str, list[ResponseEvent]]] = []
    for folder, wire in WIRES.items():
        available = recordings(folder)
        for recording in chosen.sample(available, min(count, len(available))):
            wire_parser = parser(wire)  # type: ignore[arg-type]
            events = [*wire_parser.feed(recording.body), *wire_parser.close()]
            if len(events) <= LONGEST:
                found.append((recording.path.name, events))
    for sample in samples():
        found.append((sample.name, sample.variants[1 % len(sample.variants)]))
    return found


def numbered(events: list[Any]) -> list[tuple[int, Any]]:
    """Events with their `seq`, which equality ignores."""
    return [(getattr(event, "seq", -1), event) for event in events]


def check_whole(events: list[ResponseEvent], made: list[ResponseEvent], name: str) -> None:
    """`made` is a whole stream, and tells no lie about `events`."""
    check(made)
    if isinstance(events[-1], Failed):
        assert isinstance(made[-1], Failed), name
    if isinstance(made[-1], Failed) and made[-1].error.code == "stopped_by_stage":
        return
    assert type(made[-1]) is type(events[-1]), name
    assert accumulate(made).items == accumulate(events).items, name


@pytest.mark.parametrize("name", WHOLE)
def test_stage_lets_out_a_whole_stream(name: str) -> None:
    stage = WHOLE[name]()
    for recording, events in streams(SAMPLE):
        made: list[ResponseEvent] = through(events, stage)
        check_whole(events, made, recording)
        assert numbered(through(events, stage)) == numbered(made), recording


@pytest.mark.parametrize("name", SELECTING)
def test_selection_has_events_of_the_stream(name: str) -> None:
    for recording, events in streams(SAMPLE):
        selected = through(events, SELECTING[name]())
        left = iter(numbered(events))
        assert all(event in left for event in numbered(selected)), recording


def pairs(count: int) -> list[tuple[str, str]]:
    every = [(first, second) for first in STAGES for second in STAGES]
    return random.Random(32).sample(every, min(count, len(every)))


def check_pair(first: str, second: str, count: int) -> None:
    for recording, events in streams(count):
        left, right = STAGES[first](), STAGES[second]()
        made = numbered(through(events, left, right))
        for chained in (left | right, chain(chain(), left, chain(right, chain()))):
            assert numbered(through(events, chained)) == made, recording
        if first in WHOLE:
            assert numbered(through(through(events, left), right)) == made, recording
        if first in WHOLE and second in WHOLE:
            check_whole(events, [event for _, event in made], recording)


def test_pair_of_stages_lets_out_what_each_does() -> None:
    for first, second in pairs(PAIRS):
        check_pair(first, second, 1)


@pytest.mark.slow
def test_every_pair_lets_out_what_each_does() -> None:
    for first, second in pairs(1_000):
        check_pair(first, second, 20)


def test_chain_of_three_is_the_same_however_bracketed() -> None:
    chosen = random.Random(3)
    for _ in range(PAIRS):
        names = [chosen.choice(list(STAGES)) for _ in range(3)]
        a, b, c = (STAGES[name]() for name in names)
        for recording, events in streams(0):
            made = numbered(through(events, a, b, c))
            for chained in (chain(a, chain(b, c)), chain(chain(a, b), c), a | b | c):
                assert numbered(through(events, chained)) == made, (names, recording)


async def read(source: Any, *stages: Any, **options: Any) -> list[Any]:
    async with pipe(source, *stages, **options) as piped:
        return [event async for event in piped]


@pytest.mark.parametrize("name", EVERY)
async def test_stage_gives_the_same_everywhere(name: str) -> None:
    """In a list, over an iterable with a clock that stands, and on each event loop."""
    stage = EVERY[name]()
    for recording, events in streams(1):
        made: list[Any] = through(events, stage)
        with pipe(iter(events), stage, clock=lambda: 0.0) as piped:
            assert numbered(list(piped)) == numbered(made), recording
        source = EventsSource(events)
        assert numbered(await read(source, stage)) == numbered(made), recording
        assert source.closed == 1


async def test_async_stage_keeps_order_and_wholeness() -> None:
    for recording, events in streams(1):
        stage = chain(map_async(with_notices_later), tap(ignored))
        made = await read(EventsSource(events), stage)
        assert numbered(made) == numbered(through(events, map_events(with_notices))), recording


def counted(stop: int) -> Callable[[ResponseEvent], bool]:
    """True from the event of this number on."""
    count = iter(range(1_000_000))
    return lambda _: next(count) >= stop


def test_until_ends_a_whole_stream_at_any_event() -> None:
    for recording, events in streams(1):
        for stop in range(0, len(events), 1 + len(events) // 12):
            made: list[ResponseEvent] = through(events, until(counted(stop)))
            check(made)
            assert made[: stop + 1] == events[: stop + 1], recording
            if stop < len(events) - 1:
                last = made[-1]
                assert isinstance(last, Failed)
                assert last.error.code == "stopped_by_stage"


async def into(seen: list[Any], events: Any) -> None:
    async for event in events:
        seen.append(event)  # one by one: the events before an error must be seen


class Broken(Exception):
    """What a stage raises."""


def raising(stop: int) -> Any:
    reached = counted(stop)

    def fail(event: ResponseEvent) -> None:
        if reached(event):
            raise Broken

    return tap(fail)


STOPPED: dict[str, Callable[[], Any]] = {
    "alone": chain,
    "coalesce": lambda: coalesce(0.1),
    "smooth": smooth,
    "map_async": lambda: map_async(with_notices_later),
}
"""Stages before and behind which a pipeline stops."""


@pytest.mark.parametrize("name", STOPPED)
async def test_pipeline_closes_its_source_wherever_left(name: str) -> None:
    events = streams(0)[0][1]
    for count in range(0, len(events), 9):
        source = EventsSource(events, stall=1_000)
        async with pipe(source, STOPPED[name]()) as piped:
            for _ in range(count):
                await anext(piped, None)
        assert source.closed == 1


@pytest.mark.parametrize("name", STOPPED)
async def test_pipeline_closes_its_source_when_cancelled(name: str) -> None:
    events = streams(0)[0][1]
    for count in range(0, len(events), 9):
        source = EventsSource(events[:count], stall=1_000)
        with anyio.move_on_after(100) as scope:
            await read(source, STOPPED[name]())
        assert scope.cancelled_caught
        assert source.closed == 1


@pytest.mark.parametrize("name", STOPPED)
async def test_stage_error_follows_the_events_before_it(name: str) -> None:
    events = streams(0)[0][1]
    for stop in range(0, len(events), 9):
        source = EventsSource(events)
        seen: list[ResponseEvent] = []
        async with pipe(source, raising(stop), STOPPED[name]()) as piped:
            with pytest.raises(Broken):
                await into(seen, piped)
            assert source.closed == 1
        expected = [event for event in events[:stop] if not isinstance(event, OutputTextDelta)]
        others = [event for event in seen if not isinstance(event, (OutputTextDelta, Notice))]
        assert others == expected
        texts = [event.delta for event in seen if isinstance(event, OutputTextDelta)]
        deltas = [event for event in events[:stop] if isinstance(event, OutputTextDelta)]
        assert "".join(texts) == "".join(event.delta for event in deltas)


@pytest.mark.parametrize("name", STOPPED)
async def test_stage_error_as_event_ends_a_whole_stream(name: str) -> None:
    events = streams(0)[0][1]
    for stop in range(0, len(events), 9):
        made = await read(EventsSource(events), raising(stop), STOPPED[name](), errors="event")
        check(made)
        failed = made[-1]
        assert isinstance(failed, Failed)
        assert (failed.error.kind, failed.error.code) == ("internal", "stage_failed")


@each_case("name", WHOLE)
async def test_source_error_is_raised_with_what_came_out(name: str) -> None:
    events = streams(0)[0][1][:-2]  # its item is open
    error = StreamError(ErrorInfo("overloaded", "busy"))
    async with pipe(EventsSource(events, then=error), WHOLE[name]()) as piped:
        with pytest.raises(StreamError) as raised:
            await into([], piped)
    assert raised.value is error
    assert error.response == piped.response
    assert piped.response.status == "failed"
    assert piped.response.text == accumulate(events).text


@pytest.mark.parametrize("name", [name for name in STAGES if name != "until"])
async def test_run_begins_again_with_each_response(name: str) -> None:
    output = FunctionCallOutput("call", "done")
    for recording, events in streams(0):
        run: list[Any] = [*events, output, *events]
        stage = STAGES[name]()
        once = numbered(through(events, stage))
        expected = [*once, (-1, output), *once]
        assert numbered(through(run, stage)) == expected, recording
        assert numbered(await read(EventsSource(run), stage)) == expected, recording
