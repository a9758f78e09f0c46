"""Measures stages of pipelines without a network: CPU time an event, and text that is held.

Each is timed over a bare loop that copies the same list: of a stage the time of `through`, of one
that needs an event loop the time of `pipe`. Text is held while the clock moves as it does for a
model that writes fifty tokens a second.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, NamedTuple

import anyio

from streamlib import pipeline as p
from streamlib.testing.bench.feed import Progress, Timings, Yardstick, repeated
from streamlib.testing.bench.records import OURS, Figure, figure
from streamlib.testing.stage_checks import expire_until
from streamlib.testing.stage_samples import HandClock, message_of
from streamlib_parsers.events import OutputTextDelta, ResponseEvent

PROSE: Final = (
    "Streams of text arrive in tokens, and a reader wants sentences. Dr. No has 3.5 of them!\n\n"
    "- One list, two items: call +49 170 1234567\n- or write to ann@example.com\n\n"
    "A token may hold a part of a word, several words, or the end of a line and the next one. "
    "Nobody knows before; who waits for the end shows nothing until then.\n\n"
)
"""Some of everything that stages look for: sentences, lines, blocks, an address, a number."""
BUILT_IN: Final = "built-in text"
LENGTH: Final = 20_000
"""Characters of the built-in text."""
TOKEN_LENGTHS: Final = (1, 2, 3, 4, 5, 6, 7, 8)
"""As in recorded streams, whose deltas have four or five characters on average."""
PACE: Final = 0.02
"""Seconds between two events of a model."""
PATTERNS: Final = (r"\+?\d[\d ]{7,}\d", r"[\w.]+@[\w.]+\w", r"sk-\w{20,}")
"""Phone numbers, addresses of mail, keys."""


def always(_: object) -> bool:
    """Lets everything pass."""
    return True


async def unchanged(event: ResponseEvent) -> ResponseEvent:
    """A call that does nothing."""
    return event


def same(value: Any) -> Any:
    """A function that does nothing."""
    return value


STAGES: Final[dict[str, Callable[[], Any]]] = {
    "only": lambda: [p.only(OutputTextDelta)],
    "without": lambda: [p.without(OutputTextDelta)],
    "filter_events": lambda: [p.filter_events(always)],
    "aggregate": lambda: [p.aggregate()],
    "window": lambda: [p.window(events=100)],
    "tap": lambda: [p.tap(same)],
    "map_events": lambda: [p.map_events(same)],
    "until": lambda: [p.until(lambda event: False)],
    "Measure": lambda: [p.Measure()],
    "words": lambda: [p.words()],
    "lines": lambda: [p.lines()],
    "sentences": lambda: [p.sentences()],
    "blocks": lambda: [p.blocks()],
    "map_text": lambda: [p.map_text(same)],
    "replace, a fixed text": lambda: [p.replace("hunter2", "[…]")],
    "replace, a pattern": lambda: [p.replace(PATTERNS[0], "[…]")],
    "replace, three patterns": lambda: [p.replace(PATTERNS, "[…]")],
    "stop_at": lambda: [p.stop_at("\nUser:")],
    "limit": lambda: [p.limit(characters=10_000_000)],
    "coalesce": lambda: [p.coalesce()],
    "smooth": lambda: [p.smooth()],
    "timeout": lambda: [p.timeout(gap=60)],
    "eight, one of them replace": lambda: [
        *[p.tap(same)] * 3,
        p.replace(PATTERNS[0], "[…]"),
        *[p.tap(same)] * 3,
        p.words(),
    ],
    "map_async": lambda: [p.map_async(unchanged)],
    "guard": lambda: [p.guard(always)],
    "pipe, no stage": list,
    "pipe, eight taps": lambda: [p.tap(same)] * 8,
}
"""Name -> makes the stages. What begins with "pipe" runs in an event loop, as async stages do."""


class StageCase(NamedTuple):
    """A stage, and the events that it gets.

    Attributes:
        name: of the stage.
        source: of the events: a file, or the built-in text.
        stages: one or several.
        events: a whole response.
        is_looped: it is timed in an event loop.
    """

    name: str
    source: str
    stages: list[Any]
    events: Sequence[ResponseEvent]
    is_looped: bool


def built_in_events(length: int = LENGTH, prose: str = PROSE) -> list[ResponseEvent]:
    """The built-in text as a response, in tokens that are the same on every run.

    Args:
        length: characters of the response.
        prose: what it repeats.
    """
    draw = random.Random("tokens")  # a benchmark's, no secret
    text = (prose * (length // len(prose) + 1))[:length]
    tokens: list[str] = []
    position = 0
    while position < len(text):
        size = draw.choice(TOKEN_LENGTHS)
        tokens.append(text[position : position + size])
        position += size
    return message_of(tokens)


def cases(source: str, events: Sequence[ResponseEvent]) -> tuple[list[StageCase], list[str]]:
    """Every stage on these events, and the names of those whose package is not installed."""
    made: list[StageCase] = []
    absent: list[str] = []
    for name, make in STAGES.items():
        try:
            stages = make()
        except ImportError:
            absent.append(name)
            continue
        is_looped = name.startswith("pipe") or any(stage.is_async for stage in stages)
        made.append(StageCase(name, source, stages, events, is_looped))
    return made, absent


def measure(
    cases: Sequence[StageCase], rounds: int, report: Progress = lambda _: None
) -> list[Figure]:
    """Measures every case: µs an event, and the most characters held."""
    figures: list[Figure] = []
    for case, taken in zip(cases, times_of(cases, rounds, report), strict=True):
        key = ("stages", case.name, case.source, OURS)
        figures.append(figure(*key, "time", "µs/event", taken.spent, taken.yardstick))
        if not case.is_looped:
            figures.append(figure(*key, "held", "characters", [most_held(case)]))
    return figures


def times_of(
    cases: Sequence[StageCase], rounds: int, report: Progress = lambda _: None
) -> list[Timings]:
    """µs an event of each case, in each round, without the bare loop's. The cases take turns."""
    times = [Timings([], []) for _ in cases]
    yardstick = Yardstick()
    for _ in range(rounds):
        for number, case in enumerate(cases):
            report(case.name)
            spent = _seconds(case) - _seconds(case, is_bare=True)
            times[number].spent.append(spent / len(case.events) * 1e6)
            times[number].yardstick.append(yardstick.beside())
    return times


def most_held(case: StageCase) -> int:
    """The most characters that a stage holds behind an event."""
    clock = HandClock()
    machine: Any = p.chain(*case.stages).machine(clock)
    most = 0
    for event in case.events:
        expire_until(machine, clock, clock.now + PACE)
        machine.feed(event)
        most = max(most, machine.buffered)
    return most


def _seconds(case: StageCase, *, is_bare: bool = False) -> float:
    """CPU seconds for the events once: the mean of as many runs as fill the window."""

    def run() -> None:
        if case.is_looped:
            anyio.run(_drain, case, is_bare)  # a loop costs both the same
        elif is_bare:
            _copy(case.events)
        else:
            p.through(case.events, *case.stages)

    run()  # what is made at the first use is not counted
    return repeated(run)


def _copy(events: Sequence[ResponseEvent]) -> None:
    """The bare loop."""
    copied: list[ResponseEvent] = []
    for event in events:
        copied.append(event)  # noqa: PERF402  # as a loop that does something with each


async def _drain(case: StageCase, is_bare: bool) -> None:  # noqa: FBT001  # for anyio.run
    if is_bare:
        async for _ in _ready(case.events):
            pass
        return
    async with p.pipe(_ready(case.events), *case.stages) as events:
        async for _ in events:
            pass


async def _ready(events: Sequence[ResponseEvent]) -> AsyncIterator[ResponseEvent]:
    """Events that are there at once."""
    for event in events:
        yield event
