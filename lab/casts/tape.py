"""A terminal in virtual time: it keeps what is written to it, and nobody waits for a clock."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import anyio
from msgspec import Struct

from tests.support.virtual_time import JumpingLoop

RUN: Final = anyio.run
"""The function itself, which `as_terminal` replaces."""


class Written(Struct, frozen=True):
    """Characters that were written together.

    Attributes:
        at: Seconds since the start of the cast.
        text: With control sequences.
    """

    at: float
    text: str


class Tape(io.StringIO):
    """A terminal that keeps what is written to it.

    Args:
        columns: Its width in characters.
        lines: Its height.
    """

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__()
        self.columns = columns
        self.lines = lines
        self.written: list[Written] = []
        self._now = 0.0
        """Seconds since the start of the cast, without those of the running loop."""
        self._loop: JumpingLoop | None = None
        """The event loop of the command that runs."""

    @property
    def now(self) -> float:
        """Seconds since the start of the cast."""
        if self._loop is None:
            return self._now
        return self._now + self._loop.time()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.append(Written(self.now, text))
        return len(text)

    def wait(self, seconds: float) -> None:
        """Lets time pass between two commands."""
        self._now += seconds

    def type(self, command: str) -> None:
        """A person types a command, two letters at a time, and looks at it before Enter."""
        for start in range(0, len(command), 2):
            self.wait(0.06)
            self.write(command[start : start + 2])
        self.wait(0.4)
        self.write("\n")

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """`anyio.run` in virtual time."""
        self._loop = JumpingLoop()
        try:
            options = {"loop_factory": lambda: self._loop}
            return RUN(function, *arguments, backend_options=options)
        finally:
            self._now = self.now
            self._loop = None

    @contextmanager
    def as_terminal(self) -> Iterator[None]:
        """Commands in this block find a terminal of this size, with colours, and write to it."""
        size = {"COLUMNS": str(self.columns), "LINES": str(self.lines)}
        with (
            patch.dict("os.environ", {**size, "TERM": "xterm-256color", "NO_COLOR": ""}),
            patch("sys.stdout", self),
            patch("sys.stderr", self),
            patch("anyio.run", self.run),
            # A thread would draw the line of a command that waits, in real time.
            patch("streamlib.cli.progress.DELAY", 3600.0),
        ):
            yield
