"""Builds frame generators from templates with placeholders for an index and a text."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias

from streamlib_parsers.items import JsonObject

FrameGenerator: TypeAlias = Callable[[Any, str], Any]
"""(index, text) -> the payload: a JSON value, or text that is not JSON."""


class Missing(Enum):
    """The type of `MISSING`, which stands for an absent `index`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING

HALF_HIGH: Final = "\ud83d"
HALF_LOW: Final = "\ude00"
"""The two halves of an emoji, as gateways send them that split text between UTF-16 units."""


_MARK: Final = "…"
"""Placeholder for the text in a template."""


def indexed(key: str, index: Any) -> dict[str, Any]:
    """A dict with the index under its key; an empty dict for `MISSING`."""
    if index is MISSING:
        return {}
    return {key: index}


def filled(value: Any, text: str) -> Any:
    """The template with the text in place of `…`; `"…"` becomes the text as a JSON string."""
    if isinstance(value, dict):
        return {key: filled(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, text) for inner in value]
    if isinstance(value, str):
        return value.replace(f'"{_MARK}"', json.dumps(text)).replace(_MARK, text)
    return value


def fixed(**payload: Any) -> FrameGenerator:
    """A generator of an event without an index."""
    return lambda _, text: filled(payload, text)


def placed(kind: JsonObject, index_key: str, key: str, **values: Any) -> FrameGenerator:
    """A generator of an event with an index and an object.

    Args:
        kind: the field that names the event.
        index_key: key of the index.
        key: key of the object.
        values: the object, a template.
    """
    return lambda index, text: {**kind, **indexed(index_key, index), key: filled(values, text)}
