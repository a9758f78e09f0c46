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

Nearly all events of a stream have the same form: `event: x`, one `data: `, a blank line. Once two
in a row had it, their payloads are split at the bytes between them, and everything else is read
line by line.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from streamlib_parsers.errors import ParseFailure, limit_exceeded
from streamlib_parsers.framing import Frame, NamedPayload
from streamlib_parsers.limits import LIMITS, Limits

BOM: Final = b"\xef\xbb\xbf"
LF: Final = 0x0A
CR: Final = 0x0D

MAX_RETRY: Final = 2**31 - 1
"""Milliseconds, 24 days: what browsers' timers hold. A larger `retry:` is clamped to it."""

EventForm: TypeAlias = tuple[bytes, bytes, int, str | None]
"""The form of nearly all events of a stream: prefix (everything before the payload), suffix (the
line end and the blank line), how many bytes both are, event name. A tuple, because unpacking one is
cheaper than reading four attributes for each chunk."""

_LF_SUFFIX: Final = b"\n\n"
_CRLF_SUFFIX: Final = b"\r\n\r\n"

# The prefix of an event in the usual form. Longer names are not worth remembering.
_PREFIX: Final = re.compile(rb"(?:event: ?([^\r\n]{0,128})(?:\r\n|\n))?data: ")

# One event, with its name or without.
_ONE_EVENT: Final = re.compile(
    rb"((?:event: ?([^\r\n]{0,128})\n)?data: )([^\r\n]*+)\n\n", re.DOTALL
)

# A larger event is read by lines, which are few, and teaches no form.
_LARGE: Final = 4096
_LINES_OF_EVENT: Final = 3

# Digits of `retry:` that are converted: more than MAX_RETRY has, and few enough to be fast.
_RETRY_DIGITS: Final = 11


class SSEFraming:
    """`Framing` of every `text/event-stream` wire.

    Attributes:
        last_event_id: The id of the last block that ended, None while there was none; a server
            resets it with "".
        retry: The reconnection time the server requested, in milliseconds.
        at_event_start: Whether nothing is buffered, so that the next byte begins an event.
    """

    __slots__ = (
        "_block_has_lines",
        "_data",
        "_event",
        "_form",
        "_further_data",
        "_id",
        "_last_prefix",
        "_limit",
        "_partial_line",
        "_skip",
        "_stray",
        "at_event_start",
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
        # The usual form; replaced when two events in a row have another.
        self._form: EventForm = (b"data: ", _LF_SUFFIX, 8, None)
        # Prefix of the last event that `_learn_form` examined.
        self._last_prefix = b""
        self.at_event_start = False
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
        """Returns name and payload of a chunk that is one event of a few lines, else None."""
        if not self.at_event_start or len(chunk) > self._limit:
            return None
        prefix, suffix, around, event = self._form
        data = chunk.removeprefix(prefix).removesuffix(suffix)
        # A line end within means several events, or an event of several lines.
        if len(chunk) - len(data) == around and LF not in data and CR not in data:
            self.blank = False
            return event, data
        if len(chunk) > _LARGE:
            return None
        return self._single_of_another_form(chunk)

    def _single_of_another_form(self, chunk: bytes) -> NamedPayload | None:
        """As `single`, for an event before and after which the events have another name."""
        match = _ONE_EVENT.fullmatch(chunk)
        if match is None:
            return None
        self.blank = False
        prefix, encoded_name, data = match.groups()
        event = _name_or_none(encoded_name or b"")
        self._note_prefix(prefix, _LF_SUFFIX, event)
        return event, data

    def feed(self, chunk: bytes) -> list[Frame]:
        """Returns the frames that `chunk` completes."""
        frames: list[Frame] = []
        if self.failure is not None:
            return frames
        try:
            if self._skip:
                chunk = self._without_skipped(chunk)
            self._read(chunk, frames)
            self.at_event_start = not (self._block_has_lines or self._partial_line or self._skip)
        except ParseFailure as failure:
            self._fail(failure)
        return frames

    def form_of(self, event: str | None) -> tuple[bytes, bytes] | None:
        """Returns the bytes before and after the payload of the usual events of this name."""
        prefix, suffix, _, usual_event = self._form
        if event != usual_event:
            return None
        return prefix, suffix

    def end_of_event(self, data: bytes, start: int) -> int:
        """Returns the offset behind the first blank line that ends behind `start`, or the end's.

        By lines: a search for two bytes takes ten times as long as two for one, in a long line.
        """
        offset = data.find(b"\n", start)
        while offset >= 0:
            if data.startswith(b"\n", offset + 1):
                return offset + 2
            offset = data.find(b"\n", offset + 1)
        return len(data)

    def close(self) -> list[Frame]:
        """Returns, at the end of input, the unfinished event, and stray lines without an event.

        The last line counts as complete although its end is missing.
        """
        frames: list[Frame] = []
        if self.failure is not None:
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
        """Reads `chunk` by events from its first to its last usual one, the rest by lines."""
        first = -1
        # One large event (a text in full) is not worth several searches through all of it. Without
        # an LF the chunk is a fragment of a long line, or the server ends lines by CR.
        is_large_event = len(chunk) > _LARGE and _has_few_lines(chunk)
        if LF in chunk and not is_large_event:
            first = self._find_first(chunk)
            if first < 0:
                self._learn_form(chunk)
                first = self._find_first(chunk)
        prefix, suffix, _, event = self._form
        end = chunk.rfind(suffix)
        has_usual_event = 0 <= first <= end - len(prefix)
        if not has_usual_event or len(chunk) > self._limit:
            self._read_lines(chunk, frames)
            return
        self._read_lines(chunk[:first], frames)
        self.blank = False
        for data in chunk[first + len(prefix) : end].split(suffix + prefix):
            if LF in data or CR in data:
                self._read_lines(b"".join((prefix, data, suffix)), frames)
            else:
                frames.append(Frame(event, data, self.last_event_id))
        self._read_lines(chunk[end + len(suffix) :], frames)

    def _find_first(self, chunk: bytes) -> int:
        """Returns the offset of the first usual event, or -1.

        A suffix is a line end and a blank line wherever it stands, so that what follows it begins
        an event.
        """
        prefix, suffix, *_ = self._form
        if self.at_event_start and chunk.startswith(prefix):
            return 0
        offset = chunk.find(suffix + prefix)
        if offset < 0:
            return -1
        return offset + len(suffix)

    def _learn_form(self, chunk: bytes) -> None:
        """Makes the form of the last events in `chunk` the usual one if two in a row had it."""
        suffix = _LF_SUFFIX
        if CR in chunk and _CRLF_SUFFIX in chunk:
            suffix = _CRLF_SUFFIX
        # The two last events that end in `chunk`; what follows the last suffix is unfinished.
        for event in chunk.rsplit(suffix, 3)[-3:-1]:
            match = _PREFIX.match(event)
            if match is None:
                self._last_prefix = b""
                continue
            self._note_prefix(match[0], suffix, _name_or_none(match[1] or b""))

    def _note_prefix(self, prefix: bytes, suffix: bytes, event: str | None) -> None:
        """Makes the form of an event the usual one if the event before it had it."""
        if prefix == self._last_prefix:
            self._form = (prefix, suffix, len(prefix) + len(suffix), event)
        self._last_prefix = prefix

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
        """Returns `chunk` without the BOM or LF to skip, which may itself arrive in fragments."""
        start = b"".join((self._partial_line, chunk))
        self._partial_line.clear()
        if len(start) < len(self._skip) and self._skip.startswith(start):
            self._partial_line += start
            return b""
        skip, self._skip = self._skip, b""
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
        """Returns the buffered bytes of the block."""
        size = len(self._further_data) + len(self._stray)
        if self._data is not None:
            size += len(self._data)
        return size

    def _check_limit(self, size: int) -> None:
        if size > self._limit:
            raise limit_exceeded("event_bytes", self._limit)

    def _fail(self, failure: ParseFailure) -> None:
        self.failure = failure
        self.at_event_start = False
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
    """Returns what `splitlines` does for data without CR, in a tenth of the time if they are long.

    A search for one byte is as fast as copying, all others look at each byte.
    """
    lines: list[bytes] = []
    while data:
        line, _, data = data.partition(b"\n")
        lines.append(line)
    return lines


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _name_or_none(value: bytes) -> str | None:
    """Returns the event name; None for an empty one, which means the default as in WHATWG."""
    return _text(value) or None


def _milliseconds(digits: bytes) -> int:
    """Returns the number, clamped to MAX_RETRY; leading zeros do not count."""
    significant = digits.lstrip(b"0")
    if not significant:
        return 0
    return min(int(significant[:_RETRY_DIGITS]), MAX_RETRY)
