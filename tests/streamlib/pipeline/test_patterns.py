"""Exact buffering: what comes out is what `re.sub` makes of the whole text, and nothing waits in
vain."""

from __future__ import annotations

import re
import sys
import time
from random import Random

import pytest

from streamlib.pipeline import patterns
from streamlib.pipeline.patterns import Replacer, fixed_text, read_pattern
from tests.support.cases import each_case

HARD = [
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
]
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


@each_case("pattern, letters", HARD)
def test_replacer_does_as_re_sub_for_every_split(pattern: str, letters: str) -> None:
    random = Random(pattern)
    search = read_pattern(pattern)
    for _ in range(300):
        text = random_text(letters, random)
        replacer = Replacer([search], "<>")
        assert replaced(replacer, pieces_of(text, random)) == search.pattern.sub("<>", text)


def _fates(pattern: re.Pattern[str], text: str, size: int) -> list[tuple[int, int] | None]:
    """For each of the first characters: the match that it is in, if there is one."""
    fates: list[tuple[int, int] | None] = [None] * size
    for match in pattern.finditer(text):
        for position in range(match.start(), min(size, match.end())):
            fates[position] = match.span()
    return fates


def _undecided(pattern: re.Pattern[str], text: str, continuations: list[str]) -> int:
    """How many characters from the first one on whose fate a continuation decides."""
    size = len(text)
    first = _fates(pattern, text, size)
    decided = size
    for continuation in continuations:
        fates = _fates(pattern, text + continuation, size)
        while fates[:decided] != first[:decided]:
            decided -= 1
    return size - decided


def _continuations(pattern: re.Pattern[str], letters: str, random: Random) -> list[str]:
    """Ends of matches, random texts, and single letters."""
    found: set[str] = set(letters)
    while len(found) < 120:
        found.add("".join(random.choices(letters, k=random.randint(1, 9))))
    for _ in range(20_000):
        match = pattern.search("".join(random.choices(letters, k=14)))
        if match is not None:
            ending = match.string[match.start() + 1 : match.end() + 2]
            found.update(ending[start:] for start in range(len(ending)))
        if len(found) > 400:
            break
    return sorted(found)


@pytest.mark.parametrize(("pattern", "letters"), HARD)
def test_replacer_buffers_one_more_at_most_than_it_must(pattern: str, letters: str) -> None:
    random = Random(pattern)
    search = read_pattern(pattern)
    continuations = _continuations(search.pattern, letters, random)
    for _ in range(4):
        text = random_text(letters, random, 10)
        replacer = Replacer([search], "<>")
        for end, character in enumerate(text, 1):
            replacer.feed(character)
            must = _undecided(search.pattern, text[:end], continuations)
            assert replacer.buffered <= must + 1, text[:end]


def test_replacer_takes_the_first_of_a_list_at_one_place() -> None:
    random = Random(5)
    sources = ["ab+", "a(?=c)", "abc|c", r"\bb"]
    searches = [read_pattern(source) for source in sources]
    joined = re.compile("|".join([f"({source})" for source in sources]))
    for _ in range(3000):
        text = random_text("abc ", random)
        replacer = Replacer(searches, lambda match: f"<{match[0]}>")
        assert replaced(replacer, pieces_of(text, random)) == joined.sub(r"<\g<0>>", text)


def test_replacer_buffers_for_a_list_what_it_must() -> None:
    random = Random(5)
    searches = [read_pattern(source) for source in ("ab+c", "x(?=y)", r"\bcc")]
    joined = re.compile(r"ab+c|x(?=y)|\bcc")
    continuations = _continuations(joined, "abcxy ", random)
    for _ in range(40):
        text = random_text("abcxy ", random, 10)
        replacer = Replacer(searches, "<>")
        for end, character in enumerate(text, 1):
            replacer.feed(character)
            must = _undecided(joined, text[:end], continuations)
            assert replacer.buffered <= must + 1, text[:end]


def test_replacer_does_not_depend_on_splits_when_too_long() -> None:
    random = Random(7)
    searches = [read_pattern(r"a[ab]*c"), read_pattern(r"(?<=b)b+")]
    for _ in range(1000):
        text = random_text("aaaabbbc ", random, 60)
        whole = Replacer(searches, "<>", 8)
        replacer = Replacer(searches, "<>", 8)
        assert replaced(replacer, pieces_of(text, random, 11)) == replaced(whole, [text])
        assert replacer.buffered == 0


def test_replacer_reports_a_match_that_is_too_long() -> None:
    count = 0

    def note() -> None:
        nonlocal count
        count += 1

    replacer = Replacer([read_pattern("a+b?")], "<>", 8, note)
    assert replaced(replacer, ["a" * 20, "!"]) == "<><><>!"
    assert count == 2


def test_replacer_is_given_what_a_template_may_name() -> None:
    search = read_pattern(r"(?P<user>\w+)@(\w+)")
    assert replaced(Replacer([search], r"\g<user> at \2"), ["ann@ho", "me "]) == "ann at home "


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("a*", "empty text"),
        ("", "empty text"),
        ("a|", "empty text"),
        ("a(?:b*)*?c", "must not match the empty text"),
        ("(?<=" + "a" * 65 + ")b", "64 characters before"),
        ("(", "malformed"),
    ],
)
def test_read_pattern_refuses_what_cannot_be_decided(pattern: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        read_pattern(pattern)


def test_read_pattern_refuses_bytes() -> None:
    with pytest.raises(TypeError, match="bytes"):
        read_pattern(re.compile(b"a"))  # type: ignore[arg-type]


def test_read_pattern_names_the_extra_when_regex_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(ImportError, match=r"streamlib\[pipeline\]"):
        read_pattern("a+")
    replacer = Replacer([read_pattern("secret"), fixed_text("a+")], "<>")
    assert replaced(replacer, ["a sec", "ret, a", "+b"]) == "a <>, <>b"


def test_fixed_text_waits_for_its_beginnings_alone() -> None:
    replacer = Replacer([fixed_text("aab")], "<>")
    assert replacer.feed("aaa") == ["a"]
    assert replacer.buffered == 2
    assert replacer.feed("b") == ["<>"]
    assert replacer.buffered == 0


def _seconds(pattern: str, text: str) -> float:
    replacer = Replacer([read_pattern(pattern)], "<>")
    start = time.process_time()
    for position in range(0, len(text), 5):
        replacer.feed(text[position : position + 5])
    replacer.close()
    return time.process_time() - start


@pytest.mark.timing
@pytest.mark.parametrize("letters", ["ab", "call 555-1234 now. ", "a"])
def test_replacer_takes_linear_time(letters: str) -> None:
    text = letters * (10_000 // len(letters))
    for pattern in (r"a[ab]*c", r"\b\d{3}-\d{4}\b"):
        once = min(_seconds(pattern, text) for _ in range(3))
        twice = min(_seconds(pattern, text * 2) for _ in range(3))
        assert twice < 2.3 * once + 0.05


def test_import_regex_is_not_needed_to_import_the_module() -> None:
    assert "regex" not in vars(patterns)
