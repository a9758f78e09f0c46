"""How many columns of a terminal a text takes."""

from __future__ import annotations

from functools import cache

from wcwidth import wcwidth

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
