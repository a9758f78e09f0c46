"""Deadlines of a stream: values and arithmetic. The waiting itself is done in `client.attempt`.

    queue - connect - request sent -(first_byte)- headers -(first_byte)- bytes -(first_event)-
                                  `---(headers)-----'
    event -(idle)- event ... terminal event -(drain)

Time counts only while the stream waits, never while the caller handles an event. Pings and comments
show that the connection lives, not that the response advances: only events restart `idle`, and of
those neither `Passthrough` (an unknown keep-alive event looks like it) nor `Notice` nor
`RateLimits`.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Notice, Passthrough, RateLimits, ResponseEvent

Phase: TypeAlias = Literal[
    "queue", "connect", "first_byte", "headers", "first_event", "idle", "drain", "total"
]
"""What the stream is waiting for. Each is a field of `Deadlines`, except `queue`."""

FOREVER: Final = math.inf

NO_PROGRESS: Final = frozenset({Passthrough, Notice, RateLimits})
"""Event kinds that a server which produces nothing may send for ever."""


class Deadlines(Struct, frozen=True):
    """Deadlines in seconds; None means no limit.

    The defaults are what the providers' own SDKs wait: models may reason for minutes.

    Attributes:
        connect: TCP, the tunnel of a proxy, and TLS, each.
        headers: from sending the request to the end of the response headers.
        first_byte: silence after the request, and again after the headers.
        first_event: from the headers to the first event.
        idle: between two events, whatever pings arrive meanwhile.
        total: all waiting, over every attempt.
        tail: after a complete response whose wire may go on (chat, gemini, converse). No error.
        drain: after the end, so that the connection can be reused. No error.
    """

    connect: float | None = 15.0
    headers: float | None = 900.0
    first_byte: float | None = 600.0
    first_event: float | None = 600.0
    idle: float | None = 600.0
    total: float | None = None
    tail: float | None = 5.0
    drain: float | None = 0.5

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value: Any = getattr(self, name)
            if value is None:
                continue
            # `not (value >= 0)` rather than `value < 0`: NaN must fail as well.
            if not (isinstance(value, (int, float)) and value >= 0):
                raise ValueError(f"{name} is seconds, zero or more, or None: not {value!r}")


NO_DEADLINES: Final = Deadlines(
    connect=None, headers=None, first_byte=None, first_event=None, idle=None
)
"""For bytes that the caller provides and waits for as it likes: nothing fails for being late.
`tail` and `drain` remain, which only end a complete response."""


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
        """What is waited for: `first_event`, then `idle`, and `drain` once it is complete."""
        self._limit = FOREVER
        """Seconds that the phase may take."""
        self._silence = FOREVER
        """Seconds until the first byte of the body; without limit once one was received."""
        self._waited_in_phase = 0.0
        """Seconds waited since the last event that was progress, or since the headers."""
        self.restart()

    def restart(self) -> None:
        """The headers of a response were received, and nothing of its body."""
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
            queued: Seconds just waited for a connection: they count for `total` alone.
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
        """Bytes were received, and they completed these events."""
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
        """The response is complete: whatever may follow is waited for briefly.

        Args:
            has_tail: Whether the wire may go on after the response is complete (chat, gemini,
                converse): usage and `[DONE]`, a repeated `finishReason`, `metadata`.
        """
        seconds = self.deadlines.tail if has_tail else self.deadlines.drain
        self._phase = "drain"
        # Never longer than a stream that is not complete would wait.
        self._limit = min(_seconds(seconds), self._idle)


def deadline_error(phase: Phase, deadlines: Deadlines) -> ErrorInfo:
    """The failure of a deadline, with the phase in `detail`.

    Returns:
        Kind `deadline` for `total`; retryable `stalled` for every other phase.
    """
    message = _MESSAGES[phase]
    seconds = getattr(deadlines, phase, None)
    if seconds is not None:
        message += f" within {seconds:g} s"
    if phase == "total":
        return ErrorInfo("deadline", message, detail={"phase": phase})
    return ErrorInfo("stalled", message, retryable=True, detail={"phase": phase})


_MESSAGES: Final[dict[Phase, str]] = {
    "queue": "no connection of the pool became free",
    "connect": "no connection was established",
    "first_byte": "no byte of the response was received",
    "headers": "the response headers were not complete",
    "first_event": "no event was received",
    "idle": "no further event was received",
    "drain": "the stream was not closed",
    "total": "the response was not complete",
}


def _seconds(value: float | None) -> float:
    return FOREVER if value is None else float(value)
