"""The time of a view after every delta, for a text and for twice the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydantic

from lab.structured.cases import Book, Library, deltas, library_text
from streamlib.structured import JsonItems, TypedJson
from streamlib_parsers.json_fragments import IncrementalJson
from tests.support.timing import cpu_seconds


class ModelAuthor(pydantic.BaseModel):
    name: str
    born: int


class ModelBook(pydantic.BaseModel):
    title: str
    pages: int
    rating: float
    tags: list[str]
    author: ModelAuthor
    summary: str


class ModelLibrary(pydantic.BaseModel):
    books: list[ModelBook]


class LongText(pydantic.BaseModel):
    text: str


def _plain(fragments: list[str]) -> Any:
    view = IncrementalJson()
    for fragment in fragments:
        view.feed(fragment)
        view.partial()
    return view.partial()


def _typed(kind: Any) -> Callable[[list[str]], Any]:
    def run(fragments: list[str]) -> Any:
        view: TypedJson[Any] = TypedJson(kind)
        for fragment in fragments:
            view.feed(fragment)
            view.partial()
        return view.partial()

    return run


def _items(fragments: list[str]) -> Any:
    items: JsonItems[Book] = JsonItems("/books", Book)
    books: list[Book] = []
    for fragment in fragments:
        books += items.feed(fragment)
    return books


VIEWS: dict[str, Callable[[list[str]], Any]] = {
    "plain view": _plain,
    "typed view, msgspec": _typed(Library),
    "typed view, pydantic": _typed(ModelLibrary),
    "elements of a list": _items,
}
"""What is done after every delta of a list of records."""


def texts(size: int) -> dict[str, tuple[Callable[[list[str]], Any], str]]:
    """Name -> what is done, and the text of so many bytes."""
    table = {name: (view, library_text(size)) for name, view in VIEWS.items()}
    long_text = '{"text": "' + "word " * (size // 5) + '"}'
    table["one long text, plain"] = (_plain, long_text)
    table["one long text, typed"] = (_typed(LongText), long_text)
    return table


def seconds(run: Callable[[list[str]], Any], text: str) -> float:
    """Time of the processor: other programs do not count."""
    fragments = deltas(text)
    return cpu_seconds(lambda: run(fragments))


def growth(size: int, tries: int = 5) -> dict[str, tuple[float, float]]:
    """For each view: microseconds a delta for so many bytes, and the ratio to half of them.

    Args:
        size: bytes of JSON.
        tries: of which the best counts.
    """
    figures: dict[str, tuple[float, float]] = {}
    halves = texts(size // 2)
    for name, (run, text) in texts(size).items():
        half = whole = float("inf")
        for _ in range(tries):  # in turn, so that a slow phase of the machine meets both
            half = min(half, seconds(run, halves[name][1]))
            whole = min(whole, seconds(run, text))
        # The texts are not exactly twice as long as each other.
        ratio = whole / half * 2 * len(halves[name][1]) / len(text)
        figures[name] = (whole / len(deltas(text)) * 1e6, ratio)
    return figures
