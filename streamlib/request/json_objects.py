"""Operations on JSON objects: merging, nesting, camel case, leaving keys out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from streamlib_parsers.items import JsonObject

ValueT = TypeVar("ValueT")

_SNAKE: Final = re.compile(r"_([a-z0-9])")


def merged(under: JsonObject, over: JsonObject) -> JsonObject:
    """`over` merged into `under`; neither is changed.

    Objects on both sides are merged key by key; of any other value, `over` wins.
    """
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            value = merged(below, value)  # noqa: PLW2901
        result[key] = value
    return result


def nested(path: str, value: Any) -> JsonObject:
    """`"a.b"` and 1 give `{"a": {"b": 1}}`."""
    *parents, last = path.split(".")
    result: JsonObject = {last: value}
    for key in reversed(parents):
        result = {key: result}
    return result


def without(values: JsonObject, path: str) -> JsonObject:
    """The object without the field at a dotted path, nor an object that is empty then."""
    key, _, rest = path.partition(".")
    result = dict(values)
    inner = result.get(key)
    if rest and isinstance(inner, dict) and inner:
        remaining = without(inner, rest)
        if remaining:
            result[key] = remaining
        else:
            del result[key]
    elif not rest:
        result.pop(key, None)
    return result


def camel_case(values: dict[str, ValueT]) -> dict[str, ValueT]:
    """The object with its keys in camelCase.

    JSON of proto3 takes `thought_signature` for `thoughtSignature`.
    """
    return {_SNAKE.sub(_upper, key): value for key, value in values.items()}


def _upper(match: re.Match[str]) -> str:
    return match[1].upper()


def without_keys(values: Mapping[str, ValueT], *keys: str) -> dict[str, ValueT]:
    """The entries under other keys, in their order."""
    return {key: value for key, value in values.items() if key not in keys}


def without_none(values: Mapping[str, ValueT | None]) -> dict[str, ValueT]:
    """The entries whose value is not None, in their order."""
    return {key: value for key, value in values.items() if value is not None}


def rest_of(values: JsonObject, *read: str) -> JsonObject | None:
    """The fields that no typed field holds, without nulls; None if there are none."""
    rest = {key: value for key, value in values.items() if key not in read and value is not None}
    return rest or None
