"""Argument text in fragments: the complete JSON at the end, and a live view of it before.

    fragments = IncrementalJson()
    fragments.feed('{"path": "a.py", "con')
    fragments.partial()   {"path": "a.py"}
    fragments.feed('tent": "im')
    fragments.partial()   {"path": "a.py", "content": "im"}
    fragments.feed('port os", "line": 1')
    fragments.partial()   {"path": "a.py", "content": "import os"}
    fragments.feed('2}')
    fragments.value()     {"path": "a.py", "content": "import os", "line": 12}

Every view is a beginning of the value: a string may grow, an array or object may get more
elements, and nothing that was there changes. Keys without a value, numbers and literals that may
continue, and halves of escapes are shown once they are certain.

`feed` only appends. `partial` continues where it stopped, so that all views together read the text
once; the view is the same growing value each time. `value` decodes the complete text once. Text
that is not JSON gives the view up to the first error.
"""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib_parsers.errors import InvalidArguments, ParseFailure
from streamlib_parsers.growing_text import GrowingText
from streamlib_parsers.json_reader import JsonReader
from streamlib_parsers.json_text import DECODE_ERRORS, decode_any, is_json_bytes, scrub


class IncrementalJson:
    """One growing JSON text."""

    def __init__(self) -> None:
        self._fragments = GrowingText()
        """The text; joined into one fragment when `text` is read."""
        self._unread: list[str] = []
        """Fragments since the last `partial`."""
        self._view = JsonReader()

    def feed(self, text: str) -> None:
        """Appends a fragment."""
        self._fragments.append(text)
        self._unread.append(text)

    @property
    def text(self) -> str:
        """All of the text, as received."""
        return self._fragments.joined()

    @property
    def is_complete(self) -> bool:
        """Whether the text is exactly one JSON value."""
        return is_json_bytes(self.text.encode("utf-8", "surrogatepass"))

    def value(self) -> Any:
        """The decoded value; an empty text is `{}`, as everywhere in the library.

        Raises:
            InvalidArguments: the text is not a complete JSON value.
        """
        text = self.text
        data = (text or "{}").encode("utf-8", "surrogatepass")
        try:
            return msgspec.json.decode(data)
        except DECODE_ERRORS:
            # Half a surrogate pair, which msgspec refuses; the slower decoder takes it.
            pass
        try:
            return scrub(decode_any(data))
        except ParseFailure as failure:
            raise InvalidArguments(f"the text is {failure.info.message}", text) from None

    def partial(self) -> Any:
        """The part of the value that is certain; None as long as none is.

        Not to be changed by the caller: the next view is the same object, grown.
        """
        if self._unread:
            self._view.read("".join(self._unread))
            self._unread.clear()
        return self._view.value()
