"""Cursors, records and events as they are stored in a log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from streamlib.durable.errors import LogError
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Completed, Failed, ResponseEvent

# Typed Any, because type checkers accept only classes as this argument, not unions.
_EVENT: Final[Any] = msgspec.json.Decoder(ResponseEvent)
_ENCODER: Final = msgspec.json.Encoder()

MAX_ID: Final = 200
"""Maximum characters of a log's id, which is part of the engine's keys."""

MAX_DIGITS: Final = 15
"""Maximum digits of a number in a cursor."""


class LogCursor(NamedTuple):
    """A position in a log: after the event with this number. As text: ``epoch-position``."""

    epoch: int = 1
    position: int = 0

    def __str__(self) -> str:
        return f"{self.epoch}-{self.position}"


START: Final = LogCursor()


def parse_cursor(text: str | None) -> LogCursor:
    """The cursor in a text; the start for None, and in epoch 1 for a bare number.

    Raises:
        ValueError: the text is not a cursor.
    """
    if text is None:
        return START
    epoch, dash, position = text.rpartition("-")
    if not dash:
        epoch = "1"
    for number in (epoch, position):
        if not (number.isascii() and number.isdigit() and len(number) <= MAX_DIGITS):
            raise ValueError("a cursor is `epoch-position`, as `Entry.cursor` is")
    return LogCursor(int(epoch), int(position))


def check_id(log_id: str) -> None:
    """Raises:
    ValueError: The id cannot be a key of an engine.
    """
    if not 0 < len(log_id) <= MAX_ID or not log_id.isprintable():
        raise ValueError(f"a log's id has 1 to {MAX_ID} printable characters")


class Entry(Struct, frozen=True, gc=False):
    """An event of a log.

    Attributes:
        cursor: the position after it: continue with ``log.read(id, after=entry.cursor)``.
        event: the event.
    """

    cursor: str
    event: ResponseEvent


class Record:
    """The result of one append: the events `first` to `last`, one on each line."""

    __slots__ = ("_events", "epoch", "first", "last", "lines")

    def __init__(self, epoch: int, first: int, last: int, lines: bytes) -> None:
        self.epoch = epoch
        self.first = first
        self.last = last
        self.lines = lines
        self._events: list[ResponseEvent] | None = None
        """The decoded events; None before the first reader requests them."""

    def events(self) -> list[ResponseEvent]:
        """The events, decoded once and shared by all readers of a process.

        Raises:
            LogError: the engine stored something else.
        """
        if self._events is None:
            try:
                self._events = decode_events(self.lines)
            except (msgspec.DecodeError, RecursionError) as error:
                raise LogError("rewound", f"the log holds something else: {error}") from None
        return self._events


def encode_event(event: ResponseEvent) -> bytes:
    """The event as a line."""
    return _ENCODER.encode(event) + b"\n"


def decode_events(lines: bytes) -> list[ResponseEvent]:
    """The events of lines."""
    return [_EVENT.decode(line) for line in lines.splitlines()]


def endings(lines: Iterable[bytes], error: ErrorInfo) -> list[ResponseEvent]:
    """The events that end a log with these lines; none if it has ended."""
    accumulator = Accumulator()
    for line in lines:
        for event in decode_events(line):
            accumulator.feed(event)
    return accumulator.endings(error)


def is_terminal(event: ResponseEvent) -> bool:
    """Whether nothing follows this event."""
    return isinstance(event, (Completed, Failed))
