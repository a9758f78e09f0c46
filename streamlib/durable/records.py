"""Cursors, records and events as a log stores them, and what an engine does to store them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec
from msgspec import Struct

from streamlib.durable.rules import Append, LogState, Operation, Result
from streamlib.request.mistakes import check_kind
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Completed, Event, Failed, ResponseEvent, RunEvent
from streamlib_parsers.json_text import DECODE_ERRORS

LogErrorKind: TypeAlias = Literal[
    "gone", "held", "fenced", "rewound", "unreadable", "unavailable", "full"
]


class LogError(Exception):
    """A log cannot be written or read.

    Attributes:
        kind: kind of the error:
            `gone`: no log has this id, or it was deleted or expired;
            `held`: the id has a log already, which another writer writes or has ended;
            `fenced`: another process took the log over, because this writer was silent too long;
            `rewound`: the engine lost events that the reader has; read again from the start;
            `unreadable`: what the engine stores is not what was written, or a part of it is lost;
            reading again does not help;
            `unavailable`: the engine does not respond;
            `full`: the log or the engine has no room.
        known: whether the engine remembers the log: then HTTP 410 is sent instead of 404.
    """

    def __init__(self, kind: LogErrorKind, message: str, *, known: bool = False) -> None:
        super().__init__(kind, message)  # both: pickle calls the class with them
        self.kind: LogErrorKind = kind
        self.known = known

    def __str__(self) -> str:
        return str(self.args[1])


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


# --- engines ---


Receive: TypeAlias = Callable[[str | None, Record | None], None]
"""Called with a log's id when the log changed, and with the added record if the engine sends it.
With None for both: pushes may have been lost, so every log must be read again."""


def is_news(operation: Operation, result: Result) -> bool:
    """Whether followers of the log are notified: not of an append that only renews the lease."""
    if result.status != "ok":
        return False
    return not isinstance(operation, Append) or operation.size > 0 or operation.closes


class Engine(Protocol):
    """Stores logs. `streamlib.testing.check_engine` tests an engine of your own.

    A method raises `LogError("unavailable")` if the engine does not respond, and may then be called
    again: the next result shows whether the operation was performed. Any other exception is a
    defect.
    """

    durability: str
    """What a failure of the engine may lose, as one sentence."""

    linger: float
    """Seconds after its last append for which a writer can send again what the engine lost in a
    restart; 0 if it loses nothing."""

    async def connect(self) -> None:
        """Called once before all other methods; `open_log` calls it for the engine of a URL."""
        ...

    async def ask(self, log_id: str, operation: Operation, lines: bytes = b"") -> Result:
        """Performs `streamlib.durable.rules.ask` atomically, at the time of the engine's own clock.

        Args:
            log_id: the log whose state is changed.
            operation: the operation.
            lines: lines of the record of an `Append`.
        """
        ...

    async def read(
        self, log_id: str, after: LogCursor, most: int
    ) -> tuple[LogState | None, int, list[Record]]:
        """The state, the engine's time in milliseconds, and the records after a cursor.

        Args:
            log_id: the log to read.
            after: returned records end after this cursor, and are ordered by epoch, then position.
            most: maximum number of records.
        """
        ...

    async def listen(self, receive: Receive) -> None:
        """Runs until it is cancelled, and calls `receive` for the logs that are followed.

        After a lost connection it connects again, and reports that pushes may have been
        lost.
        """
        ...

    def follow(self, log_id: str) -> None:
        """Starts pushes for this log, without waiting."""
        ...

    def unfollow(self, log_id: str) -> None:
        """Ends pushes for this log."""
        ...

    async def aclose(self) -> None:
        """Closes connections and files."""
        ...


@runtime_checkable
class Overview(Protocol):
    """Optional methods of an engine, used by the command `streamlib log`."""

    async def log_ids(self, most: int) -> list[str]:
        """Ids of logs, in order; expired logs may be among them.

        Args:
            most: maximum number of ids.
        """
        ...

    async def followers(self, log_id: str) -> int | None:
        """Number of processes that receive pushes of a log, its writer included; None: unknown."""
        ...
