"""The next deadline of a stream. The waiting itself is done in `client.attempt`.

    queue - connect - request sent -(first_byte)- headers -(first_byte)- bytes -(first_event)-
                                  `---(headers)-----'
    event -(idle)- event ... terminal event -(drain)

Time counts only while the stream waits, never while the caller handles an event. Pings and comments
show that the connection lives, not that the response advances: only events restart `idle`, and of
those neither `Passthrough` (an unknown keep-alive event looks like it) nor `Notice` nor
`RateLimits`.
"""

from __future__ import annotations

from typing import Final

from streamlib.transport.deadlines import FOREVER, Deadlines, Phase
from streamlib_parsers.events import Notice, Passthrough, RateLimits, ResponseEvent

NO_PROGRESS: Final = frozenset({Passthrough, Notice, RateLimits})
"""Events that a server may send for ever although its response does not advance."""


class DeadlineTimer:
    """The next deadline of one stream.

    `waited` accumulates over the stream's attempts; `restart` begins the body of the next one.
    """

    def __init__(self, deadlines: Deadlines) -> None:
        self.deadlines = deadlines
        self.waited = 0.0
        """Seconds waited so far: for bytes, for connections and between attempts."""
        self.longest_gap: float | None = None
        """The longest wait between two events, in seconds; None before the second event."""
        self._total = _seconds(deadlines.total)
        self._idle = _seconds(deadlines.idle)
        self._phase: Phase = "first_event"
        """The current wait: `first_event`, then `idle`, `drain` once the response is complete."""
        self._limit = FOREVER
        """Seconds that the phase may take."""
        self._silence = FOREVER
        """Seconds until the first byte of the body; without limit once one was received."""
        self._waited_in_phase = 0.0
        """Seconds waited since the last event that was progress, or since the headers."""
        self.restart()

    def restart(self) -> None:
        """Starts the body of a response: its headers were received, but no byte of the body."""
        self._phase = "first_event"
        self._limit = _seconds(self.deadlines.first_event)
        self._silence = _seconds(self.deadlines.first_byte)
        self._waited_in_phase = 0.0

    def next_deadline(self) -> tuple[float, Phase]:
        """Seconds until the next deadline, and its phase."""
        left = self._limit - self._waited_in_phase
        phase = self._phase
        # Of equal deadlines, silence is the more precise reason.
        if self._silence - self._waited_in_phase <= left:
            left = self._silence - self._waited_in_phase
            phase = "first_byte"
        if self._total - self.waited < left:
            left = self._total - self.waited
            phase = "total"
        return left, phase

    def head_deadline(self, queued: float) -> tuple[float, Phase]:
        """Seconds until the response headers are due, and the phase of that deadline.

        Args:
            queued: seconds just waited for a connection: they count for `total` alone.
        """
        headers = _seconds(self.deadlines.headers)
        left = self.left - queued
        if headers <= left:
            return headers, "headers"
        return left, "total"

    @property
    def left(self) -> float:
        """Seconds left of `total`."""
        return self._total - self.waited

    def add_waited(self, seconds: float) -> None:
        """Adds a wait for bytes, or between attempts."""
        self.waited += seconds
        self._waited_in_phase += seconds

    def note_events(self, events: list[ResponseEvent]) -> None:
        """Takes the events that were completed by the bytes just received."""
        self._silence = FOREVER
        # Usually the first event decides.
        for event in events:
            if type(event) not in NO_PROGRESS:
                break
        else:
            return
        if self._phase == "idle":
            self.longest_gap = max(self.longest_gap or 0.0, self._waited_in_phase)
        self._phase = "idle"
        self._limit = self._idle
        self._waited_in_phase = 0.0

    def note_complete(self, *, has_tail: bool) -> None:
        """Starts the last, short wait: the response is complete.

        Args:
            has_tail: whether the wire may go on after the response is complete (chat, gemini,
                converse): usage and `[DONE]`, a repeated `finishReason`, `metadata`.
        """
        seconds = self.deadlines.tail if has_tail else self.deadlines.drain
        self._phase = "drain"
        # Never longer than a stream that is not complete would wait.
        self._limit = min(_seconds(seconds), self._idle)


def _seconds(value: float | None) -> float:
    return FOREVER if value is None else float(value)
