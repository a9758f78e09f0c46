"""Shows the first difference between two lists of events, with the events around it.

Adjacent deltas are shown as one row, because a text of a hundred words is a hundred events.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from streamlib_parsers.events import (
    TEXT_DELTAS,
    ResponseEvent,
    RunEvent,
)
from streamlib_parsers.items import CallOutput

EVENTS: Final = (*get_args(ResponseEvent), *get_args(CallOutput))
"""Kinds of events in a list of a response or of a run."""

WIDTH: Final = 88
"""Columns of a row: pytest shows eight lines of 80 unless more are requested."""


class DiffRow(Struct, frozen=True):
    """One event, or adjacent deltas of the same text.

    Attributes:
        position: number of its first event in the list, from 0.
        count: number of events.
        event: the event; for several, the first one with their joined text.
    """

    position: int
    count: int
    event: RunEvent

    @property
    def text(self) -> str:
        """The row without its position."""
        event = self.event
        if isinstance(event, get_args(ResponseEvent)):
            event = msgspec.structs.replace(event, seq=0)
        if self.count > 1:
            return f"{self.count} x {event!r}"
        return repr(event)


def are_event_lists(left: object, right: object) -> bool:
    """Whether two values are lists or tuples of events, at least one of them not empty."""
    for value in (left, right):
        if not isinstance(value, (list, tuple)):
            return False
        if not all(isinstance(entry, EVENTS) for entry in value):
            return False
    return bool(left or right)


def explain_difference(
    left: Sequence[RunEvent],
    right: Sequence[RunEvent],
    *,
    context: int | None = 3,
    width: int = WIDTH,
) -> list[str]:
    """Describes the first difference of two lists of events, as lines; none if they are equal.

    Args:
        left: a list of events.
        right: the list to compare it with.
        context: rows shown before and after the difference; None: all.
        width: columns of a row.
    """
    if list(left) == list(right):
        return []
    rows, others = folded(left), folded(right)
    first = _first_difference([row.event for row in rows], [row.event for row in others])
    if first == len(rows) == len(others):
        return _split_differently(left, right, width)
    lines = [f"{len(left)} events == {len(right)} events"]
    ours = _row_or_none(rows, first)
    theirs = _row_or_none(others, first)
    lines.append("the first difference:")
    start = _differing_offset(ours, theirs)
    lines.append(_line("left ", ours, start, width))
    lines.append(_line("right", theirs, start, width))
    lines += _differing_fields(ours, theirs, width)
    lines.append("around it:")
    if context is None:
        context = max(len(rows), len(others))
    window = slice(max(0, first - context), first + context + 1)
    lines += _aligned(rows[window], others[window], width)
    return lines


def folded(events: Sequence[RunEvent]) -> list[DiffRow]:
    """The rows of a list. Adjacent deltas of one text are joined if they have nothing but text."""
    rows: list[DiffRow] = []
    start = 0
    for position in range(1, len(events) + 1):
        if position < len(events) and _continues(events[start], events[position]):
            continue
        rows.append(_row(start, events[start:position]))
        start = position
    return rows


def _continues(first: RunEvent, event: RunEvent) -> bool:
    """Whether an event only appends to the text of another one."""
    if not isinstance(event, TEXT_DELTAS) or type(first) is not type(event):
        return False
    return bool(_without_text(first) == _without_text(event))


def _without_text(event: Any) -> Any:
    return msgspec.structs.replace(event, delta="")


def _row(position: int, events: Sequence[Any]) -> DiffRow:
    """The row of one event, or of deltas of one text."""
    if len(events) == 1:
        return DiffRow(position, 1, events[0])
    text = "".join([event.delta for event in events])
    return DiffRow(position, len(events), msgspec.structs.replace(events[0], delta=text))


def _first_difference(left: Sequence[object], right: Sequence[object]) -> int:
    """The index of the first event, or character, that differs."""
    for index, (ours, theirs) in enumerate(zip(left, right, strict=False)):
        if ours != theirs:
            return index
    return min(len(left), len(right))


def _split_differently(
    left: Sequence[RunEvent], right: Sequence[RunEvent], width: int
) -> list[str]:
    """The lines for lists that differ only in how their texts are split into deltas."""
    index = _first_difference(left, right)
    ours = DiffRow(index, 1, left[index])
    theirs = DiffRow(index, 1, right[index])
    return [
        f"{len(left)} events == {len(right)} events",
        "they are equal but for where deltas are split (join_deltas makes them equal), first:",
        _line("left ", ours, 0, width),
        _line("right", theirs, 0, width),
    ]


def _row_or_none(rows: Sequence[DiffRow], index: int) -> DiffRow | None:
    if index < len(rows):
        return rows[index]
    return None


def _line(side: str, row: DiffRow | None, start: int, width: int) -> str:
    if row is None:
        return f"{side} nothing more"
    text = row.text
    # The name of the class is always shown, however much of the rest is clipped.
    name = text[: text.index("(") + 1]
    rest = _clipped(text[len(name) :], max(0, start - len(name)), width - len(name))
    return f"{side} [{row.position}] {name}{rest}"


def _differing_offset(left: DiffRow | None, right: DiffRow | None) -> int:
    """The offset at which the texts of two rows differ."""
    if left is None or right is None:
        return 0
    return _first_difference(left.text, right.text)


def _differing_fields(left: DiffRow | None, right: DiffRow | None, width: int) -> list[str]:
    """A line for each field that differs between two events of one class."""
    if left is None or right is None or type(left.event) is not type(right.event):
        return []
    lines: list[str] = []
    for name in left.event.__struct_fields__:
        ours, theirs = getattr(left.event, name), getattr(right.event, name)
        if name == "seq" or ours == theirs:
            continue
        line = f"      {name}: "
        start = _first_difference(repr(ours), repr(theirs))
        half = max(16, width // 2 - 10)
        line += f"{_clipped(repr(ours), start, half)} != {_clipped(repr(theirs), start, half)}"
        if isinstance(ours, str) and isinstance(theirs, str):
            line += f" (character {_first_difference(ours, theirs)})"
        lines.append(line)
    return lines


def _aligned(left: Sequence[DiffRow], right: Sequence[DiffRow], width: int) -> list[str]:
    """The rows of both sides; a row of one side only is marked."""
    ours = [row.text for row in left]
    theirs = [row.text for row in right]
    lines: list[str] = []
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    for kind, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        if kind == "equal":
            for row in left[left_start:left_end]:
                lines.append(_line("     ", row, 0, width))
            continue
        for row in left[left_start:left_end]:
            lines.append(_line("left ", row, 0, width))
        for row in right[right_start:right_end]:
            lines.append(_line("right", row, 0, width))
    return lines


def _clipped(text: str, start: int, width: int) -> str:
    """At most `width` characters of a text, including the one at offset `start`."""
    if len(text) <= width:
        return text
    beginning = max(0, min(start - width // 2, len(text) - width))
    if beginning == 0:
        return text[: width - 1] + "…"
    clipped = text[beginning + 1 : beginning + width - 1]
    if beginning + width >= len(text):
        return "…" + text[beginning + 1 :]
    return f"…{clipped}…"
