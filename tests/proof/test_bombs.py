"""Promise 9: the memory of a stream, against servers that never stop sending, with limits of 8 MiB.

At most twice the bytes that the response itself had when the limit ended it, the framing limit and
2 MiB. Peaks are measured by tracemalloc above the start, everything included: parser, stream,
events, the partial response.
"""

from __future__ import annotations

import gc
import gzip
import struct
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import anyio
import pytest

from streamlib.client.retry import RetryPolicy
from streamlib.client.stream import ResponseStream
from streamlib.transport.content_encoding import decode_content
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import Limits, parser
from streamlib_parsers.limits import MIB
from tests.support.clients import make_client, make_request
from tests.support.metrics import figure
from tests.support.partitions import byte_by_byte
from tests.support.response_bodies import CALL, OPENED, START, arguments, block, part, stop, text
from tests.support.scripted_server import Repeat, scripted

pytestmark = [pytest.mark.slow]

LIMIT: Final = 8 * MIB
LIMITS: Final = Limits(
    event_bytes=LIMIT, response_bytes=LIMIT, argument_bytes=LIMIT, held_bytes=LIMIT
)
GIB: Final = 1 << 30


def repeated(chunk: bytes, first: bytes = b"", total: int = GIB) -> Iterator[bytes]:
    """The same chunk over and over, a GiB in all; one object, so that only copies count."""
    if first:
        yield first
    for _ in range(total // len(chunk)):
        yield chunk


def million_blocks() -> Iterator[bytes]:
    """Empty blocks, one after the other."""
    yield START
    for n in range(1_000_000):
        yield block(n) + stop(n)


def million_calls() -> Iterator[bytes]:
    """Calls on Chat that never end."""
    for n in range(1_000_000):
        yield part(
            {
                "tool_calls": [
                    {"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": "{"}}
                ]
            }
        )


def compressed() -> Iterator[bytes]:
    """A GiB of one comment line, in about a MiB of gzip."""
    compressor = zlib.compressobj(wbits=31)
    zeros = b" " * (4 * MIB)
    yield compressor.compress(b":")
    for _ in range(GIB // len(zeros)):
        yield compressor.compress(zeros)
    yield compressor.flush()


def endless_headers() -> Iterator[bytes]:
    """One AWS frame that declares the longest header block the wire allows."""
    prelude = struct.pack(">II", 0x7FFFFFFF, 0x7FFFFF00)
    yield prelude + struct.pack(">I", zlib.crc32(prelude))
    yield from repeated(b"\x01a\x07\x00\x10" + b"x" * 16)


BOMBS: Final[dict[str, tuple[Any, Callable[[], Iterator[bytes]]]]] = {
    "line of 1 GiB": ("messages", lambda: repeated(b"x" * 65_536, b"data: ")),
    "line of 1 GiB on Ollama": ("ollama", lambda: repeated(b"x" * 65_536, b'{"model":"')),
    "endless lines": ("chat", lambda: repeated(b"data: %b\n" % (b"x" * 90) * 500)),
    "endless comments": ("chat", lambda: repeated(b": %b\n\n" % (b"ping" * 20) * 500)),
    "10^6 blocks": ("messages", million_blocks),
    "10^6 calls": ("chat", million_calls),
    "endless arguments": ("messages", lambda: repeated(arguments("9" * 4000), CALL)),
    "endless text": ("messages", lambda: repeated(text("y" * 4000), OPENED)),
    "text a character at a time": ("messages", lambda: repeated(text("y") * 100, OPENED)),
    "endless text on Chat": ("chat", lambda: repeated(part({"content": "y" * 4000}))),
    "endless headers": ("converse", endless_headers),
    "endless JSON array": (
        "gemini",
        lambda: repeated(b'{"candidates":[],"%b":0},' % (b"k" * 900), b"["),
    ),
}

OF_TEXT: Final = ("endless text", "endless text on Chat", "endless arguments")
"""Those that end with most of their bytes in one item."""


async def drain(chunks: AsyncIterator[bytes], wire: Any) -> Any:
    """The error that ended the stream; its events are discarded."""
    async with ResponseStream.from_chunks(
        chunks, parser(wire, limits=LIMITS), errors="event"
    ) as stream:
        async for _ in stream:
            pass
    return stream.response.error


class Received:
    """Chunks as a socket delivers them.

    Attributes:
        size: bytes that were read so far.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            yield chunk


def excess(peak: int, size: int) -> int:
    """Bytes above twice a response's own and the framing limit."""
    return peak - 2 * size - LIMIT


def traced(run: Callable[[], Any]) -> tuple[Any, int]:
    """The result, and the peak of memory in bytes above the start."""
    gc.collect()
    tracemalloc.start(1)
    began = tracemalloc.get_traced_memory()[0]
    result = run()
    peak = tracemalloc.get_traced_memory()[1] - began
    tracemalloc.stop()
    return result, peak


@pytest.mark.parametrize("name", BOMBS)
def test_9_an_endless_input_ends_and_memory_stays_near_its_limit(name: str) -> None:
    wire, chunks = BOMBS[name]
    received = Received(chunks())
    error, peak = traced(lambda: anyio.run(drain, aiter(received), wire))
    figure(f"bomb/{name}", peak / MIB)
    figure("MiB over the bound", excess(peak, received.size) / MIB)
    if name in OF_TEXT:
        figure("times the bytes of text", peak / received.size)
    assert error is not None
    assert error.kind in {"limit_exceeded", "malformed"}
    assert excess(peak, received.size) <= 2 * MIB


def test_9_a_gzip_bomb_ends_within_the_same_bounds() -> None:
    bomb = list(compressed())
    chunks: list[bytes] = []
    for part_of_bomb in bomb:
        chunks += byte_by_byte(part_of_bomb, 4096)
    assert sum(map(len, chunks)) < 2 * MIB
    assert gzip.compress(b"")[:2] == chunks[0][:2]
    headers = {"content-encoding": "gzip"}
    received = Received(iter(chunks))
    error, peak = traced(
        lambda: anyio.run(drain, decode_content(aiter(received), headers), "messages")
    )
    figure("bomb/gzip of 1 GiB", peak / MIB)
    # Of the bytes as received, before they are decompressed.
    figure("MiB over the bound", excess(peak, received.size) / MIB)
    assert error.kind == "limit_exceeded"
    assert excess(peak, received.size) <= 2 * MIB


def test_9_endless_http_headers_end_within_the_same_bounds() -> None:
    """On a socket: the memory of the HTTP library and of the test's server counts too."""

    async def request_once() -> Any:
        options: Any = {
            "deadlines": Deadlines(total=20),
            "retry": RetryPolicy(retries=0),
            "errors": "event",
        }
        script = [b"HTTP/1.1 200 OK\r\n", Repeat(b"x-more: " + b"y" * 100 + b"\r\n")]
        async with scripted(script) as server, make_client(server.url, **options) as client:
            return (await client.respond(make_request(server.url))).error

    anyio.run(request_once)  # the first loads the library
    error, peak = traced(lambda: anyio.run(request_once))
    figure("bomb/HTTP headers", peak / MIB)
    figure("MiB over the bound", excess(peak, 0) / MIB)
    assert error.kind == "malformed"
    assert excess(peak, 0) <= 2 * MIB
