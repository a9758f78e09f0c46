"""A captured response as a timeline: a row per frame with its offset, its time and its events.

    byte   seconds  wire                     events
       0    +0.102  message_start            Created msg_1 claude-opus-5
     340    +0.655  content_block_start      OutputItemAdded 0 message
     470    +0.655  content_block_delta x81  OutputTextDelta 0 'Rivers run … the sea.' (1,204 …)

Adjacent frames that only append to the same text are one row, as are adjacent notices or unknown
events of one kind; such a row shows the last of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from streamlib.display.safe_text import printable
from streamlib.inspection.capture import Capture
from streamlib.inspection.clock import Clock
from streamlib.inspection.event_text import describe_event
from streamlib.inspection.frames import Step
from streamlib_parsers.events import DELTA_KEYS, Notice, Passthrough, ResponseEvent, TokenCount

MAX_KIND_WIDTH: Final = 44
"""Columns for the wire's name of a frame; a longer name shifts the rest of its line."""

MIN_EVENT_WIDTH: Final = 40
"""Columns for an event; on a narrower terminal events are printed below their frame."""

EVENT_INDENT: Final = "      "
"""Indent of an event that is printed below its frame."""

NOT_READ: Final = "not read: after the end of the response"

_MERGE_FIELDS: Final[dict[type, tuple[str, ...]]] = {
    **DELTA_KEYS,
    TokenCount: (),
    Passthrough: ("event",),
    Notice: ("code", "detail", "index"),
}
"""Events that may share a row, and the fields that must then be equal."""

MergeKey: TypeAlias = list[tuple[Any, ...]]


class TimelineRow:
    """Adjacent frames of the same kind that append to the same text."""

    def __init__(self, step: Step) -> None:
        self.start = step.start
        """Offset of the first frame."""
        self.kind = step.kind
        self.is_read = step.is_read
        self.count = 0
        """Number of frames."""
        self._key = merge_key(step.events)
        """Key that the events of a joining frame must have; None: only eventless frames join."""
        self._events = step.events
        """Events of the last frame that had any."""
        self._texts: list[list[str]] = [[] for _ in step.events]
        """Deltas of all frames, a list for each event of a frame."""
        self.add(step)

    def accepts(self, step: Step) -> bool:
        """Whether a frame belongs to this row."""
        if step.kind != self.kind or step.is_read != self.is_read:
            return False
        # Nothing was emitted, for example for a delta of half a surrogate pair.
        if not step.events:
            return True
        return self._key is not None and merge_key(step.events) == self._key

    def add(self, step: Step) -> None:
        """Adds a frame."""
        self.count += 1
        if step.events:
            self._events = step.events
            for texts, event in zip(self._texts, step.events, strict=True):
                texts.append(getattr(event, "delta", ""))

    def label(self) -> str:
        """The wire's name of the frames, and their number."""
        kind = printable(self.kind).replace("\n", " ")
        if self.count > 1:
            return f"{kind} x{self.count:,}"
        return kind

    def lines(self, width: int) -> list[str]:
        """The lines of the row, one for each event."""
        if not self.is_read:
            return [NOT_READ]
        if not self._events:
            return ["—"]
        lines: list[str] = []
        for event, texts in zip(self._events, self._texts, strict=True):
            lines.append(describe_event(event, "".join(texts), width))
        return lines


def merge_key(events: list[ResponseEvent]) -> MergeKey | None:
    """Identifies what the events append to or report.

    Returns:
        The same key for frames that may share a row; None where the events need a row of their
        own.
    """
    if not events:
        return None
    key: MergeKey = []
    for event in events:
        fields = _MERGE_FIELDS.get(type(event))
        if fields is None:
            return None
        key.append((type(event), *(getattr(event, field) for field in fields)))
    return key


def rows(steps: Iterable[Step]) -> Iterator[TimelineRow]:
    """Merges adjacent frames into rows."""
    row: TimelineRow | None = None
    for step in steps:
        if row is not None and row.accepts(step):
            row.add(step)
            continue
        if row is not None:
            yield row
        row = TimelineRow(step)
    if row is not None:
        yield row


def fitted(line: str, width: int) -> str:
    """A line, shortened to the width of the terminal."""
    if len(line) <= width:
        return line
    return line[: max(1, width - 1)] + "…"


def page(capture: Capture, clock: Clock, steps: Iterable[Step], width: int) -> Iterator[str]:
    """Yields the lines of the timeline, the column titles first.

    Args:
        capture: the captured response.
        clock: knows when the bytes were received.
        steps: its frames.
        width: columns of the terminal.
    """
    merged = list(rows(steps))
    labels = [row.label() for row in merged]
    # Limited, so that one very long name does not push all events off the screen.
    kind_width = min(MAX_KIND_WIDTH, max(map(len, labels)))
    # Two blanks, then room for the largest offset.
    byte_width = max(6, len(f"{len(capture.recording.body):,}") + 2)
    titles = f"{'byte':>{byte_width}}"
    if clock.is_known:
        titles += f"{'seconds':>10}"
    is_stacked = width - len(titles) - kind_width - 4 < MIN_EVENT_WIDTH
    if is_stacked:
        kind_width = 0
        yield fitted(f"{titles}  wire, and the events below it", width)
    else:
        yield f"{titles}  {'wire':{kind_width}}  events"
    for row, label in zip(merged, labels, strict=True):
        start = f"{row.start:>{byte_width},}"
        if clock.is_known:
            seconds = clock.seconds(row.start)
            start += " " * 10 if seconds is None else f"{seconds:>+10.3f}"
        start += f"  {label:{kind_width}}  "
        if is_stacked:
            yield fitted(start.rstrip(), width)
            for line in row.lines(width - len(EVENT_INDENT)):
                yield fitted(EVENT_INDENT + line, width)
            continue
        for line in row.lines(max(MIN_EVENT_WIDTH, width - len(start))):
            yield start + line
            # Only the first event of a row is printed on the line of its frame.
            start = " " * len(start)
