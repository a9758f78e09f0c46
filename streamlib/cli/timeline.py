"""A captured answer as a timeline: a row for each frame of the wire, with its place, its time and the events it became.

    byte   seconds  wire                     events
       0    +0.102  message_start            Created msg_1 claude-opus-5
     340    +0.655  content_block_start      OutputItemAdded 0 message
     470    +0.655  content_block_delta x81  OutputTextDelta 0 'Rivers run … the sea.' (1,204 characters)

Adjacent frames that only make the same text longer are one row, and so are unknown ones of one kind; of those the last is shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate as running_total
from typing import Any, Final

from streamlib.cli.captures import Capture
from streamlib.cli.event_words import described
from streamlib.cli.frames import Step
from streamlib.cli.terminal import printable
from streamlib.pipeline import DELTA_KEYS
from streamlib_parsers import Notice, Passthrough, ResponseEvent, TokenCount

KIND_WIDTH: Final = 44
"""Columns that the wire's words may take; longer ones push their line."""


_SAME: Final[dict[type, tuple[str, ...]]] = {
    **DELTA_KEYS,
    TokenCount: (),
    Passthrough: ("event",),
    Notice: ("code", "detail", "index"),
}
"""Events that may come again in one row, and the fields that must be alike in them."""


class Row:
    """Frames that say the same kind of thing, one after the other."""

    def __init__(self, step: Step) -> None:
        self.start, self.kind, self.count = step.start, step.kind, 0
        self._said = step.events
        self._places = places(step.events)
        self._texts: list[list[str]] = [[] for _ in step.events]
        self.add(step)

    def takes(self, step: Step) -> bool:
        """Whether a frame only goes on with what this row says."""
        return step.kind == self.kind and (not step.events or places(step.events) == self._places)

    def add(self, step: Step) -> None:
        """One more frame."""
        self.count += 1
        if step.events:
            self._said = step.events
            for texts, event in zip(self._texts, step.events, strict=True):
                texts.append(getattr(event, "delta", ""))

    def lines(self, width: int) -> list[str]:
        """What the frames became, in words."""
        said = zip(self._said, self._texts, strict=True)
        return [described(event, "".join(texts), width) for event, texts in said] or ["—"]


def places(events: list[ResponseEvent]) -> Any:
    """Which texts the events make longer, or what is odd again; something unlike anything else where one does more, or there is none."""
    if not events or any(type(event) not in _SAME for event in events):
        return object()
    return [
        (type(event), *(getattr(event, field) for field in _SAME[type(event)])) for event in events
    ]


def rows(steps: Iterable[Step]) -> Iterator[Row]:
    """The steps, folded."""
    row: Row | None = None
    for step in steps:
        if row is not None and row.takes(step):
            row.add(step)
            continue
        if row is not None:
            yield row
        row = Row(step)
    if row is not None:
        yield row


class Clock:
    """When the bytes of a recording came."""

    def __init__(self, capture: Capture) -> None:
        chunks = capture.recording.chunks
        self.known = capture.ours
        self._times = [chunk.at for chunk in chunks]
        self._ends = list(running_total(len(chunk.data) for chunk in chunks))

    def at(self, byte: int) -> float | None:
        """Seconds from the request to the chunk that this byte came in."""
        place = bisect_left(self._ends, byte + 1)
        return self._times[min(place, len(self._times) - 1)] if self._times else None

    def longest_silence(self) -> tuple[float, int] | None:
        """The longest wait between two chunks, and the byte before which it was."""
        waits: list[tuple[float, int]] = [
            (after - before, end)
            for before, after, end in zip(self._times, self._times[1:], self._ends, strict=False)
        ]
        return max(waits, default=None)


def page(capture: Capture, steps: Iterable[Step], width: int) -> Iterator[str]:
    """The lines of the timeline."""
    clock, folded = Clock(capture), list(rows(steps))
    kinds = [
        printable(row.kind).replace("\n", " ") + (f" x{row.count:,}" if row.count > 1 else "")
        for row in folded
    ]
    places = len(f"{len(capture.recording.body):,}") + 2
    column = min(KIND_WIDTH, max(map(len, kinds)))
    yield f"{'byte':>{max(places, 6)}}{'   seconds' if clock.known else ''}  {'wire':{column}}  events"
    for row, kind in zip(folded, kinds, strict=True):
        at = clock.at(row.start) if clock.known else None
        head = f"{row.start:>{max(places, 6)},}{'' if at is None else f'{at:>+10.3f}'}  {kind:{column}}  "
        for line in row.lines(max(24, width - len(head))):
            yield head + line
            head = " " * len(head)
