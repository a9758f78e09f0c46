"""Markdown inside a paragraph: emphasis, code, links. markdown-it-py reads it (CommonMark)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from streamlib.display.safe_text import one_line
from streamlib.display.themes import Theme
from streamlib.display.wrapping import StyledText

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
