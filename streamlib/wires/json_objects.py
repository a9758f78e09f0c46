"""JSON objects of a wire: without what is not known, or without what typed fields hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from streamlib_parsers.items import JsonObject

ValueT = TypeVar("ValueT")


def without_keys(values: Mapping[str, ValueT], *keys: str) -> dict[str, ValueT]:
    """Returns the other entries, in their order."""
    return {key: value for key, value in values.items() if key not in keys}


def without_none(values: Mapping[str, ValueT | None]) -> dict[str, ValueT]:
    """The entries whose value is not None, in their order."""
    return {key: value for key, value in values.items() if value is not None}


def rest_of(values: JsonObject, *read: str) -> JsonObject | None:
    """The fields that no typed field holds, without nulls; None if there are none."""
    rest = {key: value for key, value in values.items() if key not in read and value is not None}
    return rest or None
