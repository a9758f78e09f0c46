"""A paragraph that grows: what cannot change any more is settled, the rest is read again."""

from __future__ import annotations

from typing import Final

from streamlib.display.inline import LINE_BREAK, OPENERS, has_open_end, read_inline
from streamlib.display.themes import Theme
from streamlib.display.wrapping import StyledText, Wrapper

SETTLE: Final = 240
"""Characters that stay unsettled: a shorter paragraph is read as one text."""

LONGEST: Final = 900
"""Maximum characters between `**` and the `**` that ends it, or of a link; beyond, it is text."""

TRIES: Final = 4
"""Number of boundaries that are tried before the text is left to grow."""


class Paragraph:
    """The lines of a paragraph, wrapped.

    Args:
        text: its first line.
        width: Columns.
        theme: the styles.
    """

    def __init__(self, text: str, width: int, theme: Theme) -> None:
        self._wrapper = Wrapper(width)
        self._theme = theme
        self._text = ""
        """Lines that may change with what follows, each with its newline."""
        self._last = text
        """The last line. It may be the header of a table."""
        self.is_settled = False
        """Whether a part of it was drawn and cannot change any more."""
        self._next_search = SETTLE
        """Length of `_text` beyond which a boundary is looked for."""

    def copy(self) -> Paragraph:
        """An independent copy."""
        other = Paragraph(self._last, 0, self._theme)
        other._wrapper = self._wrapper.copy()
        other._text = self._text
        other.is_settled = self.is_settled
        other._next_search = self._next_search
        return other

    def resize(self, width: int) -> None:
        """Wraps the unsettled text at another width."""
        self._wrapper.resize(width)

    def add_line(self, text: str) -> None:
        """Adds a line."""
        self._text += self._last + "\n"
        self._last = text
        self._settle()

    def add_more(self, text: str) -> None:
        """Adds to the last line."""
        self._last += text
        if len(self._last) > SETTLE:
            # Too long for the header of a table.
            self._text += self._last
            self._last = ""
        self._settle()

    def take_header(self) -> None:
        """Removes the last line, which is the header of a table."""
        self._last = ""
        self._text = self._text.removesuffix("\n")

    def is_one_line(self) -> bool:
        """Whether only its last line is left."""
        return not self._text and not self.is_settled

    def heading(self, style: str) -> list[list[StyledText]]:
        """Ends the paragraph as a heading; returns its lines."""
        self._add(self._text + self._last, style)
        self._text, self._last = "", ""
        self._wrapper.finish()
        return self.take_lines()

    def finish(self) -> list[list[StyledText]]:
        """Ends the paragraph; returns the remaining lines."""
        return self.heading("")

    def take_lines(self) -> list[list[StyledText]]:
        """The lines that cannot change any more, each once."""
        lines = self._wrapper.lines
        self._wrapper.lines = []
        return lines

    def _settle(self) -> None:
        """Passes on the text before a space at which no markup is open."""
        # Only complete lines and parts come here, so that the boundaries depend on the text alone.
        while len(self._text) > self._next_search:
            boundary = self._find_boundary()
            if boundary is None:
                # Each search reads the text several times: not for a few characters more.
                self._next_search = min(len(self._text) + SETTLE, LONGEST)
                return
            self._next_search = SETTLE
            settled = self._text[:boundary]
            self._text = self._text[boundary:]
            self._add(settled, "")
            self.is_settled = True
            if self._text.startswith("\n") and settled.endswith(("  ", "\\")):
                # The author broke the line here.
                self._wrapper.break_line()

    def _find_boundary(self) -> int | None:
        text = self._text[:LONGEST]
        end = len(text)
        for _ in range(TRIES):
            boundary = _last_gap(text, end)
            if boundary <= 0:
                break
            if not has_open_end(text[:boundary]):
                # The space stays before the rest: there it separates two words.
                return boundary
            # Next: in front of the last character that may have begun something.
            end = max(text.rfind(character, 0, boundary) for character in OPENERS)
        if len(self._text) < LONGEST:
            return None
        boundary = _last_gap(text, len(text))
        if boundary <= 0:
            # There is no space: a text without words.
            return LONGEST
        return boundary

    def _add(self, source: str, style: str) -> None:
        fragments: list[StyledText] = []
        if source[:1] in (" ", "\n"):
            # What was before it is drawn already.
            if self.is_settled:
                fragments.append(StyledText(" "))
            source = source[1:]
        for fragment in read_inline(source, self._theme):
            if fragment is LINE_BREAK:
                self._wrapper.add(fragments)
                self._wrapper.break_line()
                fragments = []
                continue
            styles = ";".join(part for part in (style, fragment.style) if part)
            fragments.append(StyledText(fragment.text, styles))
        self._wrapper.add(fragments)


def _last_gap(text: str, end: int) -> int:
    """Index of the last newline or single space before `end`; -1 where there is none.

    Two spaces before a newline break the line: they are not to be parted.
    """
    gap = max(text.rfind(" ", 0, end), text.rfind("\n", 0, end))
    while (
        gap > 0 and text[gap] == " " and (text[gap - 1] == " " or text[gap + 1 : gap + 2] in " \n")
    ):
        gap = max(text.rfind(" ", 0, gap), text.rfind("\n", 0, gap))
    return gap
