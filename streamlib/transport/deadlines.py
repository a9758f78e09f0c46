"""Deadlines of a stream: the limit of each wait, and the failure when it has passed."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.item_base import NamedFields

Phase: TypeAlias = Literal[
    "queue", "connect", "first_byte", "headers", "first_event", "idle", "drain", "total"
]
"""What the stream is waiting for. Each is a field of `Deadlines`, except `queue`."""

FOREVER: Final = math.inf


class Deadlines(Struct, frozen=True, metaclass=NamedFields):
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

    _meant: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("timeout", "request", "seconds"), "total"),
        **dict.fromkeys(("read", "read_timeout", "sock_read"), "idle"),
        **dict.fromkeys(("connect_timeout", "sock_connect"), "connect"),
    }
    """Name in other libraries -> the field."""

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
"""For bytes that the caller provides: nothing fails for being late. `tail` and `drain` remain: they
only end a complete response."""


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
