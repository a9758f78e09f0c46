"""A text that comes in pieces, read as if it were whole.

A grammar is a generator that yields wherever it needs more text, so it reads top to bottom like the form it describes:

    name, _ = yield from text.head(">")
    value = yield from text.until(("</parameter>",), pieces.add)

Everything that is read is kept until `commit`, for a call that does not come to its end is given back as it was written. No
primitive looks at a character twice, and at most one literal's length waits unread between two pieces.
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
"""Characters of a name, or of the attributes of a tag: the longest tool name of any API is 128."""
NAME_MARKS: Final = "_-.:/"
"""What may stand in a name beside letters and digits."""


class NoMatch(Exception):
    """The text is no call after all: give it back, and look for calls in it from behind its first marker."""


class NestedMatch(Exception):
    """A call opens where only a call's parts may stand: give both openings back, and look for calls after them, not in them."""


class BufferFull(Exception):
    """More than the ceiling is held. A grammar that catches it must give out what it holds."""


class Cursor:
    """The text that is not read yet, and what was read since the last commit.

    opener: the literal with which the grammar began; it is the first of what is kept. over: no more text will come.
    """

    __slots__ = ("_kept", "_mark", "at", "opener", "over", "text")

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.over = False
        self.opener = ""
        self._kept = StringBuffer()  # of what was read of earlier pieces
        self._mark = 0  # from here to `at`, what was read of this one

    def feed(self, text: str) -> None:
        """More text."""
        if self._mark < self.at:
            self._kept.add(self.text[self._mark : self.at])
        self.text = self.text[self.at :] + text if self.at < len(self.text) else text
        self.at = self._mark = 0

    @property
    def unread(self) -> int:
        """How many characters wait."""
        return len(self.text) - self.at

    @property
    def size(self) -> int:
        """How many characters are kept."""
        return self._kept.size + self.at - self._mark

    def kept(self) -> str:
        """What was read since the last commit."""
        return self._kept.text() + self.text[self._mark : self.at]

    def commit(self) -> None:
        """What was read so far is understood for good."""
        self._kept.clear()
        self._mark = self.at

    def go_back(self, size: int) -> None:
        """Of what is kept, the last `size` characters are to be read again; nothing is kept any more."""
        here = self.at - self._mark
        if size <= here:
            self.at -= size  # they came with the last piece, whose rest is not to be copied for every call that is none
        else:
            self.text = self.kept()[-size:] + self.text[self.at :]
            self.at = 0
        self.commit()

    def take(self, end: int) -> str:
        """Reads up to `end`."""
        piece = self.text[self.at : end]
        self.at = end
        return piece

    # --- what grammars are made of ---

    def peek(self) -> Parse[str]:
        """The next character, not read; "" at the end."""
        while self.at >= len(self.text) and not self.over:
            yield
        return self.text[self.at : self.at + 1]

    def spaces(self) -> Parse[None]:
        """White space."""
        while True:
            end, text = self.at, self.text
            while end < len(text) and text[end].isspace():
                end += 1
            if end > self.at:
                self.take(end)
            if end < len(text) or self.over:
                return
            yield

    def ahead(self, *options: str) -> Parse[str]:
        """The longest of `options` that comes next, not read; "" where none does."""
        ordered = _longest_first(options)
        while True:
            text, at = self.text, self.at
            room = len(text) - at
            for option in ordered:
                if room >= len(option):
                    if text.startswith(option, at):
                        return option
                elif not self.over and option.startswith(text[at:]):
                    break
            else:
                return ""
            yield

    def literal(self, *options: str) -> Parse[str]:
        """Reads the longest of `options` that comes next; "" where none does."""
        found = yield from self.ahead(*options)
        if found:
            self.take(self.at + len(found))
        return found

    def word(self) -> Parse[str]:
        """Reads a name: letters, digits and what stands inside names; "" where none begins here."""
        name: list[str] = []
        while (character := (yield from self.peek())) and (
            character.isalnum() or character in NAME_MARKS
        ):
            name.append(self.take(self.at + 1))
            if len(name) > HEAD:
                raise NoMatch
        return "".join(name)

    def until(self, stops: tuple[str, ...], sink: Callable[[str], object]) -> Parse[str]:
        """Hands everything before the first of `stops` to `sink`, reads the stop and says which it was; "" at the end."""
        wanted = literal_search(stops)
        while True:
            place, stop = wanted.first(self.text, self.at, over=self.over)
            if place > self.at:
                sink(self.take(place))
            if stop:
                self.take(place + len(stop))
            if stop or self.over:
                return stop
            yield

    def head(
        self, *stops: str, limit: int = HEAD, barred: str = "\n<", leave: bool = False
    ) -> Parse[tuple[str, str]]:
        """A short text and the stop that ended it, read. `Broken` past `limit`, or where a character of `barred` comes first.

        leave: the stop is not read.
        """
        while True:
            window = self.text[self.at : self.at + limit]
            place, stop = _first_of(stops, window)
            for character in barred:
                if 0 <= window.find(character, 0, place) < place:
                    raise NoMatch
            if stop:
                text = window[:place]
                self.at += place if leave else place + len(stop)
                return text, stop
            if self.over or len(window) == limit:
                raise NoMatch
            yield

    def json(self, sink: Callable[[str], object]) -> Parse[None]:
        """One JSON object, array or string, handed on as it comes, line breaks inside its strings escaped. `Broken` if it does not end."""
        yield from self._span(BalancedValue(), sink)

    def parentheses(self, sink: Callable[[str], object]) -> Parse[None]:
        """Python arguments from their `(` to their `)`. `Broken` if they do not end."""
        yield from self._span(BalancedValue("\"'"), sink)

    def _span(self, span: BalancedValue, sink: Callable[[str], object]) -> Parse[None]:
        while True:
            end, piece = span.read(self.text, self.at)
            if piece:
                self.take(end)
                sink(piece)
            if span.whole:
                return
            if self.over:
                raise NoMatch
            yield

    def json_text(self) -> Parse[str]:
        """One JSON value of any kind, as its text."""
        if (yield from self.ahead('"', "{", "[")):
            pieces = StringBuffer()
            yield from self.json(pieces.add)
            return pieces.text()
        word: list[str] = []
        while (character := (yield from self.peek())) and (
            character.isalnum() or character in "+-."
        ):
            word.append(self.take(self.at + 1))
            if len(word) > HEAD:
                raise NoMatch
        return "".join(word)

    def json_object(self, sink: Callable[[str], object]) -> Parse[None]:
        """Arguments: an object, handed on as it comes, or a string that holds one (double-encoded), handed on decoded."""
        first = yield from self.peek()
        if first == "{":
            yield from self.json(sink)
        elif first == '"':
            held = StringBuffer()
            yield from self.json(held.add)
            inner = scrub(decoded(held.text()))
            if not isinstance(inner, str) or (inner and not isinstance(decoded(inner), dict)):
                raise NoMatch
            sink(inner or "{}")
        else:
            raise NoMatch


@lru_cache(maxsize=256)
def _longest_first(options: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(options, key=len, reverse=True))


def _first_of(stops: tuple[str, ...], window: str) -> tuple[int, str]:
    """Place and literal of the first of `stops` in a short text; (where one may begin, "") if none is there."""
    if len(stops) == 1 and len(stops[0]) == 1:
        place = window.find(stops[0])
        return (place, stops[0]) if place >= 0 else (len(window), "")
    return literal_search(stops).first(window, 0, over=False)
