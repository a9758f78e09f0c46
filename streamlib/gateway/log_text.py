"""Text of clients and providers in the log: escaped, so that it starts no line of its own, sends no
sequence to the terminal that shows the log and does not reorder what is shown; and bounded."""

from __future__ import annotations

from typing import Final

NAME_CHARACTERS: Final = 100
"""Of a model's name; the longest real ones have about 80."""

TEXT_CHARACTERS: Final = 500
"""Of a message or a list of changes."""


def escaped(text: str) -> str:
    """The text with every character that is not printable (C0 and C1 controls, line separators,
    bidi controls, surrogates) as an escape sequence."""
    if text.isprintable():
        return text
    characters: list[str] = []
    for character in text:
        if character.isprintable():
            characters.append(character)
        else:
            characters.append(character.encode("unicode_escape").decode("ascii"))
    return "".join(characters)


def log_text(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """The text, escaped and at most `limit` characters of it."""
    if len(text) <= limit:
        return escaped(text)
    return escaped(text[:limit]) + "…"


def log_name(name: str) -> str:
    """A name for a line of the log: without blanks, which separate the line's fields."""
    return log_text(name, NAME_CHARACTERS).replace(" ", "\\x20")
