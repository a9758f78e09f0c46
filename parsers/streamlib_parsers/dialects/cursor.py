"""Text that arrives in chunks, read as if it were complete.

A grammar is a generator that yields wherever it needs more text, so it reads top to bottom like the
syntax it describes:

    name, _ = yield from text.head(">")
    value = yield from text.until(("</parameter>",), buffer.add)

Everything that is read is kept until `commit`: a call that does not come to its end is emitted as
it was written. No method looks at a character twice, and at most one literal's length stays unread
between two chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar

from streamlib_parsers.dialects.balanced import BalancedValue, decoded
from streamlib_parsers.dialects.literal_search import StringBuffer, literal_search
from streamlib_parsers.json_text import scrub

T = TypeVar("T")
Parse: TypeAlias = Generator[None, None, T]
"""Yields where more text is needed, returns T."""

HEAD: Final = 256
"""Characters of a name, or of the attributes of a tag. The longest tool name of any API has 128."""
NAME_MARKS: Final = "_-.:/"
"""What a name may contain beside letters and digits."""


class NoMatch(Exception):
    """The text is not a call: it is emitted, and searched for calls again after its opener."""


class NestedMatch(Exception):
    """A call begins where only parts of a call may stand.

    Both openers are text, as is all between.
    """


class BufferFull(Exception):
    """Thrown into a grammar that buffers too much.

    One that catches it must emit what it buffered.
    """


class TextCursor:
    """The text that is not read yet, and what was read since the last commit."""

    __slots__ = ("_earlier", "_uncommitted_from", "ended", "index", "opener", "text")

    def __init__(self) -> None:
        self.text = ""
        """The last chunk, after what earlier chunks left unread."""
        self.index = 0
        """Index in `text` of the next character to read."""
        self.ended = False
        """Set at the end of the message: no more text will come."""
        self.opener = ""
        """The literal that began the grammar; what is uncommitted begins with it."""
        self._earlier = StringBuffer()
        """What was read of earlier chunks since the last commit."""
        self._uncommitted_from = 0
        """Index in `text` from which on this chunk is read but not committed."""

    def feed(self, text: str) -> None:
        """Adds a chunk."""
        if self._uncommitted_from < self.index:
            self._earlier.add(self.text[self._uncommitted_from : self.index])
        if self.index < len(self.text):
            # At most what a literal may begin with is unread: the copy is short.
            text = self.text[self.index :] + text
        self.text = text
        self.index = self._uncommitted_from = 0

    @property
    def unread(self) -> int:
        """How many characters are not read."""
        return len(self.text) - self.index

    @property
    def size(self) -> int:
        """How many characters were read since the last commit."""
        return self._earlier.size + self.index - self._uncommitted_from

    def uncommitted(self) -> str:
        """What was read since the last commit."""
        return self._earlier.text() + self.text[self._uncommitted_from : self.index]

    def commit(self) -> None:
        """What was read so far is decided: it will not be emitted as text."""
        self._earlier.clear()
        self._uncommitted_from = self.index

    def go_back(self, size: int) -> None:
        """Makes the last `size` uncommitted characters unread, and commits those before them."""
        if size <= self.index - self._uncommitted_from:
            # They are of this chunk. Its rest is not copied: that would be quadratic in a chunk
            # with
            # many openers that begin no call.
            self.index -= size
        else:
            self.text = self.uncommitted()[-size:] + self.text[self.index :]
            self.index = 0
        self.commit()

    def take(self, end: int) -> str:
        """Reads up to index `end` of `text`."""
        text = self.text[self.index : end]
        self.index = end
        return text

    # --- what grammars are made of ---

    def peek(self) -> Parse[str]:
        """The next character, not read; "" at the end."""
        while self.index >= len(self.text) and not self.ended:
            yield
        return self.text[self.index : self.index + 1]

    def spaces(self) -> Parse[None]:
        """Reads white space."""
        while True:
            end, text = self.index, self.text
            while end < len(text) and text[end].isspace():
                end += 1
            if end > self.index:
                self.take(end)
            if end < len(text) or self.ended:
                return
            yield

    def ahead(self, *options: str) -> Parse[str]:
        """The longest of `options` that comes next, not read; "" where none does."""
        ordered = _longest_first(options)
        while True:
            text, index = self.text, self.index
            available = len(text) - index
            for option in ordered:
                if available >= len(option):
                    if text.startswith(option, index):
                        return option
                elif not self.ended and option.startswith(text[index:]):
                    break  # the chunk ends inside what may be this option
            else:
                return ""
            yield

    def literal(self, *options: str) -> Parse[str]:
        """Reads the longest of `options` that comes next; "" where none does."""
        match = yield from self.ahead(*options)
        if match:
            self.take(self.index + len(match))
        return match

    def word(self) -> Parse[str]:
        """Reads a name: letters, digits and `NAME_MARKS`; "" where none begins here."""
        return (yield from self._characters(NAME_MARKS))

    def _characters(self, marks: str) -> Parse[str]:
        """Reads letters, digits and `marks`."""
        characters: list[str] = []
        while True:
            character = yield from self.peek()
            if not character or not (character.isalnum() or character in marks):
                return "".join(characters)
            characters.append(self.take(self.index + 1))
            if len(characters) > HEAD:
                raise NoMatch  # no name or number is that long: text must not be buffered for it

    def until(self, stops: tuple[str, ...], sink: Callable[[str], object]) -> Parse[str]:
        """Passes all text before the first of `stops` to `sink` and reads the stop.

        Returns:
            The stop that was read; "" at the end of the message.
        """
        search = literal_search(stops)
        while True:
            index, stop = search.first(self.text, self.index, final=self.ended)
            if index > self.index:
                sink(self.take(index))  # before the stop, or before what may become one
            if stop:
                self.take(index + len(stop))
            if stop or self.ended:
                return stop
            yield

    def head(
        self, *stops: str, limit: int = HEAD, barred: str = "\n<", leave: bool = False
    ) -> Parse[tuple[str, str]]:
        """Reads a short text and the stop that ends it.

        Args:
            stops: the literals that end the text.
            limit: characters it may have.
            barred: characters that it must not contain.
            leave: whether the stop is left unread.

        Returns:
            The text, and the stop that ended it.

        Raises:
            NoMatch: no stop within the limit, or a barred character before it.
        """
        while True:
            # Searched anew with every chunk, but never more than `limit` characters.
            window = self.text[self.index : self.index + limit]
            index, stop = _first_of(stops, window)
            for character in barred:
                if window.find(character, 0, index) >= 0:
                    raise NoMatch
            if stop:
                self.index += index
                if not leave:
                    self.index += len(stop)
                return window[:index], stop
            if self.ended or len(window) == limit:
                raise NoMatch
            yield

    def json(self, sink: Callable[[str], object], head: str = "") -> Parse[None]:
        """Reads a JSON object, array or string and passes it to `sink` as it arrives.

        Line breaks inside its strings are escaped.

        Args:
            sink: receives the text.
            head: the beginning of the value, where that was read before.

        Raises:
            NoMatch: it does not end, or is not JSON.
        """
        value = BalancedValue()
        _, head = value.read(head, 0)
        yield from self._balanced(value, sink, head)

    def parentheses(self, sink: Callable[[str], object]) -> Parse[None]:
        """Reads Python arguments from their `(` to their `)`.

        Raises:
            NoMatch: they do not end.
        """
        yield from self._balanced(BalancedValue("\"'"), sink)

    def _balanced(
        self, value: BalancedValue, sink: Callable[[str], object], head: str = ""
    ) -> Parse[None]:
        while True:
            end, text = value.read(self.text, self.index)
            if text:
                self.take(end)
                sink(head + text)
                head = ""
            if value.complete:
                return
            if value.malformed or self.ended:
                raise NoMatch
            yield

    def json_text(self) -> Parse[str]:
        """Reads a JSON value of any kind and returns its text."""
        if (yield from self.ahead('"', "{", "[")):
            buffer = StringBuffer()
            yield from self.json(buffer.add)
            return buffer.text()
        return (yield from self._characters("+-."))

    def json_object(self, sink: Callable[[str], object]) -> Parse[None]:
        """Reads arguments: an object, passed on as it arrives, or a string that holds one, decoded.

        Raises:
            NoMatch: neither.
        """
        first = yield from self.peek()
        if first == "{":
            yield from self.json(sink)
        elif first == '"':
            buffer = StringBuffer()
            yield from self.json(buffer.add)
            # A JSON string may hold half an emoji, which no event may.
            inner = scrub(decoded(buffer.text()))
            if not isinstance(inner, str):
                raise NoMatch
            if inner and not isinstance(decoded(inner), dict):
                raise NoMatch
            sink(inner or "{}")
        else:
            raise NoMatch


@lru_cache(maxsize=256)
def _longest_first(options: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(options, key=len, reverse=True))


def _first_of(stops: tuple[str, ...], window: str) -> tuple[int, str]:
    """Index and literal of the first of `stops` in a short text.

    Where it contains none: the index at which one may begin, and "".
    """
    if len(stops) == 1 and len(stops[0]) == 1:
        # Most heads end with one character: `>`.
        index = window.find(stops[0])
        if index < 0:
            return len(window), ""
        return index, stops[0]
    return literal_search(stops).first(window, 0, final=False)
