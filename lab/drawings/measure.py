"""Screens of all speeds behind `coalesce`: drawings in an interval, and how late a text is.

Time is virtual but for the figures of many streams, so the others are exact on any machine.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from itertools import pairwise
from typing import Final, NamedTuple

import anyio

from streamlib import OutputTextDelta, ResponseEvent
from streamlib.pipeline import coalesce, pipe
from tests.support.virtual_time import JumpingLoop

INTERVAL: Final = 1 / 60
RATE: Final = 2_000.0
"""Deltas per second of a fast model, over all parts."""
PARTS: Final = (1, 2, 8)
DRAWING: Final = (0.0, 0.005, 0.030)
"""Seconds that a screen takes to draw one delta."""


class Model:
    """A model that writes `count` deltas, round robin over its parts. Each delta is its number."""

    def __init__(self, count: int, parts: int, rate: float) -> None:
        self.sent: list[float] = []
        """When each delta was sent."""
        self._count = count
        self._parts = parts
        self._pause = 1 / rate

    def __aiter__(self) -> Model:
        return self

    async def __anext__(self) -> ResponseEvent:
        number = len(self.sent)
        if number == self._count:
            # The end lets out what is held; the figures are of what the interval lets out.
            await anyio.sleep(3 * INTERVAL)
            raise StopAsyncIteration
        await anyio.sleep(self._pause)
        self.sent.append(anyio.current_time())
        return OutputTextDelta(number % self._parts, 0, f"{number} ", seq=number)


class Drawn(NamedTuple):
    """What a screen got.

    Attributes:
        drawings: How many times it drew.
        in_an_interval: The most drawings that began within one interval.
        lag: The longest time from sending a delta to the beginning of its drawing, in seconds.
        first: The same of the first delta.
        texts: What it drew, by part.
    """

    drawings: int
    in_an_interval: int
    lag: float
    first: float
    texts: dict[int, str]


async def draw(parts: int, drawing: float, *, count: int = 2_000, rate: float = RATE) -> Drawn:
    """Draws everything that a model writes, each delta in `drawing` seconds."""
    model = Model(count, parts, rate)
    times: list[float] = []
    texts: dict[int, str] = {}
    lags: list[float] = []
    async with pipe(model, coalesce(INTERVAL)) as events:
        async for event in events:
            now = anyio.current_time()
            assert isinstance(event, OutputTextDelta)
            times.append(now)
            texts[event.index] = texts.get(event.index, "") + event.delta
            lags += [now - model.sent[int(number)] for number in event.delta.split()]
            await anyio.sleep(drawing)
    return Drawn(len(times), most_within(times, INTERVAL), max(lags), lags[0], texts)


def most_within(times: list[float], seconds: float) -> int:
    """The most of these times within one span, which its end does not belong to."""
    most = 0
    for index, start in enumerate(times):
        # Sums of times are not exact.
        most = max(most, bisect_right(times, start + seconds - 1e-9) - index)
    return most


def virtually(parts: int, drawing: float, *, count: int = 2_000) -> Drawn:
    """`draw` in virtual time."""

    async def run() -> Drawn:
        return await draw(parts, drawing, count=count)

    return anyio.run(run, backend_options={"loop_factory": JumpingLoop})


class Crowd(NamedTuple):
    """What many streams at once cost.

    Attributes:
        p99_gap: The gap between two drawings of a stream that one in a hundred exceeds, in seconds.
        cpu: Seconds of CPU time a second.
    """

    p99_gap: float
    cpu: float


async def crowd(streams: int = 100, *, seconds: float = 3.0, rate: float = 100.0) -> Crowd:
    """Many streams with two parts each, in real time."""
    gaps: list[float] = []

    async def one() -> None:
        times: list[float] = []
        model = Model(int(seconds * rate), 2, rate)
        async with pipe(model, coalesce(INTERVAL)) as events:
            async for _ in events:
                times.append(anyio.current_time())
        gaps.extend([after - before for before, after in pairwise(times)])

    cpu = time.process_time()
    start = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(streams):
            group.start_soon(one)
    share = (time.process_time() - cpu) / (time.perf_counter() - start)
    return Crowd(sorted(gaps)[len(gaps) * 99 // 100], share)
