"""What is on the screen, from when to when: each run of characters with the times it is there."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

import pyte
import pyte.modes
from msgspec import Struct

from lab.casts.tape import Tape
from tests.support.screens import SYNCHRONIZED

FAINT: Final = re.compile(r"\x1b\[2m")
"""Faint text; pyte does not know it, and gets the grey of the bright colours."""
FRAME: Final = 1 / 30
"""Seconds; what is written sooner after each other is one picture."""


class Style(Struct, frozen=True, order=True):
    """How a character looks.

    Attributes:
        colour: A name of pyte: "default", "red", "brightblack" …
        bold: Whether it is bold.
        italics: Whether it is slanted.
        underscore: Whether it is underlined.
    """

    colour: str = "default"
    bold: bool = False
    italics: bool = False
    underscore: bool = False


class Run(Struct, frozen=True):
    """Characters beside each other that come and go together.

    Attributes:
        start: Seconds since the start of the cast.
        end: Seconds; None: they stay until the cast ends.
        line: From 0.
        column: Of the first character, from 0.
        style: How they look.
        text: The characters.
    """

    start: float
    end: float | None
    line: int
    column: int
    style: Style
    text: str


class Drawn(Struct, frozen=True):
    """A cast.

    Attributes:
        columns: Width in characters.
        lines: Height.
        seconds: How long it takes.
        runs: What is shown.
        cursor: Where the cursor is: seconds, line, column.
    """

    columns: int
    lines: int
    seconds: float
    runs: list[Run]
    cursor: list[tuple[float, int, int]]


class _Cell(Struct, frozen=True):
    start: float
    end: float | None
    style: Style
    character: str


def draw(tape: Tape, *, is_still: bool = False) -> Drawn:
    """Shows what was written to a terminal.

    Args:
        tape: What was written.
        is_still: Only the last picture is drawn.

    Raises:
        ValueError: Something scrolled off the screen; the tape needs more lines.
    """
    screen = pyte.HistoryScreen(tape.columns, tape.lines, history=1000)
    screen.set_mode(pyte.modes.LNM)  # a terminal's driver makes "\r\n" of "\n"
    stream = pyte.Stream(screen)
    spans: dict[tuple[int, int], list[_Cell]] = defaultdict(list)
    cursor: list[tuple[float, int, int]] = []
    waiting = ""
    for index, written in enumerate(tape.written):
        waiting += written.text
        is_last = index + 1 == len(tape.written)
        if not is_last and (is_still or tape.written[index + 1].at - written.at < FRAME):
            continue
        stream.feed(FAINT.sub("\x1b[90m", SYNCHRONIZED.sub("", waiting)))
        waiting = ""
        if screen.history.top:
            raise ValueError(f"the cast needs more than {tape.lines} lines")
        _add_picture(screen, written.at, spans)
        cursor.append((written.at, screen.cursor.y, screen.cursor.x))
    return Drawn(tape.columns, tape.lines, tape.now, _runs(spans), cursor)


def _add_picture(
    screen: pyte.HistoryScreen, now: float, spans: dict[tuple[int, int], list[_Cell]]
) -> None:
    """Ends the cells that changed, and starts those that replace them."""
    for line in range(screen.lines):
        for column in range(screen.columns):
            character = screen.buffer[line][column]
            style = Style(character.fg, character.bold, character.italics, character.underscore)
            cells = spans[line, column]
            last = cells[-1] if cells else None
            if last is not None and last.end is None:
                if (last.character, last.style) == (character.data, style):
                    continue
                cells[-1] = _Cell(last.start, now, last.style, last.character)
            if character.data != " " or style.underscore:
                cells.append(_Cell(now, None, style, character.data))


def _runs(spans: dict[tuple[int, int], list[_Cell]]) -> list[Run]:
    """Cells of a line with equal times and an equal style, joined."""
    runs: dict[tuple[int, float, float | None, Style], list[Run]] = defaultdict(list)
    for (line, column), cells in sorted(spans.items()):
        for cell in cells:
            joined = runs[line, cell.start, cell.end, cell.style]
            run = Run(cell.start, cell.end, line, column, cell.style, cell.character)
            if joined and _gap_is_empty(joined[-1], run, spans):
                last = joined.pop()
                blank = " " * (column - last.column - len(last.text))
                run = Run(
                    run.start, run.end, line, last.column, run.style, last.text + blank + run.text
                )
            joined.append(run)
    every = [run for joined in runs.values() for run in joined]
    return sorted(every, key=lambda run: (run.start, run.line, run.column))


def _gap_is_empty(left: Run, right: Run, spans: dict[tuple[int, int], list[_Cell]]) -> bool:
    """Whether nothing is shown between two runs of a line while they are."""
    for column in range(left.column + len(left.text), right.column):
        if left.style.underscore:
            return False
        for cell in spans[left.line, column]:
            begins_later = right.end is not None and cell.start >= right.end
            ended_before = cell.end is not None and cell.end <= right.start
            if not (begins_later or ended_before):
                return False
    return True
