"""Tables of text that can be read in a narrow terminal too."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

GAP: Final = "  "
"""Blanks between two columns."""

NARROWEST: Final = 16
"""Minimum width of the last column of a table, in characters."""


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> list[str]:
    """The lines of a table; the last column is wrapped.

    If the last column would be too narrow, each row becomes a block: its first cell, and the others
    indented below it.

    Args:
        titles: a title for each column.
        rows: the cells of each row, escaped for a terminal.
        width: columns of the terminal.
    """
    rows = list(rows)
    columns = list(zip(titles, *rows, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns[:-1]]
    used = sum(widths) + len(GAP) * len(widths)
    if width - used < NARROWEST:
        return _blocks(titles, rows, width)
    lines: list[str] = []
    for row in (titles, *rows):
        cells = [cell.ljust(column) for cell, column in zip(row[:-1], widths, strict=True)]
        start = "".join(cell + GAP for cell in cells)
        for line in wrapped(row[-1], width - used):
            lines.append((start + line).rstrip())
            start = " " * used
    return lines


def _blocks(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    lines: list[str] = []
    for first, *others in rows:
        lines.append(first)
        for title, cell in zip(titles[1:], others, strict=True):
            if cell:
                lines += [GAP + line for line in wrapped(f"{title}: {cell}", width - len(GAP))]
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text; at least one."""
    return textwrap.wrap(text, max(1, width), break_on_hyphens=False) or [""]


def hanging(line: str, width: int) -> list[str]:
    """The lines of a text; continuation lines are indented to the start of its text."""
    if len(line) <= max(width, NARROWEST):
        return [line]
    # A mark ("! ") stands before the text.
    text = line.lstrip(" !=")
    indent = len(line) - len(text)
    first, *rest = wrapped(text, width - indent)
    return [line[:indent] + first, *(" " * indent + following for following in rest)]


def terminal_width(usual: int = 100) -> int:
    """Columns of the terminal.

    Args:
        usual: columns if standard output is not a terminal.
    """
    # Like `shutil.get_terminal_size`, whose import takes longer than the rest of this.
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or usual
    except (OSError, ValueError):
        return usual
