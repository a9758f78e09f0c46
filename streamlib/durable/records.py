"""Cursors, records and events as they are stored in a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from streamlib.durable.errors import LogError
from streamlib.request.mistakes import check_kind
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Completed, Event, Failed, ResponseEvent, RunEvent
from streamlib_parsers.json_text import DECODE_ERRORS

# Typed Any, because type checkers accept only classes as this argument, not unions.
_EVENT: Final[Any] = msgspec.json.Decoder(RunEvent)
_ENCODER: Final = msgspec.json.Encoder()
_Row = TypeVar("_Row")

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
        TypeError: it is no text.
        ValueError: the text is not a cursor.
    """
    if text is None:
        return START
    check_kind("a cursor", text, str, "the text `cursor` of an `Entry`")
    epoch, dash, position = text.rpartition("-")
    if not dash:
        epoch = "1"
    for number in (epoch, position):
        if not (number.isascii() and number.isdigit() and len(number) <= MAX_DIGITS):
            raise ValueError("a cursor is `epoch-position`, as `Entry.cursor` is")
    return LogCursor(int(epoch), int(position))


def check_id(log_id: str) -> None:
    """Raises:
    TypeError: The id is no text.
    ValueError: It cannot be a key of an engine.
    """
    if not isinstance(log_id, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a log's id is a text, not {log_id!r:.100}")
    if not 0 < len(log_id) <= MAX_ID or not log_id.isprintable():
        raise ValueError(f"a log's id has 1 to {MAX_ID} printable characters")


class Entry(Struct, frozen=True, gc=False):
    """An event of a log.

    Attributes:
        cursor: the position after it: continue with ``log.read(id, after=entry.cursor)``.
        event: the event; in the log of a run also the output of a call.
    """

    cursor: str
    event: RunEvent


class Record:
    """The result of one append: the events `first` to `last`, one on each line.

    `closes`: whether a push says that the log is closed after them; a read shows it by the state.
    """

    __slots__ = ("_events", "closes", "epoch", "first", "last", "lines")

    def __init__(
        self, epoch: int, first: int, last: int, lines: bytes, *, closes: bool = False
    ) -> None:
        self.epoch = epoch
        self.first = first
        self.last = last
        self.lines = lines
        self.closes = closes
        self._events: list[RunEvent] | None = None
        """The decoded events; None before the first reader requests them."""

    def events(self) -> list[RunEvent]:
        """The events, decoded once and shared by all readers of a process.

        Raises:
            LogError: `unreadable`: the engine stored something else.
        """
        if self._events is None:
            try:
                events = decode_events(self.lines)
            except DECODE_ERRORS as error:
                raise unreadable(f"a record holds no events: {error}") from None
            if not events or len(events) != self.last + 1 - self.first:
                raise unreadable("a record holds another number of events than it says")
            self._events = events
        return self._events


def unreadable(what: str) -> LogError:
    """The error for what an engine stores and nobody wrote."""
    return LogError("unreadable", f"the log cannot be read: {what}")


def readable_records(rows: Iterable[_Row], make: Callable[[_Row], Record]) -> list[Record]:
    """The records of an engine's rows, up to the first row that is none.

    Raises:
        LogError: `unreadable`: the first row is none. Those before it are delivered first.
    """
    records: list[Record] = []
    for row in rows:
        try:
            records.append(make(row))
        except (AttributeError, LookupError, TypeError, ValueError):
            if not records:
                raise unreadable("a record was changed") from None
            break
    return records


def encode_event(event: RunEvent) -> bytes:
    """The event as a line."""
    return _ENCODER.encode(event) + b"\n"


def decode_events(lines: bytes) -> list[RunEvent]:
    """The events of lines."""
    return [_EVENT.decode(line) for line in lines.splitlines()]


def endings(lines: Iterable[bytes], error: ErrorInfo) -> list[ResponseEvent]:
    """The events that end a log with these lines; none if it has ended.

    A run has not ended after a response that waits for outputs. What follows a line that cannot be
    read is not looked at.
    """
    accumulator = Accumulator()
    is_whole = True
    last: Event | None = None
    try:
        for line in lines:
            for event in decode_events(line):
                if not isinstance(event, Event):
                    continue  # an output, between two responses of a run
                if last is not None and is_terminal(last):
                    accumulator = Accumulator()
                accumulator.feed(event)
                last = event
    except (*DECODE_ERRORS, ValueError):
        is_whole = False
    if last is None or not is_terminal(last):
        return accumulator.endings(error)
    if is_whole and not accumulator.response.unfinished:
        return []
    return [Failed(error, seq=last.seq + 1)]


def is_terminal(event: object) -> bool:
    """Whether this event ends a response; in the log of a run another may follow."""
    return isinstance(event, (Completed, Failed))
