"""A terminal in memory (pyte): its screen, and the lines that scrolled off it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

import pyte

from streamlib.display import MarkdownWriter

SYNCHRONIZED = re.compile(r"\x1b\[\?2026[hl]")
"""Marks of a synchronized frame, which pyte does not know."""

SENT = re.compile(r"\r\n|\r|\x1b\[(?:\d+A|[KJ])|(?:[^\r\x1b]|\x1b\[[0-9;]*m)+")


class Screen:
    """A terminal with a scrollback.

    Args:
        width: Its columns.
        height: Its lines.
    """

    def __init__(self, width: int, height: int) -> None:
        self._screen = pyte.HistoryScreen(width, height, history=100_000, ratio=0.5)
        self._stream = pyte.Stream(self._screen)

    def write(self, text: str) -> None:
        self._stream.feed(SYNCHRONIZED.sub("", text))

    def resize(self, width: int, height: int) -> None:
        self._screen.resize(height, width)

    @property
    def scrollback(self) -> list[str]:
        """Lines that have left the screen."""
        lines: list[str] = []
        for row in self._screen.history.top:
            lines.append("".join(row[column].data for column in range(self._screen.columns)))
        return [line.rstrip() for line in lines]

    @property
    def lines(self) -> list[str]:
        """All lines, those that have left the screen first."""
        return self.scrollback + [line.rstrip() for line in self._screen.display]

    @property
    def styles(self) -> list[list[tuple[str, bool, bool, bool, str]]]:
        """Character, bold, italics, underline and colour of each place on the screen."""
        rows: list[list[tuple[str, bool, bool, bool, str]]] = []
        for number in range(self._screen.lines):
            row = self._screen.buffer[number]
            places = [row[column] for column in range(self._screen.columns)]
            rows.append([(p.data, p.bold, p.italics, p.underscore, p.fg) for p in places])
        return rows


class Paper:
    """Any number of lines, for the output of `MarkdownWriter` only: much faster than `Screen`.

    Args:
        height: Number of lines that the cursor can move up.
    """

    def __init__(self, height: int) -> None:
        self.lines = [""]
        """Lines with their styles."""
        self._height = height
        self._row = 0
        self._is_at_start = True

    def write(self, text: str) -> None:
        for part in SENT.findall(SYNCHRONIZED.sub("", text)):
            if part == "\r\n":
                self._row += 1
                self._is_at_start = True
                if self._row == len(self.lines):
                    self.lines.append("")
            elif part == "\r":
                self._is_at_start = True
            elif part == "\x1b[K":
                if self._is_at_start:
                    self.lines[self._row] = ""
            elif part == "\x1b[J":
                del self.lines[self._row + 1 :]
            elif part.endswith("A") and part[0] == "\x1b":
                self._row -= int(part[2:-1])
                assert self._row >= max(0, len(self.lines) - self._height), "off the screen"
            else:
                if self._is_at_start:
                    self.lines[self._row] = ""
                self.lines[self._row] += part
                self._is_at_start = False


def shown(parts: Iterable[str], width: int = 60, height: int = 12) -> Screen:
    """The screen after a text was written in parts."""
    screen = Screen(width, height)
    writer = MarkdownWriter(width, height)
    for part in parts:
        screen.write(writer.feed(part))
    screen.write(writer.close())
    return screen


def written(parts: Iterable[str], width: int, height: int) -> list[str]:
    """The lines after a text was written in parts, with their styles."""
    paper = Paper(height)
    writer = MarkdownWriter(width, height)
    for part in parts:
        paper.write(writer.feed(part))
    paper.write(writer.close())
    return paper.lines


def split(text: str, chance: random.Random, count: int) -> list[str]:
    """A text in `count` parts or fewer."""
    places = sorted(chance.randrange(len(text) + 1) for _ in range(count - 1))
    return [text[start:end] for start, end in zip([0, *places], [*places, None], strict=True)]
