"""Decoding of compressed bodies in bounded steps.

Requests ask for `identity`, yet some servers compress all the same. A few KiB may expand to
gigabytes, so no step yields more than `DECODED_CHUNK_BYTES`, and other tasks run between two steps
that wait for no bytes: the parser's own limit then ends the stream.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Final

import anyio.lowlevel

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError

DECODED_CHUNK_BYTES: Final = 16 * 1024
"""Maximum size of a decoded chunk: what a parser makes of it holds the event loop for less than
20 ms, were each event a few bytes."""

ENCODED_BYTES: Final = 16 * 1024
"""Maximum input of a step: zlib copies what it does not use, at each step."""

_SUPPORTED: Final = frozenset({"gzip", "x-gzip", "deflate"})

_GZIP_OR_ZLIB: Final = 47
"""zlib's window bits for "gzip or zlib, by the header": 32 + 15."""

_RAW_DEFLATE: Final = -15
"""zlib's window bits for deflate without a header."""


def decode_content(
    chunks: AsyncIterator[bytes], headers: Mapping[str, str]
) -> AsyncIterator[bytes]:
    """Removes the content-encoding of a body.

    Args:
        chunks: the body as it was received.
        headers: response headers, names in lower case.

    Returns:
        `chunks` itself for `identity`, else an iterator over decoded chunks.

    Raises:
        StreamError: `malformed`; several encodings, or one that is not supported.
    """
    encodings: list[str] = []
    for part in headers.get("content-encoding", "").lower().split(","):
        name = part.strip()
        if name not in {"", "identity"}:
            encodings.append(name)
    if not encodings:
        return chunks
    if len(encodings) > 1 or encodings[0] not in _SUPPORTED:
        message = f"content-encoding {', '.join(encodings)[:100]}: only identity was requested"
        raise StreamError(ErrorInfo("malformed", message, code="content_encoding"))
    return ContentDecoder(chunks)


class ContentDecoder:
    """Iterator over a decoded body: gzip, zlib, or raw deflate.

    The header distinguishes the first two. Some servers send raw deflate as `deflate`: it is tried
    when the first bytes are no such header.
    """

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._received = b""
        """The last bytes received."""
        self._taken = 0
        """How many of them were taken for a step."""
        self._encoded = b""
        """Input of the next step: bytes that were taken and are not decoded yet."""
        self._header: bytes | None = b""
        """The first bytes, until there are two of them: enough to know the format. Then None."""
        self._started = False
        """Set by the first chunk: an empty body is not a truncated one."""
        self._more_buffered = False
        """Set if the last decoded chunk had the maximum size: the next needs no further input."""

    def __aiter__(self) -> ContentDecoder:
        return self

    async def __anext__(self) -> bytes:
        while True:
            if self._encoded or self._more_buffered or self._taken < len(self._received):
                # A few bytes may expand to a thousand steps, for which nothing is awaited.
                await anyio.lowlevel.checkpoint()
            else:
                self._received = await self._next_encoded()
                self._taken = 0
            chunk = self._decode()
            if chunk:
                return chunk

    def _decode(self) -> bytes:
        """One step: at most `DECODED_CHUNK_BYTES`; nothing if the input is too short."""
        if not self._encoded:
            end = self._taken + ENCODED_BYTES
            self._encoded = self._received[self._taken : end]
            self._taken = min(end, len(self._received))
        chunk = self._decode_once()
        # Empty gzip members decode to nothing: not a step for each of them, but for all that were
        # taken.
        while self._encoded and not chunk:
            chunk = self._decode_once()
        return chunk

    def _decode_once(self) -> bytes:
        if self._decompressor.eof and self._encoded:  # gzip allows several members in a row
            self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
        if self._header is None:
            chunk = self._decompress()
        else:
            chunk = self._decompress_first(self._header + self._encoded)
        # A full chunk may leave decoded bytes in zlib even when all input was consumed.
        self._more_buffered = len(chunk) == DECODED_CHUNK_BYTES
        if self._decompressor.eof:
            self._encoded = self._decompressor.unused_data
        else:
            self._encoded = self._decompressor.unconsumed_tail
        return chunk

    def _decompress(self) -> bytes:
        return self._decompressor.decompress(self._encoded, DECODED_CHUNK_BYTES)

    def _decompress_first(self, header: bytes) -> bytes:
        """Decodes from the first byte on, until the format is known."""
        try:
            chunk = self._decompress()
        except zlib.error:
            self._decompressor = zlib.decompressobj(_RAW_DEFLATE)
            self._encoded = header
            chunk = self._decompress()
        self._header = header if len(header) < 2 else None
        return chunk

    async def _next_encoded(self) -> bytes:
        try:
            encoded = await anext(self._chunks)
        except StopAsyncIteration:
            if self._started and not self._decompressor.eof:
                info = ErrorInfo("truncated", "the compressed body is incomplete", retryable=True)
                raise StreamError(info) from None
            raise
        self._started = True
        return encoded
