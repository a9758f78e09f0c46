"""JSON of a list of records, as a class of each library, and JSON of any shape."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec

DELTA = 10
"""Characters of one delta."""


class Author(msgspec.Struct):
    name: str
    born: int


class Book(msgspec.Struct):
    title: str
    pages: int
    rating: float
    tags: list[str]
    author: Author
    summary: str


class Library(msgspec.Struct):
    books: list[Book]


WORDS = ["river", "stone", "lantern", "quiet", "harbour", "ember", "'north'", '"east"', "café\n"]


def book(number: int, chance: random.Random) -> dict[str, Any]:
    """One record, about 350 bytes."""
    return {
        "title": " ".join(chance.choices(WORDS, k=4)),
        "pages": chance.randrange(2000),
        "rating": chance.randrange(50) / 10,
        "tags": chance.choices(WORDS, k=3),
        "author": {"name": f"Author {number}", "born": 1900 + number % 100},
        "summary": " ".join(chance.choices(WORDS, k=24)),
    }


def library_text(size: int) -> str:
    """JSON of a `Library` of about so many bytes."""
    chance = random.Random(5)
    books: list[dict[str, Any]] = []
    length = 0
    while length < size:
        books.append(book(len(books), chance))
        length += len(json.dumps(books[-1])) + 2
    return json.dumps({"books": books})


def deltas(text: str, size: int = DELTA) -> list[str]:
    """The text in fragments of so many characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def random_split(text: str, chance: random.Random) -> list[str]:
    """The text in fragments of random lengths."""
    length = chance.choice((1, 3, 12, 60, 400))
    fragments: list[str] = []
    start = 0
    while start < len(text):
        size = chance.randrange(1, length + 1)
        fragments.append(text[start : start + size])
        start += size
    return fragments


def random_value(chance: random.Random, depth: int = 0) -> Any:
    """Any JSON value, not deep."""
    kind = chance.randrange(4 if depth > 3 else 7)
    match kind:
        case 0:
            return "".join(chance.choices('ab"\\\n\u00e9\U0001f600{}[]:, ', k=chance.randrange(9)))
        case 1:
            return chance.choice((0, -1, 12345678901234567890, 1.5, -2e-7, 10))
        case 2:
            return chance.choice((True, False, None))
        case 3:
            return "word " * chance.randrange(4)
        case 4:
            return [random_value(chance, depth + 1) for _ in range(chance.randrange(4))]
        case _:
            names = chance.sample(("name", "born", "title", "x", "é/~", ""), k=chance.randrange(4))
            return {name: random_value(chance, depth + 1) for name in names}
