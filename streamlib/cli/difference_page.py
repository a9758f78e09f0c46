"""Prints the difference of two responses: the first one in words, then event by event."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from streamlib.cli.colours import BOLD, DIM, GREEN, RED, YELLOW, paint
from streamlib.cli.tables import hanging, terminal_width
from streamlib.cli.timeline import fitted
from streamlib.display.safe_text import one_line
from streamlib.inspection.difference import Difference, DifferenceRow, parting_texts
from streamlib.inspection.event_text import quote

MARKS: Final = {"same": " ", "ids": "~", "changed": "!", "only_a": "-", "only_b": "+"}
"""Result of comparing two rows -> the mark in front of them."""

STYLES: Final = {"same": DIM, "ids": DIM, "changed": YELLOW, "only_a": RED, "only_b": GREEN}


def print_difference(difference: Difference) -> None:
    """Prints the first difference, then a line for each event."""
    for line, style in lines_of(difference, terminal_width(140)):
        text = line.rstrip()
        if style:
            text = paint(text, style, sys.stdout)
        sys.stdout.write(text + "\n")


def lines_of(difference: Difference, width: int) -> Iterator[tuple[str, str]]:
    """The lines with their styles.

    Args:
        difference: the difference to show.
        width: columns of the terminal.
    """
    verdict = "the same but for ids, times and limits" if difference.equal else "different"
    if difference.first is None:
        verdict = "the same"
    # A redacted difference has no names.
    names = ", ".join(f"{side} {one_line(name)}".strip() for side, name in _names(difference))
    yield fitted(f"{verdict}: {names}", width), BOLD
    if difference.first is not None:
        for line in hanging(f"  first: {difference.first.text}", width):
            yield line, YELLOW
    yield "", ""
    yield f"  {'A':>9}{'B':>10}  events", DIM
    for row in difference.rows:
        yield from _row_lines(row, width)
    yield "", ""


def _names(difference: Difference) -> tuple[tuple[str, str], ...]:
    return ("A", difference.a), ("B", difference.b)


def _row_lines(row: DifferenceRow, width: int) -> Iterator[tuple[str, str]]:
    style = STYLES[row.op]
    times = f"{_position(row.a_at, row.a_frame):>9}{_position(row.b_at, row.b_frame):>10}"
    yield fitted(f"{MARKS[row.op]} {times}  {row.label}", width), style
    if row.op in ("only_a", "only_b"):
        text = row.a_text or row.b_text
        if text:
            yield fitted(f"{'':23}{row.op[-1].upper()} {quote(text, width - 25)}", width), style
        return
    if row.op != "changed":
        return
    fields = ", ".join(row.fields)
    texts = parting_texts(row, max(20, width - 35 - len(fields)))
    for side, text in zip("AB", texts, strict=True):
        yield fitted(f"{'':23}{side} {fields} {text}", width), style


def _position(seconds: float | None, frame: int | None) -> str:
    """The time, or the number of the frame if times are unknown."""
    if frame is None:
        return "-"
    if seconds is None:
        return f"#{frame}"
    return f"{seconds:+.3f}"
