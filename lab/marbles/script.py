"""Scripted streams, and what was seen of streams: every event with its time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Any, Final, NamedTuple

import anyio

from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    TEXT_DELTAS,
    Completed,
    Created,
    Failed,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    RateLimits,
    ResponseEvent,
    TokenCount,
)
from streamlib_parsers.items import FunctionCall, Message, Origin, Reasoning, ResponseItem
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.open_items import OpenItem
from streamlib_parsers.stream_error import StreamError
from streamlib_parsers.usage import Usage


class Text(NamedTuple):
    """A delta of a message."""

    text: str


class Thought(NamedTuple):
    """A delta of reasoning."""

    text: str


class Call(NamedTuple):
    """A call, and a fragment of its arguments."""

    text: str


class Count(NamedTuple):
    """The provider counts its tokens."""

    tokens: int


Step = Text | Thought | Call | Count | ErrorInfo | float
"""What happens next; a number is the seconds until then."""


def words(text: str, pause: float = 1.0) -> list[Step]:
    """Deltas, separated by ``|`` in the text, with a pause behind each."""
    steps: list[Step] = []
    for piece in text.split("|"):
        steps += [Text(piece), pause]
    return steps


# --- what was seen ---


class Mark(NamedTuple):
    """One event as it is drawn.

    Attributes:
        time: when it was seen, in seconds.
        kind: its look: "text", "event", "list", "done", "notice", "end", "failed", "closed"
            or "fact".
        text: what stands in it or beside it.
        item: index of its item; 0 for events that belong to none.
    """

    time: float
    kind: str
    text: str
    item: int = 0


class Line(NamedTuple):
    """A stream as it was seen.

    Attributes:
        name: stands before it.
        marks: its events, in order.
    """

    name: str
    marks: list[Mark]


LETTERS: Final[dict[type, str]] = {
    Created: "created",
    OutputItemAdded: "added",
    OutputItemDone: "done",
    RateLimits: "rate limits",
    TokenCount: "count",
    Completed: "completed",
}
"""Names of events in pictures that show all events."""
QUIET: Final = (Created, OutputItemAdded, RateLimits, TokenCount)
"""Events that most pictures leave out."""


def mark_of(time: float, event: Any, *, shows_all: bool) -> Mark | None:
    """How an event is drawn; None: not at all."""
    if isinstance(event, list):
        texts = [getattr(entry, "delta", None) or LETTERS[type(entry)] for entry in event]
        return Mark(time, "list", f"[{', '.join(texts)}]")
    if isinstance(event, TEXT_DELTAS):
        return Mark(time, "text", event.delta, event.index)
    if isinstance(event, Failed):
        return Mark(time, "failed", event.error.kind)
    if isinstance(event, Notice):
        return Mark(time, "notice", event.code)
    if shows_all:
        return Mark(time, "event", LETTERS[type(event)], getattr(event, "index", 0))
    if isinstance(event, Completed):
        return Mark(time, "end", str(event.stop_reason))
    if isinstance(event, OutputItemDone):
        return Mark(time, "done", "", event.index)
    assert isinstance(event, QUIET), event
    return None


# --- scripted ---

ITEMS: Final[dict[type, ResponseItem]] = {
    Text: Message("assistant"),
    Thought: Reasoning(),
    Call: FunctionCall("c", "look"),
}


async def scripted(
    steps: Sequence[Step], line: Line, *, shows_all: bool = False
) -> AsyncGenerator[ResponseEvent]:
    """The response that a script describes, in the time that it says; it notes what it delivered.

    Args:
        steps: what happens; behind them the open item ends, and the response is completed.
        line: gets a mark for each event, and one where the stream is closed before its end.
        shows_all: whether events without text get marks too.
    """
    has_ended = False
    try:
        async for event in _Told(steps).events():
            mark = mark_of(anyio.current_time(), event, shows_all=shows_all)
            if mark is not None:
                line.marks.append(mark)
            yield event
        has_ended = True
    finally:
        if not has_ended:
            line.marks.append(Mark(anyio.current_time(), "closed", "closed"))


class _Told:
    """The events of a script."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._assembler = EventAssembler(LIMITS, Origin("chat"))
        self._item: OpenItem | None = None
        self._kind: type | None = None
        """Of the steps that belong to the open item."""

    async def events(self) -> AsyncGenerator[ResponseEvent]:
        """The events, each in its time."""
        self._assembler.identify("r", "m")
        # By the clock, so that a slow reader does not move what comes later.
        now = anyio.current_time()
        for step in self._steps:
            if isinstance(step, (int, float)):
                now += step
                await anyio.sleep(max(0.0, now - anyio.current_time()))
            elif isinstance(step, ErrorInfo):
                self._assembler.fail(step)
            elif isinstance(step, Count):
                self._assembler.usage(Usage(output_tokens=step.tokens))
            else:
                self._write(step)
            for event in self._assembler.take():
                yield event
            if isinstance(step, ErrorInfo):
                return
        if self._item is not None:
            self._assembler.close(self._item)
        self._assembler.complete("stop")
        for event in self._assembler.take():
            yield event

    def _write(self, step: Text | Thought | Call) -> None:
        """A fragment; an item of another kind ends before it."""
        if type(step) is not self._kind:
            if self._item is not None:
                self._assembler.close(self._item)
            self._item = self._assembler.open(ITEMS[type(step)])
            self._kind = type(step)
        assert self._item is not None
        if isinstance(step, Text):
            self._assembler.text(self._item, step.text)
        elif isinstance(step, Thought):
            self._assembler.reasoning(self._item, step.text)
        else:
            self._assembler.arguments(self._item, step.text)


async def note(line: Line, events: AsyncIterable[Any], *, shows_all: bool = False) -> None:
    """Reads a stream to its end and notes it; an error of the stream is its end."""
    try:
        async for event in events:
            mark = mark_of(anyio.current_time(), event, shows_all=shows_all)
            if mark is not None:
                line.marks.append(mark)
    except StreamError as error:
        line.marks.append(Mark(anyio.current_time(), "failed", error.info.kind))
