"""Text from a model, made safe for a terminal.

Nothing in it can move the cursor, set the clipboard or hide text. Newline and tab stay; CRLF
becomes a newline; every other control character, DEL, C1, bidi control and tag character is shown
as an escape sequence.
"""

from __future__ import annotations

import re
from typing import Final

_UNSAFE: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls reorder what is shown
    "\u2028\u2029"  # line and paragraph separator
    "\ud800-\udfff"  # surrogates cannot be written
    "\U000e0000-\U000e007f"  # tag characters are invisible
    "]"
)


class Printable:
    """Makes one text safe, delta by delta."""

    def __init__(self) -> None:
        self._buffered = ""
        """A carriage return that ended a delta: the next delta may start with its newline."""

    def feed(self, text: str) -> str:
        """Takes a delta and returns the text that may be printed now."""
        text = self._buffered + text
        self._buffered = ""
        if text.endswith("\r"):
            self._buffered = "\r"
            text = text[:-1]
        return printable(text)

    def close(self) -> str:
        """What is still buffered."""
        buffered = self._buffered
        self._buffered = ""
        return printable(buffered)


def printable(text: str) -> str:
    """Makes a complete text safe."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Makes a name safe inside a line: newlines and tabs are shown as escape sequences too."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    if code == 0x0D:
        return "\\r"
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"
