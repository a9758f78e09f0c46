"""Server-sent events: bytes -> frames, exactly as WHATWG parses `text/event-stream`, at any split of the bytes.

The wire promises lines that end in LF, CR or CRLF and nothing else (U+2028, U+0085, VT and FF are text), always in UTF-8, and a blank line
after every event:

    : keep-alive                                     a comment
    event: content_block_delta                       the name, for this event only
    id: 7                                            sticky until the next id
    data: {"type": "content_block_delta"}            further `data:` lines are joined by LF
                                                     the blank line gives the event out, if it had data

`feed()` alone is the standard: an event whose blank line never came is dropped. `close()` adds what servers that stop early left behind:
the last line without its end and the event it belongs to. Whether that event is whole is for the wire above to say.

Held back: an unfinished line, because a field's meaning needs all of it, and the lines of an event before its blank line, because the
standard orders it so. Both together never pass `limits.event_bytes`. A CR ends its line at once; the LF that may follow it in the next
chunk is swallowed there, so that an event of a CR server is never late.

Lines that are no field and no comment (`error: {…}`, bare JSON) have no meaning in the standard; real servers put errors there, so they
travel as `Frame.stray` and never change which events come out.
"""

from __future__ import annotations

from typing import Final

from streamlib_parsers.errors import ParseFailure, limit_exceeded
from streamlib_parsers.framing import Frame
from streamlib_parsers.limits import LIMITS, Limits

BOM: Final = b"\xef\xbb\xbf"
DATA: Final = b"data: "
NO_LINE: Final = b"\n"
"""A prefix no line can have."""

LF: Final = 0x0A
CR: Final = 0x0D

MAX_RETRY: Final = 2**31 - 1
"""Milliseconds, 24 days: what browsers' timers hold. A larger `retry:` is clamped to it."""

NAME_CACHE: Final = 64
"""`event:` lines remembered with their decoded names; the wires have at most some fifty event kinds."""

NAME_CACHE_LINE: Final = 128
"""Longest line worth remembering; with NAME_CACHE it bounds the cache at some tens of KiB."""


class SSEFraming:
    """The framing of every `text/event-stream` wire. See `Framing` for `feed`, `close`, `failure` and `blank`.

    last_event_id: the id of the last block that ended, None while there was none; a server resets it with "".
    retry: the reconnection time the server asked for, in milliseconds.
    """

    __slots__ = (
        "_ceiling", "_data", "_event", "_id", "_more", "_names", "_plain", "_stray", "_swallow", "_tail",
        "blank", "failure", "last_event_id", "retry",
    )  # fmt: skip

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.failure: ParseFailure | None = None
        self.blank = True
        self.last_event_id: str | None = None
        self.retry: int | None = None
        self._ceiling = limits.event_bytes
        self._names: dict[bytes, str] = {}
        self._swallow = BOM  # what the next bytes lose if they start with it: the BOM, or the LF after a CR
        self._tail = bytearray()  # the line that has no end yet
        self._reset()

    def _reset(self) -> None:
        self._plain = True  # the block is at most one known `event:` and one `data: ` line: all below but those two is as set here
        self._event: str | None = None
        self._data: bytes | None = None  # the first data line
        self._more = bytearray()  # the further ones, each after an LF
        self._stray = bytearray()
        self._id: str | None = None  # None: not set in this block

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes."""
        frames: list[Frame] = []
        if self.failure is not None:
            return frames
        try:
            if self._swallow:
                chunk = self._swallowed(chunk)
            if LF in chunk or CR in chunk:
                self._read(chunk, frames)
            else:
                self._check(len(self._tail) + len(chunk))
                self._tail += chunk
        except ParseFailure as failure:
            self._fail(failure)
        return frames

    def close(self) -> list[Frame]:
        """The pending event, its last line completed if it had no end; strays that no event took along."""
        frames: list[Frame] = []
        if self.failure is not None:
            return frames
        try:
            if self._tail:
                line = bytes(self._tail)
                self._tail.clear()
                self._line(line)
            self._dispatch(frames)
        except ParseFailure as failure:
            self._fail(failure)
        return frames

    def _read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Every line that ends in `chunk`. The usual shape, `event: x`, `data: {…}` and the blank line, stays inside this loop."""
        # While all bytes together do not pass the ceiling, no line or event among them does: then none needs a check of its own.
        held = len(self._tail) if self._plain and self._data is None else len(self._tail) + self._held()
        data_prefix = DATA if held + len(chunk) <= self._ceiling else NO_LINE
        names = self._names
        for line in self._split(chunk):
            if not line:
                if self._plain and self._data is not None:
                    frames.append(Frame(self._event, self._data, self.last_event_id))
                    self._event = self._data = None
                else:
                    self._dispatch(frames)
                continue
            data = line.removeprefix(data_prefix)
            if len(data) < len(line) and self._data is None:
                self._data = data
            elif line in names:
                self._event = names[line]
            else:
                self._line(line)
        if frames or self._data is not None:
            self.blank = False
        if self._tail:
            self._check(len(self._tail))

    def _split(self, chunk: bytes) -> list[bytes]:
        """The lines that end in `chunk`, the first begun by the tail; what follows the last line end becomes the new tail."""
        lines = chunk.splitlines()  # on bytes exactly LF, CR and CRLF, unlike str.splitlines
        if self._tail:
            self._tail += lines[0]
            lines[0] = bytes(self._tail)
            self._tail.clear()
        last = chunk[-1]
        if last == CR:
            self._swallow = b"\n"
        elif last != LF:
            self._tail += lines.pop()
        return lines

    def _swallowed(self, chunk: bytes) -> bytes:
        """`chunk` without the BOM or LF due at this place, which may itself come in pieces."""
        head = b"".join((self._tail, chunk))
        self._tail.clear()
        if len(head) < len(self._swallow) and self._swallow.startswith(head):
            self._tail += head
            return b""
        swallow, self._swallow = self._swallow, b""
        return head.removeprefix(swallow)

    def _line(self, line: bytes) -> None:
        """Any line but a blank one."""
        self._check(len(line))
        colon = line.find(b":")
        if colon == 0:
            return
        self.blank = self._plain = False
        name, value = line, b""
        if colon > 0:
            # By index, not by partition: a line may be as long as the ceiling, so its value is copied once.
            name, value = line[:colon], line[colon + (2 if line.startswith(b" ", colon + 1) else 1) :]
        match name:
            case b"data":
                self._add_data(value)
            case b"event":
                self._event = _text(value) or None
                self._remember(line)
            case b"id":
                if b"\0" not in value:
                    self._id = _text(value)
            case b"retry":
                if value.isdigit():  # on bytes ASCII only; int() would also take signs, underscores and other scripts' digits
                    self.retry = _milliseconds(value)
            case _:
                self._add_stray(line)

    def _add_data(self, value: bytes) -> None:
        if self._data is None:
            self._check(self._held() + len(value))
            self._data = value
        else:
            self._check(self._held() + 1 + len(value))
            self._more += b"\n"
            self._more += value

    def _add_stray(self, line: bytes) -> None:
        joint = b"\n" if self._stray else b""
        self._check(self._held() + len(joint) + len(line))
        self._stray += joint
        self._stray += line

    def _remember(self, line: bytes) -> None:
        if self._event is not None and len(line) <= NAME_CACHE_LINE and len(self._names) < NAME_CACHE:
            self._names[line] = self._event

    def _dispatch(self, frames: list[Frame]) -> None:
        """The block ends: at a blank line, or with the input."""
        if self._id is not None:
            self.last_event_id = self._id
        if self._data is not None:
            data = b"".join((self._data, self._more)) if self._more else self._data
            frames.append(Frame(self._event, data, self.last_event_id, bytes(self._stray)))
        elif self._stray:
            frames.append(Frame(None, None, self.last_event_id, bytes(self._stray)))
        self._reset()

    def _held(self) -> int:
        """Bytes of the pending event."""
        return (0 if self._data is None else len(self._data)) + len(self._more) + len(self._stray)

    def _check(self, size: int) -> None:
        if size > self._ceiling:
            raise limit_exceeded("event_bytes", self._ceiling)

    def _fail(self, failure: ParseFailure) -> None:
        self.failure = failure
        self._tail.clear()
        self._reset()


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _milliseconds(digits: bytes) -> int:
    """The number, clamped: cut after eleven digits, which is more than MAX_RETRY has, so that no length of it costs time."""
    return min(int(digits.lstrip(b"0")[:11] or b"0"), MAX_RETRY)
