"""JSON that is read as it grows, state by state.

Keys without a value, numbers and literals that may continue, and halves of escapes are taken once
they are certain; a string grows. Text that is not JSON is read up to the first error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib_parsers.growing_text import GrowingText

DEEPEST: Final = 512
"""Nesting that a view follows. Deeper text is still decoded by `value`, as far as the decoder
goes."""

WINDOW: Final = 4096
"""Characters searched at a time for the end of a string. Quotes and backslashes are searched
separately: without this window, a text with many of one and few of the other would be read again
and again up to the next rare one."""

_SPACE: Final = " \t\n\r"
_LITERALS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    '"': '"',
    "\\": "\\",
    "/": "/",
}

_HEX: Final = frozenset("0123456789abcdefABCDEF")

_UNICODE_ESCAPE_LENGTH: Final = 5
"""`u` and four digits."""


class JsonReader:
    """Reads JSON as it grows, and builds the part of the value that is certain.

    Each state is a method that reads from an index of the new text, may set the next state, and
    returns the index where it stopped. The methods under "the view" build the value: a subclass
    that builds something else replaces those.
    """

    def __init__(self) -> None:
        self._root: Any = None
        """The value; None until it starts."""
        self._stack: list[dict[str, Any] | list[Any]] = []
        """Open containers, the innermost last."""
        self._step: Callable[[str, int], int] = self._value
        """Current state."""
        self._key = ""
        """Key of the value that is read next, in an object."""
        self._is_key = False
        """Whether the open string is a key."""
        self._slot: tuple[Any, Any] | None = None
        """Container and key of the open string, (None, None) for the root; None outside a string
        value."""
        self._fragments = GrowingText()
        """Fragments of the open string, number or literal."""
        self._escape = ""
        """The open escape without its backslash."""
        self._high = ""
        """A high surrogate that waits for its low one."""

    def read(self, text: str) -> None:
        """Reads more text."""
        index = 0
        while index < len(text):
            index = self._step(text, index)

    def value(self) -> Any:
        """The part of the value that is certain."""
        if self._slot is not None:
            self._show_open_string()
        return self._root

    # --- states ---

    def _value(self, text: str, index: int) -> int:
        index = past_space(text, index)
        if index == len(text):
            return index
        first = text[index]
        if first == '"':
            self._open_string(is_key=False)
            return index + 1
        if first == "{":
            return self._open_container({}, text, index)
        if first == "[":
            return self._open_container([], text, index)
        if first in "-0123456789":
            self._step = self._number
            return index
        if first in "tfn":
            self._step = self._literal
            return index
        return self._fail(text)

    def _open_container(self, container: dict[str, Any] | list[Any], text: str, index: int) -> int:
        if len(self._stack) >= DEEPEST:
            return self._fail(text)
        self._stack.append(self._begin_container(container))
        if isinstance(container, dict):
            self._step = self._first_key
        else:
            self._step = self._first_element
        return index + 1

    def _first_element(self, text: str, index: int) -> int:
        index = past_space(text, index)
        if index == len(text):
            return index
        self._step = self._value
        if text[index] == "]":
            self._step = self._after_value
        return index

    def _first_key(self, text: str, index: int) -> int:
        index = past_space(text, index)
        if index == len(text):
            return index
        self._step = self._before_key
        if text[index] == "}":
            self._step = self._after_value
        return index

    def _before_key(self, text: str, index: int) -> int:
        index = past_space(text, index)
        if index == len(text):
            return index
        if text[index] != '"':
            return self._fail(text)
        self._open_string(is_key=True)
        return index + 1

    def _colon(self, text: str, index: int) -> int:
        index = past_space(text, index)
        if index == len(text):
            return index
        if text[index] != ":":
            return self._fail(text)
        self._step = self._value
        return index + 1

    def _after_value(self, text: str, index: int) -> int:
        """A comma, or the end of the container."""
        index = past_space(text, index)
        if index == len(text):
            return index
        if not self._stack:  # text after the root value
            return self._fail(text)
        if isinstance(self._stack[-1], dict):
            closing, next_step = "}", self._before_key
        else:
            closing, next_step = "]", self._value
        if text[index] == ",":
            self._step = next_step
        elif text[index] == closing:
            self._end_container()
        else:
            return self._fail(text)
        return index + 1

    def _number(self, text: str, index: int) -> int:
        end = index
        while end < len(text) and text[end] in "+-0123456789.eE":
            end += 1
        self._fragments.append(text[index:end])
        if end == len(text):  # more digits may follow
            return end
        number = "".join(self._fragments)
        self._fragments.clear()
        try:
            self._attach_number(number)
        except msgspec.DecodeError:
            return self._fail(text)
        self._step = self._after_value
        return end

    def _literal(self, text: str, index: int) -> int:
        self._fragments.append(text[index])
        literal = "".join(self._fragments)
        if literal in _LITERALS:
            self._fragments.clear()
            self._attach(_LITERALS[literal])
            self._step = self._after_value
        elif not any(known.startswith(literal) for known in _LITERALS):
            return self._fail(text)
        return index + 1

    def _fail(self, text: str) -> int:
        """Not JSON: the view stays as it is and the rest of the text is skipped."""
        self._step = self._skip
        return len(text)

    def _skip(self, text: str, index: int) -> int:
        del index
        return len(text)

    # --- strings ---

    def _open_string(self, *, is_key: bool) -> None:
        self._is_key = is_key
        self._fragments.clear()
        if not is_key:
            self._begin_string()
        self._step = self._string

    def _string(self, text: str, index: int) -> int:
        """Up to the quote that ends the string, to an escape, or to the end of the window."""
        limit = min(index + WINDOW, len(text))
        quote = text.find('"', index, limit)
        end = limit
        if quote >= 0:
            end = quote
        escape = text.find("\\", index, end)  # one after the quote is outside the string
        if escape >= 0:
            end = escape
        if end > index:
            self._flush_surrogate()
            self._fragments.append(text[index:end])
        if escape >= 0:
            self._step = self._read_escape
            return end + 1
        if quote >= 0:
            self._close_string()
            return end + 1
        return end

    def _read_escape(self, text: str, index: int) -> int:
        """The characters of one escape, which fragments may split."""
        length = 1
        if self._escape.startswith("u") or (not self._escape and text[index] == "u"):
            length = _UNICODE_ESCAPE_LENGTH
        added = text[index : index + length - len(self._escape)]
        self._escape += added
        if len(self._escape) == length:
            escape = self._escape
            self._escape = ""
            self._step = self._string
            if not self._add_escape(escape):
                return self._fail(text)
        return index + len(added)

    def _add_escape(self, escape: str) -> bool:
        """Adds the character of a complete escape, unless it is half a surrogate pair.

        Returns:
            Whether the escape is one of JSON's.
        """
        if escape[0] != "u":
            self._flush_surrogate()
            self._fragments.append(_ESCAPES.get(escape, ""))
            return escape in _ESCAPES
        digits = escape[1:]
        if not _HEX.issuperset(digits):  # `int` takes signs, spaces and underscores as well
            return False
        code = int(digits, 16)
        is_low = 0xDC00 <= code <= 0xDFFF
        if self._high and is_low:
            self._fragments.append(
                chr(0x10000 + ((ord(self._high) - 0xD800) << 10) + code - 0xDC00)
            )
            self._high = ""
            return True
        self._flush_surrogate()
        if is_low:
            self._fragments.append("\ufffd")  # no high surrogate before it
        elif 0xD800 <= code <= 0xDBFF:
            self._high = chr(code)
        else:
            self._fragments.append(chr(code))
        return True

    def _flush_surrogate(self) -> None:
        """Replaces a high surrogate without its low one."""
        if self._high:
            self._fragments.append("\ufffd")
            self._high = ""

    def _close_string(self) -> None:
        self._flush_surrogate()
        if self._is_key:
            self._key = "".join(self._fragments)
            self._step = self._colon
        else:
            self._end_string()
            self._slot = None
            self._step = self._after_value
        self._fragments.clear()

    # --- the view ---

    def _begin_container(self, container: dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
        """Takes a container that opens; returns what stands for it on the stack."""
        self._attach(container)
        return container

    def _end_container(self) -> None:
        self._stack.pop()

    def _begin_string(self) -> None:
        self._slot = self._attach("")

    def _end_string(self) -> None:
        self._show_open_string()

    def _attach_number(self, text: str) -> None:
        """Adds a number.

        Raises:
            msgspec.DecodeError: the text is not a JSON number.
        """
        self._attach(msgspec.json.decode(text))

    def _attach(self, value: Any) -> tuple[Any, Any]:
        """Adds a value to the innermost container and returns the container and the key or index;
        (None, None) for the root."""
        if not self._stack:
            self._root = value
            return None, None
        container = self._stack[-1]
        if isinstance(container, dict):
            container[self._key] = value
            return container, self._key
        container.append(value)
        return container, len(container) - 1

    def _show_open_string(self) -> None:
        """Writes the open string into its container."""
        container, key = self._slot or (None, None)
        if container is None:
            self._root = ""  # a text that nothing else refers to grows without a copy
            self._root = self._fragments.joined()
        else:
            container[key] = ""
            container[key] = self._fragments.joined()


def past_space(text: str, index: int) -> int:
    """The index of the next character that is not whitespace, or the length of the text."""
    while index < len(text) and text[index] in _SPACE:
        index += 1
    return index
