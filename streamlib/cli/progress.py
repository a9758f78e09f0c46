"""How far long work is: one line on stderr that is drawn over and wiped away, for people only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

from streamlib.cli.terminal import printable

PATIENCE: Final = 0.5
"""Seconds before anything is said: most work is over by then."""
EVERY: Final = 0.1
"""Seconds between two lines."""
WIPE: Final = "\r\x1b[K"


class Progress:
    """`with Progress("reading big.sse", 1_000_000) as progress: progress.at(4096)`. Silent where stderr is no terminal.

    total: None where nobody knows it; then the line counts.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        err: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = printable(what)
        self._total = total
        self._err = err or sys.stderr
        self._clock = clock
        self._next = clock() + PATIENCE
        self._shown = False

    def at(self, done: int) -> None:
        """So much of the total is done."""
        if self._clock() < self._next or not self._err.isatty():
            return
        self._next = self._clock() + EVERY
        self._shown = True
        far = f"{done:,}" if self._total is None else f"{done * 100 // max(1, self._total)}%"
        self._err.write(f"{WIPE}{self._what}: {far}")
        self._err.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._err.write(WIPE)
            self._err.flush()
