"""A parser that knows its position in the stream, and can go on over another connection.

    p = ResumableParser(parser("responses"))
    events = p.feed(chunk)
    p.position            # 6: `sequence_number` of the last event that was read
    p.reconnect()         # the connection broke; the next bytes are those of another one

It passes complete events of the wire to the parser within, one at a time, with their own bytes. So
an unfinished event never gets there, and is dropped with the connection that broke. After
`reconnect`, events that were read before are dropped.

Experimental: wires whose server keeps the stream of a response that runs in the background
(docs/resume.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias, cast

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Created, Failed, ResponseEvent
from streamlib_parsers.framing.sse import BOM, SSEFraming
from streamlib_parsers.items import WireApi
from streamlib_parsers.limits import LIMITS, Limits
from streamlib_parsers.protocol import Parser, wire

Position: TypeAlias = int | str
"""`sequence_number` of Responses, `event_id` of Interactions."""

_EVENT_END: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
"""A line end and a blank line."""

_LONGEST_END: Final = 4
"""Bytes of the longest `_EVENT_END`."""


ReadPosition: TypeAlias = Callable[[bytes], Position | None]
"""The data of a frame -> its position."""


class _ResumableWire(Protocol):
    """The module of a wire whose streams have positions."""

    read_position: ReadPosition


def position_reader(wire_api: WireApi) -> ReadPosition:
    """What reads the positions of a wire.

    Raises:
        ValueError: the wire has no positions.
    """
    module = wire(wire_api)
    if not hasattr(module, "read_position"):
        raise ValueError(f"the events of {wire_api} have no positions")
    return cast("_ResumableWire", module).read_position


class ResumableParser:
    """A parser of a response whose stream can be resumed over another connection.

    It has the methods of a `Parser` that a client uses.

    Args:
        parser: a new parser, of a wire whose events have positions.
        after: the events up to this position were delivered before, by another parser: they are in
            `replayed`, and `feed` returns those after them. The bytes are those of the whole
            stream all the same, because the parser needs the state that they lead to. The terminal
            event is always returned.
        limits: limits of what is buffered.

    Raises:
        ValueError: the wire has no positions.
    """

    def __init__(
        self, parser: Parser, *, after: Position | None = None, limits: Limits = LIMITS
    ) -> None:
        self._read_position = position_reader(parser.wire_api)
        self.wire_api: WireApi = parser.wire_api
        """The wire API it reads."""
        self.position: Position | None = None
        """The position of the last event that was read; None before the first that has one."""
        self.response_id: str | None = None
        """The id of the response, once it was read."""
        self.replayed: list[ResponseEvent] = []
        """Events up to `after`, for the caller to take out."""
        self._parser = parser
        self._limits = limits
        self._framing = SSEFraming(limits)
        """Reads the complete events of this connection, for their positions alone."""
        self._buffer = bytearray()
        """The event that is not complete yet."""
        self._at_connection_start = True
        """Whether nothing of this connection was passed on."""
        self._after = after
        """The argument `after`, until the event at that position was read."""
        self._repeated_up_to: Position | None = None
        """Where the connection before this one broke; None on the first one."""
        self._seen: set[str] = set()
        """Positions that have no order, for events that a server repeats."""
        self._emitted = 0
        """Events that were returned or replayed."""
        self._unfiltered: list[ResponseEvent] | None = None
        """See `unfiltered_events`."""
        self._marks: list[tuple[int, Position | None]] = [(0, after)]
        """(emitted events, position) after each event of the last `feed`; the first entry is the
        state before that `feed`."""

    # --- what a `Parser` has ---

    @property
    def complete(self) -> bool:
        """See `Parser`."""
        return self._parser.complete

    @property
    def ended(self) -> bool:
        """See `Parser`."""
        return self._parser.ended

    @property
    def unfiltered_events(self) -> list[ResponseEvent] | None:
        """See `Parser`; the replayed events are progress, too."""
        return self._unfiltered

    def feed(self, chunk: bytes) -> list[ResponseEvent]:
        """See `Parser`."""
        # Whoever reads on has received the events of the last call.
        del self._marks[:-1]
        self._unfiltered = None
        if not chunk:  # what the parser knows from the headers
            events = self._counted(self._parser.feed(chunk))
            if self._after is None:
                return events
            return self._without_replayed(events)
        events = []
        for raw in self._complete_events(chunk):
            events += self._feed_event(raw)
            if self._parser.ended:
                break
        if len(self._buffer) > self._limits.event_bytes:
            events += self._feed_rest()  # the parser within ends the stream with `limit_exceeded`
        return events

    def feed_event(self, data: bytes | str, event: str | None = None) -> list[ResponseEvent]:
        """See `Parser`: messages have no positions here."""
        return self._counted(self._parser.feed_event(data, event))

    def feed_body(
        self, body: bytes, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> list[ResponseEvent]:
        """See `Parser`: a body in place of a stream has no positions."""
        return self._counted(self._parser.feed_body(body, status, headers))

    def close(self) -> list[ResponseEvent]:
        """See `Parser`."""
        events = self.finish_event()
        events += self._feed_rest()
        return events + self._counted(self._parser.close())

    def abort(self, error: ErrorInfo) -> list[ResponseEvent]:
        """See `Parser`."""
        return self._counted(self._parser.abort(error))

    # --- positions ---

    def finish_event(self) -> list[ResponseEvent]:
        """Reads an event of the wire that lacked only its last line ends as the connection ended.

        With it, a response of which only the first event arrived has its id and a position. Any
        other unfinished event stays unread.
        """
        rest = bytes(self._buffer)
        framing = SSEFraming(self._limits)
        for frame in (*framing.feed(rest), *framing.close()):
            if frame.data is not None and self._read_position(frame.data) is not None:
                self._buffer.clear()
                if self._at_connection_start:
                    rest = rest.removeprefix(BOM)
                return self._feed_event(rest + b"\n\n")
        return []

    def reconnect(self) -> None:
        """The connection broke: the next bytes are those of another one, from `position` on.

        An event of which only a part was received is dropped. What the server sends again is
        ignored.
        """
        self._buffer.clear()
        self._framing = SSEFraming(self._limits)
        self._at_connection_start = True
        self._repeated_up_to = self.position

    def position_before(self, undelivered: int) -> Position | None:
        """The last position of which every event was delivered.

        Args:
            undelivered: how many of the last events the caller still has.
        """
        delivered = self._emitted - undelivered
        position: Position | None = None
        for emitted, marked in self._marks:
            if emitted > delivered:
                break
            position = marked
        return position

    def _counted(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        self._emitted += len(events)
        return events

    def _complete_events(self, chunk: bytes) -> list[bytes]:
        """The events of the wire that `chunk` completes, as bytes."""
        buffer = self._buffer
        start = max(0, len(buffer) - _LONGEST_END + 1)
        buffer += chunk
        ends = [match.end() for match in _EVENT_END.finditer(buffer, start)]
        events: list[bytes] = []
        begin = 0
        for end in ends:
            events.append(bytes(buffer[begin:end]))
            begin = end
        del buffer[:begin]
        if events and self._at_connection_start:
            # The parser within expects it at the start of the first connection alone.
            events[0] = events[0].removeprefix(BOM)
            self._at_connection_start = False
        return events

    def _feed_rest(self) -> list[ResponseEvent]:
        rest = bytes(self._buffer)
        self._buffer.clear()
        return self._counted(self._parser.feed(rest))

    def _feed_event(self, raw: bytes) -> list[ResponseEvent]:
        position: Position | None = None
        for frame in self._framing.feed(raw):
            if frame.data is not None:
                position = self._read_position(frame.data)
        if position is not None:
            if self._is_repeated(position):
                return []
            self._note(position)
        events = self._counted(self._parser.feed(raw))
        if self.response_id is None:
            self._find_id(events)
        unfiltered = self._parser.unfiltered_events
        self._unfiltered = (self._unfiltered or []) + (events if unfiltered is None else unfiltered)
        if self._after is None:
            self._marks.append((self._emitted, self.position))
            return events
        if position == self._after:
            self._after = None
        return self._without_replayed(events)

    def _is_repeated(self, position: Position) -> bool:
        """Whether an event was read before the connection broke.

        Never on the first connection: servers exist that number every event 0.
        """
        last = self._repeated_up_to
        if isinstance(position, int) and isinstance(last, int):
            return position <= last
        return last is not None and position in self._seen

    def _note(self, position: Position) -> None:
        self.position = position
        if isinstance(position, str):
            self._seen.add(position)
        elif isinstance(self._after, int) and position > self._after:
            self._after = None

    def _find_id(self, events: list[ResponseEvent]) -> None:
        for event in events:
            if isinstance(event, Created):
                self.response_id = event.response_id

    def _without_replayed(self, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """The terminal event, if it is there; the others were delivered before."""
        terminal: list[ResponseEvent] = []
        if self._parser.ended and events:
            terminal.append(events.pop())
            if self._after is not None:  # the position was not in the stream: events may be missing
                terminal = [Failed(_no_position(self._after), seq=terminal[0].seq)]
        self.replayed += events
        return terminal


def _no_position(position: Position) -> ErrorInfo:
    message = f"cannot resume: the stream sent again has no event at position {position!r:.80}"
    return ErrorInfo("invalid_request", message, code="cursor")
