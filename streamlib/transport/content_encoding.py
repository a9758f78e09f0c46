"""A compressed body, unpacked in bounded steps. We ask for none, and some servers send one all the same.

A few KiB may unpack to gigabytes, so no step gives more than `PIECE`: the parser's own ceiling then ends the stream.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Final

from streamlib.errors import StreamError
from streamlib_parsers.errors import ErrorInfo

PIECE: Final = 256 * 1024
"""The most that one step gives."""

_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})


def decode_content(
    chunks: AsyncIterator[bytes], headers: Mapping[str, str]
) -> AsyncIterator[bytes]:
    """`chunks` without their content-encoding. We ask for none; one that is known is unpacked, in bounded pieces."""
    encodings = [
        name
        for part in headers.get("content-encoding", "").lower().split(",")
        if (name := part.strip()) not in {"", "identity"}
    ]
    if not encodings:
        return chunks
    if len(encodings) > 1 or encodings[0] not in _PACKED:
        message = f"content-encoding {', '.join(encodings)[:100]}: we asked for identity"
        raise StreamError(ErrorInfo("malformed", message, code="content_encoding"))
    return ContentDecoder(chunks)


class ContentDecoder:
    """gzip or zlib, told apart by their first bytes; or `deflate` without a header, as some servers mean it."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._unpack = zlib.decompressobj(47)
        self._packed = b""
        self._header: bytes | None = b""
        """What came until it was clear what it is."""
        self._begun = False
        self._full = False
        """The last piece was cut at its ceiling: more comes without further input."""

    def __aiter__(self) -> ContentDecoder:
        return self

    async def __anext__(self) -> bytes:
        while True:
            if (self._packed or self._full) and (piece := self._step()):
                return piece
            if not self._packed:
                self._packed = await self._more()

    def _step(self) -> bytes:
        if self._unpack.eof:  # a further member
            self._unpack = zlib.decompressobj(47)
        piece = (
            self._known() if self._header is None else self._guessed(self._header + self._packed)
        )
        self._full = len(piece) == PIECE
        self._packed = (
            self._unpack.unused_data if self._unpack.eof else self._unpack.unconsumed_tail
        )
        return piece

    def _known(self) -> bytes:
        return self._unpack.decompress(self._packed, PIECE)

    def _guessed(self, header: bytes) -> bytes:
        try:
            piece = self._known()
        except zlib.error:
            self._unpack, self._packed = zlib.decompressobj(-15), header
            piece = self._known()
        self._header = header if len(header) < 2 else None
        return piece

    async def _more(self) -> bytes:
        try:
            packed = await anext(self._chunks)
        except StopAsyncIteration:
            if self._begun and not self._unpack.eof:
                raise StreamError(
                    ErrorInfo("truncated", "the compressed body is not whole", retryable=True)
                ) from None
            raise
        self._begun = True
        return packed
