"""Patterns, texts that come close to them, and how many characters have to wait: by brute force.

A character has to wait while some continuation of the text changes what becomes of it. So each of
some hundred continuations is tried at every delta.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Final

from streamlib.pipeline.patterns import Replacer, Search

HARD: Final = (
    (r"\d{2}-\d{3}", "55-x"),
    (r"\bcat\b", "cat s"),
    (r"\Bat\b", "cat "),
    (r"a+b?", "abx"),
    (r"a+?b", "abx"),
    (r"(a)+", "ab"),
    (r"b+(?:(?:aa??)*)", "ab "),
    (r"([^a]{1,2})+", "abc"),
    (r"(?:ab)+c", "abc"),
    (r"a(?=b)", "abc"),
    (r"a(?!b)", "abc"),
    (r"(?<=x)a+", "xa"),
    (r"(?<!x)a", "xa"),
    (r"a$", "ab\n"),
    (r"(?m)a$", "ab\n"),
    (r"(?m)^a", "ab\n"),
    (r"^a", "a\nb"),
    (r"a\Z", "ab\n"),
    (r"\Aab", "ab"),
    (r"(a|ab)(c|bcd)", "abcd"),
    (r"(a)(\1)b", "ab"),
    (r"(a)?b(?(1)c|d)", "abcd"),
    (r"(?i)aßI", "Aaßi\u0131sx"),
    (r"(?i)i+", "iI\u0130\u0131x"),
    (r"(?i:K)x", "kK\u212ax"),
    (r"[^a]b", "ab\n"),
    (r".b", "ab\n"),
    (r"(?s)a.*", "ab\n"),
    (r"(?s).b", "ab\n"),
    (r"\w+@\w+\.\w+", "ab@."),
    (r"[\w.]+@[\w.]+", "a@. "),
    (r"\s+x", " \nx\x1c"),
    (r"[^\s]+:", "a: "),
    (r"(?:a|b)*?c", "abc"),
    (r"a{2,4}?b", "ab"),
    (r"a{2,4}", "ab"),
    (r"x(?=a*b)", "xabc"),
    (r"x(?!a*b)", "xabc"),
    (r"(?=ab)a.", "abc"),
    (r"a(?=b(?=c))", "abcd"),
    (r"a(?=b(?!c))", "abcd"),
    (r"(?<=\bx)a", "xa b"),
    (r"(?<=a(?=b))b", "ab"),
    (r"(?m)(?<=^)a|b$", "ab\n"),
    (r"(?<!\w)ab(?!\w)", "ab "),
    (r"(?>a+)b", "ab"),
    (r"a++b", "ab"),
    (r"(?x) a  b  c", "abc "),
    (r"sk-[A-Za-z0-9]{2}", "sk-9"),
    (r"(?:\+\d )?\d\d", "+1 x"),
    (r"a|abc|abcd", "abcd"),
    (r"abcd|abc|a", "abcd"),
    (r"aXb|Xa", "aXb"),
    (r"(?:a|aa)+$", "a\nb"),
    (r"a(?:$|b)", "ab\n"),
    (r"[^\W\d]+1", "a1 _"),
    (r"(?a:\w)+!", "aé!"),
    (r"\D\d", "1a٣"),
)
"""Patterns, and letters of texts that come close to them."""


def pieces_of(text: str, random: Random, longest: int = 4) -> list[str]:
    pieces: list[str] = []
    position = 0
    while position < len(text):
        end = position + random.randint(1, longest)
        pieces.append(text[position:end])
        position = end
    return pieces


def replaced(replacer: Replacer, pieces: list[str]) -> str:
    output: list[str] = []
    for piece in pieces:
        output += replacer.feed(piece)
    return "".join(output + replacer.close())


def random_text(letters: str, random: Random, longest: int = 14) -> str:
    return "".join(random.choices(letters, k=random.randint(0, longest)))


def _fates(pattern: re.Pattern[str], text: str, size: int) -> list[tuple[int, int] | None]:
    """For each of the first characters: the match that it is in, if there is one."""
    fates: list[tuple[int, int] | None] = [None] * size
    for match in pattern.finditer(text):
        for position in range(match.start(), min(size, match.end())):
            fates[position] = match.span()
    return fates


def undecided(pattern: re.Pattern[str], text: str, continuations: list[str]) -> int:
    """How many characters from the first one on whose fate a continuation decides."""
    size = len(text)
    first = _fates(pattern, text, size)
    decided = size
    for continuation in continuations:
        fates = _fates(pattern, text + continuation, size)
        while fates[:decided] != first[:decided]:
            decided -= 1
    return size - decided


def continuations_of(pattern: re.Pattern[str], letters: str, random: Random) -> list[str]:
    """Ends of matches, random texts, and single letters."""
    found: set[str] = set(letters)
    while len(found) < 120:
        found.add("".join(random.choices(letters, k=random.randint(1, 9))))
    text = "".join(random.choices(letters, k=20_014))
    for start in range(20_000):
        match = pattern.search(text[start : start + 14])
        if match is not None:
            ending = match.string[match.start() + 1 : match.end() + 2]
            found.update(ending[start:] for start in range(len(ending)))
        if len(found) > 400:
            break
    return sorted(found)


def most_in_vain(
    searches: Sequence[Search], pattern: re.Pattern[str], pieces: list[str], endings: list[str]
) -> int:
    """The most characters that wait behind a piece of a text although nothing can change them.

    Args:
        searches: what is searched.
        pattern: the same as one pattern.
        pieces: the text, split.
        endings: what may continue it.
    """
    replacer = Replacer(searches, "<>")
    text = ""
    most = 0
    for piece in pieces:
        replacer.feed(piece)
        text += piece
        most = max(most, replacer.buffered - undecided(pattern, text, endings))
    return most
