"""Python literals and keyword arguments, read by hand: `k=1, s='x', l=[True, None]`.

Not `ast`: it warns about escapes, recurses in C, and would have to be told what not to evaluate. Numbers, strings, lists, tuples, dicts,
and True, False, None with their JSON spellings; everything else is a `ValueError`. One pass, nesting bounded.
"""

from __future__ import annotations

import math
from typing import Any, Final

DEEPEST: Final = 100
LONGEST_NUMBER: Final = 400
"""Digits: far above any float, far below what makes Python's own conversion slow."""

_WORDS: Final[dict[str, Any]] = {
    "True": True,
    "true": True,
    "False": False,
    "false": False,
    "None": None,
    "null": None,
}
_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "\n": "",
    "0": "\0",
    "b": "\b",
    "f": "\f",
    "/": "/",
}
_CODES: Final = {"x": 2, "u": 4, "U": 8}
_SPACE: Final = " \t\r\n"


def literal(text: str) -> Any:
    """The value of one literal."""
    reader = _Reader(text)
    value = reader.value(0)
    reader.end()
    return value


def keyword_arguments(text: str) -> dict[str, Any]:
    """What stands between the parentheses of a call."""
    reader = _Reader(text)
    found: dict[str, Any] = {}
    while not reader.done:
        name = reader.word()
        if not name.isidentifier():
            raise ValueError("a name must stand before each value")
        reader.expect("=")
        found[name] = reader.value(0)
        if not reader.skip(","):
            break
    reader.end()
    return found


class _Reader:
    """A place in a text; every method leaves it at something other than white space."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._spaces()

    @property
    def done(self) -> bool:
        return self._at >= len(self._text)

    def end(self) -> None:
        if not self.done:
            raise ValueError("something follows the literal")

    def skip(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        self._spaces()
        return True

    def expect(self, mark: str) -> None:
        if not self.skip(mark):
            raise ValueError(f"{mark!r} is missing")

    def word(self) -> str:
        start = self._at
        while self._at < len(self._text) and (
            self._text[self._at].isalnum() or self._text[self._at] in "_+-."
        ):
            self._at += 1
        word = self._text[start : self._at]
        self._spaces()
        return word

    def value(self, depth: int) -> Any:
        if self.done or depth > DEEPEST:
            raise ValueError("no literal")
        first = self._text[self._at]
        if first in "\"'":
            return self._string(first)
        if first == "{":
            return self._dict(depth)
        if first in "[(":
            return self._list("]" if first == "[" else ")", depth)
        word = self.word()
        return _WORDS[word] if word in _WORDS else number(word)

    def _list(self, close: str, depth: int) -> list[Any]:
        self._step()
        values: list[Any] = []
        while not self.skip(close):
            if values:
                self.expect(",")
                if self.skip(close):
                    break
            values.append(self.value(depth + 1))
        return values

    def _dict(self, depth: int) -> dict[str, Any]:
        self._step()
        values: dict[str, Any] = {}
        while not self.skip("}"):
            if values:
                self.expect(",")
                if self.skip("}"):
                    break
            key = self.value(depth + 1)
            if not isinstance(key, str):
                raise ValueError("a key is no string")  # noqa: TRY004  # one kind of error for everything that is no literal
            self.expect(":")
            values[key] = self.value(depth + 1)
        return values

    def _string(self, quote: str) -> str:
        quote = quote * 3 if self._text.startswith(quote * 3, self._at) else quote
        at = self._at + len(quote)
        parts: list[str] = []
        end = self._text.find(quote, at)
        while True:
            escape = self._text.find("\\", at, end if end >= 0 else len(self._text))
            if escape < 0:
                break
            parts.append(self._text[at:escape])
            part, at = self._escape(escape + 1)
            parts.append(part)
            if 0 <= end < at:
                end = self._text.find(quote, at)
        if end < 0:
            raise ValueError("a string does not end")
        self._at = end + len(quote)
        self._spaces()
        return "".join(parts) + self._text[at:end]

    def _escape(self, at: int) -> tuple[str, int]:
        """The character that an escape stands for, and where it ends; an unknown one stands for itself, as in Python."""
        kind = self._text[at : at + 1]
        if kind in _CODES:
            digits = self._text[at + 1 : at + 1 + _CODES[kind]]
            code = int(digits, 16) if len(digits) == _CODES[kind] and digits.isalnum() else -1
            if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                raise ValueError("no such character")
            return chr(code), at + 1 + _CODES[kind]
        return _ESCAPES.get(kind, "\\" + kind), at + 1

    def _step(self) -> None:
        self._at += 1
        self._spaces()

    def _spaces(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1


def number(word: str) -> int | float:
    """`+1`, `1_000`, `108.`, `1e3`; never NaN or infinity."""
    if len(word) > LONGEST_NUMBER or not word.isascii():
        raise ValueError("no number")
    try:
        return int(word)
    except ValueError:
        value = float(word)
    if not math.isfinite(value):
        raise ValueError("no finite number")
    return value
