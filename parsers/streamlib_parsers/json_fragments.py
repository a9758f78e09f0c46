"""Argument text in pieces: the whole JSON at the end, and a live view of what is there before.

    fragments = Fragments()
    fragments.feed('{"path": "a.py", "con')     fragments.partial()   {"path": "a.py"}
    fragments.feed('tent": "im')                fragments.partial()   {"path": "a.py", "content": "im"}
    fragments.feed('port os", "line": 1')       fragments.partial()   {"path": "a.py", "content": "import os"}
    fragments.feed('2}')                        fragments.value()     {"path": "a.py", "content": "import os", "line": 12}

Every view is a beginning of the value: a string may go on, an array or object may get more members, and nothing that was there changes.
Keys without a value, numbers and words that may go on, and halves of escapes are not shown before they are sure.

`feed` only appends. `partial` reads on from where it stopped, so that all views together read the text once; the view is the same growing
value each time (not to be changed by the caller), and only the string that is still open is joined anew. `value` is one decode of the
whole text. Text that is no JSON gives the view up to where it went wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamlib_parsers.errors import InvalidArguments, ParseFailure
from streamlib_parsers.json_text import decode_any, is_json_bytes, scrub

DEEPEST: Final = 512
"""Nesting that a view follows; deeper text is still decoded as a whole, as far as the decoder goes."""

WINDOW: Final = 4096
"""A string is searched for its end so many characters at a time: one search must not go over what the next will go over again."""

_SPACE: Final = " \t\n\r"
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
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


class IncrementalJson:
    """One growing JSON text."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._unread: list[str] = []
        self._view = _View()

    def feed(self, text: str) -> None:
        """More of it."""
        self._pieces.append(text)
        self._unread.append(text)

    @property
    def text(self) -> str:
        """All of it, as it came."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def whole(self) -> bool:
        """Whether the text is exactly one JSON value."""
        return is_json_bytes(self.text.encode("utf-8", "surrogatepass"))

    def value(self) -> Any:
        """The decoded value; `""` is `{}`, as everywhere. Raises `InvalidArguments` on what is not whole."""
        text = self.text
        data = (text or "{}").encode("utf-8", "surrogatepass")
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
        try:
            return scrub(decode_any(data))
        except ParseFailure as failure:
            raise InvalidArguments(f"the text is {failure.info.message}", text) from None

    def partial(self) -> Any:
        """What is sure so far; None as long as nothing is. Not to be changed: the next view is the same value, grown."""
        if self._unread:
            self._view.read("".join(self._unread))
            self._unread.clear()
        return self._view.value()


class _View:
    """Reads JSON as it grows; each state is a method that reads from a place and says where it stopped."""

    def __init__(self) -> None:
        self._root: Any = None
        self._stack: list[dict[str, Any] | list[Any]] = []
        self._step: Callable[[str, int], int] = self._value
        self._key = ""
        self._is_key = False
        self._slot: tuple[Any, Any] | None = None  # where the open string stands
        self._parts: list[str] = []  # of the open string, of a number or a word
        self._escape = ""
        self._high = ""

    def read(self, text: str) -> None:
        """More text."""
        at = 0
        while at < len(text):
            at = self._step(text, at)

    def value(self) -> Any:
        """What is sure so far."""
        if self._slot is not None:
            self._show("".join(self._parts))
        return self._root

    # --- states ---

    def _value(self, text: str, at: int) -> int:
        at = _past_space(text, at)
        if at == len(text):
            return at
        first = text[at]
        if first == '"':
            self._begin_string(is_key=False)
        elif first in "{[":
            return self._open({} if first == "{" else [], text, at)
        elif first in "-0123456789":
            self._step = self._number
            return at
        elif first in "tfn":
            self._step = self._word
            return at
        else:
            return self._fail(text)
        return at + 1

    def _open(self, container: dict[str, Any] | list[Any], text: str, at: int) -> int:
        if len(self._stack) >= DEEPEST:
            return self._fail(text)
        self._attach(container)
        self._stack.append(container)
        self._step = self._first_key if isinstance(container, dict) else self._first_element
        return at + 1

    def _first_element(self, text: str, at: int) -> int:
        at = _past_space(text, at)
        if at < len(text):
            self._step = self._after if text[at] == "]" else self._value
        return at

    def _first_key(self, text: str, at: int) -> int:
        at = _past_space(text, at)
        if at < len(text):
            self._step = self._after if text[at] == "}" else self._before_key
        return at

    def _before_key(self, text: str, at: int) -> int:
        at = _past_space(text, at)
        if at == len(text):
            return at
        if text[at] != '"':
            return self._fail(text)
        self._begin_string(is_key=True)
        return at + 1

    def _colon(self, text: str, at: int) -> int:
        at = _past_space(text, at)
        if at == len(text):
            return at
        if text[at] != ":":
            return self._fail(text)
        self._step = self._value
        return at + 1

    def _after(self, text: str, at: int) -> int:
        """Behind a value: a comma, or the end of its container."""
        at = _past_space(text, at)
        if at == len(text):
            return at
        container = self._stack[-1] if self._stack else None
        is_dict = isinstance(container, dict)
        if container is not None and text[at] == ",":
            self._step = self._before_key if is_dict else self._value
        elif container is not None and text[at] == ("}" if is_dict else "]"):
            self._stack.pop()
        else:
            return self._fail(text)
        return at + 1

    def _number(self, text: str, at: int) -> int:
        end = at
        while end < len(text) and text[end] in "+-0123456789.eE":
            end += 1
        self._parts.append(text[at:end])
        if end == len(text):
            return end
        number = "".join(self._parts)
        self._parts.clear()
        try:
            self._attach(msgspec.json.decode(number))
        except msgspec.DecodeError:
            return self._fail(text)
        self._step = self._after
        return end

    def _word(self, text: str, at: int) -> int:
        self._parts.append(text[at])
        word = "".join(self._parts)
        if word in _WORDS:
            self._parts.clear()
            self._attach(_WORDS[word])
            self._step = self._after
        elif not any(known.startswith(word) for known in _WORDS):
            return self._fail(text)
        return at + 1

    def _fail(self, text: str) -> int:
        """No JSON: the view stays as it is."""
        self._step = self._ignore
        return len(text)

    def _ignore(self, text: str, at: int) -> int:
        return len(text)

    # --- strings ---

    def _begin_string(self, *, is_key: bool) -> None:
        self._is_key = is_key
        self._parts.clear()
        if not is_key:
            self._slot = self._attach("")
        self._step = self._string

    def _string(self, text: str, at: int) -> int:
        """To the quote that ends the string, or to an escape."""
        near = min(at + WINDOW, len(text))
        quote = text.find('"', at, near)
        escape = text.find("\\", at, quote if quote >= 0 else near)
        end = escape if escape >= 0 else quote if quote >= 0 else near
        if end > at:
            self._flush_half()
            self._parts.append(text[at:end])
        if escape >= 0:
            self._step = self._escaped
            return end + 1
        if quote >= 0:
            self._end_string()
            return end + 1
        return end

    def _escaped(self, text: str, at: int) -> int:
        wanted = 5 if (self._escape + text[at])[0] == "u" else 1
        piece = text[at : at + wanted - len(self._escape)]
        self._escape += piece
        if len(self._escape) == wanted:
            escape, self._escape = self._escape, ""
            self._step = self._string
            if not self._add_escape(escape):
                return self._fail(text)
        return at + len(piece)

    def _add_escape(self, escape: str) -> bool:
        """One whole escape; halves of an emoji wait for each other."""
        if escape[0] != "u":
            self._flush_half()
            self._parts.append(_ESCAPES.get(escape, ""))
            return escape in _ESCAPES
        try:
            code = int(escape[1:], 16)
        except ValueError:
            return False
        if self._high and 0xDC00 <= code <= 0xDFFF:
            self._parts.append(chr(0x10000 + ((ord(self._high) - 0xD800) << 10) + code - 0xDC00))
            self._high = ""
            return True
        self._flush_half()
        if 0xD800 <= code <= 0xDBFF:
            self._high = chr(code)
        else:
            self._parts.append("\ufffd" if 0xDC00 <= code <= 0xDFFF else chr(code))
        return True

    def _flush_half(self) -> None:
        """A half of an emoji stayed alone."""
        if self._high:
            self._parts.append("\ufffd")
            self._high = ""

    def _end_string(self) -> None:
        self._flush_half()
        text = "".join(self._parts)
        if self._is_key:
            self._key = text
            self._step = self._colon
        else:
            self._show(text)
            self._slot = None
            self._step = self._after
        self._parts.clear()

    # --- the view ---

    def _attach(self, value: Any) -> tuple[Any, Any]:
        """Puts a value where it belongs, and says where that is."""
        if not self._stack:
            self._root = value
            return None, None
        container = self._stack[-1]
        if isinstance(container, dict):
            container[self._key] = value
            return container, self._key
        container.append(value)
        return container, len(container) - 1

    def _show(self, text: str) -> None:
        """The open string as it stands."""
        self._parts = [text]
        container, key = self._slot or (None, None)
        if container is None:
            self._root = text
        else:
            container[key] = text


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
