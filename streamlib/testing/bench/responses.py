"""Sample responses as data: items with the deltas in which a model streams them.

A workload is a sample response on a wire. Texts are drawn with a seed, so that every run on every
machine reads the same bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from streamlib_parsers.items import JsonObject

VOCABULARY: Final = (
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
"""Most words are plain; some need JSON escapes, some several bytes, one a surrogate pair."""

REASONING_DELTA: Final = " some thinking words"
TEXT_DELTA: Final = " some more text words"
ELEMENT: Final = '"abcdefgh",'


class SampleText(NamedTuple):
    """Text of the response, as deltas."""

    deltas: Sequence[str]


class SampleReasoning(NamedTuple):
    """Reasoning of the response, as deltas."""

    deltas: Sequence[str]


class SampleCall(NamedTuple):
    """A call; its deltas are fragments of its arguments' JSON text."""

    call_id: str
    name: str
    deltas: Sequence[str]

    @property
    def arguments(self) -> JsonObject:
        """The parsed arguments."""
        decoded: JsonObject = json.loads("".join(self.deltas))
        return decoded


SampleItem: TypeAlias = SampleText | SampleReasoning | SampleCall
SampleResponse: TypeAlias = tuple[SampleItem, ...]

USAGE: Final = (9, 2000)
"""Input and output tokens that every body reports."""


def text_of(response: SampleResponse) -> str:
    """All text of a response."""
    texts = ["".join(item.deltas) for item in response if isinstance(item, SampleText)]
    return "".join(texts)


def reasoning_of(response: SampleResponse) -> str:
    """All reasoning of a response."""
    texts = ["".join(item.deltas) for item in response if isinstance(item, SampleReasoning)]
    return "".join(texts)


def calls_of(response: SampleResponse) -> list[SampleCall]:
    """The calls of a response."""
    return [item for item in response if isinstance(item, SampleCall)]


def elements(count: int) -> list[str]:
    """Deltas of a call's arguments: a list of `count` strings, each in its own delta."""
    return ['{"a":[', *[ELEMENT] * count, "1]}"]


def seeded_deltas(seed: str, count: int) -> list[str]:
    """Words drawn with a seed, each in its own delta."""
    draw = random.Random(seed)  # a benchmark's words, no secret
    return [f" {draw.choice(VOCABULARY)}" for _ in range(count)]


def usual(scale: int) -> SampleResponse:
    """About 2,000 deltas: reasoning, a text, three calls."""
    calls = [SampleCall(f"call_{n}", "f", elements(130 * scale)) for n in range(3)]
    reasoning = SampleReasoning([REASONING_DELTA] * 600 * scale)
    return (reasoning, SampleText([TEXT_DELTA] * 1000 * scale), *calls)


def text_alone(scale: int) -> SampleResponse:
    """A text of 2,000 words."""
    return (SampleText(seeded_deltas("chat text", 2000 * scale)),)


def rounds(scale: int) -> SampleResponse:
    """Reasoning before every call, five times."""
    items: list[SampleItem] = []
    for n in range(5):
        # The seed is part of the workload: another seed would give other bytes.
        items.append(SampleReasoning(seeded_deltas(f"thought {n}", 200 * scale)))
        items.append(SampleCall(f"call_{n}", "look_up", elements(100 * scale)))
    return tuple(items)


def one_long_call(scale: int) -> SampleResponse:
    """A call with about 100 KB of arguments, in deltas of about ten characters."""
    return (SampleCall("call_0", "write_file", elements(9000 * scale)),)


def many_calls(scale: int) -> SampleResponse:
    """64 parallel calls."""
    return tuple(SampleCall(f"call_{n}", f"tool_{n}", elements(30 * scale)) for n in range(64))


def one_long_delta(scale: int) -> SampleResponse:
    """A megabyte of text in one delta."""
    return (SampleText(["".join(seeded_deltas("huge line", 150_000 * scale))]),)


def calls_in_text(scale: int) -> SampleResponse:
    """Text, then a call that the model writes as text: forty times."""
    call = SampleCall("", "f", ['{"k":"', "value " * 40, '"}'])
    return (SampleText(seeded_deltas("text", 20)), *[call] * 40 * scale)


def short(scale: int) -> SampleResponse:
    """Some hundred deltas."""
    return (
        SampleReasoning(seeded_deltas("thought", 40 * scale)),
        SampleText(seeded_deltas("text", 60 * scale)),
        SampleCall("call_0", "f", elements(20 * scale)),
    )
