"""Text that is looked for in pieces: gathered without copying, searched without going back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

SMALL: Final = 1024
"""That many pieces are joined to one, so that a megabyte that came a character at a time does not stay a million objects."""

WINDOW: Final = 256
WIDEST: Final = 65_536
"""A search looks at so many characters at a time, at first and at most."""
SHORT: Final = 64
"""In a text shorter than this every character is looked up; a longer one is searched for each first character."""


class StringBuffer:
    """A text that grows at its end; joined when somebody asks."""

    __slots__ = ("_large", "_small", "size")

    def __init__(self) -> None:
        self._large: list[str] = []
        self._small: list[str] = []
        self.size = 0

    def add(self, piece: str) -> None:
        """Appends."""
        self._small.append(piece)
        self.size += len(piece)
        if len(self._small) >= SMALL:
            self._large.append("".join(self._small))
            self._small.clear()

    def clear(self) -> None:
        """Forgets everything."""
        if self.size:
            self._large.clear()
            self._small.clear()
            self.size = 0

    def text(self) -> str:
        """All of it."""
        return "".join(self._large) + "".join(self._small)


class LiteralSearch:
    """Literals to look for, the longest first where several begin alike."""

    __slots__ = ("_by_first", "_by_two", "_firsts")

    def __init__(self, literals: Iterable[str]) -> None:
        self._by_first: dict[str, list[str]] = {}
        for literal in sorted(set(literals), key=len, reverse=True):
            self._by_first.setdefault(literal[0], []).append(literal)
        self._firsts = frozenset(self._by_first)
        self._by_two: dict[
            str, list[str]
        ] = {}  # most of what begins like a tag is none: the second character says so
        for literal in (literal for group in self._by_first.values() for literal in group):
            alike = (
                other
                for other in self._by_first[literal[0]]
                if len(other) == 1 or other[1] == literal[1:2]
            )
            self._by_two[literal[:2]] = list(alike)

    def absent(self, text: str) -> bool:
        """Whether no literal can even begin in `text`: the quick answer for most deltas."""
        if len(text) < SHORT:
            return self._firsts.isdisjoint(text)
        return not any(first in text for first in self._by_first)

    def hits(self, text: str, at: int, *, over: bool) -> Iterator[tuple[int, str]]:
        """Every place from `at` on where a literal stands, in order: (place, literal).

        The last hit is (place, ""): nothing more stands in `text`, and what begins at `place` may become a literal with the text
        to come. Once the input is `over` that place is the end. First characters are looked for window by window, so that neither
        many hits that are refused nor many searches in one text go over it again and again.
        """
        size, window = len(text), WINDOW
        while at < size:
            end = min(at + window, size)
            places = {
                first: place
                for first in self._by_first
                if (place := text.find(first, at, end)) >= 0
            }
            while places:
                first = (
                    min(places, key=places.__getitem__) if len(places) > 1 else next(iter(places))
                )
                place = places[first]
                literal = self._standing(text, place, over=over)
                if literal is None:
                    yield place, ""
                    return
                if literal:
                    yield place, literal
                places[first] = text.find(first, place + 1, end)
                if places[first] < 0:
                    del places[first]
            at = end
            window = min(2 * window, WIDEST)
        yield size, ""

    def first(self, text: str, at: int, *, over: bool) -> tuple[int, str]:
        """The first of `hits`."""
        return next(self.hits(text, at, over=over))

    def _standing(self, text: str, place: int, *, over: bool) -> str | None:
        """The literal at `place`; "" for none; None where the text is too short to tell."""
        room = len(text) - place
        first = text[place]
        literals: Sequence[str] = self._by_first[first]
        if room > 1:
            literals = self._by_two.get(text[place : place + 2]) or self._by_two.get(first) or ()
        for literal in literals:
            if room >= len(literal):
                if text.startswith(literal, place):
                    return literal
            elif not over and literal.startswith(text[place:]):
                return None
        return ""


@lru_cache(maxsize=256)
def literal_search(literals: tuple[str, ...]) -> LiteralSearch:
    """The same literals are looked for again and again: made once."""
    return LiteralSearch(literals)
