"""Where a bracketed or quoted value ends in text that comes in pieces. Strings and brackets are followed, nothing is decoded."""

from __future__ import annotations

from typing import Final

from streamlib_parsers.errors import ParseFailure
from streamlib_parsers.json_text import decode_any

CONTROL: Final = {code: f"\\u{code:04x}" for code in range(0x20)} | {
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
}
"""Characters that JSON wants escaped inside strings. Models write line breaks and tabs there as they are."""


class BalancedValue:
    """One value, from its first character on: an object, an array, a string, a list of arguments.

    quotes: what strings stand between; `"` alone for JSON, whose control characters are escaped on the way. whole: it has ended.
    """

    __slots__ = ("_depth", "_escaped", "_quote", "_quotes", "whole")

    def __init__(self, quotes: str = '"') -> None:
        self.whole = False
        self._quotes = quotes
        self._depth = 0
        self._quote = ""
        self._escaped = False

    def read(self, text: str, at: int) -> tuple[int, str]:
        """Reads on from `at`: where it stopped (behind the value, or at the end of `text`), and the value's text up to there."""
        parts: list[str] = []
        while at < len(text) and not self.whole:
            if self._quote:
                end = self._string(text, at)
                part = text[at:end]
                parts.append(
                    part if part.isprintable() or len(self._quotes) > 1 else part.translate(CONTROL)
                )
            else:
                end = self._structure(text, at)
                parts.append(text[at:end])
            at = end
        return at, "".join(parts)

    def _string(self, text: str, at: int) -> int:
        """To behind the quote that ends the string."""
        at += self._escaped
        self._escaped = False
        quote = text.find(self._quote, at)
        while True:
            escape = text.find("\\", at, quote if quote >= 0 else len(text))
            if escape < 0:
                break
            at = escape + 2
            if at > len(text):
                self._escaped = True
                return len(text)
            if 0 <= quote < at:
                quote = text.find(self._quote, at)
        if quote < 0:
            return len(text)
        self._quote = ""
        self.whole = self._depth == 0
        return quote + 1

    def _structure(self, text: str, at: int) -> int:
        """To behind the quote that begins a string, or the bracket that ends the value."""
        for place in range(at, len(text)):
            character = text[place]
            if character in self._quotes:
                self._quote = character
                return place + 1
            if character in "{[(":
                self._depth += 1
            elif character in "}])":
                self._depth -= 1
                if self._depth <= 0:
                    self.whole = True
                    return place + 1
        return len(text)


def decoded(text: str) -> object:
    """The JSON value of `text`, None where it is none."""
    try:
        value: object = decode_any(text.encode("utf-8", "surrogatepass"))
    except ParseFailure:
        return None
    return value
