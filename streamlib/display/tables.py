"""A table that grows: after the first rows its columns are as wide as they will stay."""

from __future__ import annotations

from typing import Final

from streamlib.display.blocks import Alignment
from streamlib.display.themes import Theme
from streamlib.display.wrapping import LINE_BREAK, StyledText, cells, read_inline, wrap

MEASURED_ROWS: Final = 10
"""Number of rows that determine the widths of the columns."""

GAP: Final = 2
"""Columns of the screen between two columns of the table."""

NARROWEST: Final = 6
"""Minimum columns of a cell; below it, cells are written under each other."""

Cell = list[StyledText]
Line = list[StyledText]


class Table:
    """The rows of a table.

    Args:
        header: source of the header's cells.
        alignments: alignments of the columns.
        width: columns of the screen.
        theme: the styles.
    """

    def __init__(
        self, header: list[str], alignments: list[Alignment], width: int, theme: Theme
    ) -> None:
        self._header = header
        self._alignments = alignments
        self._width = width
        self._theme = theme
        self._rows: list[list[str]] = []
        """Rows that may still change."""
        self._widths: list[int] | None = None
        """Widths of the columns; None as long as they are measured."""
        self._lines: list[Line] = []
        """Lines that cannot change any more."""

    def copy(self) -> Table:
        """An independent copy."""
        other = Table(self._header, self._alignments, self._width, self._theme)
        other._rows = [row.copy() for row in self._rows]
        other._widths = self._widths
        return other

    def resize(self, width: int) -> None:
        """Fits what follows to another width of the screen."""
        self._width = width
        if self._widths is not None:
            self._widths = fit(self._widths, width)

    def add_row(self, row: list[str]) -> None:
        """Adds a row."""
        # The row before has ended; this one may go on.
        self._settle()
        self._rows.append(row)

    def add_more(self, text: str) -> None:
        """Adds to the last cell."""
        if self._rows:
            self._rows[-1][-1] += text

    def take_lines(self) -> list[Line]:
        """The lines that cannot change any more, each once."""
        lines = self._lines
        self._lines = []
        return lines

    def finish(self) -> list[Line]:
        """Ends the table; returns the remaining lines."""
        if self._widths is None:
            self._measure()
        self._draw_rows()
        return self.take_lines()

    def _settle(self) -> None:
        """Draws the complete rows, which cannot change any more."""
        if self._widths is not None:
            self._draw_rows()
        elif len(self._rows) >= MEASURED_ROWS:
            self._measure()
            self._draw_rows()

    def _measure(self) -> None:
        widths = [0] * len(self._header)
        for row in (self._header, *self._rows):
            for index, cell in enumerate(row):
                width = sum(cells(part.text) for part in self._read(cell))
                widths[index] = max(widths[index], width, 1)
        self._widths = fit(widths, self._width)
        if self._widths:
            header = [self._read(cell, self._theme.heading) for cell in self._header]
            self._lines += self._draw(header, self._widths)
            rule: Line = []
            for width in self._widths:
                if rule:
                    rule.append(StyledText(" " * GAP))
                rule.append(StyledText("─" * width, self._theme.faint))
            self._lines.append(rule)

    def _draw_rows(self) -> None:
        for row in self._rows:
            if self._widths:
                self._lines += self._draw([self._read(cell) for cell in row], self._widths)
            else:
                self._lines += self._stacked(row)
        self._rows = []

    def _draw(self, row: list[Cell], widths: list[int]) -> list[Line]:
        columns = [wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
        lines: list[Line] = []
        for number in range(max(1, *(len(column) for column in columns))):
            line: Line = []
            for index, column in enumerate(columns):
                if index:
                    line.append(StyledText(" " * GAP))
                text: Line = []
                if number < len(column):
                    text = column[number]
                line += _aligned(text, widths[index], self._alignments[index])
            lines.append(_stripped(line))
        return lines

    def _stacked(self, row: list[str]) -> list[Line]:
        """A row of a table with too many columns: each cell on a line of its own."""
        lines: list[Line] = []
        for name, cell in zip(self._header, row, strict=True):
            text = [*self._read(name, self._theme.heading), StyledText(": "), *self._read(cell)]
            lines += wrap(text, self._width)
        lines.append([])
        return lines

    def _read(self, source: str, style: str = "") -> Cell:
        cell: Cell = []
        for fragment in read_inline(source, self._theme):
            if fragment is LINE_BREAK:
                cell.append(StyledText(" "))
                continue
            styles = ";".join(part for part in (style, fragment.style) if part)
            cell.append(StyledText(fragment.text, styles))
        return cell


def fit(widths: list[int], width: int) -> list[int]:
    """Makes columns narrower until a table fits: the widest first.

    Args:
        widths: columns of the screen that each column of the table wants.
        width: columns of the screen.

    Returns:
        The widths; an empty list where the columns would be too narrow to be read.
    """
    room = width - GAP * (len(widths) - 1)
    if sum(widths) <= room:
        return widths
    fitted = [0] * len(widths)
    left = len(widths)
    # Narrow columns keep what they want, and the others share what is left.
    for index in sorted(range(len(widths)), key=widths.__getitem__):
        fitted[index] = min(widths[index], max(0, room // left))
        room -= fitted[index]
        left -= 1
    for wanted, got in zip(widths, fitted, strict=True):
        if got < min(wanted, NARROWEST):
            return []
    return fitted


def _aligned(text: Line, width: int, alignment: Alignment) -> Line:
    missing = max(0, width - sum(cells(part.text) for part in text))
    before = 0
    if alignment == "right":
        before = missing
    elif alignment == "center":
        before = missing // 2
    return [StyledText(" " * before), *text, StyledText(" " * (missing - before))]


def _stripped(line: Line) -> Line:
    """A line without spaces at its end."""
    line = line.copy()
    while line and not line[-1].style and not line[-1].text.strip():
        line.pop()
    return line
