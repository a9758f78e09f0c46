"""`MarkdownWriter`: Markdown on a terminal while it still arrives."""

from __future__ import annotations

from typing import Final

from streamlib.display.blocks import BlockReader
from streamlib.display.drawing import Drawing
from streamlib.display.safe_text import Printable
from streamlib.display.themes import THEMES, Theme, ThemeName
from streamlib.display.wrapping import visible_cells

LINE: Final = 400
"""Maximum characters of a line that is read as one; a longer line is read in parts."""

ROW: Final = 4000
"""The same for a row of a table, which must not be read in parts."""

NEW_LINE: Final = "\r\n"
"""Both characters, since some terminals do not turn a newline into both."""

BEGIN_FRAME: Final = "\x1b[?2026h"
END_FRAME: Final = "\x1b[?2026l"
"""Between the two a terminal shows nothing, so that no half of a frame is seen."""

CLEAR_LINE: Final = "\x1b[K"
CLEAR_BELOW: Final = "\x1b[J"

UNKNOWN: Final = "\x00"
"""A line of the screen that has to be drawn again, whatever it shows."""


class MarkdownWriter:
    """Turns Markdown that arrives in fragments into what a terminal has to be sent.

    It does no I/O: write what `feed` returns. Lines that cannot change any more are written once.
    Only the open end, which a character that follows may still change, is drawn again: never more
    than the screen holds, and none of it where the new text just goes on. The result is the same
    for every split of the text. Control characters of the text are shown as escape sequences, and
    the address of a link is after it.

        writer = MarkdownWriter(*shutil.get_terminal_size())
        async for delta in stream.text():
            print(writer.feed(delta), end="", flush=True)
        print(writer.close(), end="")

    Args:
        width: columns of the terminal.
        height: lines of the terminal.
        theme: "colour" uses the terminal's own palette, "mono" no colours; or a `Theme`.
    """

    def __init__(self, width: int, height: int, theme: ThemeName | Theme = "colour") -> None:
        if not isinstance(theme, Theme):
            theme = THEMES[theme]
        self._height = height
        self._printable = Printable()
        # The last column stays free: what is written there is seen differently by terminals.
        self._drawing = Drawing(max(1, width - 1), theme)
        self._reader = BlockReader(self._drawing)
        self._line = ""
        """The part of the incomplete line that was not read yet."""
        self._is_more = False
        """Whether `_line` goes on with a line that was read in part."""
        self._shown: list[str] = []
        """Lines of the open end on the screen; the cursor is after the last one."""

    def feed(self, text: str) -> str:
        """Takes text.

        Args:
            text: markdown; any part of it, a single character too.

        Returns:
            What to write to the terminal; "" if nothing changed.
        """
        text = self._printable.feed(text)
        if not text:
            # A carriage return may wait for its newline.
            return ""
        self._read(text)
        return self._frame(self._open_end())

    def close(self) -> str:
        """Ends the text.

        Returns:
            What to write to the terminal. The cursor is then at the beginning of a line, and the
            writer takes another text.
        """
        rest = self._printable.close()
        if rest:
            self._read(rest)
        if self._line:
            self._read_part(self._line)
        self._line = ""
        self._is_more = False
        self._reader.close()
        output = self._frame([])
        self._drawing = self._drawing.successor()
        self._reader = BlockReader(self._drawing)
        return output

    def resize(self, width: int, height: int) -> str:
        """Takes another size of the terminal. What is settled stays as it was written.

        Args:
            width: columns of the terminal.
            height: lines of the terminal.

        Returns:
            What to write to the terminal.
        """
        self._height = height
        width = max(1, width - 1)
        self._drawing.resize(width)
        if not self._shown:
            return ""
        rows = 0
        for line in self._shown:
            # Terminals break a line that has become too long.
            rows += 1 + max(0, visible_cells(line) - 1) // (width + 1)
        # The open end has to be drawn again, from its first row that the screen still has.
        self._shown = [UNKNOWN] * min(rows, max(1, height - 1))
        return self._frame(self._open_end())

    def _read(self, text: str) -> None:
        *complete, last = text.split("\n")
        for line in complete:
            self._extend(line)
            self._read_part(self._line)
            self._line = ""
            self._is_more = False
        self._extend(last)

    def _extend(self, text: str) -> None:
        """Adds to the line; if it is very long, reads its first parts."""
        line = self._line + text
        start = 0
        while True:
            limit = LINE
            # As many characters as decide it where they come one by one.
            if not self._is_more and line[: LINE + 1].lstrip()[:1] == "|":
                limit = ROW
            if len(line) - start <= limit:
                break
            self._read_part(line[start : start + limit])
            start += limit
            self._is_more = True
        self._line = line[start:]

    def _read_part(self, line: str) -> None:
        if self._is_more:
            self._reader.read_more(line)
        else:
            self._reader.read(line)

    def _open_end(self) -> list[str]:
        """The lines that would be settled if the text ended here."""
        # Copies read the line that is not complete, as if the text ended here.
        drawing = self._drawing.preview()
        reader = self._reader.copy(drawing)
        if self._line and self._is_more:
            reader.read_more(self._line)
        elif self._line:
            reader.read(self._line)
        reader.close()
        return drawing.lines

    def _frame(self, open_end: list[str]) -> str:
        """The characters that turn the screen into the settled lines and the open end."""
        settled = self._drawing.lines
        self._drawing.lines = []
        # Above the screen nothing can be drawn again.
        open_end = open_end[-max(1, self._height - 1) :]
        lines = settled + open_end
        is_end_open = bool(open_end)
        if not is_end_open:
            # The cursor goes to the line after them.
            lines.append("")
        before = self._shown
        self._shown = open_end
        return _difference(before, lines)


def _difference(before: list[str], after: list[str]) -> str:
    """What turns the last lines of the screen into others; the cursor is after the last."""
    if not before:
        # The cursor is at the beginning of an empty line.
        before = [""]
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    if same == len(before) and same == len(after):
        return ""
    last = len(before) - 1
    if same == last < len(after) and after[last].startswith(before[last]):
        # The text just goes on.
        added = after[last][len(before[last]) :]
        return NEW_LINE.join([added, *after[last + 1 :]])
    if same == len(before):
        return "".join(NEW_LINE + line for line in after[same:])
    return _redrawn(last, same, after)


def _redrawn(last: int, same: int, after: list[str]) -> str:
    """Draws lines again from the first that differs."""
    first = min(same, len(after) - 1)
    parts = [BEGIN_FRAME]
    if last > first:
        parts.append(f"\x1b[{last - first}A")
    parts.append("\r")
    parts.append(NEW_LINE.join(line + CLEAR_LINE for line in after[first:]))
    if last > len(after) - 1:
        # There were more lines than there are now.
        parts.append(CLEAR_BELOW)
    parts.append(END_FRAME)
    return "".join(parts)
