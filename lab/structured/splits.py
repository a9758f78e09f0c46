"""Views and elements from random splits, compared with those of the text in one fragment."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec

from lab.structured.cases import Author, Book, Library, library_text, random_split, random_value
from streamlib.structured import JsonItems, TypedJson
from streamlib_parsers import InvalidOutput
from streamlib_parsers.json_fragments import IncrementalJson

CLASSES: tuple[Any, ...] = (Library, Book, Author, list[Author], dict[str, Author], Any)


def seen(fragments: list[str], kind: Any, looks: random.Random | None) -> tuple[Any, ...]:
    """The plain view, the typed view and the elements, with looks in between or none."""
    plain, typed = IncrementalJson(), TypedJson[Any](kind)
    items: JsonItems[Any] = JsonItems("/books" if kind is Library else "", Any)
    elements: list[Any] = []
    problem = ""
    for fragment in fragments:
        plain.feed(fragment)
        typed.feed(fragment)
        elements += items.feed(fragment)
        if looks is not None and looks.random() < 0.5:
            plain.partial()
            typed.partial()
    view, typed_view = plain.partial(), typed.partial()
    try:
        elements += items.close()
    except InvalidOutput as error:
        problem = error.problem
    return view, typed_view, elements, problem


def find_difference(count: int, seed: int = 1) -> str | None:
    """The first split that changes anything, among so many random ones; None without any.

    Args:
        count: how many splits.
        seed: of the texts and the splits.
    """
    chance = random.Random(seed)
    library = library_text(1500)
    done = 0
    while done < count:
        kind = chance.choice(CLASSES)
        text = json.dumps(random_value(chance), ensure_ascii=chance.random() < 0.5)
        if kind is Library:
            text = library
        # Also text that ends early or is no JSON.
        if chance.random() < 0.5:
            text = text[: chance.randrange(len(text) + 1)]
        if chance.random() < 0.1:
            text = text.replace(",", chance.choice(("", ";", "]")), 1)
        expected = seen([text], kind, None)
        for _ in range(10):
            fragments = random_split(text, chance)
            if seen(fragments, kind, chance) != expected:
                return f"{kind}: {fragments}"
            done += 1
    return None


def complete_views_are_values(count: int, seed: int = 2) -> bool:
    """Whether the last views of complete JSON are what a decoder makes of it."""
    chance = random.Random(seed)
    for _ in range(count):
        value = random_value(chance)
        text = json.dumps(value)
        view, _, elements, _ = seen([*random_split(text, chance), " "], Any, None)
        if view != value or TypedJson[Any](Any).partial() is not msgspec.UNSET:
            return False
        if elements != (value if isinstance(value, list) else [value]) and value is not None:
            return False
    return True
