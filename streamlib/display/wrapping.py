"""Styled text, wrapped at spaces, word by word: a line that is full never changes again.

The Markdown inside a paragraph (emphasis, code, links) is read by markdown-it-py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from wcwidth import wcwidth

from streamlib.display.safe_text import one_line
from streamlib.display.themes import Theme

EMOJI_STYLE = "\ufe0f"
"""Makes the character before it an emoji, which takes two columns in many terminals."""


def cells(text: str) -> int:
    """Counts the columns of a text without control characters.

    Terminals disagree about joined emoji. The largest count is the safe one: a line that is
    shorter than expected stays one line.
    """
    if text.isascii():
        return len(text)
    return sum(_cells_of(character) for character in text)


@cache
def _cells_of(character: str) -> int:
    if character == EMOJI_STYLE:
        return 1
    return max(0, wcwidth(character))


def is_wide(character: str) -> bool:
    """Whether a line may break before and after the character: it takes two columns."""
    return _cells_of(character) == 2


def split_cells(text: str, width: int) -> tuple[str, str]:
    """Splits a text after at most `width` columns, and after one character at least."""
    if text.isascii():
        return text[:width], text[width:]
    used = 0
    for index, character in enumerate(text):
        used += _cells_of(character)
        if used > width and index:
            return text[:index], text[index:]
    return text, ""


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


# --- styles inside a line ---


LINE_BREAK: Final = StyledText("\n")
"""A line break that the author wrote."""

OPENERS: Final = frozenset("*_`[~")
"""Characters that may begin something which ends later in the paragraph."""

_LONE_MARKS: Final = re.compile(r"(?<!\S)[*_~]+(?!\S)")
"""Marks between spaces, which begin and end nothing: bullets, for example."""

_SPACES: Final = re.compile(r"[ \t\n]+")
_READER: Final = MarkdownIt("commonmark").enable("strikethrough")


@lru_cache(maxsize=256)
def read_inline(text: str, theme: Theme) -> tuple[StyledText, ...]:
    """Reads the text of a paragraph, heading or table cell.

    Args:
        text: its source; lines are separated by newlines.
        theme: the styles.

    Returns:
        Its fragments; `LINE_BREAK` where the author broke the line.
    """
    fragments: list[StyledText] = []
    styles: list[str] = []
    """Styles of what is open around a token, the outermost first."""
    links: list[tuple[str, int]] = []
    """Address of each open link, and the number of fragments before its text."""
    for token in _tokens(text):
        style = ";".join(part for part in styles if part)
        match token.type:
            case "text":
                fragments.append(StyledText(_visible(token.content), style))
            case "softbreak":
                fragments.append(StyledText(" ", style))
            case "hardbreak":
                fragments.append(LINE_BREAK)
            case "code_inline":
                code = ";".join(part for part in (style, theme.code) if part)
                fragments.append(StyledText(one_line(token.content), code))
            case "link_open":
                links.append((str(token.attrs["href"]), len(fragments)))
                styles.append(theme.link)
            case "link_close":
                styles.pop()
                address, start = links.pop()
                shown = "".join(fragment.text for fragment in fragments[start:])
                fragments += _address(address, shown, theme)
            case "image":
                fragments.append(StyledText(f"[image: {_visible(token.content)}]", style))
                fragments += _address(str(token.attrs["src"]), token.content, theme)
            case _:
                fragments += _other(token, styles, theme)
    return tuple(fragments)


def _other(token: Token, styles: list[str], theme: Theme) -> list[StyledText]:
    """Opens and closes emphasis; anything else, HTML for one, is shown as it is written."""
    of_tag = {"em": theme.emphasis, "strong": theme.strong, "s": theme.deleted}
    if token.nesting > 0:
        styles.append(of_tag.get(token.tag, ""))
    elif token.nesting < 0:
        styles.pop()
    else:
        return [StyledText(_visible(token.content))]
    return []


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    for token in _READER.parseInline(text):
        tokens += token.children or []
    return tokens


def _visible(text: str) -> str:
    # Escaped again after reading: an entity may be a character that reorders the line.
    return one_line(_SPACES.sub(" ", text))


def _address(address: str, shown: str, theme: Theme) -> list[StyledText]:
    """The address of a link, unless it is the text of the link."""
    if address in (shown, f"mailto:{shown}"):
        return []
    return [StyledText(f" ({one_line(address)})", theme.address)]


def has_open_end(text: str) -> bool:
    """Whether the text may contain the beginning of something that ends after the text."""
    if OPENERS.isdisjoint(_LONE_MARKS.sub("", text)):
        return False
    for token in _tokens(text):
        if token.type == "text" and not OPENERS.isdisjoint(token.content):
            return True
    return False
