"""How long to wait for what. Values and arithmetic; the waiting itself is done in `exchange.py`.

    queue ─ connect ─ request out ──(first_byte)── head ──(first_byte)── bytes ──(first_event)── event ──(idle)── event … terminal ──(drain)
                     └────────────(headers)───────────┘

Time counts only while the stream waits: never while the caller holds an event. Pings and comments are signs of life, not progress:
only events re-arm `idle`, and of those neither `Passthrough` (an unknown keep-alive looks like it) nor `Notice` nor `RateLimits`.
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

FOREVER: Final = math.inf
NO_PROGRESS: Final = frozenset({Passthrough, Notice, RateLimits})
"""Kinds of event that a server which does nothing may send for ever."""


class Deadlines(Struct, frozen=True):
    """Seconds; None waits for ever. The defaults are what the providers' own SDKs wait: models may think for minutes.

    connect: each of TCP and TLS. headers: from sending the request to the whole head of the answer.
    first_byte: silence after the request, and after the head. first_event: from the head to the first event.
    idle: from one event to the next, whatever pings come between. total: all waiting, over every attempt.
    tail: after a whole answer that may go on (chat, gemini, converse); passing it is no error.
    drain: after the end, so that the connection can be used again; passing it is no error.

    While `idle` is the longest of first_byte, first_event and idle, a read costs no timeout scope of its own (about 10 us each).
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
            if value is not None and not (isinstance(value, (int, float)) and value >= 0):
                raise ValueError(f"{name} is seconds, zero or more, or None: not {value!r}")

    @property
    def longest_silence(self) -> float | None:
        """No read waits longer than this: a transport that can end a read by itself is told so."""
        waits = (self.first_byte, self.first_event, self.idle)
        return None if None in waits else max(wait for wait in waits if wait is not None)


class DeadlineTimer:
    """Which deadline comes next. One for each stream: `waited` goes on over its attempts, `restart` begins the body of the next."""

    def __init__(self, deadlines: Deadlines) -> None:
        self.deadlines = deadlines
        self.waited = 0.0
        self.longest_gap: float | None = None
        self._total = _seconds(deadlines.total)
        self._idle = _seconds(deadlines.idle)
        self.restart()

    def restart(self) -> None:
        """The head of an answer is there, and nothing else of it."""
        self._phase: Phase = "first_event"
        self._limit = _seconds(self.deadlines.first_event)
        self._silence = _seconds(self.deadlines.first_byte)
        self._quiet = 0.0

    def next_deadline(self) -> tuple[float, Phase]:
        """Seconds left, and what runs out then."""
        left, phase = self._limit - self._quiet, self._phase
        if self._silence - self._quiet <= left:
            left, phase = self._silence - self._quiet, "first_byte"
        if self._total - self.waited < left:
            left, phase = self._total - self.waited, "total"
        return left, phase

    def head_deadline(self, queued: float) -> tuple[float, Phase]:
        """The same for the head of the answer; so many seconds were queued for a connection before."""
        head, left = _seconds(self.deadlines.headers), self.left - queued
        return (head, "headers") if head <= left else (left, "total")

    @property
    def left(self) -> float:
        """Seconds left of `total`."""
        return self._total - self.waited

    def add_waited(self, seconds: float) -> None:
        """So long was waited for bytes, or between attempts."""
        self.waited += seconds
        self._quiet += seconds

    def note_events(self, events: list[ResponseEvent]) -> None:
        """Bytes came, and these events with them."""
        self._silence = FOREVER
        if events and (
            type(events[0]) not in NO_PROGRESS
            or any(type(event) not in NO_PROGRESS for event in events)
        ):
            if self._phase == "idle":
                self.longest_gap = max(self.longest_gap or 0.0, self._quiet)
            self._phase, self._limit, self._quiet = "idle", self._idle, 0.0

    def note_complete(self, *, has_tail: bool) -> None:
        """The wire called the answer whole: what may still come is waited for briefly."""
        brief = self.deadlines.tail if has_tail else self.deadlines.drain
        self._phase, self._limit = "drain", min(_seconds(brief), self._idle)


def deadline_error(phase: Phase, deadlines: Deadlines) -> ErrorInfo:
    """The failure of a deadline: `deadline` for the total, `stalled` for every other, the phase in `detail`."""
    seconds = getattr(deadlines, phase, None)
    message = _MESSAGES[phase] + (f" within {seconds:g} s" if seconds is not None else "")
    if phase == "total":
        return ErrorInfo("deadline", message, detail={"phase": phase})
    return ErrorInfo("stalled", message, retryable=True, detail={"phase": phase})


_MESSAGES: Final[dict[Phase, str]] = {
    "queue": "the pool had no free connection",
    "connect": "no connection was made",
    "first_byte": "no byte of the answer came",
    "headers": "the head of the answer was not whole",
    "first_event": "no event came",
    "idle": "no further event came",
    "drain": "the stream was not closed",
    "total": "the answer was not whole",
}


def _seconds(value: float | None) -> float:
    return FOREVER if value is None else float(value)
