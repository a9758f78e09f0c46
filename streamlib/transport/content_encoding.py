"""Decoding of compressed bodies in bounded steps.

Requests ask for `identity`, yet some servers compress all the same: with gzip or deflate, which
need no package, with Brotli (extra `br`) or Zstandard (extra `zstd`). A few KiB may expand to
gigabytes, so no step yields more than `DECODED_CHUNK_BYTES`, and other tasks run between two steps
that wait for no bytes: the parser's own limit then ends the stream.
"""

from __future__ import annotations

import importlib
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, NamedTuple, Protocol

import anyio.lowlevel

from streamlib.transport.errors import is_decoding_error
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError

DECODED_CHUNK_BYTES: Final = 16 * 1024
"""Maximum size of a decoded chunk: what a parser makes of it holds the event loop for less than
20 ms, were each event a few bytes."""

ENCODED_BYTES: Final = 16 * 1024
"""Maximum input of a step: zlib copies what it does not use, at each step."""

MEMBERS: Final = 256
"""Maximum of empty members in a step: a new decompressor for each of them takes 16 µs."""

ZSTD: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
"""The module of Zstandard."""

WINDOW_LOG: Final = 23
"""Maximum window of Zstandard, as a power of two: 8 MiB, as for HTTP (RFC 9659)."""

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
        StreamError: `malformed`; several encodings, or one that is not supported, or whose package
            is not installed.
    """
    encodings: list[str] = []
    for part in headers.get("content-encoding", "").lower().split(","):
        name = part.strip()
        if name not in {"", "identity"}:
            encodings.append(name)
    if not encodings:
        return chunks
    name = ", ".join(encodings)[:100]
    start = _STARTS.get(name)
    if start is None:
        raise _refused(f"content-encoding {name}: only identity was requested")
    try:
        return ContentDecoder(chunks, start)
    except (ImportError, AttributeError):  # none, or one that cannot decode in bounded steps
        message = f"content-encoding {name}, though only identity was requested: "
        raise _refused(f"{message}pip install 'streamlib[{name}]' decodes it") from None


def _refused(message: str) -> StreamError:
    return StreamError(ErrorInfo("malformed", message, code="content_encoding"))


class Decompressor(Protocol):
    """What zlib's decompressor offers, and those of the other encodings here."""

    @property
    def eof(self) -> bool:
        """Whether the end of the compressed data was read."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What follows that end."""
        ...

    @property
    def unconsumed_tail(self) -> bytes:
        """Input for the next call."""
        ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """The next decoded bytes, at most so many."""
        ...


def _start_zlib() -> Decompressor:
    return zlib.decompressobj(_GZIP_OR_ZLIB)


class _Brotli(Protocol):
    """`brotli.Decompressor`, since brotli 1.2."""

    def can_accept_more_data(self) -> bool: ...
    def is_finished(self) -> bool: ...
    def process(self, data: bytes, /, *, output_buffer_limit: int) -> bytes: ...


class _BrotliDecompressor:
    """A decompressor of Brotli with the names of zlib's."""

    unused_data = b""
    """What follows a body in the same input is an error of its own."""

    def __init__(self) -> None:
        self._brotli: _Brotli = importlib.import_module("brotli").Decompressor()
        self._is_ready = self._brotli.can_accept_more_data
        self._decoded = b""
        """Output beyond the limit of the last call: brotli gives up to twice as much."""
        self.unconsumed_tail = b""

    @property
    def eof(self) -> bool:
        return self._brotli.is_finished() and not self._decoded

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        while len(self._decoded) < max_length:
            taken = b""
            if self._is_ready():  # while it has output left, it takes no input
                taken, data = data, b""
            more = self._brotli.process(taken, output_buffer_limit=max_length)
            if not more:
                break
            self._decoded += more
        self.unconsumed_tail = data
        chunk, self._decoded = self._decoded[:max_length], self._decoded[max_length:]
        return chunk


class _Zstd(Protocol):
    """`compression.zstd.ZstdDecompressor`, or the package that has it for older Pythons."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _ZstdDecompressor:
    """A decompressor of Zstandard with the names of zlib's."""

    unconsumed_tail = b""
    """It keeps what it does not use."""

    def __init__(self) -> None:
        zstd = importlib.import_module(ZSTD)
        options = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
        self._zstd: _Zstd = zstd.ZstdDecompressor(options=options)

    @property
    def eof(self) -> bool:
        return self._zstd.eof

    @property
    def unused_data(self) -> bytes:
        return self._zstd.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        if self._zstd.eof:  # where zlib gives nothing, it raises
            return b""
        return self._zstd.decompress(data, max_length)


_STARTS: Final[dict[str, Callable[[], Decompressor]]] = {
    "gzip": _start_zlib,
    "x-gzip": _start_zlib,
    "deflate": _start_zlib,
    "br": _BrotliDecompressor,
    "zstd": _ZstdDecompressor,
}
"""Name of an encoding to its decompressor; the extra that has its package is named alike."""


class DecodingSteps:
    """The bounded steps that decode a body, for a reader that awaits its bytes and for one that
    has all of them.

    zlib distinguishes gzip and deflate by the header. Some servers send raw deflate as `deflate`:
    it is tried when the first bytes are no such header.
    """

    def __init__(self, start: Callable[[], Decompressor]) -> None:
        self._start = start
        """Makes the decompressor of a member."""
        self._decompressor = start()
        self._received = b""
        """The last bytes received."""
        self._taken = 0
        """How many of them were taken for a step."""
        self._encoded = b""
        """Input of the next step: bytes that were taken and are not decoded yet."""
        self._header: bytes | None = b""
        """The first bytes, until there are two of them: enough to know the format. Then None."""
        self._started = False
        """Set by the first bytes: an empty body is not a truncated one."""
        self._more_buffered = False
        """Set if the last decoded chunk had the maximum size: the next needs no further input."""

    @property
    def has_input(self) -> bool:
        """Whether another step needs no further bytes."""
        return bool(self._encoded) or self._more_buffered or self._taken < len(self._received)

    @property
    def is_truncated(self) -> bool:
        """Whether the body, were this its end, would be incomplete."""
        return self._started and not self._decompressor.eof

    def receive(self, received: bytes) -> None:
        """Takes the next bytes; those before them were decoded."""
        self._received = received
        self._taken = 0
        self._started = True

    def step(self) -> bytes:
        """One step: at most `DECODED_CHUNK_BYTES`; nothing if the input is too short."""
        if not self._encoded:
            end = self._taken + ENCODED_BYTES
            self._encoded = self._received[self._taken : end]
            self._taken = min(end, len(self._received))
        chunk = self._decode_once()
        # Empty members decode to nothing: not a step for each of them.
        members = 1
        while self._encoded and not chunk and members < MEMBERS:
            chunk = self._decode_once()
            members += 1
        return chunk

    def _decode_once(self) -> bytes:
        if self._decompressor.eof and self._encoded:  # gzip and zstd allow several in a row
            self._decompressor = self._start()
        if self._header is None:
            chunk = self._decompress()
        else:
            chunk = self._decompress_first(self._header + self._encoded)
        # A full chunk may leave decoded bytes behind even when all input was consumed.
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


class ContentDecoder:
    """Iterator over a decoded body, whose bytes are awaited."""

    def __init__(self, chunks: AsyncIterator[bytes], start: Callable[[], Decompressor]) -> None:
        self._chunks = chunks
        self._steps = DecodingSteps(start)

    def __aiter__(self) -> ContentDecoder:
        return self

    async def __anext__(self) -> bytes:
        while True:
            if self._steps.has_input:
                # A few bytes may expand to a thousand steps, for which nothing is awaited.
                await anyio.lowlevel.checkpoint()
            else:
                self._steps.receive(await self._next_encoded())
            chunk = self._steps.step()
            if chunk:
                return chunk

    async def _next_encoded(self) -> bytes:
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            if self._steps.is_truncated:
                info = ErrorInfo("truncated", "the compressed body is incomplete", retryable=True)
                raise StreamError(info) from None
            raise


class DecodedFile(NamedTuple):
    """What could be decoded of a body that is there as a whole.

    Attributes:
        body: the decoded bytes.
        problem: why the rest could not be decoded, in words; None: there is no rest.
    """

    body: bytes
    problem: str | None


def decode_file(data: bytes, encoding: str, limit: int) -> DecodedFile:
    """Decodes a body that is there as a whole, in the same bounded steps.

    Args:
        data: the body, with its content-encoding.
        encoding: one of the supported encodings.
        limit: maximum of decoded bytes; more of them are a problem.

    Raises:
        ImportError: the package of the encoding is not installed.
        AttributeError: it is installed, and cannot decode in bounded steps.
    """
    steps = DecodingSteps(_STARTS[encoding])
    steps.receive(data)
    decoded = bytearray()
    problem = None
    try:
        while steps.has_input:
            decoded += steps.step()
            if len(decoded) > limit:
                return DecodedFile(bytes(decoded[:limit]), f"it is longer than {limit:,} bytes")
    except Exception as error:
        if not is_decoding_error(error):
            raise
        problem = "it is damaged"
    if problem is None and steps.is_truncated:
        problem = "it is truncated"
    return DecodedFile(bytes(decoded), problem)
