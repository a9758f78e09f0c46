"""Server-sent events: bytes to frames, exactly as WHATWG parses `text/event-stream`.

The frames do not depend on how the bytes are split into chunks. The wire has lines that end in LF,
CR or CRLF and nothing else (U+2028, U+0085, VT and FF are text), always in UTF-8, and a blank line
after every event:

    : keep-alive                                     a comment
    event: content_block_delta                       the name, for this event only
    id: 7                                            sticky until the next id
    data: {"type": "content_block_delta"}            further `data:` lines are joined by LF
                                                     the blank line emits the event if it had data

`feed()` alone is the standard: an event whose blank line never came is dropped. `close()` adds what
servers that stop early left behind: the last line without its end and the event it belongs to.
Whether that event is complete is for the wire above to decide.

Two things are buffered: an unfinished line, because a field's meaning needs all of it, and the
lines of an event before its blank line, because the standard orders it so. Both together never
exceed `limits.event_bytes`. A CR ends its line at once; the LF that may follow it in the next chunk
is skipped there, so that an event of a CR server is never late.

Lines that are neither a field nor a comment (`error: {…}`, bare JSON) have no meaning in the
standard. Real servers put errors there, so they travel as `Frame.stray` and never change which
events are emitted.

Nearly all events are usual ones: a line with their name or none, one `data: ` line and a blank
line, which ends in LF or CRLF. They are read at once: the bytes before `data: ` are looked up in a
table of the names seen in this stream. Everything else is read line by line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from streamlib_parsers.errors import ParseFailure, limit_exceeded
from streamlib_parsers.framing import Frame, NamedPayload
from streamlib_parsers.limits import LIMITS, Limits

BOM: Final = b"\xef\xbb\xbf"
LF: Final = 0x0A
CR: Final = 0x0D

MAX_RETRY: Final = 2**31 - 1
"""Milliseconds, 24 days: what browsers' timers hold. A larger `retry:` is clamped to it."""

# The end of an event: a line end and a blank line.
_LF_END: Final = b"\n\n"
_CRLF_END: Final = b"\r\n\r\n"

# What stands before the `data: ` of a usual event with a name.
_NAME_LINE: Final = re.compile(rb"event: ?([^\r\n]{0,128})\r?\n")

_LONGEST_HEAD: Final = 256  # more bytes than `_NAME_LINE` matches

_MAX_NAMES: Final = 64
"""Names a stream may add to its table: the richest wire has 59. Further ones are read each time,
so that a server that invents names does not grow the table."""

_UNKNOWN: Final = ""
"""In place of the name of an event that is not usual: an empty name is None in the table."""

# A larger event is read by lines, which are few.
_LARGE: Final = 4096
_LINES_OF_EVENT: Final = 3

# Digits of `retry:` that are converted: more than MAX_RETRY has, and few enough to be fast.
_RETRY_DIGITS: Final = 11


class SSEFraming:
    """`Framing` of every `text/event-stream` wire.

    Attributes:
        last_event_id: the id of the last block that ended, None while there was none; a server
            resets it with "".
        retry: the reconnection time the server requested, in milliseconds.
    """

    __slots__ = (
        "_at_event_start",
        "_block_has_lines",
        "_data",
        "_event",
        "_further_data",
        "_id",
        "_limit",
        "_names",
        "_partial_line",
        "_skip",
        "_stray",
        "blank",
        "failure",
        "last_event_id",
        "retry",
    )

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.failure: ParseFailure | None = None
        self.blank = True
        self.last_event_id: str | None = None
        self.retry: int | None = None
        # Longest line and longest event in bytes; never changes.
        self._limit = limits.event_bytes
        # Bytes before `data: ` -> name of the event. Of this stream alone, so that no stream
        # changes what another one costs.
        self._names: dict[bytes, str | None] = {}
        # Whether nothing is buffered, so that the next byte begins an event.
        self._at_event_start = True
        # Skipped if the next bytes start with it: the BOM, or the LF after a CR.
        self._skip = BOM
        # The line that has no end yet, or the beginning of the bytes to skip.
        self._partial_line = bytearray()
        self._start_block()

    def _start_block(self) -> None:
        # Whether a line other than a comment was read since the last blank line.
        self._block_has_lines = False
        # Value of the last `event:` line of this block.
        self._event: str | None = None
        # Value of the first `data:` line of this block.
        self._data: bytes | None = None
        # Values of the further `data:` lines, each after an LF.
        self._further_data = bytearray()
        # Lines of this block that are neither a field nor a comment, joined by LF.
        self._stray = bytearray()
        # Value of the last `id:` line of this block; None: no such line.
        self._id: str | None = None

    def single(self, chunk: bytes) -> NamedPayload | None:
        """Name and payload of a chunk that is one usual event, else None."""
        if not self._at_event_start or not 0 < len(chunk) <= self._limit:
            return None
        head, _, rest = chunk.partition(b"data: ")
        name = self._names.get(head, _UNKNOWN)
        if name == _UNKNOWN:
            name = self._read_head(head)
            if name == _UNKNOWN:
                return None
        data, _, behind = rest.partition(b"\n")
        # Anything else than a blank line means several events, or an event of several lines.
        if behind not in (b"\n", b"\r\n"):
            return None
        if CR in data:
            # Unless it belongs to the line's end, another one is left, which ends a line too.
            data = data[:-1]
            if CR in data:
                return None
        self.blank = False
        return name, data

    def _read_head(self, head: bytes) -> str | None:
        """The name in bytes before `data: ` that are not in the table; or `_UNKNOWN`."""
        name = _name_in(head) if len(head) <= _LONGEST_HEAD else _UNKNOWN
        if name != _UNKNOWN:
            # The first event comes here, for the table is empty. It begins with a field: no BOM
            # was before it, and a later one is data.
            self._skip = b""
            if len(self._names) <= _MAX_NAMES:
                self._names[head] = name
        return name

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes."""
        frames: list[Frame] = []
        if self.failure is not None:
            return frames
        try:
            if self._skip:
                chunk = self._without_skipped(chunk)
            self._read(chunk, frames)
            self._at_event_start = not (self._block_has_lines or self._partial_line or self._skip)
        except ParseFailure as failure:
            self._fail(failure)
        return frames

    def close(self) -> list[Frame]:
        """Returns, at the end of input, the unfinished event, and stray lines without an event.

        The last line counts as complete although its end is missing.
        """
        frames: list[Frame] = []
        if self.failure is not None or self._at_event_start:
            return frames
        try:
            if self._partial_line:
                line = bytes(self._partial_line)
                self._partial_line.clear()
                self._read_line(line)
            self._dispatch(frames)
        except ParseFailure as failure:
            self._fail(failure)
        return frames

    def _read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Reads `chunk` by events, and by lines what is no usual event."""
        # One large event (a text in full) is not worth a search for two bytes, which takes ten
        # times as long as one for LF. Without an LF the chunk is a fragment of a long line, or the
        # server ends lines by CR.
        is_large_event = len(chunk) > _LARGE and _has_few_lines(chunk)
        if LF not in chunk or is_large_event:
            self._read_lines(chunk, frames)
            return
        event_end = _LF_END
        if CR in chunk:
            event_end = _CRLF_END
        events = chunk.split(event_end)
        rest = events.pop()
        # What no usual event holds is read in one go, for speed.
        unread: list[bytes] = []
        for text in events:
            event = text + event_end
            payload = self.single(event)
            # Whatever stood before: a blank line ended it.
            self._at_event_start = True
            if payload is None:
                unread.append(event)
                continue
            if unread:
                self._read_lines(b"".join(unread), frames)
                unread.clear()
            name, data = payload
            frames.append(Frame(name, data, self.last_event_id))
        unread.append(rest)
        self._read_lines(b"".join(unread), frames)

    def _read_lines(self, chunk: bytes, frames: list[Frame]) -> None:
        """Reads every line that ends in `chunk`."""
        if LF not in chunk and CR not in chunk:
            self._partial_line += chunk
        else:
            for line in self._split_lines(chunk):
                if line:
                    self._read_line(line)
                else:
                    self._dispatch(frames)
        self._check_limit(len(self._partial_line))

    def _split_lines(self, chunk: bytes) -> list[bytes]:
        """Returns the lines that end in `chunk`, and buffers what follows the last line end."""
        if CR in chunk or not _has_few_lines(chunk):
            lines = chunk.splitlines()  # on bytes exactly LF, CR and CRLF, unlike str.splitlines
        else:
            lines = _few_lines(chunk)
        if self._partial_line:
            self._partial_line += lines[0]
            lines[0] = bytes(self._partial_line)
            self._partial_line.clear()
        last_byte = chunk[-1]
        if last_byte == CR:
            self._skip = b"\n"
        elif last_byte != LF:
            self._partial_line += lines.pop()
        return lines

    def _without_skipped(self, chunk: bytes) -> bytes:
        """`chunk` without the BOM or LF to skip, which may itself arrive in fragments."""
        if not self._partial_line and chunk[:1] != self._skip[:1] and chunk:
            self._skip = b""
            self._at_event_start = not self._block_has_lines
            return chunk
        start = b"".join((self._partial_line, chunk))
        self._partial_line.clear()
        if len(start) < len(self._skip) and self._skip.startswith(start):
            self._partial_line += start
            return b""
        skip, self._skip = self._skip, b""
        self._at_event_start = not self._block_has_lines
        return start.removeprefix(skip)

    def _read_line(self, line: bytes) -> None:
        """Reads any line but a blank one."""
        self._check_limit(len(line))
        colon = line.find(b":")
        if colon == 0:
            return  # a comment
        self.blank = False
        self._block_has_lines = True
        name, value = line, b""
        if colon > 0:
            # By index, not by partition: a line may be as long as the limit, so its value is
            # copied only once.
            value_start = colon + 1
            if line.startswith(b" ", value_start):
                value_start += 1
            name, value = line[:colon], line[value_start:]
        match name:
            case b"data":
                self._add_data(value)
            case b"event":
                self._event = _name_or_none(value)
            case b"id":
                if b"\0" not in value:
                    self._id = _text(value)
            case b"retry":
                # On bytes, isdigit is ASCII only; int() would also take signs, underscores and
                # digits of other scripts.
                if value.isdigit():
                    self.retry = _milliseconds(value)
            case _:
                self._add_stray(line)

    def _add_data(self, value: bytes) -> None:
        if self._data is None:
            self._check_limit(self._block_bytes() + len(value))
            self._data = value
        else:
            self._check_limit(self._block_bytes() + 1 + len(value))
            self._further_data += b"\n"
            self._further_data += value

    def _add_stray(self, line: bytes) -> None:
        separator = b"\n" if self._stray else b""
        self._check_limit(self._block_bytes() + len(separator) + len(line))
        self._stray += separator
        self._stray += line

    def _dispatch(self, frames: list[Frame]) -> None:
        """Ends the block: at a blank line, or with the input."""
        if self._id is not None:
            self.last_event_id = self._id
        if self._data is not None:
            data = self._data
            if self._further_data:
                data = b"".join((data, self._further_data))
            frames.append(Frame(self._event, data, self.last_event_id, bytes(self._stray)))
        elif self._stray:
            frames.append(Frame(None, None, self.last_event_id, bytes(self._stray)))
        self._start_block()

    def _block_bytes(self) -> int:
        """The buffered bytes of the block."""
        size = len(self._further_data) + len(self._stray)
        if self._data is not None:
            size += len(self._data)
        return size

    def _check_limit(self, size: int) -> None:
        if size > self._limit:
            raise limit_exceeded("event_bytes", self._limit)

    def _fail(self, failure: ParseFailure) -> None:
        self.failure = failure
        self._at_event_start = False
        self._partial_line.clear()
        self._start_block()


def _has_few_lines(data: bytes) -> bool:
    """Tells whether there are at most as many LFs as in one event."""
    offset = 0
    for _ in range(_LINES_OF_EVENT + 1):
        offset = data.find(b"\n", offset) + 1
        if not offset:
            return True
    return False


def _few_lines(data: bytes) -> list[bytes]:
    """What `splitlines` does for data without CR, in a tenth of the time if they are long.

    A search for one byte is as fast as copying, all others look at each byte.
    """
    lines: list[bytes] = []
    while data:
        line, _, data = data.partition(b"\n")
        lines.append(line)
    return lines


@lru_cache(maxsize=_MAX_NAMES)
def _name_in(head: bytes) -> str | None:
    """What `_read_head` returns; kept for all streams, behind the tables of their own."""
    if not head:
        return None
    match = _NAME_LINE.fullmatch(head)
    if match is None:
        return _UNKNOWN
    return _name_or_none(match[1])


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _name_or_none(value: bytes) -> str | None:
    """The event name; None for an empty one, which means the default as in WHATWG."""
    return _text(value) or None


def _milliseconds(digits: bytes) -> int:
    """The number, clamped to MAX_RETRY; leading zeros do not count."""
    significant = digits.lstrip(b"0")
    if not significant:
        return 0
    return min(int(significant[:_RETRY_DIGITS]), MAX_RETRY)
