"""Progress of long work, or what is waited for: a line on standard error that is erased at last."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Final, TextIO

from streamlib.display.safe_text import one_line, printable
from streamlib_parsers import Created, RateLimits, ResponseEvent, ResponseMetadata, TokenCount

DELAY: Final = 0.5
"""Seconds before the first line: most work is done by then."""
INTERVAL: Final = 0.1
"""Seconds between two lines."""
CLEAR_LINE: Final = "\r\x1b[K"


class StatusLine:
    """A line that is drawn anew again and again, and erased in the end; on terminals only.

    Args:
        err: stream for the line; standard error by default.
    """

    def __init__(self, err: TextIO | None = None) -> None:
        self._err = err or sys.stderr
        self.is_shown = self._err.isatty()
        """Whether there is a terminal to draw it on."""
        self._is_drawn = False

    def draw(self, text: str) -> None:
        """Draws the line in place of what it was."""
        if self.is_shown:
            self._is_drawn = True
            self._err.write(CLEAR_LINE + text)
            self._err.flush()

    def erase(self) -> None:
        """Erases the line."""
        if self._is_drawn:
            self._is_drawn = False
            self._err.write(CLEAR_LINE)
            self._err.flush()


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
        self._line = StatusLine(err)
        self._clock = clock
        self._next = clock() + DELAY
        """Time of the next drawing, in seconds of the clock."""

    def update(self, done: int) -> None:
        """Reports how much of the total is done."""
        if self._clock() < self._next or not self._line.is_shown:
            return
        self._next = self._clock() + INTERVAL
        if self._total is None:
            amount = f"{done:,}"
        else:
            amount = f"{done * 100 // max(1, self._total)}%"
        self._line.draw(f"{self._label}: {amount}")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.erase()


# --- while no response is received ---


WAITING_DELAY: Final = 0.4
"""Seconds before the line is shown: most responses have started by then."""

WAITING_INTERVAL: Final = 1.0
"""Seconds between two drawings of the line."""

UNSEEN: Final = (Created, RateLimits, ResponseMetadata, TokenCount)
"""Events that show nothing on the screen: after them the line stays."""


class WaitingLine:
    """A line that shows on a terminal what is waited for, until `stop`.

    It is drawn by a thread, since a name server or a proxy may keep the event loop waiting.

        with WaitingLine("waiting for anthropic:claude-opus-5"):
            ...

    Args:
        text: text of the line.
        err: stream for the line; standard error by default.
    """

    def __init__(self, text: str, err: TextIO | None = None) -> None:
        self._text = one_line(text)
        self._line = StatusLine(err)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> WaitingLine:
        if self._line.is_shown:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Erases the line. Nothing is drawn after it returns."""
        if self._thread is not None:
            self._stopped.set()
            self._thread.join()
            self._thread = None

    def stop_before(self, event: ResponseEvent) -> None:
        """Erases the line if the event is going to be shown."""
        if self._thread is not None and not isinstance(event, UNSEEN):
            self.stop()

    def _run(self) -> None:
        began = time.monotonic()
        if self._stopped.wait(WAITING_DELAY):
            return
        while True:
            seconds = time.monotonic() - began
            self._line.draw(f"{self._text} … {seconds:.0f} s")
            if self._stopped.wait(WAITING_INTERVAL):
                break
        self._line.erase()
