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

Nearly all events of a stream are written alike, `event: x`, one `data: `, a blank line: once two in a row were, their payloads are cut out
by what stands between them, and what does not fit is read line by line.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from streamlib_parsers.errors import ParseFailure, limit_exceeded
from streamlib_parsers.framing import Frame
from streamlib_parsers.limits import LIMITS, Limits

BOM: Final = b"\xef\xbb\xbf"
LF: Final = 0x0A
CR: Final = 0x0D

MAX_RETRY: Final = 2**31 - 1
"""Milliseconds, 24 days: what browsers' timers hold. A larger `retry:` is clamped to it."""


Usual: TypeAlias = tuple[bytes, bytes, int, int, str | None]
"""How nearly all events of a stream are written: head, foot, where the payload of an event starts and stops between them, its name."""

_FEET: Final = (b"\n\n", b"\r\n\r\n")
_HEAD: Final = re.compile(rb"(?:event: ?([^\r\n]{0,128})(?:\r\n|\n))?data: ")
"""What stands before a payload. Longer names are not worth remembering."""


class SSEFraming:
    """The framing of every `text/event-stream` wire. See `Framing` for `feed`, `close`, `failure` and `blank`.

    last_event_id: the id of the last block that ended, None while there was none; a server resets it with "".
    retry: the reconnection time the server asked for, in milliseconds.
    """

    __slots__ = (
        "_ceiling", "_data", "_event", "_id", "_more", "_pending", "_ready", "_seen", "_stray", "_swallow", "_tail", "_usual",
        "blank", "failure", "last_event_id", "retry",
    )  # fmt: skip

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.failure: ParseFailure | None = None
        self.blank = True
        self.last_event_id: str | None = None
        self.retry: int | None = None
        self._ceiling = limits.event_bytes
        self._usual: Usual = (b"data: ", b"\n\n", 6, -2, None)
        self._seen = b""  # the head of the last event that was looked at
        self._ready = False  # nothing is held, an event begins
        self._swallow = (
            BOM  # what the next bytes lose if they start with it: the BOM, or the LF after a CR
        )
        self._tail = bytearray()  # the line that has no end yet
        self._reset()

    def _reset(self) -> None:
        self._pending = False  # a line of an event was read
        self._event: str | None = None
        self._data: bytes | None = None  # the first data line
        self._more = bytearray()  # the further ones, each after an LF
        self._stray = bytearray()
        self._id: str | None = None  # None: not set in this block

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes."""
        if (
            self._ready and len(chunk) <= self._ceiling
        ):  # by far the most frequent chunk, while a model writes: one usual event
            head, foot, start, stop, event = self._usual
            if chunk.startswith(head) and chunk.endswith(foot):
                data = chunk[start:stop]
                if LF not in data and CR not in data:
                    self.blank = False
                    return [Frame(event, data, self.last_event_id)]
        frames: list[Frame] = []
        if self.failure is None:
            try:
                self._read(self._swallowed(chunk) if self._swallow else chunk, frames)
                self._ready = not (self._pending or self._tail or self._swallow)
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
        """Everything that ends in `chunk`: from its first usual event to its last blank line by events, the rest by lines."""
        first = -1
        if LF in chunk:  # else it is a piece of a long line
            first = self._first(chunk)
            if first < 0:
                self._learn(chunk)
                first = self._first(chunk)
        head, foot, start, _, event = self._usual
        end = chunk.rfind(foot)
        if not 0 <= first <= end - start or len(chunk) > self._ceiling:
            self._read_lines(chunk, frames)
            return
        self._read_lines(chunk[:first], frames)
        self.blank = False
        for data in chunk[first + start : end].split(foot + head):
            if LF in data or CR in data:
                self._read_lines(b"".join((head, data, foot)), frames)
            else:
                frames.append(Frame(event, data, self.last_event_id))
        self._read_lines(chunk[end + len(foot) :], frames)

    def _first(self, chunk: bytes) -> int:
        """Where the first usual event begins, or -1. A foot is a line's end and a blank line wherever it stands."""
        head, foot, *_ = self._usual
        if self._ready and chunk.startswith(head):
            return 0
        found = chunk.find(foot + head)
        return found + len(foot) if found >= 0 else -1

    def _learn(self, chunk: bytes) -> None:
        """The usual way is that of the last whole event in `chunk`, if the one before it was written in the same way."""
        foot = _FEET[_FEET[1] in chunk]
        for event in chunk.rsplit(foot, 3)[-3:-1]:
            written = _HEAD.match(event)
            if written and written[0] == self._seen:
                self._usual = (
                    written[0],
                    foot,
                    len(written[0]),
                    -len(foot),
                    _text(written[1] or b"") or None,
                )
            self._seen = written[0] if written else b""

    def _read_lines(self, chunk: bytes, frames: list[Frame]) -> None:
        """Every line that ends in `chunk`."""
        if LF not in chunk and CR not in chunk:
            self._tail += chunk
        else:
            for line in self._split(chunk):
                if line:
                    self._line(line)
                else:
                    self._dispatch(frames)
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
        self.blank, self._pending = False, True
        name, value = line, b""
        if colon > 0:
            # By index, not by partition: a line may be as long as the ceiling, so its value is copied once.
            name, value = (
                line[:colon],
                line[colon + (2 if line.startswith(b" ", colon + 1) else 1) :],
            )
        match name:
            case b"data":
                self._add_data(value)
            case b"event":
                self._event = _text(value) or None
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
        self._ready = False
        self._tail.clear()
        self._reset()


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _milliseconds(digits: bytes) -> int:
    """The number, clamped: cut after eleven digits, which is more than MAX_RETRY has, so that no length of it costs time."""
    return min(int(digits.lstrip(b"0")[:11] or b"0"), MAX_RETRY)
