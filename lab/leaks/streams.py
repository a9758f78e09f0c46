"""Responses that hold a secret in every place that repeats a text, split at random."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from string import ascii_letters, ascii_uppercase, digits
from typing import Final

from streamlib_parsers.events import (
    AnnotationAdded,
    Completed,
    Created,
    FinishedChoice,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    ReasoningContentDelta,
    RefusalDelta,
    ResponseEvent,
    ResponseMetadata,
)
from streamlib_parsers.items import FunctionCall, Message, Reasoning, Refusal, Text

PATTERNS: Final = (
    r"sk-[A-Za-z0-9]{20,48}",
    r"\bAKIA[0-9A-Z]{16}\b",
    r"(?<!\d)\d{3}-\d{3}-\d{4}(?!\d)",
    r"\b[\w.]+@[\w-]+(?:\.[\w-]+)+\b",
    r"\b(?:\d{4} ){3}\d{4}\b",
    r"(?i)(?<=password: )\S+",
    r"\beyJ[\w-]+\.[\w-]+\.[\w-]+",
)
"""What the stage looks for."""

WORDS: Final = ("see", "the", "note", "sk-", "555", "or", "eyJ", "is", "a@", "12", "AKIA", "4111")
"""Words of a text; some are beginnings of secrets."""


FINE: Final = 0.1
"""How many texts are split everywhere, into pieces of a few characters."""


def _of(letters: str, count: int) -> Callable[[Random], str]:
    return lambda random: "".join(random.choices(letters, k=count))


_NAME: Final = _of(ascii_letters, 9)

MAKERS: Final[tuple[Callable[[Random], str], ...]] = (
    lambda random: "sk-" + _of(ascii_letters + digits, random.randint(20, 48))(random),
    lambda random: "AKIA" + _of(ascii_uppercase + digits, 16)(random),
    lambda random: "-".join(_of(digits, count)(random) for count in (3, 3, 4)),
    lambda random: f"{_NAME(random)}.x@{_NAME(random)}.example.com",
    lambda random: " ".join(_of(digits, 4)(random) for _ in range(4)),
    lambda random: "password: Zq" + _of(ascii_letters + digits, 12)(random),
    lambda random: "eyJ" + ".".join(_of(ascii_letters + digits, 20)(random) for _ in range(3)),
)
"""One for each pattern."""


def secrets(count: int, random: Random) -> list[str]:
    """So many secrets, of every kind in turn."""
    return [MAKERS[number % len(MAKERS)](random) for number in range(count)]


def hidden(secret: str) -> str:
    """The part of a secret that must not be read."""
    return secret.removeprefix("password: ")


def text_with(secret: str, random: Random) -> str:
    """A text that holds the secret once."""
    words = random.choices(WORDS, k=random.randint(4, 12))
    words.insert(random.randint(0, len(words)), secret)
    return " ".join(words)


def pieces(text: str, secret: str, random: Random) -> Iterator[str]:
    """The text, split at random: mostly at a few places, of which most are in the secret.

    Cuts elsewhere hardly matter, and each costs an event.
    """
    cuts: set[int] = set()
    if random.random() < FINE:
        longest = random.choice((1, 2, 4))
        position = 0
        while position < len(text):
            position += random.randint(1, longest)
            cuts.add(position)
    else:
        start = text.find(secret)
        for _ in range(random.randint(1, 4)):
            cuts.add(random.randint(start, start + len(secret)))
        cuts.add(random.randint(1, len(text)))
    position = 0
    for cut in sorted(cuts - {0}):
        yield text[position:cut]
        position = cut
    if position < len(text):
        yield text[position:]


def response(text: str, secret: str, random: Random) -> list[ResponseEvent]:
    """A response whose reasoning, texts and call all are the text, and whatever repeats it."""

    def split(whole: str) -> Iterator[str]:
        return pieces(whole, secret, random)

    arguments = json.dumps({"note": text, "more": [text, {"deep": text}]})
    citation = {"type": "citation", "quote": text}
    copies = {"segment": {"text": text, "startIndex": 0}}
    message = Message(
        "assistant", (Text(text, (citation,)), Refusal(text)), native={"source": [text]}
    )
    events: list[ResponseEvent] = [
        Created(response_id="resp_1", model="m"),
        OutputItemAdded(0, Reasoning()),
        *[ReasoningContentDelta(0, 0, piece) for piece in split(text)],
        OutputItemDone(0, Reasoning(content=text, signature="signed")),
        OutputItemAdded(1, Message("assistant", status="incomplete")),
        *[OutputTextDelta(1, 0, piece, [{"token": piece}]) for piece in split(text)],
        AnnotationAdded(1, 0, citation),
        *[RefusalDelta(1, 1, piece) for piece in split(text)],
        OutputItemDone(1, message),
        OutputItemAdded(2, FunctionCall("call_1", "f", status="incomplete")),
        *[FunctionCallArgumentsDelta(2, piece) for piece in split(arguments)],
        OutputItemDone(2, FunctionCall("call_1", "f", arguments)),
        ResponseMetadata(copies),
        Passthrough("other", copies),
        Completed("resp_1", "m", "tool_calls", choices=(FinishedChoice(0, "tool_calls"),)),
    ]
    return events
