"""Searching literals in text that arrives in chunks, and collecting text without copying it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

SMALL: Final = 1024
"""Fragments that are joined to one: a megabyte that arrived one character at a time would otherwise
stay a million objects."""

WINDOW: Final = 256
WIDEST: Final = 65_536
"""Characters that a search looks at in one window, at first and at most."""
SHORT: Final = 64
"""In a shorter text every character is looked up; a longer one is searched for each first
character."""


class StringBuffer:
    """A text that grows at its end; joined by `text`."""

    __slots__ = ("_large", "_small", "size")

    def __init__(self) -> None:
        self._large: list[str] = []
        """Joined fragments."""
        self._small: list[str] = []
        """The fragments after those, fewer than `SMALL`."""
        self.size = 0
        """Characters in all."""

    def add(self, fragment: str) -> None:
        """Appends."""
        self._small.append(fragment)
        self.size += len(fragment)
        if len(self._small) >= SMALL:
            self._large.append("".join(self._small))
            self._small.clear()

    def clear(self) -> None:
        """Empties it."""
        if self.size:
            self._large.clear()
            self._small.clear()
            self.size = 0

    def text(self) -> str:
        """The text."""
        return "".join(self._large) + "".join(self._small)


class LiteralSearch:
    """A set of literals to search for; the longest one where several begin alike."""

    __slots__ = ("_by_first", "_by_two", "_firsts")

    def __init__(self, literals: Iterable[str]) -> None:
        longest_first = sorted(set(literals), key=len, reverse=True)
        self._by_first: dict[str, list[str]] = {}
        """The literals by their first character."""
        for literal in longest_first:
            self._by_first.setdefault(literal[0], []).append(literal)
        self._firsts = frozenset(self._by_first)
        self._by_two: dict[str, list[str]] = {}
        """The literals that a text may hold by its first two characters: most text that begins like
        a tag is none, and the second character tells."""
        for literal in longest_first:
            if literal[:2] not in self._by_two:
                self._by_two[literal[:2]] = self._beginning_with(literal[:2])

    def _beginning_with(self, start: str) -> list[str]:
        """The literals that begin with `start`, or with its first character and have no second."""
        same_first = self._by_first[start[0]]
        return [literal for literal in same_first if len(literal) == 1 or literal[1] == start[1:]]

    def absent(self, text: str) -> bool:
        """Whether no literal can even begin in `text`: the fast answer for most deltas."""
        if len(text) < SHORT:
            return self._firsts.isdisjoint(text)
        return not any(first in text for first in self._by_first)

    def matches(self, text: str, start: int, *, final: bool) -> Iterator[tuple[int, str]]:
        """Every index from `start` on at which a literal stands, in order, with the literal.

        The last match is (index, ""): there is no further one, and what begins at `index` may
        become a literal with the text to come. With `final`, no more text comes, and that index is
        the end.

        First characters are searched window by window, so that neither many matches that the caller
        refuses nor many searches in one text read it again and again.
        """
        size, window = len(text), WINDOW
        while start < size:
            end = min(start + window, size)
            # The next index of each first character that occurs in the window.
            candidates: dict[str, int] = {}
            for first in self._by_first:
                index = text.find(first, start, end)
                if index >= 0:
                    candidates[first] = index
            while candidates:
                if len(candidates) > 1:
                    first = min(candidates, key=candidates.__getitem__)
                else:  # most often
                    (first,) = candidates
                index = candidates[first]
                literal = self._match_at(text, index, final=final)
                if literal is None:
                    yield index, ""
                    return
                if literal:
                    yield index, literal
                following = text.find(first, index + 1, end)
                if following >= 0:
                    candidates[first] = following
                else:
                    del candidates[first]
            start = end
            window = min(2 * window, WIDEST)
        yield size, ""

    def first(self, text: str, start: int, *, final: bool) -> tuple[int, str]:
        """The first of `matches`."""
        return next(self.matches(text, start, final=final))

    def _match_at(self, text: str, index: int, *, final: bool) -> str | None:
        """The literal at `index`; "" for none; None where the text is too short to tell."""
        available = len(text) - index
        first = text[index]
        literals: Sequence[str] = self._by_first[first]
        if available > 1:
            literals = self._by_two.get(text[index : index + 2]) or self._by_two.get(first) or ()
        for literal in literals:
            if available >= len(literal):
                if text.startswith(literal, index):
                    return literal
            elif not final and literal.startswith(text[index:]):
                return None
        return ""


@lru_cache(maxsize=256)
def literal_search(literals: tuple[str, ...]) -> LiteralSearch:
    """A search for these literals; cached, as grammars search for the same few."""
    return LiteralSearch(literals)
