"""Cuts a text that still grows into words, lines, sentences or Markdown blocks.

    sentences = SentenceUnits()
    sentences.feed("It is 3.5 m. W")  # ["It is 3.5 m. "]: a capital letter follows the space
    sentences.close()                 # ["W"]

A unit ends behind the white space that follows it, so that all of them joined are the text. It is
known when the character behind that space is: before, "Dr. " may go on. What comes out does not
depend on how the text was split.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, TypeAlias

from streamlib_parsers.upward import upward

UnitName: TypeAlias = Literal["word", "line", "sentence", "block"]

LONGEST_UNIT: Final = 2000
"""Characters after which a unit is cut, at its last space: a page of text, of a stream that has no
boundaries otherwise. Nothing waits for longer."""

_SHORT: Final = 256
"""Characters that are divided word by word: of more, copies of the rest would take the square."""

_SPACE_BEFORE_WORD: Final = re.compile(r"\s(?=\S)")

_CLOSING: Final = r"""[])"'\u2019\u201d\u00bb*_]"""
"""What may stand between the mark that ends a sentence and the space: quotes, brackets, stars."""

_WIDE_STOP: Final = r"[\u3002\uff01\uff1f]"
_WIDE_CLOSING: Final = r"[\u300d\u300f\uff09\u201d\u2019]"
"""The same marks of Chinese and Japanese, which need no space."""

_SENTENCE_END: Final = re.compile(
    rf"""
    [.!?\u2026]+ {_CLOSING}* \s+ (?=\S)
    | {_WIDE_STOP}+ {_WIDE_CLOSING}* \s* (?=\S)(?!{_WIDE_STOP}|{_WIDE_CLOSING})
    | \n[^\S\n]*\n \s* (?=\S)   # an empty line ends any sentence
    """,
    re.VERBOSE,
)

_MARK: Final = re.compile(rf"[.!?\u2026\n]|{_WIDE_STOP}")
"""Without one of these no sentence ends."""

_BEGINS_END: Final = re.compile(
    rf"(?:[.!?\u2026\n]|{_WIDE_STOP})"
    rf"(?:[.!?\u2026\s]|{_CLOSING}|{_WIDE_STOP}|{_WIDE_CLOSING})*\Z"
)
"""What may become the end of a sentence when more text follows."""

_WORD_START: Final = re.compile(r"""[\s()\["'\u2018\u201c*_]""")
"""What stands before a word."""

_LINE: Final = 40
"""Characters before a full stop that decide what it is: more than the longest abbreviation."""

# fmt: off
_TITLES: Final = frozenset({
    "dr", "mr", "mrs", "ms", "mx", "prof", "st", "sr", "jr", "gen", "col", "capt", "lt",
    "sgt", "rev", "hon", "gov", "sen", "rep", "pres", "mt", "vs", "cf", "mme", "mlle", "hr",
    "fr", "bzw", "ca"
})
"""Abbreviations that a name or a number follows: the sentence goes on."""

_NUMBERED: Final = frozenset({
    "no", "nos", "nr", "fig", "figs", "vol", "pp", "p", "ch", "sec", "eq", "art", "approx"
})
"""Abbreviations of what has a number; before anything else they may be words."""
# fmt: on

_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]|[A-Z]")
"""`U.S`, `e.g`, or the first letter of a name."""


class TextMachine(Protocol):
    """A text in, texts out: joined they are the text, or what a stage makes of it."""

    @property
    def buffered(self) -> int:
        """Characters received whose fate is not known yet."""
        ...

    def feed(self, text: str) -> list[str]:
        """Takes text; returns what is known now."""
        ...

    def close(self) -> list[str]:
        """The text has ended; returns the rest."""
        ...


def text_of(result: object, stage: str) -> str:
    """What a user's function has returned; TypeError where it is no text."""
    if not isinstance(result, str):
        raise TypeError(f"the function of {stage} returned a {type(result).__name__}, not text")
    return result


class Units:
    """Cuts where `_end` says; what is longer than `longest` characters is cut at a space."""

    def __init__(self, longest: int = LONGEST_UNIT) -> None:
        self._longest = longest
        self._text = ""
        """The unit that has not ended, and while `feed` runs what follows it."""
        self._scanned = 0
        """Up to here `_text` has no boundary."""

    @property
    def buffered(self) -> int:
        """Characters of the unit that has not ended."""
        return len(self._text)

    def feed(self, text: str) -> list[str]:
        """The units that have ended."""
        text = self._text = self._text + text
        units: list[str] = []
        start = 0
        while start < len(text):
            # One more character shows what follows the longest unit.
            end = self._end(start, min(len(text), start + self._longest + 1))
            if end < 0:
                if len(text) - start <= self._longest:
                    break
                end = self._last_space(start)
            units.append(text[start:end])
            start = end
            self._scanned = max(self._scanned, start)
        if start:
            self._text = text[start:]
            self._scanned -= start
        return units

    def close(self) -> list[str]:
        """The last unit."""
        text = self._text
        self._text = ""
        self._scanned = 0
        if not text:
            return []
        return [text]

    def _end(self, start: int, limit: int) -> int:
        """Where the unit ends that begins at `start`; -1 if that is not known before `limit`."""
        raise NotImplementedError

    def _last_space(self, start: int) -> int:
        """Where a unit is cut that is too long."""
        limit = start + self._longest
        for position in range(limit, start, -1):
            if self._text[position - 1].isspace():
                return position
        return limit


class WordUnits(Units):
    """Words, with the white space behind them. White space before the first one belongs to it."""

    def __init__(self, longest: int = LONGEST_UNIT) -> None:
        super().__init__(longest)
        self._short = min(longest, _SHORT)

    def feed(self, text: str) -> list[str]:
        """The words that have ended."""
        unit = self._text + text
        if len(unit) > self._short:
            return super().feed(text)
        units: list[str] = []
        divided = unit.split(None, 1)
        while len(divided) == 2:
            rest = divided[1]
            units.append(unit[: -len(rest)])
            unit = rest
            divided = unit.split(None, 1)
        self._text = unit
        self._scanned = 0
        return units

    def _end(self, start: int, limit: int) -> int:
        text = self._text
        position = max(start, self._scanned - 1)
        while space := _SPACE_BEFORE_WORD.search(text, position, limit):
            position = space.end()
            if not text[start:position].isspace():
                return position
        self._scanned = limit
        return -1


class LineUnits(Units):
    """Lines, with their line feed."""

    def _end(self, start: int, limit: int) -> int:
        # A line may be as long as a unit, and no character behind it matters.
        limit = min(limit, start + self._longest)
        end = self._text.find("\n", max(start, self._scanned), limit)
        if end >= 0:
            return end + 1
        self._scanned = limit
        return -1


class SentenceUnits(Units):
    """Sentences. An empty line ends one too; a small letter continues it, as does a title."""

    def feed(self, text: str) -> list[str]:
        """The sentences that have ended."""
        size = len(self._text)
        if self._scanned == size and size + len(text) < self._longest and not _MARK.search(text):
            self._text += text
            self._scanned = size + len(text)
            return []
        return super().feed(text)

    def _end(self, start: int, limit: int) -> int:
        text = self._text
        position = max(start, self._scanned)
        while True:
            ending = _SENTENCE_END.search(text, position, limit)
            if ending is None:
                break
            if self._is_end(start, ending):
                return ending.end()
            # An empty line may be a part of what was ending.
            position = ending.start() + 1
        unsure = _BEGINS_END.search(text, position, limit)
        self._scanned = limit if unsure is None else unsure.start()
        return -1

    def _is_end(self, start: int, ending: re.Match[str]) -> bool:
        text = self._text
        mark = ending[0][0]
        if mark not in ".!?\u2026":
            return True
        following = text[ending.end()]
        if ending[0].count("\n") > 1:
            return True
        if following.islower():
            return False
        if mark != "." or ending[0].startswith(".."):
            return True
        before = text[max(start, ending.start() - _LINE) : ending.start()].rpartition("\n")[2]
        last_word = _WORD_START.split(before)[-1]
        if last_word.casefold() in _TITLES or _INITIALS.fullmatch(last_word):
            return False
        if last_word.casefold() in _NUMBERED:
            return not following.isdigit()
        # "1. " at the beginning of a line numbers an item.
        return not before.strip().isdigit()


class _Page:
    """Notices where a block begins that is in no other. All else of a page is ignored."""

    def __init__(self, depth: int = 0, kind: str = "") -> None:
        self.has_begun = False
        """Whether a block began since this was set to False."""
        self.depth = depth
        """Containers that are open."""
        self.kind = kind
        """What the last block is."""

    def enter_quote(self) -> None:
        self._begin("quote")
        self.depth += 1

    def enter_item(self, marker: str) -> None:
        kind = "bullets" if marker == "•" else "numbers"
        # All items of a list are one block.
        if kind != self.kind:
            self._begin(kind)
        self.depth += 1

    def leave(self, depth: int) -> None:
        self.depth = depth

    def heading(self, _level: int, _text: str) -> None:
        self._begin("heading")

    def rule(self) -> None:
        self._begin("rule")

    def open_paragraph(self, _text: str) -> None:
        self._begin("paragraph")

    def open_code(self, _language: str | None) -> None:
        self._begin("code")

    def open_table(self, _header: list[str], _alignments: list[str]) -> bool:
        return True

    def _begin(self, kind: str) -> None:
        if self.depth == 0:
            self.has_begun = True
            self.kind = kind

    def _ignore(self, *_: object) -> None:
        """Does not begin a block."""

    blank = add_line = underline = add_row = add_code = add_more = close_leaf = _ignore


class BlockUnits(Units):
    """Markdown blocks, as `streamlib.display` reads them; a list is one.

    A block ends where the next one begins: with its first line, or behind an empty line with its
    first letter.
    """

    def __init__(self, longest: int = LONGEST_UNIT) -> None:
        super().__init__(longest)
        self._page = _Page()
        self._reader: Any = upward("display.blocks", "BlockReader")(self._page)
        self._is_blank = False
        """Whether the last line is empty."""
        self._begins_nothing = False
        """Whether the first letter of the open line has shown that no block begins there."""

    def _end(self, start: int, limit: int) -> int:
        text = self._text
        # `_scanned` is where the first line begins that was not read.
        while self._scanned < limit:
            line_start = self._scanned
            line_end = text.find("\n", line_start, limit)
            if line_end < 0:
                if line_start > start and self._begins_early(text[line_start:limit]):
                    return line_start
                return -1
            line = text[line_start:line_end]
            self._scanned = line_end + 1
            self._is_blank = not line.strip()
            self._begins_nothing = False
            self._page.has_begun = False
            self._reader.read(line)
            if self._page.has_begun and line_start > start:
                return line_start
        return -1

    def _begins_early(self, line: str) -> bool:
        """Whether the beginning of a line shows already that a block begins with it."""
        if not self._is_blank or self._begins_nothing:
            return False
        # A letter behind an empty line can only be text: it has no other meaning in Markdown.
        if not line.lstrip()[:1].isalpha():
            return False
        page = _Page(self._page.depth, self._page.kind)
        self._reader.copy(page).read(line)
        self._begins_nothing = not page.has_begun
        return page.has_begun


def unit_machine(name: UnitName, longest: int = LONGEST_UNIT) -> Units:
    """What cuts a text into units of this name.

    Raises:
        ValueError: there are no units of this name.
    """
    make = _UNITS.get(name)
    if make is None:
        raise ValueError(f"by={name!r}: one of {', '.join(_UNITS)}")
    return make(longest)


_UNITS: Final[dict[str, Callable[[int], Units]]] = {
    "word": WordUnits,
    "line": LineUnits,
    "sentence": SentenceUnits,
    "block": BlockUnits,
}


def joins_character(before: str, character: str) -> bool:
    """Whether a character belongs to the grapheme that ends with the one before it.

    The rules of Unicode (UAX 29) in a form that never separates what they join; it joins a little
    more. A pair of flags' letters is the caller's to count.
    """
    if before == "\r":
        return character == "\n"
    # A sign that stands before a letter, whichever that is.
    if before not in _EXTENDING and unicodedata.category(before) == "Cf":
        return True
    if character.isascii():
        return False
    if before == _JOINER or character in _EXTENDING:
        return True
    if unicodedata.category(character).startswith("M"):
        return True
    # A mark may have joined a consonant with the next one.
    if _INDIC.match(character) and (unicodedata.combining(before) or before in _EXTENDING):
        return True
    if _LEADING_JAMO.match(before):
        return bool(_HANGUL.match(character))
    return bool(_HANGUL.match(before) and _FOLLOWING_JAMO.match(character))


_JOINER: Final = "\u200d"
_EXTENDING: Final = frozenset(
    [
        _JOINER,
        "\u200c",
        "\u0e33",  # Thai and Lao vowels, which Unicode calls letters
        "\u0eb3",
        *map(chr, range(0x1F3FB, 0x1F400)),  # skin tones
        *map(chr, range(0xE0020, 0xE0080)),  # the letters of regional flags
    ]
)
"""Characters that belong to the one before them, beside all marks."""

_INDIC: Final = re.compile(r"[\u0900-\u1cff]")
_HANGUL: Final = re.compile(r"[\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff]")
_LEADING_JAMO: Final = re.compile(r"[\u1100-\u115f\ua960-\ua97c]")
_FOLLOWING_JAMO: Final = re.compile(r"[\u1160-\u11ff\ud7b0-\ud7fb]")
"""Letters of Korean that syllables are made of: what begins one, and what continues it."""
