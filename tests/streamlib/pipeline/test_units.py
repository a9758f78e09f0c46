"""Words, lines, sentences and blocks: cut where they end, whatever the deltas were."""

from __future__ import annotations

import time
from itertools import pairwise
from random import Random

import pytest

from streamlib.pipeline.patterns import import_regex
from streamlib.pipeline.units import UnitName, Units, joins_character, unit_machine
from tests.support.cases import each_case

NAMES: tuple[UnitName, ...] = ("word", "line", "sentence", "block")

TEXT = """# Title

Dr. Smith paid 3.5 dollars in the U.S. for it. "Really?" he asked. Yes! See No. 5. No. Then

- one
- two

  more
- three

Then text follows
and goes on.
```py
def f():

    return 1
```
1. First. Item
2. Second

| a | b |
|---|---|
| 1 | 2 |

> quote
> more

\u4f60\u597d\u3002\u4e16\u754c\uff01ok. End\u2026 of it. J. R. T. said: "Stop."  Now.\r\nNext"""


def cut(machine: Units, pieces: list[str]) -> list[str]:
    units: list[str] = []
    for piece in pieces:
        units += machine.feed(piece)
    return units + machine.close()


def split(text: str, random: Random) -> list[str]:
    pieces: list[str] = []
    position = 0
    while position < len(text):
        end = position + random.choice([1, 1, 2, 5, 9, 40])
        pieces.append(text[position:end])
        position = end
    return pieces


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("longest", [7, 20, 2000])
def test_units_do_not_depend_on_splits(name: UnitName, longest: int) -> None:
    random = Random(name)
    whole = cut(unit_machine(name, longest), [TEXT])
    assert "".join(whole) == TEXT
    assert max(map(len, whole)) <= longest
    for _ in range(150):
        assert cut(unit_machine(name, longest), split(TEXT, random)) == whole


def test_words_keep_the_white_space_behind_them() -> None:
    assert cut(unit_machine("word"), ["  He", "llo, \n", "world ", " ", "x"]) == [
        "  Hello, \n",
        "world  ",
        "x",
    ]


def test_words_of_white_space_take_little_time() -> None:
    """Of each split, all that was received so far is searched for a word."""
    machine = unit_machine("word")
    start = time.process_time()
    assert cut(machine, ["\n"] * 1900) == ["\n" * 1900]
    assert time.process_time() - start < 0.4


def test_words_wait_for_the_next_word_alone() -> None:
    machine = unit_machine("word")
    assert machine.feed("one two") == ["one "]
    assert machine.buffered == 3
    assert machine.feed(" ") == []
    assert machine.feed("t") == ["two "]
    assert machine.buffered == 1


def test_lines_end_with_their_line_feed() -> None:
    machine = unit_machine("line")
    assert machine.feed("a\r\n\nb") == ["a\r\n", "\n"]
    assert machine.feed("c\n") == ["bc\n"]
    assert machine.close() == []


@each_case(
    "text, sentences",
    [
        ("It is 3.5 m. Yes.", ["It is 3.5 m. ", "Yes."]),
        ("Dr. Who. Mrs. X ran.", ["Dr. Who. ", "Mrs. X ran."]),
        ("The U.S. Army won. Then", ["The U.S. Army won. ", "Then"]),
        ("Use e.g. this. Or", ["Use e.g. this. ", "Or"]),
        ('"What?" he said. "No!" Then', ['"What?" he said. ', '"No!" ', "Then"]),
        ("See fig. 3 and No. 5. No. Yes", ["See fig. 3 and No. 5. ", "No. ", "Yes"]),
        ("1. One. Two\n2. Three", ["1. One. ", "Two\n2. Three"]),
        ("In 2024. Then", ["In 2024. ", "Then"]),
        ("Wait... what? Well... Yes", ["Wait... what? ", "Well... ", "Yes"]),
        ("A title\n\nText", ["A title\n\n", "Text"]),
        ("**Bold.** Next", ["**Bold.** ", "Next"]),
        (
            "\u597d\u3002\u300c\u4f60\uff01\u300d\u55ce",
            ["\u597d\u3002", "\u300c\u4f60\uff01\u300d", "\u55ce"],
        ),
    ],
)
def test_sentences_end_where_a_reader_pauses(text: str, sentences: list[str]) -> None:
    assert cut(unit_machine("sentence"), [text]) == sentences
    assert cut(unit_machine("sentence"), list(text)) == sentences


def test_sentences_wait_for_the_character_behind_the_space() -> None:
    machine = unit_machine("sentence")
    assert machine.feed("It ends. ") == []
    assert machine.buffered == 9
    assert machine.feed("N") == ["It ends. "]


def test_blocks_are_those_of_the_display() -> None:
    assert cut(unit_machine("block"), [TEXT])[:5] == [
        "# Title\n\n",
        TEXT.splitlines(keepends=True)[2] + "\n",
        "- one\n- two\n\n  more\n- three\n\n",
        "Then text follows\nand goes on.\n",
        "```py\ndef f():\n\n    return 1\n```\n",
    ]


def test_blocks_end_with_the_first_letter_of_the_next() -> None:
    machine = unit_machine("block")
    assert machine.feed("A paragraph.\n\n") == []
    assert machine.feed("N") == ["A paragraph.\n\n"]
    assert machine.feed("ext\n\n- item\n\n") == ["Next\n\n"]
    assert machine.feed("T") == ["- item\n\n"]
    assert machine.feed("ext\n```\ncode\n\n") == ["Text\n"]
    assert machine.feed("Not text") == []
    assert machine.close() == ["```\ncode\n\nNot text"]


@pytest.mark.parametrize(
    "block",
    ["# Title\n", "***\n", "> quoted\n", "- item\n", "1. item\n", "```\ncode\n```\n"],
)
def test_block_ends_where_another_kind_begins(block: str) -> None:
    text = "Text\n"
    for pieces in ([text + block], list(text + block)):
        assert cut(unit_machine("block"), pieces) == [text, block]


def test_units_are_cut_at_the_last_space_when_too_long() -> None:
    assert cut(unit_machine("sentence", 10), list("one two three four.")) == [
        "one two ",
        "three ",
        "four.",
    ]
    assert cut(unit_machine("line", 4), ["abcdefghij"]) == ["abcd", "efgh", "ij"]


def test_unit_machine_names_its_units_when_unknown() -> None:
    with pytest.raises(ValueError, match="word, line, sentence, block"):
        unit_machine("page")  # type: ignore[arg-type]


GRAPHEMES = (
    "e\u0301\u0302",
    "\r\n",
    "\U0001f468\U0001f3fb\u200d\u2764\ufe0f\u200d\U0001f469",
    "\U0001f3f4\U000e0067\U000e007f",
    "\u0915\u094d\u0937\u093f",
    "\u0915\u094d\u200d\u0937",
    "\u1100\u1161\u11a8",
    "\uac00\u11a8",
    "\u0e01\u0e33",
    "\u0600\u0661",
    "a",
    " ",
    "\u4f60",
)


@each_case("grapheme", GRAPHEMES, ids=ascii)
def test_joins_character_keeps_graphemes_whole(grapheme: str) -> None:
    regex = import_regex("the comparison")
    assert regex.findall(r"\X", grapheme) == [grapheme]
    for before, character in pairwise(grapheme):
        assert joins_character(before, character)
    for following in "a \u4f60\U0001f468":
        if len(regex.findall(r"\X", grapheme + following)) == 2 and grapheme[-1] != "\u200d":
            assert not joins_character(grapheme[-1], following)


@pytest.mark.timing
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("letters", ["a", "Is it. ", "- x\n\n", ". ", "word "])
def test_units_take_linear_time(name: UnitName, letters: str) -> None:
    def seconds(size: int) -> float:
        text = letters * (size // len(letters))
        machine = unit_machine(name)
        start = time.process_time()
        for position in range(0, size, 3):
            machine.feed(text[position : position + 3])
        return time.process_time() - start

    once = min(seconds(20_000) for _ in range(3))
    twice = min(seconds(40_000) for _ in range(3))
    assert twice < 2.3 * once + 0.05
