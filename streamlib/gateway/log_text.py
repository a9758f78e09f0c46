"""Text of clients and providers in the log: escaped, so that it starts no line of its own, sends no
sequence to the terminal that shows the log and does not reorder what is shown; and bounded."""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import Final
from urllib.parse import urlsplit

NAME_CHARACTERS: Final = 100
"""Characters of a model's name in a log line; the longest real ones have about 80."""

TEXT_CHARACTERS: Final = 500
"""Characters of a message or a list of changes in a log line."""


FRAMES: Final = 8
"""Calls of an exception that are shown."""


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


def log_error(error: BaseException) -> str:
    """An exception on one line: its type, its message, and where it was raised, innermost first.

    The interpreter's own form has the message as it is, which may be a client's text.
    """
    frames: list[str] = []
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        frames.append(f"{PurePath(frame.filename).name}:{frame.lineno} in {frame.name}")
    message = log_text(str(error))
    return f"{type(error).__name__}: {message} (at {', '.join(frames[:FRAMES])})"


def server_of(url: str) -> str:
    """Host and port of a URL: user and password stay out of the log, and a query with a key."""
    return urlsplit(url).netloc.rpartition("@")[2]


def log_name(name: str) -> str:
    """A name for a line of the log: without blanks, which separate the line's fields."""
    return log_text(name, NAME_CHARACTERS).replace(" ", "\\x20")
