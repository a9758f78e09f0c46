"""Progress of long work: one line on standard error that is redrawn and finally erased."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

from streamlib.display.safe_text import printable

DELAY: Final = 0.5
"""Seconds before the first line: most work is done by then."""
INTERVAL: Final = 0.1
"""Seconds between two lines."""
CLEAR_LINE: Final = "\r\x1b[K"


class Progress:
    """A progress line, drawn only where standard error is a terminal.

        with Progress("reading big.sse", 1_000_000) as progress:
            progress.update(4096)

    Args:
        label: what is being done.
        total: the amount that is 100 %; None where it is unknown, then the line shows a count.
        err: stream for the line; standard error by default.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        label: str,
        total: int | None,
        err: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label = printable(label)
        self._total = total
        self._err = err or sys.stderr
        self._clock = clock
        self._next = clock() + DELAY
        """Time of the next drawing, in seconds of the clock."""
        self._is_drawn = False
        """Whether a line is drawn, which must be erased at the end."""

    def update(self, done: int) -> None:
        """Reports how much of the total is done."""
        if self._clock() < self._next or not self._err.isatty():
            return
        self._next = self._clock() + INTERVAL
        self._is_drawn = True
        if self._total is None:
            amount = f"{done:,}"
        else:
            amount = f"{done * 100 // max(1, self._total)}%"
        self._err.write(f"{CLEAR_LINE}{self._label}: {amount}")
        self._err.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_drawn:
            self._err.write(CLEAR_LINE)
            self._err.flush()
