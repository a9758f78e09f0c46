"""JSON objects of a wire without the fields that are not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

ValueT = TypeVar("ValueT")


def without_none(values: Mapping[str, ValueT | None]) -> dict[str, ValueT]:
    """Returns the entries whose value is not None, in their order."""
    return {key: value for key, value in values.items() if value is not None}
