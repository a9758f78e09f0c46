"""Exact buffering: what comes out is what `re.sub` makes of the whole text, and nothing waits in
vain."""

from __future__ import annotations

import re
import sys
import time
from random import Random

import pytest

from lab.buffering.oracle import (
    HARD,
    continuations_of,
    most_in_vain,
    pieces_of,
    random_text,
    replaced,
)
from streamlib.pipeline import patterns
from streamlib.pipeline.patterns import Replacer, fixed_text, read_pattern
from tests.support.cases import each_case


@each_case("pattern, letters", HARD)
def test_replacer_does_as_re_sub_for_every_split(pattern: str, letters: str) -> None:
    random = Random(pattern)
    search = read_pattern(pattern)
    for _ in range(300):
        text = random_text(letters, random)
        replacer = Replacer([search], "<>")
        assert replaced(replacer, pieces_of(text, random)) == search.pattern.sub("<>", text)


@pytest.mark.parametrize(("pattern", "letters"), HARD)
def test_replacer_buffers_one_more_at_most_than_it_must(pattern: str, letters: str) -> None:
    random = Random(pattern)
    search = read_pattern(pattern)
    continuations = continuations_of(search.pattern, letters, random)
    for _ in range(4):
        text = random_text(letters, random, 10)
        assert most_in_vain([search], search.pattern, list(text), continuations) <= 1, text


def test_replacer_knows_what_a_look_behind_looks_at() -> None:
    """All of it has arrived: nothing is waited for."""
    replacer = Replacer([read_pattern("b(?<=ab)")], "<>")
    assert replacer.feed("ab") == ["a<>"]
    assert replacer.buffered == 0


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
    continuations = continuations_of(joined, "abcxy ", random)
    for _ in range(40):
        text = random_text("abcxy ", random, 10)
        assert most_in_vain(searches, joined, list(text), continuations) <= 1, text


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
