"""Python literals and keyword arguments, read by hand: `k=1, s='x', l=[True, None]`.

Not `ast`: it warns about escapes, recurses in C, and would have to be told what not to evaluate.
Numbers, strings, lists, tuples, dicts, and True, False, None with their JSON spellings; everything
else is a `ValueError`. One pass, nesting bounded.
"""

from __future__ import annotations

import math
from typing import Any, Final

DEEPEST: Final = 100
"""Containers inside each other: each is a frame of the stack."""
LONGEST_NUMBER: Final = 400
"""Digits: far above any float, far below what makes Python's own conversion slow."""

_NAMES: Final[dict[str, Any]] = {
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
_DIGITS_OF_ESCAPE: Final = {"x": 2, "u": 4, "U": 8}
_SPACE: Final = " \t\r\n"
_BEHIND_STRING: Final = ",)]}:"
"""What may follow a string. A quote before anything else is one that LFM2 did not escape."""


def literal(text: str) -> Any:
    """The value of one literal.

    Raises:
        ValueError: the text is not one.
    """
    reader = _LiteralReader(text)
    value = reader.value(0)
    reader.end()
    return value


def keyword_arguments(text: str) -> dict[str, Any]:
    """What is between the parentheses of a call.

    Raises:
        ValueError: anything but keyword arguments with literals.
    """
    reader = _LiteralReader(text)
    arguments: dict[str, Any] = {}
    while not reader.done:
        name = reader.bare_word()
        if not name.isidentifier():
            raise ValueError("expected a name before each value")
        reader.expect("=")
        arguments[name] = reader.value(0)
        if not reader.skip(","):
            break
    reader.end()
    return arguments


class _LiteralReader:
    """An index into a text; every method leaves it at something other than white space."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._index = 0
        """The next character to read."""
        self._skip_space()

    @property
    def done(self) -> bool:
        return self._index >= len(self._text)

    def end(self) -> None:
        if not self.done:
            raise ValueError("unexpected text after the literal")

    def skip(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._index):
            return False
        self._index += len(mark)
        self._skip_space()
        return True

    def expect(self, mark: str) -> None:
        if not self.skip(mark):
            raise ValueError(f"expected {mark!r}")

    def bare_word(self) -> str:
        """A name or number."""
        text, end = self._text, self._index
        while end < len(text) and (text[end].isalnum() or text[end] in "_+-."):
            end += 1
        name = text[self._index : end]
        self._index = end
        self._skip_space()
        return name

    def value(self, depth: int) -> Any:
        if self.done or depth > DEEPEST:
            raise ValueError("expected a literal")
        first = self._text[self._index]
        if first in "\"'":
            return self._string(first)
        if first == "{":
            return self._dict(depth)
        if first == "[":
            return self._list("]", depth)
        if first == "(":
            return self._list(")", depth)
        name = self.bare_word()
        if name in _NAMES:
            return _NAMES[name]
        return number(name)

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
                # Not a TypeError: there is one kind of error for everything that is not a literal.
                raise ValueError("expected a string as key")  # noqa: TRY004
            self.expect(":")
            values[key] = self.value(depth + 1)
        return values

    def _string(self, quote: str) -> str:
        if self._text.startswith(quote * 3, self._index):
            quote *= 3
        index = self._index + len(quote)
        parts: list[str] = []
        end = self._text.find(quote, index)
        while True:
            escape = self._text.find("\\", index, end if end >= 0 else len(self._text))
            if escape < 0:
                if end < 0 or self._ends_string(end + len(quote)):
                    break
                parts.append(self._text[index : end + len(quote)])
                index = end + len(quote)
            else:
                parts.append(self._text[index:escape])
                part, index = self._escape(escape + 1)
                parts.append(part)
            if 0 <= end < index:  # this quote is escaped, or belongs to the string
                end = self._text.find(quote, index)
        if end < 0:
            raise ValueError("a string does not end")
        parts.append(self._text[index:end])
        self._index = end + len(quote)
        self._skip_space()
        return "".join(parts)

    def _ends_string(self, index: int) -> bool:
        """Whether a quote that ends at `index` closes its string."""
        while index < len(self._text) and self._text[index] in _SPACE:
            index += 1
        return index == len(self._text) or self._text[index] in _BEHIND_STRING

    def _escape(self, index: int) -> tuple[str, int]:
        """The character that an escape stands for, and where it ends.

        An unknown escape stands for itself, as in Python.
        """
        kind = self._text[index : index + 1]
        if kind not in _DIGITS_OF_ESCAPE:
            return _ESCAPES.get(kind, "\\" + kind), index + 1
        end = index + 1 + _DIGITS_OF_ESCAPE[kind]
        digits = self._text[index + 1 : end]
        if len(digits) != _DIGITS_OF_ESCAPE[kind] or not digits.isalnum():
            raise ValueError("an escape is incomplete")
        code = int(digits, 16)
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ValueError("an escape stands for no character")
        return chr(code), end

    def _step(self) -> None:
        self._index += 1
        self._skip_space()

    def _skip_space(self) -> None:
        while self._index < len(self._text) and self._text[self._index] in _SPACE:
            self._index += 1


def number(text: str) -> int | float:
    """`+1`, `1_000`, `108.`, `1e3`; never NaN or infinity.

    Raises:
        ValueError: the text is not a finite number.
    """
    if len(text) > LONGEST_NUMBER or not text.isascii():
        raise ValueError("not a number")
    try:
        return int(text)
    except ValueError:
        value = float(text)
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value
