"""JSON objects of a wire without some of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

ValueT = TypeVar("ValueT")


def without_keys(values: Mapping[str, ValueT], *keys: str) -> dict[str, ValueT]:
    """Returns the other entries, in their order."""
    return {key: value for key, value in values.items() if key not in keys}


def without_none(values: Mapping[str, ValueT | None]) -> dict[str, ValueT]:
    """Returns the entries whose value is not None, in their order."""
    return {key: value for key, value in values.items() if value is not None}
