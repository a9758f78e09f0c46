"""Literals in text that comes in pieces: found where a reader would find them, wherever in the text the search begins."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator, Sequence

import pytest

from streamlib_parsers.dialects.literal_search import (
    SHORT,
    SMALL,
    WINDOW,
    LiteralSearch,
    StringBuffer,
)

TAGS = ("<a>", "<ab>", "<", "b>", "\n<a>", "é", "[[")


def hits_by_hand(
    literals: Sequence[str], text: str, at: int, *, over: bool
) -> Iterator[tuple[int, str]]:
    """Every place looked at, every literal tried."""
    for place in range(at, len(text)):
        for literal in sorted(literals, key=len, reverse=True):
            if text.startswith(literal, place):
                yield place, literal
                break
            if not over and literal.startswith(text[place:]):
                yield place, ""
                return
    yield len(text), ""


def texts() -> Iterator[str]:
    """Short ones at random, and long ones with a literal around every place where the search takes its next step."""
    rng = random.Random(3)
    for size in (0, 1, 2, 3, 9, 30):
        for _ in range(30):
            yield "".join(rng.choice("<ab>\né[x") for _ in range(size))
    for edge in (SHORT, WINDOW, 3 * WINDOW):
        for before in range(edge - 4, edge + 2):
            for tag in TAGS:
                yield "x" * before + tag + "b>" * (before % 2)


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("literals", [TAGS, ("<a>",), ("<ab>", "<a", "é")], ids=len)
def test_every_literal_is_found_where_it_stands_and_what_may_become_one_waits(
    literals: tuple[str, ...], over: bool
) -> None:
    needles = LiteralSearch(literals)
    for text in texts():
        for at in (0, 1, len(text) - 4, len(text)):
            if 0 <= at <= len(text):
                wanted = list(hits_by_hand(literals, text, at, over=over))
                assert list(needles.hits(text, at, over=over)) == wanted, (
                    text[-20:],
                    len(text),
                    at,
                )
                assert needles.first(text, at, over=over) == wanted[0]
        assert needles.absent(text) == (not any(literal[0] in text for literal in literals))


def test_pieces_are_the_text_they_came_as() -> None:
    pieces = StringBuffer()
    for size in (SMALL - 1, 1, 1, SMALL, 0):
        for _ in range(size):
            pieces.add("ab")
        assert (pieces.text(), pieces.size) == ("ab" * (pieces.size // 2), len(pieces.text()))
    assert pieces.size == 2 * (2 * SMALL + 1)
    pieces.clear()
    assert (pieces.text(), pieces.size) == ("", 0)


def test_many_small_pieces_take_the_room_of_their_text() -> None:
    pieces = StringBuffer()
    tracemalloc.start()
    for number in range(50_000):
        pieces.add(f"{number % 90 + 10}")  # a new object each time, of 51 bytes
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pieces.size == 100_000
    assert held < 300_000
