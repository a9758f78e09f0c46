"""Messages of an AWS event stream for the tests of its framing: valid, invalid and damaged."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.framing.eventstream import (
    AwsMessage,
    EventStreamFraming,
    encode_message,
)
from streamlib_parsers.limits import LIMITS, Limits

EVENT = {
    ":event-type": "contentBlockDelta",
    ":content-type": "application/json",
    ":message-type": "event",
}


def messages_of(
    chunks: Iterable[bytes], limits: Limits = LIMITS
) -> tuple[list[AwsMessage], ErrorInfo | None]:
    """Reads a body; returns its messages and its failure."""
    framing = EventStreamFraming(limits)
    messages = [message for chunk in chunks for message in framing.messages(chunk)]
    framing.close()
    return messages, framing.failure.info if framing.failure else None


def raw_message(
    block: bytes, payload: bytes = b"", total: int | None = None, header_length: int | None = None
) -> bytes:
    """Encodes a message with valid checksums around any header block and any lengths."""
    size = len(block) if header_length is None else header_length
    lengths = struct.pack(">II", 16 + len(block) + len(payload) if total is None else total, size)
    message = lengths + struct.pack(">I", zlib.crc32(lengths)) + block + payload
    return message + struct.pack(">I", zlib.crc32(message))


def header(name: bytes, kind: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name + bytes([kind]) + value


def string(name: str, value: str) -> bytes:
    raw = value.encode()
    return header(name.encode(), 7, struct.pack(">H", len(raw)) + raw)


def events(count: int, payload: bytes = b'{"contentBlockIndex":0,"delta":{"text":"Hi"}}') -> bytes:
    return encode_message(EVENT, payload) * count


EVERY_TYPE = b"".join(
    (
        header(b"true", 0, b""),
        header(b"false", 1, b""),
        header(b"byte", 2, b"\xff"),
        header(b"short", 3, b"\x80\x00"),
        header(b"integer", 4, b"\x7f\xff\xff\xff"),
        header(b"long", 5, b"\xff" * 8),
        header(b"bytes", 6, b"\x00\x03\xff\x00\xfe"),
        header(b"string", 7, b"\x00\x05caf\xc3\xa9"),
        header(b"timestamp", 8, b"\x00\x00\x01\x93\x00\x00\x00\x01"),
        header(b"uuid", 9, bytes(range(16))),
    )
)


def damaged(body: bytes, bits: Iterable[int]) -> bytes:
    changed = bytearray(body)
    for bit in bits:
        changed[bit >> 3] ^= 1 << (bit & 7)
    return bytes(changed)
