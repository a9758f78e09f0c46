"""Search and replace in a text that still grows: exactly what one pass over all of it would do.

    replacer = Replacer([read_pattern(r"\\d{3}-\\d{4}")], "[phone]")
    replacer.feed("call 555-")  # ["call "]: the digits may become a number
    replacer.feed("1234 now")   # ["[phone] now"]

`re` does the matching. What has to wait is decided by a second pattern, of the `regex` package,
which knows partial matches: the same one, in a form that never matches, so that its search ends
only where some path of the pattern reaches the end of the text before the pattern has matched. The
leftmost such start is the first character whose fate may still change. (Asking for a partial match
alone would be wrong: it returns the first complete match although an earlier one may still begin.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, Protocol, TypeAlias

from streamlib.pipeline.pattern_translation import (
    CONTEXT,
    NEVER,
    ParsedPattern,
    Translation,
    beginning,
)
from streamlib.pipeline.units import text_of

Substitute: TypeAlias = str | Callable[[re.Match[str]], str]
"""What a match becomes: a template as `re.sub` takes it, or a function of the match."""

LONGEST: Final = 256
"""Characters of the longest match that is looked for, unless the caller names another number."""

_CONTEXT_KEPT: Final = CONTEXT + 1
"""Characters kept for that. One more, or `\\A` could seem to match 64 characters behind."""

_FORGOTTEN: Final = 1024
"""Characters behind which the text is forgotten."""

_SMALL: Final = 32
"""Characters that are searched at once: trying each position takes longer."""

_TRIES_IN_A_MATCH: Final = 64
"""Positions tried one by one inside of what is too long for a match, before the rest is searched:
so the search, which may take the square of the window's length, is rare."""


class Search(Protocol):
    """One pattern: where it matches, and what is not known yet."""

    pattern: re.Pattern[str]
    beginning: re.Pattern[str] | None
    """Matches every character with which a match may begin; None: any may."""

    def undecided(self, text: str, start: int, end: int) -> int:
        """The first position at which a match may still begin or change if text follows.

        Args:
            text: what was received.
            start: where the search begins.
            end: where the text ends, for now.

        Returns:
            From `start` on; `end` if nothing can change.
        """
        ...

    def is_undecided(self, text: str, start: int, end: int) -> bool:
        """Whether `undecided` would return `start`: in a fraction of its time."""
        ...


class _FixedSearch:
    """A text without special characters: no package is needed."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self.pattern = pattern
        self.beginning: re.Pattern[str] | None = re.compile(re.escape(text[0]))
        self._text = text

    def undecided(self, text: str, start: int, end: int) -> int:
        """Where the end of the text is a beginning of the fixed one."""
        wanted = self._text
        position = max(start, end - len(wanted) + 1)
        while True:
            position = text.find(wanted[0], position, end)
            if position < 0:
                return end
            if wanted.startswith(text[position:end]):
                return position
            position += 1

    def is_undecided(self, text: str, start: int, end: int) -> bool:
        """Whether the text from `start` on is a beginning of the fixed one."""
        return end - start < len(self._text) and self._text.startswith(text[start:end])


class _PatternSearch:
    """A regular expression."""

    def __init__(self, pattern: re.Pattern[str], tree: ParsedPattern) -> None:
        self.pattern = pattern
        self.beginning = beginning(tree, pattern.flags)
        regex = import_regex("this pattern")
        translated = Translation(pattern.flags).translate(tree)
        flags = regex.V0
        for flag, own in ((re.IGNORECASE, regex.IGNORECASE), (re.ASCII, regex.ASCII)):
            if pattern.flags & flag:
                flags |= own
        # Atomic: the ways behind the one by which the pattern matches do not matter.
        compiled = regex.compile(f"(?>{translated}){NEVER}", flags)
        self._search = compiled.search
        self._match = compiled.match

    def undecided(self, text: str, start: int, end: int) -> int:
        """Where a path of the pattern reaches the end before the pattern matches."""
        partial = self._search(text, start, end, partial=True)
        if partial is None:
            return end
        position: int = partial.start()
        return position

    def is_undecided(self, text: str, start: int, end: int) -> bool:
        """Whether a path of the pattern that begins at `start` reaches the end."""
        return self._match(text, start, end, partial=True) is not None


def import_regex(needed_by: str) -> Any:
    """The `regex` package.

    Raises:
        ImportError: it is not installed; the message names the extra.
    """
    try:
        return import_module("regex")
    except ImportError:
        message = f"{needed_by} needs the regex package: pip install 'streamlib[pipeline]'"
        raise ImportError(message) from None


def read_pattern(pattern: str | re.Pattern[str]) -> Search:
    """Prepares a pattern for the search in a growing text.

    Args:
        pattern: in the syntax of `re`.

    Raises:
        ValueError: it is malformed, can match the empty text, repeats lazily what can match the
            empty text, or looks at more than 64 characters before it.
        ImportError: it is no fixed text, and the `regex` package is not installed.
    """
    if isinstance(pattern, str):
        try:
            pattern = re.compile(pattern)
        except re.error as error:
            raise ValueError(f"the pattern {pattern!r} is malformed: {error}") from None
    if not isinstance(pattern.pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("a pattern of bytes cannot be searched in text")
    # Not public, but the only reader of the syntax, with all its flags, that agrees with `re`.
    parser: Any = import_module("re._parser")
    tree = parser.parse(pattern.pattern, pattern.flags)
    if tree.getwidth()[0] == 0:
        raise ValueError(f"the pattern {pattern.pattern!r} can match the empty text")
    fixed = _fixed_text(tree)
    if fixed is not None and not pattern.flags & re.IGNORECASE:
        return _FixedSearch(pattern, fixed)
    return _PatternSearch(pattern, tree)


def fixed_text(text: str) -> Search:
    """The search for a text in which no character has a special meaning.

    Raises:
        ValueError: it is empty.
    """
    if not text:
        raise ValueError("an empty text is found everywhere")
    return _FixedSearch(re.compile(re.escape(text)), text)


def _fixed_text(tree: ParsedPattern) -> str | None:
    """The only text that a pattern matches; None where there are others."""
    characters: list[str] = []
    for operation, argument in tree:
        if str(operation) != "LITERAL":
            return None
        characters.append(chr(argument))
    return "".join(characters)


class Replacer:
    """A text machine that substitutes matches, as `re.sub` would in the whole text.

    Several patterns are one pass: where two match at one place, the first of the list is taken.
    What was put in is not looked at again. Of a match longer than `longest` a part comes
    out, or all of it: each window of so many characters is decided about alone.
    """

    def __init__(
        self,
        searches: Sequence[Search],
        substitute: Substitute,
        longest: int = LONGEST,
        on_too_long: Callable[[], None] = lambda: None,
    ) -> None:
        """Begins a text.

        Args:
            searches: the patterns.
            substitute: what a match becomes.
            longest: characters that are looked at to decide about one match.
            on_too_long: called for each match that is substituted in pieces.
        """
        self._searches = searches
        self._substitute_with = substitute
        self._longest = longest
        self._on_too_long = on_too_long
        self._text = ""
        """What was received from a few characters before `_position` on."""
        self._position = 0
        """Where the part of `_text` begins that is still buffered."""
        self._beginnings = [search.beginning for search in searches]
        self._tries = 0
        """Positions from there on of which one probably is the first undecided one."""

    @property
    def buffered(self) -> int:
        """Characters received whose fate is not known yet."""
        return len(self._text) - self._position

    def feed(self, text: str) -> list[str]:
        """Takes text; returns what is known now, or nothing."""
        before = self._text
        self._text = before + text
        if self._position == len(before) and not self._may_begin(text):
            self._forget(len(self._text))
            # The same string, if there is any: a delta that is not changed.
            return [text] if text else []
        return self._read(is_last=False)

    def close(self) -> list[str]:
        """The text has ended; returns the rest."""
        return self._read(is_last=True)

    def _read(self, *, is_last: bool) -> list[str]:
        text = self._text
        size = len(text)
        position = self._position
        output: list[str] = []
        while position < size:
            # Never what happens to be buffered: the result must not depend on the deltas.
            end = min(size, position + self._longest)
            undecided = end
            if end < size or not is_last:
                undecided = self._undecided(text, position, end)
            start = position
            self._tries = int(undecided < end)
            position = self._substitute(position, end, undecided, output)
            if position < undecided:
                output.append(text[position:undecided])
                position = undecided
                if undecided < end == size:
                    break  # the next window is the end of this one, and as undecided
            elif position == start:
                if end - start < self._longest:
                    break
                position = self._decide(start, end, output)
                self._tries = _TRIES_IN_A_MATCH
        self._forget(position)
        joined = "".join(output)
        if not joined:
            return []
        return [joined]

    def _may_begin(self, text: str) -> bool:
        """Whether a match may begin in a text: most deltas have no such character."""
        for pattern in self._beginnings:
            if pattern is None or pattern.search(text) is not None:
                return True
        return False

    def _forget(self, position: int) -> None:
        """Forgets the text before a position, but for what a pattern may look at."""
        # Rarely: each time would copy the context for each delta.
        if position > _FORGOTTEN:
            behind = position - _CONTEXT_KEPT
            self._text = self._text[behind:]
            position = _CONTEXT_KEPT
        self._position = position

    def _substitute(self, position: int, end: int, undecided: int, output: list[str]) -> int:
        """Substitutes every match that nothing can change; returns where the last one ends."""
        text = self._text
        while position < undecided:
            first: re.Match[str] | None = None
            start = undecided
            for search in self._searches:
                if search.beginning and not search.beginning.search(text, position, start):
                    continue
                match = search.pattern.search(text, position, end)
                if match is not None and match.start() < start:
                    first = match
                    start = match.start()
            if first is None:
                break
            if start > position:
                output.append(text[position:start])
            output.append(self._substituted(first))
            position = first.end()
        return position

    def _decide(self, start: int, end: int, output: list[str]) -> int:
        """Decides about a full window, although more text could change it; returns what is next."""
        for search in self._searches:
            match = search.pattern.match(self._text, start, end)
            if match is not None:
                self._on_too_long()
                output.append(self._substituted(match))
                return match.end()
        output.append(self._text[start])
        return start + 1

    def _undecided(self, text: str, position: int, end: int) -> int:
        """The first position at which a match may still begin or change if text follows."""
        # A search would look for matches at every later place first: too long for each delta.
        if self._tries and end - position > _SMALL:
            for likely in range(position, min(end, position + self._tries)):
                for search in self._searches:
                    if search.is_undecided(text, likely, end):
                        return likely
        undecided = end
        for search in self._searches:
            if search.beginning is None or search.beginning.search(text, position, end):
                undecided = min(undecided, search.undecided(text, position, end))
        return undecided

    def _substituted(self, match: re.Match[str]) -> str:
        substitute = self._substitute_with
        if isinstance(substitute, str):
            return match.expand(substitute)
        return text_of(substitute(match), "replace")
