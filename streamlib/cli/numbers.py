"""Numbers of the command line, checked where they are read: what is none is said with the words that would be right."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def number(text: str) -> float:
    """Any finite number; nan where it is none."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def whole(least: int, what: str) -> Callable[[str], int]:
    """A reader of whole numbers from `least` on. what: what they count, for the message."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {what}: {least} or more")
        return int(text)

    return read


several = whole(1, "bytes")


def speed(text: str) -> float:
    """A factor: 0 or more."""
    value = number(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a speed: 1 is the recorded pace, 2 twice as fast, 0 at once"
        )
    return value


def pause(text: str) -> float:
    """Seconds: 0 or more."""
    value = number(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds: 0 or more")
    return value


def duration(text: str) -> float:
    """Seconds: more than none."""
    value = number(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds: more than 0")
    return value
