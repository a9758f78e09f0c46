"""AWS event stream (`application/vnd.amazon.eventstream`): binary messages with two checksums each.

    0   u32  total length, checksums included     12  headers: { u8 length, name, u8 type, value } …
    4   u32  length of the header block           ..  payload: total - headers - 16 bytes
    8   u32  CRC-32 of bytes 0..7                 -4  CRC-32 of everything before it

All numbers are big-endian. The lengths are used only after the first checksum matched and every
limit was checked, so that a hostile length never allocates a buffer. A message is buffered until
its second checksum matched, and only then emitted.

    :message-type event      :event-type messageStop
        -> Frame("messageStop", payload)
    :message-type exception  :exception-type throttlingException
        -> Frame("exception:throttlingException", payload)
    :message-type error      :error-code 500  :error-message "busy"
        -> Frame("error:500", {"message":"busy"})

A violation ends the stream for good: after a wrong length there is no way to find the next message.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from struct import Struct as Layout
from typing import Final, NamedTuple, TypeAlias

import msgspec

from streamlib_parsers.errors import ParseFailure, limit_exceeded, malformed, truncated
from streamlib_parsers.framing import Frame, NamedPayload
from streamlib_parsers.limits import LIMITS, Limits

HeaderValue: TypeAlias = bool | int | str | bytes
"""bool, integers of 8 to 64 bits, timestamp (int, milliseconds), string, byte array, UUID (its 16
bytes)."""

HEADER_BLOCK_BYTES: Final = 128 << 10
"""The limit that AWS's own decoders set on the header block of one message."""

_LENGTHS: Final = Layout(">II")
_PRELUDE: Final = Layout(">III")
_CHECKSUM: Final = Layout(">I")
_CHECKSUM_BYTES: Final = _CHECKSUM.size
_OVERHEAD: Final = _PRELUDE.size + _CHECKSUM_BYTES

_STRING: Final = 7  # header type

# Responses repeat a few header blocks: the names in this many, up to this size, are cached.
_CACHED_BLOCKS: Final = 64
_CACHED_BLOCK_BYTES: Final = 1024

# Deltas have few different lengths: this many preludes are cached, each checked once.
_CACHED_PRELUDES: Final = 1024

# Bytes of a body of another kind (a proxy's HTML page, a JSON error) that an error shows, however
# it was split into chunks.
_EXCERPT_BYTES: Final = 200


class AwsMessage(NamedTuple):
    """One message with all its headers."""

    headers: Mapping[str, HeaderValue]
    payload: bytes


class EventStreamFraming:
    """`Framing` of an AWS event stream."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        # Set once, by the first message that violates the format or a limit.
        self.failure: ParseFailure | None = None
        # True until the first byte.
        self.blank = True
        # Limits of a message and of its headers; never changes.
        self._limits = limits
        # The unfinished message.
        self._buffered = bytearray()
        # Bytes that `_buffered` must reach before reading it again can make progress.
        self._bytes_needed = _PRELUDE.size
        # True once a prelude was valid: a wrong checksum after that means a damaged stream, not a
        # body of another kind.
        self._is_event_stream = False
        # Valid preludes, each with what `_check_prelude` returned; up to _CACHED_PRELUDES.
        self._preludes: dict[bytes, tuple[int, int]] = {}
        # Header blocks of events with their names; up to _CACHED_BLOCKS.
        self._names: dict[bytes, str] = {}

    def single(self, chunk: bytes) -> NamedPayload | None:
        """Name and payload of a chunk that is one event, else None."""
        size = len(chunk)
        if self._buffered or not _OVERHEAD <= size <= self._limits.event_bytes:
            return None
        total, header_length, prelude_checksum = _PRELUDE.unpack_from(chunk)
        payload_start = _PRELUDE.size + header_length
        payload_end = size - _CHECKSUM_BYTES
        if total != size or payload_start > payload_end or self.failure is not None:
            return None
        if zlib.crc32(chunk[: _LENGTHS.size]) != prelude_checksum:
            return None
        if zlib.crc32(chunk[:payload_end]) != _CHECKSUM.unpack_from(chunk, payload_end)[0]:
            return None
        block = chunk[_PRELUDE.size : payload_start]
        name = self._names.get(block) or self._read_name(block)
        if name is None:
            return None
        self.blank = False
        self._is_event_stream = True
        return name, chunk[payload_start:payload_end]

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes."""
        frames: list[Frame] = []
        try:
            for block, payload in self._split(chunk):
                name = self._names.get(block) or self._read_name(block)
                if name is not None:
                    frames.append(Frame(name, payload))
                else:
                    frames.append(frame_of(self._message(block, payload)))
        except ParseFailure as failure:
            self.failure = failure
        return frames

    def messages(self, chunk: bytes) -> list[AwsMessage]:
        """What `feed` does as messages with all headers. Call only one of the two."""
        messages: list[AwsMessage] = []
        try:
            for block, payload in self._split(chunk):
                messages.append(self._message(block, payload))
        except ParseFailure as failure:
            self.failure = failure
        return messages

    def close(self) -> list[Frame]:
        """Ends the input and returns no frame.

        An unfinished message sets `failure`: `truncated`, or `malformed` if the bytes never were an
        event stream.
        """
        if self._buffered and self.failure is None:
            self.failure = self._unfinished(bytes(self._buffered))
        self._buffered.clear()
        return []

    def _split(self, chunk: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Header block and payload of each message that ends in `chunk`; the rest is buffered.

        Raises:
            ParseFailure: the bytes violate the format or a limit.
        """
        if self.failure is not None or not chunk:
            return
        self.blank = False
        buffered = self._buffered
        if len(buffered) + len(chunk) < self._bytes_needed:
            buffered += chunk
            return
        data = chunk
        if buffered:
            data = b"".join((buffered, chunk))
            buffered.clear()
        offset = 0
        size = len(data)
        crc32, read_checksum, preludes = zlib.crc32, _CHECKSUM.unpack_from, self._preludes
        self._bytes_needed = _PRELUDE.size
        while size - offset >= _PRELUDE.size:
            block_start = offset + _PRELUDE.size
            prelude = data[offset:block_start]
            lengths = preludes.get(prelude) or self._check_prelude(prelude)
            if lengths is None:
                self._refuse_prelude(data)
                break
            payload_start = offset + lengths[0]
            payload_end = offset + lengths[1]
            if payload_end + _CHECKSUM_BYTES > size:
                self._bytes_needed = lengths[1] + _CHECKSUM_BYTES
                break
            if crc32(data[offset:payload_end]) != read_checksum(data, payload_end)[0]:
                raise malformed("event stream: the checksum of a message does not match")
            yield data[block_start:payload_start], data[payload_start:payload_end]
            offset = payload_end + _CHECKSUM_BYTES
        buffered += data[offset:]

    def _check_prelude(self, prelude: bytes) -> tuple[int, int] | None:
        """Checks the first 12 bytes of a message.

        Returns:
            The offsets in the message where its payload starts and ends; None if the checksum of
            the prelude does not match.
        """
        total, header_length, checksum = _PRELUDE.unpack(prelude)
        if zlib.crc32(prelude[: _LENGTHS.size]) != checksum:
            return None
        self._is_event_stream = True
        if total < _OVERHEAD + header_length:
            raise malformed(
                f"event stream: {header_length} bytes of headers in a message of {total} bytes"
            )
        if total > self._limits.event_bytes:
            raise limit_exceeded("event_bytes", self._limits.event_bytes)
        if header_length > HEADER_BLOCK_BYTES:
            raise limit_exceeded("header_bytes", HEADER_BLOCK_BYTES)
        lengths = (_PRELUDE.size + header_length, total - _CHECKSUM_BYTES)
        if len(self._preludes) < _CACHED_PRELUDES:
            self._preludes[prelude] = lengths
        return lengths

    def _refuse_prelude(self, data: bytes) -> None:
        """Raises because the checksum of a prelude does not match: the stream is damaged.

        The first prelude of a stream means another kind of body: then, more bytes are awaited
        until there are enough for an excerpt.
        """
        if self._is_event_stream:
            raise malformed("event stream: the checksum of a prelude does not match")
        if len(data) >= _EXCERPT_BYTES:
            raise _not_a_stream(data)
        self._bytes_needed = _EXCERPT_BYTES

    def _read_name(self, block: bytes) -> str | None:
        """The name of an event; None for a header block of anything else, or to be refused."""
        if len(block) > _CACHED_BLOCK_BYTES:
            return None
        name = _name_in(block, self._limits.header_count)
        if name is not None and len(self._names) < _CACHED_BLOCKS:
            self._names[block] = name
        return name

    def _message(self, block: bytes, payload: bytes) -> AwsMessage:
        return AwsMessage(_headers(block, self._limits.header_count), payload)

    def _unfinished(self, data: bytes) -> ParseFailure:
        if len(data) >= _PRELUDE.size and not self._is_event_stream:
            return _not_a_stream(data)
        return truncated(f"the event stream ended inside a frame, {len(data)} bytes into it")


def encode_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Encodes one message with string headers, in their order.

    Raises:
        ValueError: a header is too long, or has no name.
    """
    return encode_frame(encode_headers(headers), payload)


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Encodes the header block of `encode_frame`; the same headers may be encoded once.

    Raises:
        ValueError: a header is too long, or has no name.
    """
    return b"".join(_encode_header(name, value) for name, value in headers.items())


def encode_frame(header_block: bytes, payload: bytes) -> bytes:
    """Encodes one message from a header block that `encode_headers` returned."""
    size = _OVERHEAD + len(header_block) + len(payload)
    message = b"".join((_encode_prelude(size, len(header_block)), header_block, payload))
    return message + _CHECKSUM.pack(zlib.crc32(message))


@lru_cache(maxsize=_CACHED_PRELUDES)
def _encode_prelude(size: int, header_size: int) -> bytes:
    """Encodes the first 12 bytes of a message of `size` bytes."""
    lengths = _LENGTHS.pack(size, header_size)
    return lengths + _CHECKSUM.pack(zlib.crc32(lengths))


def frame_of(message: AwsMessage) -> Frame:
    """The frame a wire reads.

    The name of an exception or error begins with its message type and a colon, so that no wire
    takes it for an event.
    """
    message_type = message.headers.get(":message-type")
    if not isinstance(message_type, str):
        return Frame(None, message.payload)
    name = message.headers.get(_NAME_HEADERS.get(message_type, ":event-type"))
    if not isinstance(name, str):
        name = None
    if message_type == "event":
        return Frame(name, message.payload)
    data = message.payload
    if message_type == "error":
        data = _error_payload(message)
    return Frame(f"{message_type}:{name or ''}", data)


_NAME_HEADERS: Final = {
    "event": ":event-type",
    "exception": ":exception-type",
    "error": ":error-code",
}


def _error_payload(message: AwsMessage) -> bytes:
    """An error as JSON, which wires read.

    A message of type `error` describes it in a header, one of type `exception` in a JSON payload.
    """
    description = message.headers.get(":error-message")
    if description is None and message.payload:
        return message.payload
    if not isinstance(description, str):
        description = ""
    return msgspec.json.encode({"message": description})


@lru_cache(maxsize=_CACHED_BLOCKS)
def _name_in(block: bytes, most: int) -> str | None:
    """The name of an event in its header block; see `EventStreamFraming._read_name`.

    Shared, since all responses have the same blocks. Each stream looks into its own table first: no
    server that invents names makes the streams of others slower than they would be alone.
    """
    try:
        message = AwsMessage(_headers(block, most), b"")
    except ParseFailure:
        return None
    if message.headers.get(":message-type") != "event":
        return None
    return frame_of(message).event


def _headers(block: bytes, most: int) -> dict[str, HeaderValue]:
    """The headers of a block; refused if there are more than `most`."""
    headers: dict[str, HeaderValue] = {}
    offset = 0
    while offset < len(block):
        if len(headers) == most:
            raise limit_exceeded("header_count", most)
        name, offset = _read_counted(block, offset, 1)
        if not name:
            raise malformed("event stream: a header without a name")
        key = _text(name)
        if key in headers:
            raise malformed(f"event stream: header {key!r} appears twice")
        headers[key], offset = _read_value(block, offset)
    return headers


def _read_value(block: bytes, offset: int) -> tuple[HeaderValue, int]:
    """A header's value and the offset after it."""
    header_type, offset = _read_bytes(block, offset, 1)
    if header_type[0] in _COUNTED_TYPES:
        raw, offset = _read_counted(block, offset, 2)
        return _COUNTED_TYPES[header_type[0]](raw), offset
    if header_type[0] not in _FIXED_TYPES:
        raise malformed(f"event stream: unknown header type {header_type[0]}")
    size, convert = _FIXED_TYPES[header_type[0]]
    raw, offset = _read_bytes(block, offset, size)
    return convert(raw), offset


def _read_counted(block: bytes, offset: int, width: int) -> tuple[bytes, int]:
    """Bytes that follow their own length, a number of `width` bytes."""
    size, offset = _read_bytes(block, offset, width)
    return _read_bytes(block, offset, int.from_bytes(size, "big"))


def _read_bytes(block: bytes, offset: int, size: int) -> tuple[bytes, int]:
    end = offset + size
    if end > len(block):
        raise malformed("event stream: a header reaches past the header block")
    return block[offset:end], end


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise malformed("event stream: a header is not UTF-8", raw) from None


def _integer(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


_FIXED_TYPES: Final[Mapping[int, tuple[int, Callable[[bytes], HeaderValue]]]] = {
    0: (0, lambda _: True),
    1: (0, lambda _: False),
    2: (1, _integer),
    3: (2, _integer),
    4: (4, _integer),
    5: (8, _integer),
    8: (8, _integer),  # timestamp
    9: (16, bytes),  # UUID
}
"""Header type -> size of its value in bytes, and how to convert it."""

_COUNTED_TYPES: Final[Mapping[int, Callable[[bytes], HeaderValue]]] = {6: bytes, _STRING: _text}
"""Header types whose value begins with its own length, u16."""


def _encode_header(name: str, value: str) -> bytes:
    encoded_name, encoded_value = name.encode(), value.encode()
    if not encoded_name or len(encoded_name) >= 1 << 8:
        raise ValueError(f"a header name has 1 to 255 bytes, not {len(encoded_name)}")
    if len(encoded_value) >= 1 << 16:
        raise ValueError(f"a header value has at most 65,535 bytes, not {len(encoded_value)}")
    return b"".join(
        (
            len(encoded_name).to_bytes(1, "big"),
            encoded_name,
            bytes((_STRING,)),
            len(encoded_value).to_bytes(2, "big"),
            encoded_value,
        )
    )


def _not_a_stream(data: bytes) -> ParseFailure:
    return malformed("the body is not an AWS event stream", data[:_EXCERPT_BYTES])
