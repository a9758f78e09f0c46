"""Styled text, wrapped at spaces, word by word: a line that is full never changes again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from streamlib.display.cells import cells, is_wide, split_cells

RESET: Final = "\x1b[0m"

_PARTS: Final = re.compile(" +|[^ ]+")
_STYLES: Final = re.compile("\x1b\\[[0-9;]*m")


class StyledText(NamedTuple):
    """A text in one style.

    Attributes:
        text: it has neither newlines nor control characters.
        style: parameters of an SGR sequence ("1;36"); "" is the terminal's own style.
    """

    text: str
    style: str = ""


class Run(NamedTuple):
    """Fragments without a space between them.

    Attributes:
        spaces: how many spaces are before it, where it does not begin a line.
        fragments: its text.
        width: its columns.
    """

    spaces: int
    fragments: tuple[StyledText, ...]
    width: int


def paint(fragments: Iterable[StyledText]) -> str:
    """The characters and SGR sequences of a line. It ends in the terminal's own style."""
    parts: list[str] = []
    current = ""
    for text, style in fragments:
        if style != current:
            if current:
                parts.append(RESET)
            if style:
                parts.append(f"\x1b[{style}m")
            current = style
        parts.append(text)
    if current:
        parts.append(RESET)
    return "".join(parts)


class Wrapper:
    """Wraps a text that arrives in fragments.

    Args:
        width: columns of a line.
    """

    def __init__(self, width: int) -> None:
        self.lines: list[list[StyledText]] = []
        """Full lines; the caller that draws them removes them."""
        self._width = width
        self._line: list[Run] = []
        """Runs of the line that is not full."""
        self._used = 0
        """Columns of `_line`."""
        self._run: list[StyledText] = []
        """Fragments of the run that may go on."""
        self._spaces = 0
        """Spaces before that run."""

    def copy(self) -> Wrapper:
        """An independent copy without the full lines."""
        other = Wrapper(self._width)
        other._line = self._line.copy()
        other._used = self._used
        other._run = self._run.copy()
        other._spaces = self._spaces
        return other

    def resize(self, width: int) -> None:
        """Wraps what follows, and the line that is not full, at another width."""
        # Full lines were written: only the open one can still be another.
        runs, run, spaces = self._line, self._run, self._spaces
        self._width, self._line, self._used = width, [], 0
        for earlier in runs:
            self._append(earlier)
        self._run, self._spaces = run, spaces

    def add(self, fragments: Iterable[StyledText]) -> None:
        """Adds text."""
        for text, style in fragments:
            for part in _PARTS.findall(text):
                if part[0] == " ":
                    self._end_run()
                    self._spaces += len(part)
                elif part.isascii():
                    self._extend(StyledText(part, style))
                else:
                    self._add_wide(part, style)

    def _add_wide(self, part: str, style: str) -> None:
        start = 0
        for index, character in enumerate(part):
            if is_wide(character):
                if part[start:index]:
                    self._extend(StyledText(part[start:index], style))
                self._end_run()
                start = index
            elif index and is_wide(part[index - 1]) and cells(character):
                self._extend(StyledText(part[start:index], style))
                self._end_run()
                start = index
        self._extend(StyledText(part[start:], style))

    def break_line(self) -> None:
        """Starts a line."""
        self._end_run()
        self._emit()

    def finish(self) -> None:
        """Ends the text."""
        self._end_run()
        if self._line:
            self._emit()

    def _extend(self, fragment: StyledText) -> None:
        """Adds to the word; a word wider than a line is broken where the line ends."""
        width = sum(cells(part.text) for part in self._run)
        text = fragment.text
        while width + cells(text) > self._width:
            if self._line:
                # The word gets a line of its own, so that it is broken as rarely as possible.
                self._emit()
                self._spaces = 0
            first, text = split_cells(text, max(1, self._width - width))
            self._run.append(StyledText(first, fragment.style))
            self._end_run()
            self._emit()
            width = 0
        if text:
            self._run.append(StyledText(text, fragment.style))

    def _end_run(self) -> None:
        if not self._run:
            return
        width = sum(cells(part.text) for part in self._run)
        self._append(Run(self._spaces, tuple(self._run), width))
        self._run, self._spaces = [], 0

    def _append(self, run: Run) -> None:
        if self._line and self._used + run.spaces + run.width > self._width:
            self._emit()
        # At the beginning of a line spaces are not shown.
        if self._line:
            self._used += run.spaces
        self._line.append(run)
        self._used += run.width

    def _emit(self) -> None:
        fragments: list[StyledText] = []
        for run in self._line:
            if fragments and run.spaces:
                # An underline goes on between two words of a link.
                style = run.fragments[0].style
                if fragments[-1].style != style:
                    style = ""
                fragments.append(StyledText(" " * run.spaces, style))
            fragments += run.fragments
        self.lines.append(fragments)
        self._line, self._used = [], 0


def wrap(fragments: Iterable[StyledText], width: int) -> list[list[StyledText]]:
    """The lines of a complete text."""
    wrapper = Wrapper(width)
    wrapper.add(fragments)
    wrapper.finish()
    return wrapper.lines


def visible_cells(line: str) -> int:
    """Columns of a painted line."""
    return cells(_STYLES.sub("", line))
