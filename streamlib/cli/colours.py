"""Colours of a terminal, if it has them."""

from __future__ import annotations

import os
from typing import Final, TextIO

RESET: Final = "\x1b[0m"
BOLD: Final = "\x1b[1m"
DIM: Final = "\x1b[2m"
RED: Final = "\x1b[31m"
GREEN: Final = "\x1b[32m"
YELLOW: Final = "\x1b[33m"
CYAN: Final = "\x1b[36m"


def paint(line: str, style: str, stream: TextIO) -> str:
    """A line in a colour if the stream has colours, else the line."""
    if not has_colours(stream):
        return line
    return f"{style}{line}{RESET}"


def has_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal with colours, and they are not turned off (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
