"""Argument types for numbers: an error names the values that are valid."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def _finite(text: str) -> float:
    """The number; NaN, which fails every comparison, if the text is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    if math.isinf(value):
        return math.nan
    return value


def integer(minimum: int, unit: str) -> Callable[[str], int]:
    """Makes an argument type for integers.

    Args:
        minimum: the smallest valid value.
        unit: what is counted, in the plural, for the error message.
    """

    def read(text: str) -> int:
        # `int()` would also accept "1_000", " 1" and digits of other scripts.
        if not text.isascii() or not text.isdigit() or int(text) < minimum:
            raise argparse.ArgumentTypeError(
                f"{text!r}: the number of {unit} must be {minimum} or more"
            )
        return int(text)

    return read


byte_count = integer(1, "bytes")


def speed(text: str) -> float:
    """Argument type for a factor of 0 or more."""
    value = _finite(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a speed: 1 is the recorded pace, 2 twice as fast, 0 without pauses"
        )
    return value


def seconds(text: str) -> float:
    """Argument type for 0 seconds or more."""
    value = _finite(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds: 0 or more")
    return value


def positive_seconds(text: str) -> float:
    """Argument type for more than 0 seconds."""
    value = _finite(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds: more than 0")
    return value
