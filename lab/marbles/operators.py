"""The operators, each on a script that shows what it does."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

import anyio

from lab.marbles.script import (
    Call,
    Count,
    Line,
    Mark,
    Step,
    Text,
    Thought,
    mark_of,
    note,
    scripted,
    words,
)
from streamlib import pipeline
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    Completed,
    Failed,
    Notice,
    OutputItemDone,
    OutputTextDelta,
    TokenCount,
)
from tests.support.virtual_time import JumpingLoop

TICK: Final = 1.0
"""Seconds between two lines of the time axis."""


async def shout(text: str) -> str:
    """A call that takes two seconds."""
    await anyio.sleep(2)
    return text.upper()


async def harmless(text: str) -> bool:
    """A check that takes a second."""
    await anyio.sleep(1)
    return "bomb" not in text


async def looked_up(event: Any) -> Any:
    """A call for an event, which takes two seconds."""
    await anyio.sleep(2)
    return event


def announced(event: Any) -> Any:
    """An event of one's own before the first text."""
    if isinstance(event, TokenCount):
        return [Notice("counted"), event]
    return event


NAMES: Final[dict[str, Any]] = {
    **{name: getattr(pipeline, name) for name in pipeline.__all__},
    "re": re,
    "shout": shout,
    "harmless": harmless,
    "looked_up": looked_up,
    "announced": announced,
    "Completed": Completed,
    "OutputTextDelta": OutputTextDelta,
    "OutputItemDone": OutputItemDone,
    "TokenCount": TokenCount,
}
"""What the code in a picture may name."""


class Picture(NamedTuple):
    """What one picture shows.

    Attributes:
        name: the operator, and the name of the file.
        code: what runs; it stands in the picture.
        above: the streams that went in.
        below: the streams that came out.
    """

    name: str
    code: str
    above: list[Line]
    below: list[Line]


class Stage(NamedTuple):
    """A stage on a script.

    Attributes:
        code: makes the stage.
        steps: what the source does.
        shows_all: whether events without text are drawn.
    """

    code: str
    steps: Sequence[Step]
    shows_all: bool = False


SPOKEN: Final = words("Hi| you.| How| are| you?| Fine.")
SHORT: Final[list[Step]] = [Text("Let me"), 1.0, Text(" look."), 1.0, Count(5), 1.0]
FAST: Final = words("a |b |c |d |e |f |g |h |i |j ", 0.25)

STAGES: Final[dict[str, Stage]] = {
    "pipeline": Stage(
        'replace("hunter2", "[…]") | sentences()', words("It is hun|ter2. S|ay it|. Bye|.")
    ),
    "replace": Stage('replace("hunter2", "[…]")', words("it is| hun|ter|2, hu|sh")),
    "words": Stage("words()", words("str|eam|ing is| ea|sy")),
    "lines": Stage("lines()", words("a,|b\\n1|,2\\n|3,4".replace("\\n", "\n"))),
    "sentences": Stage("sentences()", words("Dr.| No has| 3.|5 cats.| Why|?")),
    "blocks": Stage("blocks()", words("# A|\n\nof| a\n|\n- b|\n- c")),
    "map_text": Stage("map_text(shout)", words("Hi. |You.| Bye|.")),
    "stop_at": Stage('stop_at("END")', words("one| two E|N|D three| four")),
    "limit": Stage("limit(characters=9)", words("one| two| three| four")),
    "guard": Stage("guard(harmless)", words("Hi. |A bom|b. |Bye. |Or| not.")),
    "guard-watch": Stage('guard(harmless, mode="watch")', words("Hi. |A bom|b. |Bye. |Or| not.")),
    "coalesce": Stage("coalesce(1)", FAST),
    "smooth": Stage(
        "smooth(lag=2)", [Text("a "), 1.0, Text("b c d e "), 2.0, Text("f g "), 2.0, Text("h ")]
    ),
    "timeout": Stage("timeout(gap=2)", [Text("one"), 1.0, Text(" two"), 4.0, Text(" three")]),
    "map_events": Stage("map_events(announced)", SHORT, shows_all=True),
    "map_async": Stage("map_async(looked_up)", words("a |b |c |d "), shows_all=False),
    "until": Stage(
        "until(lambda e: isinstance(e, TokenCount))",
        [Text("one"), 1.0, Text(" two"), 1.0, Count(5), 1.0, Text(" three"), 1.0],
        shows_all=True,
    ),
    "only": Stage("only(OutputTextDelta)", SHORT, shows_all=True),
    "without": Stage("without(TokenCount)", SHORT, shows_all=True),
    "filter_events": Stage("filter_events(lambda e: e.seq % 2)", SHORT, shows_all=True),
    "aggregate": Stage(
        "aggregate()", [Thought("Hm"), 1.0, Text("Yes,"), 1.0, Text(" sir"), 1.0], shows_all=True
    ),
    "window": Stage("only(OutputTextDelta) | window(seconds=2)", words("a|b|c|d|e")),
}
"""Name of a picture -> the stage and its script."""


async def _staged(name: str) -> Picture:
    stage = STAGES[name]
    source = Line("in", [])
    result = Line("out", [])
    made = eval(stage.code, NAMES)  # the code above
    stream = scripted(stage.steps, source, shows_all=stage.shows_all)
    async with pipeline.pipe(stream, made) as events:
        await note(result, events, shows_all=stage.shows_all)
    return Picture(name, stage.code, [source], [result])


# --- measured, divided, joined ---


async def _tap() -> Picture:
    source, result, seen = Line("in", []), Line("out", []), Line("show was called with", [])

    def show(event: Any) -> None:
        mark = mark_of(anyio.current_time(), event, shows_all=True)
        assert mark is not None
        seen.marks.append(mark)

    stream = scripted(words("a |b "), source, shows_all=True)
    async with pipeline.pipe(stream, pipeline.tap(show)) as events:
        await note(result, events, shows_all=True)
    return Picture("tap", "tap(show)", [source], [result, seen])


async def _measure() -> Picture:
    source, result = Line("in", []), Line("seen", [])
    measure = pipeline.Measure()
    steps: list[Step] = [1.0, Text("a "), 1.0, Text("b "), 2.0, Text("c "), 1.0, Count(6)]
    async with pipeline.pipe(scripted(steps, source), measure) as events:
        use = events.of(measure)
        async for event in events:
            if isinstance(event, OutputTextDelta):
                now = anyio.current_time()
                result.marks.append(Mark(now, "fact", f"p50 {use.p50}"))
        facts = f"first {use.first_token}, {use.tokens_per_second}/s"
        result.marks.append(Mark(anyio.current_time(), "fact", facts))
    return Picture("measure", "events.of(measure)", [source], [result])


async def _read_slowly(line: Line, events: Any, pause: float) -> None:
    """A reader that needs some seconds for each delta."""
    async for event in events:
        if isinstance(event, OutputTextDelta):
            line.marks.append(Mark(anyio.current_time(), "text", event.delta, event.index))
            await anyio.sleep(pause)
        elif isinstance(event, Completed):
            line.marks.append(Mark(anyio.current_time(), "end", str(event.stop_reason)))


async def _tee() -> Picture:
    source, quick, slow = Line("in", []), Line("screen", []), Line("log", [])
    code = 'tee(stream, 2, slow="coalesce", ahead=2)'
    stream = scripted(words("a |b |c |d |e "), source)
    async with (
        pipeline.tee(stream, 2, slow="coalesce", ahead=2) as (first, second),
        anyio.create_task_group() as group,
    ):
        group.start_soon(note, quick, first)
        group.start_soon(_read_slowly, slow, second, 2.5)
    return Picture("tee", code, [source], [quick, slow])


async def _share() -> Picture:
    source, first, late = Line("in", []), Line("first", []), Line("late", [])
    stream = scripted(words("a |b |c |d |e "), source)
    async with pipeline.share(stream) as shared, anyio.create_task_group() as group:
        group.start_soon(note, first, shared.reader())
        await anyio.sleep(2.5)
        group.start_soon(note, late, shared.reader())
    return Picture("share", "shared.reader()", [source], [first, late])


async def _items() -> Picture:
    source = Line("in", [])
    lines: list[Line] = []
    steps: list[Step] = [Thought("Hm, "), 1.0, Thought("so"), 1.0, Text("It "), 1.0]
    steps += [Text("is"), 1.0, Call("{}"), 1.0]
    stream = scripted(steps, source)
    async with pipeline.pipe(stream) as events, anyio.create_task_group() as group:
        async for item in events.items():
            line = Line(type(item.item).__name__, [])
            lines.append(line)
            group.start_soon(note, line, item)
    return Picture("items", "stream.items()", [source], lines)


async def _merge() -> Picture:
    one, two, result = Line("a", []), Line("b", []), Line("out", [])
    streams = {
        "a": scripted(words("x|y|z", 1.5), one),
        "b": scripted([0.75, Text("1"), 1.0, ErrorInfo("overloaded", "busy")], two),
    }
    async with pipeline.merge(streams) as pairs:
        async for name, event in pairs:
            now = anyio.current_time()
            if isinstance(event, OutputTextDelta):
                item = 1 if name == "b" else 0
                result.marks.append(Mark(now, "text", f"{name}: {event.delta}", item))
            elif isinstance(event, Completed):
                result.marks.append(Mark(now, "end", f"{name}: stop"))
            elif isinstance(event, Failed):
                result.marks.append(Mark(now, "failed", f"{name}: {event.error.kind}"))
    return Picture("merge", 'merge({"a": a, "b": b})', [one, two], [result])


async def _fallback() -> Picture:
    one, two, result = Line("a", []), Line("b", []), Line("out", [])
    broken: list[Step] = [1.0, ErrorInfo("overloaded", "busy", retryable=True)]
    starts = [
        lambda: scripted(broken, one),
        lambda: scripted([1.0, *words("Hi| you")], two),
    ]
    async with pipeline.fallback(starts) as events:
        await note(result, events)
    return Picture("fallback", "fallback([a, b])", [one, two], [result])


async def _race() -> Picture:
    one, two, result = Line("a", []), Line("b", []), Line("out", [])
    starts = [
        lambda: scripted([4.0, *words("late")], one),
        lambda: scripted([1.0, *words("Hi| you")], two),
    ]
    async with pipeline.race(starts, after=1.5) as events:
        await note(result, events)
    return Picture("race", "race([a, b], after=1.5)", [one, two], [result])


OTHERS: Final[dict[str, Callable[[], Awaitable[Picture]]]] = {
    "tap": _tap,
    "measure": _measure,
    "tee": _tee,
    "share": _share,
    "items": _items,
    "merge": _merge,
    "fallback": _fallback,
    "race": _race,
}
NAMES_OF_PICTURES: Final = (*STAGES, *OTHERS)


def run(name: str) -> Picture:
    """Runs an operator in virtual time; what was seen."""

    async def seen() -> Picture:
        if name in STAGES:
            return await _staged(name)
        return await OTHERS[name]()

    return anyio.run(seen, backend_options={"loop_factory": JumpingLoop})
