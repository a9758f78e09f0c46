"""Objects laid over each other: what a caller, a provider and a builder each say of the same request body."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from streamlib_parsers.items import JsonObject


def merged(under: JsonObject, over: JsonObject) -> JsonObject:
    """`over` laid on `under`: objects on both sides are joined key by key, of everything else `over` wins. Neither is changed."""
    out = dict(under)
    for key, value in over.items():
        below = out.get(key)
        out[key] = (
            merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return out


def nested(path: str, value: Any) -> JsonObject:
    """`"a.b"`, 1 -> `{"a": {"b": 1}}`."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value  # type: ignore[no-any-return]


Value = TypeVar("Value")


def camel_case(values: dict[str, Value]) -> dict[str, Value]:
    """The same object with its own names in camelCase: proto3's JSON takes `thought_signature` for `thoughtSignature`."""
    return {
        re.sub(r"_([a-z0-9])", lambda letter: letter[1].upper(), key): value
        for key, value in values.items()
    }
