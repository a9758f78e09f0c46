"""Numbers that stages are made with: how many, how long."""

from __future__ import annotations

import math
from typing import Any


def check_count(name: str, value: Any) -> None:
    """Refuses what is no whole number from 1.

    Raises:
        TypeError: it is something else, such as a part of a whole.
        ValueError: it is less.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number from 1, not {value!r:.100}")
    if value < 1:
        raise ValueError(f"{name} is a whole number from 1, not {value}")


def check_seconds(name: str, value: Any, *, may_be_zero: bool = False) -> None:
    """Refuses what is no number of seconds.

    Raises:
        TypeError: it is no number.
        ValueError: it is less than 0, or 0 where that means nothing.
    """
    meant = "0 or more" if may_be_zero else "more than 0"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {meant} seconds, not {value!r:.100}")
    if not is_seconds(value):
        raise ValueError(f"{name} is {meant} seconds that a float can hold, and no NaN")
    if value < 0 or not (value or may_be_zero):
        raise ValueError(f"{name} is {meant} seconds, not {value}")


def is_seconds(value: Any) -> bool:
    """Whether a value can be added to the time of a clock."""
    if not isinstance(value, (int, float)):
        return False
    try:
        return not math.isnan(value)
    except OverflowError:  # a whole number that no float can hold
        return False
