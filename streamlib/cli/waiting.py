"""A line on standard error while no response is received: what is awaited, and for how long."""

from __future__ import annotations

import threading
import time
from typing import Final, TextIO

from streamlib.cli.progress import StatusLine
from streamlib.display.safe_text import one_line
from streamlib_parsers import Created, RateLimits, ResponseEvent, ResponseMetadata, TokenCount

DELAY: Final = 0.4
"""Seconds before the line is shown: most responses have started by then."""

INTERVAL: Final = 1.0
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
        if self._stopped.wait(DELAY):
            return
        while True:
            seconds = time.monotonic() - began
            self._line.draw(f"{self._text} … {seconds:.0f} s")
            if self._stopped.wait(INTERVAL):
                break
        self._line.erase()
