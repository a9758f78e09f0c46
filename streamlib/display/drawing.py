"""Draws the blocks of a Markdown text as lines of a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from streamlib.display.blocks import Alignment
from streamlib.display.safe_text import one_line
from streamlib.display.tables import Table
from streamlib.display.themes import Theme
from streamlib.display.wrapping import (
    LINE_BREAK,
    OPENERS,
    StyledText,
    Wrapper,
    cells,
    has_open_end,
    paint,
    read_inline,
    split_cells,
)

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


NARROWEST: Final = 10
"""Minimum columns of a text, however deep it is nested."""

BAR: Final = "│ "
"""Precedes the lines of a quote."""

RULE_WIDTH: Final = 60
"""Columns of a rule, at most."""


@dataclass(slots=True)
class LinePrefix:
    """The prefix of the lines of an open quote or item.

    Attributes:
        first: in front of the first line.
        rest: in front of the other lines.
        is_drawn: whether the first line was drawn.
    """

    first: str
    rest: str
    is_drawn: bool = False


class Code:
    """A code block, whose last line may still go on.

    Args:
        is_fenced: whether it has a fence, which is drawn as a rule before and after it.
        width: Columns.
        theme: the styles.
    """

    def __init__(self, width: int, theme: Theme, *, is_fenced: bool) -> None:
        self.is_fenced = is_fenced
        self._width = width
        self._theme = theme
        self._line: str | None = None
        self._lines: list[list[StyledText]] = []

    def copy(self) -> Code:
        """An independent copy."""
        other = Code(self._width, self._theme, is_fenced=self.is_fenced)
        other._line = self._line
        return other

    def resize(self, width: int) -> None:
        """Breaks the lines that follow at another width."""
        self._width = width

    def add_line(self, line: str) -> None:
        """Adds a line."""
        self._end_line()
        self._line = line

    def add_more(self, text: str) -> None:
        """Adds to the last line."""
        line = (self._line or "") + text
        # The full rows of a very long line are settled.
        while cells(line) > self._width:
            row, line = split_cells(line, self._width)
            self._lines.append([StyledText(one_line(row), self._theme.block)])
        self._line = line

    def take_lines(self) -> list[list[StyledText]]:
        """The lines that cannot change any more, each once."""
        lines = self._lines
        self._lines = []
        return lines

    def finish(self) -> list[list[StyledText]]:
        """Ends the block; returns the remaining lines."""
        self._end_line()
        return self.take_lines()

    def _end_line(self) -> None:
        if self._line is not None:
            self.add_more("")
            self._lines.append([StyledText(one_line(self._line.rstrip()), self._theme.block)])
            self._line = None


Leaf: TypeAlias = Paragraph | Table | Code


class Drawing:
    """Lines of a terminal; a `Page` for `BlockReader`.

    Args:
        width: columns of a line.
        theme: the styles.
    """

    def __init__(self, width: int, theme: Theme) -> None:
        self.lines: list[str] = []
        """Lines that cannot change any more; the caller that shows them removes them."""
        self._width = width
        self._theme = theme
        self._frames: list[LinePrefix] = []
        self._leaf: Leaf | None = None
        self._wants_blank = False
        """Whether an empty line must be drawn before the next block."""
        self._is_empty = True
        """Whether nothing was drawn yet."""
        self._was_heading = False
        """Whether the last block was a heading or a rule, which an empty line follows."""
        self._is_preview = False
        """Whether this is a preview: then no rule is drawn below code that is still open."""

    def preview(self) -> Drawing:
        """An independent copy without the lines so far; blocks that are open stay open."""
        other = Drawing(self._width, self._theme)
        other._is_preview = True
        for frame in self._frames:
            other._frames.append(LinePrefix(frame.first, frame.rest, frame.is_drawn))
        if self._leaf is not None:
            other._leaf = self._leaf.copy()
        other._wants_blank = self._wants_blank
        other._is_empty = self._is_empty
        other._was_heading = self._was_heading
        return other

    def successor(self) -> Drawing:
        """A drawing of the same size for another text."""
        return Drawing(self._width, self._theme)

    def resize(self, width: int) -> None:
        """Fits what follows to another width."""
        self._width = width
        if self._leaf is not None:
            self._leaf.resize(self._room())

    # --- containers ---

    def enter_quote(self) -> None:
        """A quote begins."""
        self._begin_block()
        self._frames.append(LinePrefix(BAR, BAR))

    def enter_item(self, marker: str) -> None:
        """A list item begins, with its bullet or number."""
        self._begin_block()
        marker += " "
        self._frames.append(LinePrefix(marker, " " * len(marker)))

    def leave(self, depth: int) -> None:
        """Containers end until `depth` of them are open."""
        if any(not frame.is_drawn for frame in self._frames[depth:]):
            # An item without a text has its bullet all the same.
            self._put([])
        del self._frames[depth:]

    def blank(self) -> None:
        """An empty line is before the next block."""
        self._wants_blank = True

    # --- blocks of one line ---

    def heading(self, level: int, text: str) -> None:
        """A heading on a line of its own."""
        # Models often leave out the empty line before it.
        self._wants_blank = True
        self._begin_block()
        paragraph = Paragraph(text, self._room(), self._theme)
        self._put_all(paragraph.heading(self._heading_style(level)))
        self._was_heading = True

    def rule(self) -> None:
        """A line across the page."""
        self._begin_block()
        self._put([StyledText("─" * min(RULE_WIDTH, self._room()), self._theme.faint)])
        self._was_heading = True

    # --- paragraphs ---

    def open_paragraph(self, text: str) -> None:
        """A paragraph begins with this line."""
        self._begin_block()
        self._leaf = Paragraph(text, self._room(), self._theme)

    def add_line(self, text: str) -> None:
        """The open paragraph gets a line."""
        if isinstance(self._leaf, Paragraph):
            self._leaf.add_line(text)
            self._put_all(self._leaf.take_lines())

    def underline(self, level: int) -> None:
        """The open paragraph turns out to be a heading."""
        if isinstance(self._leaf, Paragraph):
            self._put_all(self._leaf.heading(self._heading_style(level)))
            self._was_heading = True

    # --- tables ---

    def open_table(self, header: list[str], alignments: list[Alignment]) -> bool:
        """The last line of the open paragraph turns out to be a table's header; False: too late."""
        paragraph = self._leaf
        if not isinstance(paragraph, Paragraph):
            return False
        if not paragraph.is_one_line():
            # The lines before the header stay a paragraph.
            paragraph.take_header()
            self._put_all(paragraph.finish())
        self._leaf = Table(header, alignments, self._room(), self._theme)
        return True

    def add_row(self, cells: list[str]) -> None:
        """The open table gets a row."""
        if isinstance(self._leaf, Table):
            self._leaf.add_row(cells)
            self._put_all(self._leaf.take_lines())

    # --- code ---

    def open_code(self, language: str | None) -> None:
        """A code block begins; None: one without a fence."""
        self._begin_block()
        is_fenced = language is not None
        if is_fenced:
            title = "───"
            if language:
                title = f"─── {one_line(language)}"
            self._put([StyledText(split_cells(title, self._room())[0], self._theme.faint)])
        self._leaf = Code(self._room(), self._theme, is_fenced=is_fenced)

    def add_code(self, line: str) -> None:
        """The open code block gets a line."""
        if isinstance(self._leaf, Code):
            # The line before has ended, so it is settled now.
            self._leaf.add_line(line)
            self._put_all(self._leaf.take_lines())

    def add_more(self, text: str) -> None:
        """The line that was read last goes on."""
        if self._leaf is not None:
            self._leaf.add_more(text)
            self._put_all(self._leaf.take_lines())

    def close_leaf(self) -> None:
        """The open paragraph, code block or table ends."""
        if self._leaf is not None:
            self._put_all(self._leaf.finish())
            if isinstance(self._leaf, Code) and self._leaf.is_fenced and not self._is_preview:
                self._put([StyledText("───", self._theme.faint)])
            self._leaf = None

    # --- lines ---

    def _begin_block(self) -> None:
        if (self._wants_blank or self._was_heading) and not self._is_empty:
            # Only the bars of quotes that go on are before it.
            prefix = "".join(frame.rest for frame in self._frames if frame.is_drawn)
            self.lines.append(self._painted(prefix.rstrip(), self._theme.faint))
        self._wants_blank = False
        self._was_heading = False

    def _put_all(self, lines: list[list[StyledText]]) -> None:
        for line in lines:
            self._put(line)

    def _put(self, fragments: list[StyledText]) -> None:
        prefix: list[StyledText] = []
        for frame in self._frames:
            text = frame.rest
            style = self._theme.faint
            # A bullet is before the first line of its item alone.
            if not frame.is_drawn:
                text = frame.first
                frame.is_drawn = True
                if text != BAR:
                    style = self._theme.marker
            # A styled space would be seen where the style is an underline.
            if not text.strip():
                style = ""
            prefix.append(StyledText(text, style))
        if cells("".join(part.text for part in prefix)) > self._width - NARROWEST:
            # Nested deeper than the screen is wide.
            prefix = [StyledText("… ")]
        self.lines.append(paint([*prefix, *fragments]))
        self._is_empty = False

    def _painted(self, text: str, style: str) -> str:
        if not text:
            return ""
        return paint([StyledText(text, style)])

    def _room(self) -> int:
        """Columns for the text of the innermost container."""
        used = sum(cells(frame.rest) for frame in self._frames)
        if used > self._width - NARROWEST:
            used = 2
        return max(1, self._width - used)

    def _heading_style(self, level: int) -> str:
        if level == 1:
            return self._theme.title
        return self._theme.heading
