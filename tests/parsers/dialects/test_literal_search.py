"""Literal search in chunks of text, compared with a search that tries every index."""

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


def matches_by_hand(
    literals: Sequence[str], text: str, start: int, *, final: bool
) -> Iterator[tuple[int, str]]:
    """Looks at every index and tries every literal."""
    for index in range(start, len(text)):
        for literal in sorted(literals, key=len, reverse=True):
            if text.startswith(literal, index):
                yield index, literal
                break
            if not final and literal.startswith(text[index:]):
                yield index, ""
                return
    yield len(text), ""


def texts() -> Iterator[str]:
    """Short random ones, and long ones with a literal around every index where a window ends."""
    rng = random.Random(3)
    for size in (0, 1, 2, 3, 9, 30):
        for _ in range(30):
            yield "".join(rng.choice("<ab>\né[x") for _ in range(size))
    for edge in (SHORT, WINDOW, 3 * WINDOW):
        for before in range(edge - 4, edge + 2):
            for tag in TAGS:
                yield "x" * before + tag + "b>" * (before % 2)


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("literals", [TAGS, ("<a>",), ("<ab>", "<a", "é")], ids=len)
def test_search_yields_every_literal_and_a_partial_one(
    literals: tuple[str, ...], final: bool
) -> None:
    search = LiteralSearch(literals)
    for text in texts():
        for start in (0, 1, len(text) - 4, len(text)):
            if 0 <= start <= len(text):
                expected = list(matches_by_hand(literals, text, start, final=final))
                context = (text[-20:], len(text), start)
                assert list(search.matches(text, start, final=final)) == expected, context
                assert search.first(text, start, final=final) == expected[0]
        assert search.absent(text) == (not any(literal[0] in text for literal in literals))


def test_string_buffer_returns_the_text_added() -> None:
    buffer = StringBuffer()
    for size in (SMALL - 1, 1, 1, SMALL, 0):
        for _ in range(size):
            buffer.add("ab")
        assert (buffer.text(), buffer.size) == ("ab" * (buffer.size // 2), len(buffer.text()))
    assert buffer.size == 2 * (2 * SMALL + 1)
    buffer.clear()
    assert (buffer.text(), buffer.size) == ("", 0)


def test_string_buffer_takes_the_memory_of_its_text() -> None:
    buffer = StringBuffer()
    tracemalloc.start()
    for number in range(50_000):
        buffer.add(f"{number % 90 + 10}")  # a new object each time, of 51 bytes
    # Not all that is traced: threads of the test runner allocate meanwhile.
    own = [tracemalloc.Filter(True, path) for path in (__file__, "*streamlib_parsers*")]
    statistics = tracemalloc.take_snapshot().filter_traces(own).statistics("filename")
    tracemalloc.stop()
    assert buffer.size == 100_000
    assert sum(statistic.size for statistic in statistics) < 300_000
