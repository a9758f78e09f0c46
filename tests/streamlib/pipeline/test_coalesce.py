"""Drawings are bounded (E3): one joined delta a part, let out together, on any screen."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.drawings.measure import DRAWING, INTERVAL, PARTS, Model, draw, virtually
from streamlib import (
    FunctionCallArgumentsDelta,
    Notice,
    OutputTextDelta,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    ResponseEvent,
    RunEvent,
)
from streamlib.pipeline import coalesce, only, pipe
from tests.support.runs import three_steps
from tests.support.virtual_time import anyio_backend  # noqa: F401  # the fixture


class Ticks:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def driven(machine: Any, event: ResponseEvent) -> list[ResponseEvent]:
    """What a machine lets out for an event, and because its time has come then."""
    events: list[ResponseEvent] = machine.feed(event)
    while machine.due() is not None and machine.due() <= 0:
        events += machine.expire()
    return events


def deltas(*texts: tuple[int, str]) -> list[ResponseEvent]:
    return [OutputTextDelta(index, 0, text) for index, text in texts]


def shown(events: list[ResponseEvent]) -> list[tuple[int, str]]:
    return [(event.index, event.delta) for event in events if isinstance(event, OutputTextDelta)]


def test_parts_are_let_out_together_in_first_seen_order() -> None:
    """E3: each change of the part was a drawing."""
    ticks = Ticks()
    stage = coalesce(1.0).machine(ticks)
    out = stage.feed(OutputTextDelta(0, 0, "a"))
    for event in deltas((1, "b"), (0, "c"), (1, "d"), (2, "e"), (0, "f")):
        assert stage.feed(event) == []
    ticks.now = 1.0
    out += driven(stage, OutputTextDelta(2, 0, "g"))
    assert shown(out) == [(0, "a"), (1, "bd"), (0, "cf"), (2, "eg")]
    assert stage.due() is None


def test_other_event_comes_after_everything_before_it() -> None:
    stage = coalesce(float("inf")).machine(Ticks())
    events = deltas((0, "a"), (1, "b"), (0, "c"))
    out: list[ResponseEvent] = []
    for event in [*events, Notice("x"), *events]:
        out += stage.feed(event)
    assert shown(out) == [(0, "a"), (1, "b"), (0, "c")]
    assert isinstance(out[-1], Notice)
    assert shown(stage.close()) == [(0, "ac"), (1, "b")]


def text_of(content_index: int) -> Any:
    def make(index: int, text: str) -> ResponseEvent:
        return OutputTextDelta(index, content_index, text)

    return make


def reasoning(index: int, text: str) -> ResponseEvent:
    return ReasoningContentDelta(index, 0, text)


def summary(index: int, text: str) -> ResponseEvent:
    return ReasoningSummaryDelta(index, 0, text)


def notice(index: int, text: str) -> ResponseEvent:
    return Notice(text, index=index)


KINDS: list[Any] = [
    text_of(0),
    text_of(1),
    reasoning,
    summary,
    FunctionCallArgumentsDelta,
    notice,
]
STREAMS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 2), st.text("ab", min_size=1, max_size=2)),
    max_size=20,
)
PAUSES = st.lists(st.sampled_from([0.0, 0.4, 1.1]), min_size=20, max_size=20)


def texts_before_others(events: list[ResponseEvent]) -> list[Any]:
    """Each other event with the texts before it, by part; and all the texts."""
    texts: dict[Any, str] = {}
    found: list[Any] = []
    for event in events:
        if isinstance(event, Notice):
            found.append((event, dict(texts)))
        else:
            delta: Any = event
            key = (type(event), delta.index, getattr(event, "content_index", None))
            texts[key] = texts.get(key, "") + delta.delta
    return [*found, texts]


@given(stream=STREAMS, pauses=PAUSES)
def test_any_stream_keeps_texts_and_their_order(stream: Any, pauses: list[float]) -> None:
    events = [make(index, text) for make, index, text in stream]
    ticks = Ticks()
    stage = coalesce(1.0).machine(ticks)
    out: list[ResponseEvent] = []
    for event, pause in zip(events, pauses, strict=False):
        ticks.now += pause
        out += driven(stage, event)
    out += stage.close()
    assert texts_before_others(out) == texts_before_others(events)


@pytest.mark.parametrize("parts", PARTS)
def test_drawings_and_lag_are_bounded_on_any_screen(parts: int) -> None:
    """E3: two parts made 2,000 drawings of 2,000 deltas, and a slow screen was 59 s late."""
    for drawing in DRAWING:
        drawn = virtually(parts, drawing, count=400)
        assert drawn.in_an_interval <= parts
        assert drawn.lag <= 2 * INTERVAL + parts * drawing
        assert drawn.first <= 1e-9
        whole = {part: "".join(f"{n} " for n in range(part, 400, parts)) for part in range(parts)}
        assert drawn.texts == whole


async def test_screen_of_both_loops_draws_alike() -> None:
    drawn = await draw(2, 0.005, count=100)
    assert drawn.in_an_interval <= 2
    assert drawn.lag <= 2 * INTERVAL + 2 * 0.005


async def test_delta_grows_while_the_one_before_is_drawn() -> None:
    """What arrives during a round is in it, unless its part was drawn already."""
    async with pipe(Model(100, 2, 100.0), coalesce(0.1)) as events:
        first = await anext(events)
        await anyio.sleep(0.105)
        second = await anext(events)
        await anyio.sleep(0.105)
        third = await anext(events)
    assert [event.index for event in (first, second, third)] == [0, 1, 0]  # type: ignore[union-attr]
    assert second.delta.split()[-1] == "9"  # type: ignore[union-attr]
    assert third.delta.split()[-1] == "20"  # type: ignore[union-attr]


class Chunks:
    """A source whose events arrive ten at once, as those of a read of a socket do."""

    def __init__(self) -> None:
        self._count = 0

    def __aiter__(self) -> Chunks:
        return self

    async def __anext__(self) -> ResponseEvent:
        raise AssertionError("it is read in batches")

    def batches(self) -> Batches:
        return Batches()


class Batches:
    """Ten times ten deltas of two parts."""

    def __init__(self) -> None:
        self._count = 0

    def __aiter__(self) -> Batches:
        return self

    async def __anext__(self) -> list[ResponseEvent]:
        await anyio.lowlevel.checkpoint()
        if self._count == 10:
            raise StopAsyncIteration
        self._count += 1
        return [OutputTextDelta(number % 2, 0, "x") for number in range(10)]


async def test_screen_that_never_waits_gets_joined_deltas() -> None:
    """Drawing takes time in which no task runs; the reading task gets its turn all the same."""
    now = [0.0]
    texts: list[str] = []
    async with pipe(Chunks(), coalesce(INTERVAL), clock=lambda: now[0]) as events:
        async for event in events:
            now[0] += 1.0
            texts.append(event.delta)  # type: ignore[union-attr]
    assert "".join(texts) == "x" * 100
    assert len(texts) <= 21


async def test_stages_after_it_get_what_it_lets_out() -> None:
    stages = (coalesce(INTERVAL), only(OutputTextDelta))
    async with pipe(Model(60, 3, 1_000.0), *stages) as events:
        texts = [event.delta async for event in events]
    assert len(texts) < 20
    assert sorted("".join(texts).split(), key=int) == [str(n) for n in range(60)]


async def test_run_goes_through_a_pipeline() -> None:
    """Outputs between the responses are events like any other."""
    run = three_steps()

    class source:  # noqa: N801  # reads as a function
        def __init__(self) -> None:
            self._events = iter(run)

        def __aiter__(self) -> source:
            return self

        async def __anext__(self) -> RunEvent:
            for event in self._events:
                return event
            raise StopAsyncIteration

    async with pipe(source(), coalesce(0.01)) as events:
        assert joined([event async for event in events]) == joined(run)


def joined(run: list[Any]) -> list[Any]:
    """The events with adjacent deltas of a text joined."""
    out: list[Any] = []
    for event in run:
        key = (type(event), getattr(event, "index", None))
        if out and hasattr(event, "delta") and out[-1][0] == key:
            out[-1][1] += event.delta
        else:
            out.append([key, getattr(event, "delta", event)])
    return out
