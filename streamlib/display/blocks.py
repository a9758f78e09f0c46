"""The blocks of a Markdown text, line by line: what a line begins, continues and ends.

No Markdown library of Python reads a text that still grows, so this is written here, after the
algorithm of the CommonMark specification (appendix "A parsing strategy"): containers (quotes and
list items) are open until a line does not continue them, and the innermost holds at most one open
leaf (a paragraph, code, a table). A line that was read never changes what was read before it.

What differs from CommonMark: link definitions are text; the lines of an item never change how
earlier items of its list look; an underline (`---`) makes a heading of only that part of its
paragraph which was not settled yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from markdown_it.rules_block.html_block import HTML_SEQUENCES

Alignment: TypeAlias = Literal["", "left", "center", "right"]
LeafKind: TypeAlias = Literal["paragraph", "fence", "indented", "html", "table"]

TAB: Final = 4
"""Columns from one tab stop to the next."""

CODE_INDENT: Final = 4
"""Spaces that make a line code, if it is in no fence."""

DEPTH: Final = 20
"""Containers in each other; beyond, markers are text. Each is copied and indented at every feed."""

_HEADING: Final = re.compile(r"(#{1,6})(?: +(.*?))??(?: +#+)? *$")
_UNDERLINE: Final = re.compile(r"(=+|-+) *$")
_RULE: Final = re.compile(r"([-*_])( *\1){2,} *$")
_FENCE: Final = re.compile(r"(`{3,})([^`]*)$|(~{3,})(.*)$")
_ITEM: Final = re.compile(r"([-+*]|(\d{1,9})[.)])( +|$)(.*)$")
_DELIMITER_ROW: Final = re.compile(r"\|? *:?-+:? *(\| *:?-+:? *)*\|? *$")
_CELL_END: Final = re.compile(r"(?<!\\)\|")


class MarkdownPage(Protocol):
    """What the blocks are shown on."""

    def enter_quote(self) -> None:
        """A quote begins."""

    def enter_item(self, marker: str) -> None:
        """A list item begins, with its bullet or number."""

    def leave(self, depth: int) -> None:
        """Containers end until `depth` of them are open."""

    def blank(self) -> None:
        """An empty line is before the next block."""

    def heading(self, level: int, text: str) -> None:
        """A heading on a line of its own."""

    def rule(self) -> None:
        """A line across the page."""

    def open_paragraph(self, text: str) -> None:
        """A paragraph begins with this line."""

    def add_line(self, text: str) -> None:
        """The open paragraph gets a line."""

    def underline(self, level: int) -> None:
        """The open paragraph turns out to be a heading."""

    def open_table(self, header: list[str], alignments: list[Alignment]) -> bool:
        """The last line of the open paragraph turns out to be a table's header; False: too late."""
        ...

    def add_row(self, cells: list[str]) -> None:
        """The open table gets a row."""

    def open_code(self, language: str | None) -> None:
        """A code block begins; None: one without a fence."""

    def add_code(self, line: str) -> None:
        """The open code block gets a line."""

    def add_more(self, text: str) -> None:
        """The line that was read last goes on."""

    def close_leaf(self) -> None:
        """The open paragraph, code block or table ends."""


@dataclass(slots=True)
class Container:
    """An open quote or list item.

    Attributes:
        is_item: whether it is a list item.
        indent: columns that the lines of an item are indented by.
        marker: "-", "+", "*", "." or ")": the same for all items of a list.
        number: number of an item in a numbered list.
        is_empty: whether nothing but the marker of the item was read.
    """

    is_item: bool
    indent: int = 0
    marker: str = ""
    number: int = 0
    is_empty: bool = False


class BlockReader:
    """Reads lines and calls the methods of a page for what they are."""

    def __init__(self, page: MarkdownPage) -> None:
        self._page = page
        self._containers: list[Container] = []
        self._leaf: LeafKind | None = None
        """The kind of the open leaf in the innermost container; None if none is open."""
        self._fence = ""
        """The characters that opened the fence."""
        self._fence_indent = 0
        """Spaces before the fence; its lines may have as many."""
        self._html_end: re.Pattern[str] = _RULE
        """Matches the line that ends the open HTML."""
        self._last_line = ""
        """The last line of the open paragraph: it may be the header of a table."""
        self._columns = 0
        """Columns of the open table."""
        self._blank_code = 0
        """Empty lines of indented code; they count where more code follows."""

    def copy(self, page: MarkdownPage) -> BlockReader:
        """An independent copy that continues on another page."""
        other = BlockReader(page)
        for name in self.__dict__.keys() - {"_page", "_containers"}:
            setattr(other, name, getattr(self, name))
        for open_container in self._containers:
            # Only this attribute of a container changes.
            other._containers.append(
                Container(
                    open_container.is_item,
                    open_container.indent,
                    open_container.marker,
                    open_container.number,
                    open_container.is_empty,
                )
            )
        return other

    def read(self, line: str) -> None:
        """Reads a line, or the beginning of one that is too long to wait for its end."""
        # Tabs count as columns: what a container takes away may end inside of one.
        line = line.expandtabs(TAB)
        rest, matched = self._match_containers(line)
        is_inside = matched == len(self._containers)
        if is_inside and self._continues_code(rest):
            return
        if not rest.strip():
            self._read_blank(matched)
            return
        is_lazy = self._leaf == "paragraph"
        """Whether a line that begins nothing continues the paragraph."""
        # A line may begin several containers: "> - > text".
        while True:
            indent = len(rest) - len(rest.lstrip(" "))
            if indent >= CODE_INDENT:
                # A line that is indented so far can only be code.
                break
            body = rest[indent:]
            is_in_paragraph = is_inside and self._leaf == "paragraph"
            if self._begins_leaf(body, indent, matched, is_in_paragraph=is_in_paragraph):
                return
            content = self._begin_container(body, indent, matched, in_paragraph=is_in_paragraph)
            if content is None:
                break
            # What follows a marker belongs to the new container, whatever was open.
            rest, is_lazy = content, False
            matched = len(self._containers)
            is_inside = True
            if not rest.strip():
                return
        self._read_text(rest, indent, matched, is_lazy=is_lazy)

    def read_more(self, text: str) -> None:
        """Reads more of the line that was read last."""
        # A header that is so long is not looked for.
        self._last_line = ""
        if self._leaf is not None:
            self._page.add_more(text.expandtabs(TAB))
        else:
            # A heading, or a rule that was none: the rest of a very long line is a paragraph.
            self._open_text(text.strip())

    def close(self) -> None:
        """Ends the text."""
        self._close(0)

    # --- containers ---

    def _match_containers(self, line: str) -> tuple[str, int]:
        """What is left of a line after the containers that it continues, and their number."""
        rest = line
        for number, container in enumerate(self._containers):
            indent = len(rest) - len(rest.lstrip(" "))
            if not container.is_item:
                if indent >= CODE_INDENT or rest[indent : indent + 1] != ">":
                    return rest, number
                rest = rest[indent + 1 :].removeprefix(" ")
            elif not rest.strip():
                # An item may begin with one empty line, not with two.
                if container.is_empty:
                    return rest, number
            elif indent >= container.indent:
                rest = rest[container.indent :]
            else:
                return rest, number
        return rest, len(self._containers)

    def _begin_container(
        self, body: str, indent: int, matched: int, *, in_paragraph: bool
    ) -> str | None:
        """Opens a quote or an item; returns the rest of the line, or None if it begins none."""
        if matched >= DEPTH:
            return None
        if body[0] == ">":
            self._begin(matched)
            self._containers.append(Container(is_item=False))
            self._page.enter_quote()
            return body[1:].removeprefix(" ")
        item = _ITEM.match(body)
        if item is None:
            return None
        marker, number, spaces, content = item.groups()
        if in_paragraph and (not content.strip() or number not in (None, "1")):
            # Otherwise a line that begins with a year would be a list.
            return None
        self._begin_item(marker, number, matched)
        width = len(spaces)
        if not content.strip() or width > CODE_INDENT:
            # One space belongs to the marker, the others to code that the item begins with.
            content = " " * max(0, width - 1) + content
            width = 1
        container = self._containers[-1]
        container.indent = indent + len(marker) + width
        container.is_empty = not content.strip()
        return content

    def _begin_item(self, marker: str, number: str | None, matched: int) -> None:
        count = int(number or 0)
        if matched < len(self._containers):
            sibling = self._containers[matched]
            if sibling.is_item and number and sibling.marker == marker[-1]:
                # Models write "1." before every item; a list counts.
                count = sibling.number + 1
        self._begin(matched)
        self._containers.append(Container(is_item=True, marker=marker[-1], number=count))
        shown = "•"
        if number:
            shown = f"{count}{marker[-1]}"
        self._page.enter_item(shown)

    def _close(self, depth: int) -> None:
        """Ends the leaf, and containers until `depth` of them are open."""
        self._close_leaf()
        if depth < len(self._containers):
            del self._containers[depth:]
            self._page.leave(depth)

    def _close_leaf(self) -> None:
        if self._leaf is not None:
            self._leaf = None
            self._page.close_leaf()
        self._last_line = ""
        self._blank_code = 0

    # --- leaves ---

    def _read_blank(self, matched: int) -> None:
        if self._leaf == "indented" and matched == len(self._containers):
            # An empty line inside of code is code; one at its end is not.
            self._blank_code += 1
            return
        self._close_leaf()
        # Items stay open: what follows may be indented as they are.
        if matched < len(self._containers):
            self._close(matched)
        self._page.blank()

    def _continues_code(self, rest: str) -> bool:
        """Adds a line to the open code, HTML or table; False where it does not belong to it."""
        if self._leaf == "fence":
            self._add_to_fence(rest)
            return True
        if self._leaf == "html":
            # An empty line ends most kinds of HTML, and is not a part of them.
            if not rest.strip() and self._html_end.search(""):
                return False
            self._page.add_code(rest)
            if self._html_end.search(rest):
                self._close_leaf()
            return True
        if self._leaf == "indented" and rest.startswith(" " * CODE_INDENT) and rest.strip():
            for _ in range(self._blank_code):
                self._page.add_code("")
            self._blank_code = 0
            self._page.add_code(rest[CODE_INDENT:])
            return True
        return False

    def _add_to_fence(self, rest: str) -> None:
        body = rest.lstrip(" ")
        indent = len(rest) - len(body)
        closing = body.rstrip(" ")
        # Three backticks do not close four.
        is_same = closing == self._fence[0] * len(closing)
        if is_same and len(closing) >= len(self._fence) and indent < CODE_INDENT:
            self._close_leaf()
        else:
            self._page.add_code(rest[min(indent, self._fence_indent) :])

    def _begins_leaf(self, body: str, indent: int, matched: int, *, is_in_paragraph: bool) -> bool:
        """Reads a line that is a heading, a rule, or begins code or a table."""
        if is_in_paragraph and (self._begins_table(body) or self._underlines(body)):
            return True
        if body[0] == "#":
            heading = _HEADING.match(body)
            if heading is not None:
                self._begin(matched)
                self._page.heading(len(heading[1]), (heading[2] or "").strip())
                return True
        # In front of lists: "* * *" is not an item.
        if _RULE.match(body):
            self._begin(matched)
            self._page.rule()
            return True
        fence = _FENCE.match(body)
        if fence is not None:
            self._begin(matched)
            self._leaf = "fence"
            self._fence = fence[1] or fence[3]
            self._fence_indent = indent
            self._page.open_code((fence[2] or fence[4] or "").strip())
            return True
        if body[0] != "<":
            return False
        return self._begins_html(body, indent, matched, is_in_paragraph=is_in_paragraph)

    def _begin(self, matched: int) -> None:
        """Makes room for a block in the container that the line belongs to."""
        self._close(matched)
        if self._containers:
            self._containers[-1].is_empty = False

    def _begins_html(self, body: str, indent: int, matched: int, *, is_in_paragraph: bool) -> bool:
        for start, end, can_interrupt in HTML_SEQUENCES:
            if start.search(body):
                # A tag on a line of its own may be a part of the text.
                if is_in_paragraph and not can_interrupt:
                    return False
                self._begin(matched)
                self._leaf = "html"
                self._html_end = end
                self._page.open_code(None)
                self._page.add_code(" " * indent + body)
                if end.search(body):
                    self._close_leaf()
                return True
        return False

    def _underlines(self, body: str) -> bool:
        underline = _UNDERLINE.match(body)
        if underline is None:
            return False
        self._page.underline(1 if body[0] == "=" else 2)
        self._close_leaf()
        return True

    def _begins_table(self, body: str) -> bool:
        if "|" not in self._last_line or not _DELIMITER_ROW.match(body):
            return False
        if body.strip() == "-":
            # It is the underline of a heading.
            return False
        # Without as many cells it is a line that only looks like it.
        header = row_cells(self._last_line)
        alignments: list[Alignment] = [_alignment(cell) for cell in row_cells(body)]
        if len(header) != len(alignments) or not self._page.open_table(header, alignments):
            return False
        self._leaf = "table"
        self._columns = len(header)
        return True

    def _read_text(self, rest: str, indent: int, matched: int, *, is_lazy: bool) -> None:
        if is_lazy:
            # Also a line that lacks the ">" of its quote.
            self._last_line = rest.strip(" ")
            self._page.add_line(rest.lstrip(" "))
            if matched < len(self._containers):
                self._last_line = ""
            return
        is_inside = matched == len(self._containers)
        if self._leaf == "table" and is_inside and indent < CODE_INDENT:
            row = row_cells(rest.strip())
            # Rows may be shorter or longer than the header.
            row += [""] * (self._columns - len(row))
            self._page.add_row(row[: self._columns])
            return
        self._begin(matched)
        if indent >= CODE_INDENT:
            self._leaf = "indented"
            self._page.open_code(None)
            self._page.add_code(rest[CODE_INDENT:])
        else:
            self._open_text(rest.lstrip(" "))

    def _open_text(self, text: str) -> None:
        self._leaf = "paragraph"
        self._last_line = text
        self._page.open_paragraph(text)


def row_cells(line: str) -> list[str]:
    """The cells of a table's row."""
    line = line.strip().removeprefix("|")
    cells = _CELL_END.split(line)
    # The bar at the end closes the last cell.
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _alignment(cell: str) -> Alignment:
    if cell.startswith(":") and cell.endswith(":"):
        return "center"
    if cell.endswith(":"):
        return "right"
    if cell.startswith(":"):
        return "left"
    return ""
