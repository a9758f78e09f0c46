"""What a model might say, as data: the pieces in which it says them. A workload is one of these in the dress of a wire.

The words are drawn with a seed, so that every run on every machine reads the same bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from streamlib_parsers.items import JsonObject

WORDS: Final = (
    "the",
    "stream",
    "parser",
    "of",
    "a",
    "model",
    "answer",
    "and",
    "naïve",
    "日本",
    "😀",
    "“quoted”",
    "\\path",
    "tab\t",
    "line\n",
)
"""Most are plain; some need escapes, some several bytes, one a pair of surrogates."""

THOUGHT: Final = " some thinking words"
WORD: Final = " some more text words"
ELEMENT: Final = '"abcdefgh",'


class Said(NamedTuple):
    """Text of the answer, in pieces."""

    pieces: Sequence[str]


class Thought(NamedTuple):
    """A thought, in pieces."""

    pieces: Sequence[str]


class Called(NamedTuple):
    """A call; the pieces are those of its arguments' JSON text."""

    call_id: str
    name: str
    pieces: Sequence[str]

    @property
    def arguments(self) -> JsonObject:
        """What the pieces add up to."""
        decoded: JsonObject = json.loads("".join(self.pieces))
        return decoded


Answer: TypeAlias = tuple[Said | Thought | Called, ...]

USAGE: Final = (9, 2000)
"""Tokens in and out that every body reports."""


def text_of(answer: Answer) -> str:
    """What the answer says."""
    return "".join(piece for part in answer if isinstance(part, Said) for piece in part.pieces)


def thought_of(answer: Answer) -> str:
    """What was thought before."""
    return "".join(piece for part in answer if isinstance(part, Thought) for piece in part.pieces)


def calls_of(answer: Answer) -> list[Called]:
    """Its calls."""
    return [part for part in answer if isinstance(part, Called)]


def elements(count: int) -> list[str]:
    """Arguments of one call: a list of `count` strings, one a piece."""
    return ['{"a":[', *[ELEMENT] * count, "1]}"]


def words(seed: str, count: int) -> list[str]:
    """Seeded words, one a piece."""
    draw = random.Random(seed)  # noqa: S311  # a benchmark's words, no secret
    return [f" {draw.choice(WORDS)}" for _ in range(count)]


def usual(scale: int) -> Answer:
    """About 2,000 deltas: a thought, a text, three calls."""
    calls = (Called(f"call_{n}", "f", elements(130 * scale)) for n in range(3))
    return (Thought([THOUGHT] * 600 * scale), Said([WORD] * 1000 * scale), *calls)


def text_alone(scale: int) -> Answer:
    """2,000 words and nothing else."""
    return (Said(words("chat text", 2000 * scale)),)


def rounds(scale: int) -> Answer:
    """A thought before every call, five times."""

    def one(n: int) -> Iterator[Thought | Called]:
        yield Thought(words(f"thought {n}", 200 * scale))
        yield Called(f"call_{n}", "look_up", elements(100 * scale))

    return tuple(part for n in range(5) for part in one(n))


def one_long_call(scale: int) -> Answer:
    """A call with about 100 KB of arguments, in pieces of some ten characters."""
    return (Called("call_0", "write_file", elements(9000 * scale)),)


def many_calls(scale: int) -> Answer:
    """64 calls at once."""
    return tuple(Called(f"call_{n}", f"tool_{n}", elements(30 * scale)) for n in range(64))


def one_piece(scale: int) -> Answer:
    """A megabyte of text at once."""
    return (Said(["".join(words("huge line", 150_000 * scale))]),)


def calls_in_words(scale: int) -> Answer:
    """Text, then a call that the model writes as text: forty times."""
    return (
        Said(words("text", 20)),
        *(Called("", "f", ['{"k":"', "value " * 40, '"}']) for _ in range(40 * scale)),
    )


def short(scale: int) -> Answer:
    """Some hundred deltas."""
    return (
        Thought(words("thought", 40 * scale)),
        Said(words("text", 60 * scale)),
        Called("call_0", "f", elements(20 * scale)),
    )
