"""Text from a model, made safe for a terminal: nothing in it can move the cursor, set the clipboard or hide words.

Newline and tab stay; CRLF becomes a newline; every other control character, DEL, C1, bidi control and tag character is shown
as an escape. A carriage return at the end of a delta is held until it is known whether a newline follows.
"""

from __future__ import annotations

import re
from typing import Final

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


class Printable:
    """Makes one text safe, delta by delta."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """What may be printed now."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        return printable(text[: len(text) - len(self._held)])

    def close(self) -> str:
        """What was held."""
        held, self._held = self._held, ""
        return printable(held)


def printable(text: str) -> str:
    """A whole text, made safe."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    if code == 0x0D:
        return "\\r"
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


_OPTIONS: Final = {
    " or api_key=": "",
    ": give api_key= together with base_url=": ", and goes nowhere else",
    "base_url=": "--base-url",
}
"""Words of the library that its errors name, and what the command line has for them. It takes keys from variables alone."""


def in_options(message: str) -> str:
    """A message of the library, for somebody who calls a command."""
    for word, option in _OPTIONS.items():
        message = message.replace(word, option)
    return message
