"""Where a bracketed or quoted value ends, in text that arrives in chunks.

Strings and brackets are followed; nothing is decoded.
"""

from __future__ import annotations

import re
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
"""Characters that JSON strings must escape. Models write line breaks and tabs there as they are."""


FOREIGN_TO_JSON: Final = re.compile(r"[^\s{}\[\]:,\"0-9+\-.EeTtruFfalsNniIy]")
FOREIGN_TO_PYTHON: Final = re.compile(r"[^\s\w{}\[\]():,=\"'+\-.*/]")
"""A character that is in no value outside of its strings: not even in the constants of other
languages that models write (`True`, `None`, `NaN`, `Infinity`)."""


class BalancedValue:
    """One value from its first character on: an object, array, string, or list of arguments."""

    __slots__ = (
        "_depth",
        "_foreign",
        "_is_json",
        "_open_quote",
        "_quotes",
        "_skips_next",
        "complete",
        "malformed",
    )

    def __init__(self, quotes: str = '"') -> None:
        """Begins before the value.

        Args:
            quotes: the characters that quote strings. With `"` alone the value is JSON, and control
                characters in its strings are escaped.
        """
        self.complete = False
        """Set once the end of the value was read."""
        self.malformed = False
        """Set where JSON contains what it cannot: nothing after that is read."""
        self._quotes = quotes
        self._is_json = len(quotes) == 1
        self._foreign = FOREIGN_TO_JSON if self._is_json else FOREIGN_TO_PYTHON
        self._depth = 0
        """Brackets that are open."""
        self._open_quote = ""
        """The quote that ends the string being read; "" outside of strings."""
        self._skips_next = False
        """Whether a backslash ended the last chunk: the next character belongs to it."""

    def read(self, text: str, index: int) -> tuple[int, str]:
        """Reads on from `index`.

        Returns:
            Where it stopped (after the value, before what makes it malformed, or at the end of
            `text`), and the value's text up to there.
        """
        parts: list[str] = []
        while index < len(text) and not (self.complete or self.malformed):
            if self._open_quote:
                end = self._read_string(text, index)
                part = text[index:end]
                if self._is_json and not part.isprintable():
                    part = part.translate(CONTROL)
            else:
                end = self._read_structure(text, index)
                part = text[index:end]
                foreign = self._foreign.search(part)
                if foreign is not None:
                    # Its end was lost, and would else be searched for in all that follows.
                    self.malformed, self.complete = True, False
                    end = index + foreign.start()
                    part = text[index:end]
            parts.append(part)
            index = end
        return index, "".join(parts)

    def _read_string(self, text: str, index: int) -> int:
        """Reads up to the quote that ends the string, and over it.

        By searching, because strings may be megabytes long.
        """
        if self._skips_next:
            index += 1
            self._skips_next = False
        quote = text.find(self._open_quote, index)
        while True:
            # Only up to the quote: a search to the end for each string would be quadratic.
            escape = text.find("\\", index, quote if quote >= 0 else len(text))
            if escape < 0:
                break
            index = escape + 2
            if index > len(text):
                self._skips_next = True
                return len(text)
            if 0 <= quote < index:  # this quote is escaped
                quote = text.find(self._open_quote, index)
        if quote < 0:
            return len(text)
        self._open_quote = ""
        self.complete = self._depth == 0
        return quote + 1

    def _read_structure(self, text: str, start: int) -> int:
        """Reads over the quote that begins a string, or the bracket that ends the value."""
        for index in range(start, len(text)):
            character = text[index]
            if character in self._quotes:
                self._open_quote = character
                return index + 1
            if character in "{[(":
                self._depth += 1
            elif character in "}])":
                self._depth -= 1
                # Which bracket closes which is left to the JSON decoder.
                if self._depth <= 0:
                    self.complete = True
                    return index + 1
        return len(text)


def decoded(text: str) -> object:
    """The JSON value of `text`; None where it is not JSON."""
    try:
        value: object = decode_any(text.encode("utf-8", "surrogatepass"))
    except ParseFailure:
        return None
    return value
