"""AWS event stream (`application/vnd.amazon.eventstream`): length-prefixed binary messages, each guarded by two checksums.

    0   u32  total length, both checksums included        12  headers: { u8 length, name, u8 type, value } …
    4   u32  length of the header block                   ..  payload: total - headers - 16 bytes
    8   u32  CRC-32 of bytes 0..7                         -4  CRC-32 of everything before it

All numbers are big-endian. The lengths are believed only after the first checksum held and every ceiling was looked at, so a
hostile length never makes a buffer. A message is given when its second checksum held: until then all of it is held back.

    :message-type event      :event-type messageStop                 -> Frame("messageStop", payload)
    :message-type exception  :exception-type throttlingException     -> Frame("exception:throttlingException", payload)
    :message-type error      :error-code 500  :error-message "busy"  -> Frame("error:500", {"message":"busy"})

A broken rule ends the stream for good: after a wrong length there is no way to find the next message.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from struct import Struct as Layout
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from streamlib_parsers.errors import ParseFailure, limit_exceeded, malformed, truncated
from streamlib_parsers.framing import Frame
from streamlib_parsers.limits import LIMITS, Limits

HeaderValue: TypeAlias = bool | int | str | bytes
"""bool, integers of 8 to 64 bits, timestamp (int, milliseconds), string, byte array, UUID (its 16 bytes)."""

HEADER_BLOCK_BYTES: Final = 128 << 10
"""The ceiling AWS's own decoders set on the header block of one message."""

_LENGTHS: Final = Layout(">II")
_PRELUDE: Final = Layout(">III")
_CHECKSUM: Final = Layout(">I")
_CHECKSUM_BYTES: Final = _CHECKSUM.size
_OVERHEAD: Final = _PRELUDE.size + _CHECKSUM_BYTES
_STRING: Final = 7

# A response repeats a handful of header blocks a thousand times: these many, up to this size, are read once.
_KNOWN_BLOCKS: Final = 64
_KNOWN_BLOCK_BYTES: Final = 1024

# Deltas are of like lengths: these many preludes are checked once.
_KNOWN_PRELUDES: Final = 1024

# A body that is no event stream at all (a proxy's HTML page, a JSON error) is worth showing: this much of it, whatever the split.
_EXCERPT_BYTES: Final = 200


class Message(Struct, frozen=True, gc=False):
    """One message with all its headers."""

    headers: Mapping[str, HeaderValue]
    payload: bytes


class EventStreamFraming:
    """`Framing` of an AWS event stream."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.failure: ParseFailure | None = None
        self.blank = True
        self._limits = limits
        self._held = bytearray()
        self._need = _PRELUDE.size
        self._recognised = False
        self._preludes: dict[bytes, tuple[int, int]] = {}
        self._known: dict[bytes, Mapping[str, HeaderValue]] = {}
        self._events: dict[bytes, str] = {}  # of known blocks that are events: their names

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes."""
        frames: list[Frame] = []
        self._take(chunk, self._frame, frames)
        return frames

    def messages(self, chunk: bytes) -> list[Message]:
        """What `feed` gives, as messages with all their headers. Call the one or the other."""
        found: list[Message] = []
        self._take(chunk, self._message, found)
        return found

    def _take(self, chunk: bytes, make: Callable[[bytes, bytes], Any], found: list[Any]) -> None:
        if self.failure is not None or not chunk:
            return
        self.blank = False
        held = self._held
        if len(held) + len(chunk) < self._need:
            held += chunk
            return
        data = b"".join((held, chunk)) if held else chunk
        held.clear()
        try:
            held += data[self._read(data, make, found) :]
        except ParseFailure as failure:
            self.failure = failure

    def close(self) -> list[Frame]:
        """End of input. Bytes of an unfinished message are a failure: `truncated`, or `malformed` if they never were an event stream."""
        if self._held and self.failure is None:
            self.failure = self._unfinished(bytes(self._held))
        self._held.clear()
        return []

    def _read(self, data: bytes, make: Callable[[bytes, bytes], Any], found: list[Any]) -> int:
        """Appends what `make` makes of the header blocks and payloads in `data`; the index where the unfinished message begins."""
        at, size, crc32, checksum_at = 0, len(data), zlib.crc32, _CHECKSUM.unpack_from
        preludes, events = (
            self._preludes,
            self._events,
        )  # the latter is empty where messages are asked for: only `_frame` adds to it
        self._need = _PRELUDE.size
        while size - at >= _PRELUDE.size:
            prelude = data[at : at + _PRELUDE.size]
            lengths = preludes.get(prelude) or self._lengths(prelude)
            if lengths is None:
                self._refuse(data)
                break
            end, payload = at + lengths[0], at + lengths[1]
            if end + _CHECKSUM_BYTES > size:
                self._need = lengths[0] + _CHECKSUM_BYTES
                break
            if crc32(data[at:end]) != checksum_at(data, end)[0]:
                raise malformed("event stream: the checksum of a message does not hold")
            block = data[at + _PRELUDE.size : payload]
            name = events.get(block)
            found.append(
                make(block, data[payload:end]) if name is None else Frame(name, data[payload:end])
            )
            at = end + _CHECKSUM_BYTES
        return at

    def _lengths(self, prelude: bytes) -> tuple[int, int] | None:
        """Where the payload of a message ends and begins, by its prelude; None where its checksum does not hold."""
        total, header_length, checksum = _PRELUDE.unpack(prelude)
        if zlib.crc32(prelude[: _LENGTHS.size]) != checksum:
            return None
        self._recognised = True
        if (
            not _OVERHEAD + header_length <= total <= self._limits.event_bytes
            or header_length > HEADER_BLOCK_BYTES
        ):
            raise _bad_lengths(total, header_length, self._limits)
        lengths = (total - _CHECKSUM_BYTES, _PRELUDE.size + header_length)
        if len(self._preludes) < _KNOWN_PRELUDES:
            self._preludes[prelude] = lengths
        return lengths

    def _refuse(self, data: bytes) -> None:
        """A prelude does not hold: the stream is damaged. If it is the first, this is another kind of body, and worth an excerpt."""
        if self._recognised:
            raise malformed("event stream: the checksum of a prelude does not hold")
        if len(data) >= _EXCERPT_BYTES:
            raise _not_a_stream(data)
        self._need = _EXCERPT_BYTES

    def _frame(self, block: bytes, payload: bytes) -> Frame:
        """A frame whose header block is not among `_events` yet."""
        message = self._message(block, payload)
        frame = frame_of(message)
        if (
            block in self._known
            and message.headers.get(":message-type") == "event"
            and frame.event is not None
        ):
            self._events[block] = frame.event
        return frame

    def _message(self, block: bytes, payload: bytes) -> Message:
        headers = self._known.get(block)
        if headers is None:
            headers = _headers(block, self._limits)
            if len(self._known) < _KNOWN_BLOCKS and len(block) <= _KNOWN_BLOCK_BYTES:
                self._known[block] = headers
        return Message(headers, payload)

    def _unfinished(self, data: bytes) -> ParseFailure:
        if len(data) >= _PRELUDE.size and not self._recognised:
            return _not_a_stream(data)
        return truncated(f"the event stream ended inside a message, {len(data)} bytes into it")


def decode_message(data: bytes, limits: Limits = LIMITS) -> Message:
    """The one message that `data` holds, with all its headers. Raises `ParseFailure`: truncated, malformed or limit_exceeded."""
    framing = EventStreamFraming(limits)
    found = framing.messages(data)
    framing.close()
    if len(found) == 1 and framing.failure is None:
        return found[0]
    raise framing.failure or malformed(f"{len(found)} messages where one was expected")


def encode_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message with string headers, in their order. Raises `ValueError` on a header that cannot be written."""
    block = b"".join(_encode_header(name, value) for name, value in headers.items())
    lengths = _LENGTHS.pack(_OVERHEAD + len(block) + len(payload), len(block))
    message = b"".join((lengths, _checksum(lengths), block, payload))
    return message + _checksum(message)


def frame_of(message: Message) -> Frame:
    """The frame a wire reads. What is no event carries its message type before a colon, so that no wire takes it for one."""
    headers = message.headers
    kind = headers.get(":message-type")
    if not isinstance(kind, str):
        return Frame(None, message.payload)
    name = headers.get(_NAME_HEADERS.get(kind, ":event-type"))
    if kind == "event":
        return Frame(name if isinstance(name, str) else None, message.payload)
    data = _error_payload(message) if kind == "error" else message.payload
    return Frame(f"{kind}:{name if isinstance(name, str) else ''}", data)


_NAME_HEADERS: Final = {
    "event": ":event-type",
    "exception": ":exception-type",
    "error": ":error-code",
}


def _error_payload(message: Message) -> bytes:
    """An `error` message says what is wrong in a header; wires read JSON, as an `exception` has it in its payload."""
    words = message.headers.get(":error-message")
    if words is None and message.payload:
        return message.payload
    return msgspec.json.encode({"message": words if isinstance(words, str) else ""})


def _bad_lengths(total: int, header_length: int, limits: Limits) -> ParseFailure:
    """What is wrong with the lengths that a prelude announces."""
    if total < _OVERHEAD + header_length:
        return malformed(
            f"event stream: {header_length} bytes of headers in a message of {total} bytes"
        )
    if total > limits.event_bytes:
        return limit_exceeded("event_bytes", limits.event_bytes)
    return limit_exceeded("header_bytes", HEADER_BLOCK_BYTES)


def _headers(block: bytes, limits: Limits) -> dict[str, HeaderValue]:
    headers: dict[str, HeaderValue] = {}
    at = 0
    while at < len(block):
        if len(headers) == limits.header_count:
            raise limit_exceeded("header_count", limits.header_count)
        name, at = _counted(block, at, 1)
        if not name:
            raise malformed("event stream: a header without a name")
        key = _text(name)
        if key in headers:
            raise malformed(f"event stream: header {key!r} twice")
        headers[key], at = _value(block, at)
    return headers


def _value(block: bytes, at: int) -> tuple[HeaderValue, int]:
    kind, at = _take(block, at, 1)
    if kind[0] in _COUNTED:
        raw, at = _counted(block, at, 2)
        return _COUNTED[kind[0]](raw), at
    if kind[0] not in _FIXED:
        raise malformed(f"event stream: header type {kind[0]}")
    size, read = _FIXED[kind[0]]
    raw, at = _take(block, at, size)
    return read(raw), at


def _counted(block: bytes, at: int, width: int) -> tuple[bytes, int]:
    size, at = _take(block, at, width)
    return _take(block, at, int.from_bytes(size, "big"))


def _take(block: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if end > len(block):
        raise malformed("event stream: a header reaches past the header block")
    return block[at:end], end


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise malformed("event stream: a header is not UTF-8", raw) from None


def _integer(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


_FIXED: Final[Mapping[int, tuple[int, Callable[[bytes], HeaderValue]]]] = {
    0: (0, lambda _: True),
    1: (0, lambda _: False),
    2: (1, _integer),
    3: (2, _integer),
    4: (4, _integer),
    5: (8, _integer),
    8: (8, _integer),  # timestamp
    9: (16, bytes),  # UUID
}
"""Header type -> size of its value, and how to read it."""

_COUNTED: Final[Mapping[int, Callable[[bytes], HeaderValue]]] = {6: bytes, _STRING: _text}
"""Header types whose value begins with its own length, u16."""


def _checksum(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "big")


def _encode_header(name: str, value: str) -> bytes:
    return b"".join((_with_length(name, 1), bytes((_STRING,)), _with_length(value, 2)))


def _with_length(text: str, width: int) -> bytes:
    raw = text.encode("utf-8")
    if (width == 1 and not raw) or len(raw) >= 1 << 8 * width:
        raise ValueError(
            f"a header {'name' if width == 1 else 'value'} of {len(raw)} bytes cannot be written"
        )
    return len(raw).to_bytes(width, "big") + raw


def _not_a_stream(data: bytes) -> ParseFailure:
    return malformed("the body is not an AWS event stream", data[:_EXCERPT_BYTES])
