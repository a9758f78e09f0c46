"""Promise 9: what a stream may hold, against servers that never end. Ceilings of 8 MiB, an input that is offered without end.

Peaks are what tracemalloc saw above the start, everything included: parser, stream, events, the response so far.
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
from tests.support.response_bodies import CALL, OPENED, START, arguments, block, part, stop, text
from tests.support.scripted_server import Repeat, scripted

pytestmark = [pytest.mark.slow]

CEILING: Final = 8 * MIB
LIMITS: Final = Limits(
    event_bytes=CEILING, response_bytes=CEILING, argument_bytes=CEILING, held_bytes=CEILING
)
GIB: Final = 1 << 30


def again(piece: bytes, first: bytes = b"", total: int = GIB) -> Iterator[bytes]:
    """The same piece over and over, a GiB in all: one object, so that only what is kept of it is counted."""
    if first:
        yield first
    for _ in range(total // len(piece)):
        yield piece


def million_blocks() -> Iterator[bytes]:
    """Empty blocks, one after the other."""
    yield START
    for n in range(1_000_000):
        yield block(n) + stop(n)


def million_calls() -> Iterator[bytes]:
    """The same on Chat: calls that never end."""
    for n in range(1_000_000):
        yield part(
            {
                "tool_calls": [
                    {"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": "{"}}
                ]
            }
        )


def packed() -> Iterator[bytes]:
    """A GiB of one comment line, in about a MiB of gzip."""
    packer = zlib.compressobj(wbits=31)
    zeros = b" " * (4 * MIB)
    yield packer.compress(b":")
    for _ in range(GIB // len(zeros)):
        yield packer.compress(zeros)
    yield packer.flush()


def endless_headers() -> Iterator[bytes]:
    """One AWS frame whose header block is as long as the wire allows it to say."""
    prelude = struct.pack(">II", 0x7FFFFFFF, 0x7FFFFF00)
    yield prelude + struct.pack(">I", zlib.crc32(prelude))
    yield from again(b"\x01a\x07\x00\x10" + b"x" * 16)


BOMBS: Final[dict[str, tuple[Any, Callable[[], Iterator[bytes]]]]] = {
    "line of 1 GiB": ("messages", lambda: again(b"x" * 65_536, b"data: ")),
    "line of 1 GiB, Ollama": ("ollama", lambda: again(b"x" * 65_536, b'{"model":"')),
    "lines without an end": ("chat", lambda: again(b"data: %b\n" % (b"x" * 90) * 500)),
    "comments without an end": ("chat", lambda: again(b": %b\n\n" % (b"ping" * 20) * 500)),
    "10^6 blocks": ("messages", million_blocks),
    "10^6 calls": ("chat", million_calls),
    "arguments without an end": ("messages", lambda: again(arguments("9" * 4000), CALL)),
    "text without an end": ("messages", lambda: again(text("y" * 4000), OPENED)),
    "text a character at a time": ("messages", lambda: again(text("y") * 100, OPENED)),
    "text on Chat": ("chat", lambda: again(part({"content": "y" * 4000}))),
    "headers without an end": ("converse", endless_headers),
    "JSON array without an end": (
        "gemini",
        lambda: again(b'{"candidates":[],"%b":0},' % (b"k" * 900), b"["),
    ),
}


async def drained(chunks: AsyncIterator[bytes], wire: Any) -> Any:
    """Why the stream ended; its events are not kept."""
    async with ResponseStream.from_chunks(
        chunks, parser(wire, limits=LIMITS), errors="event"
    ) as stream:
        async for _ in stream:
            pass
    return stream.response.error


async def given(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Chunks as a socket gives them."""
    for chunk in chunks:
        yield chunk


def traced(run: Callable[[], Any]) -> tuple[Any, int]:
    """What came of it, and the peak of memory meanwhile."""
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
    error, peak = traced(lambda: anyio.run(drained, given(chunks()), wire))
    figure(f"bomb/{name}", peak / MIB)
    figure("over the ceiling", (peak - CEILING) / MIB)
    figure("over twice the ceiling", (peak - 2 * CEILING) / MIB)
    assert error is not None
    assert error.kind in {"limit_exceeded", "malformed"}
    assert (
        peak <= 2 * CEILING + 2 * MIB
    )  # DESIGN.md's law 8; what RELIABILITY.md demands is stricter, and reported


def test_9_a_gzip_bomb_ends_within_the_same_bounds() -> None:
    bomb = list(packed())
    pieces = [piece[at : at + 4096] for piece in bomb for at in range(0, len(piece), 4096)]
    assert sum(map(len, pieces)) < 2 * MIB
    assert gzip.compress(b"")[:2] == pieces[0][:2]
    headers = {"content-encoding": "gzip"}
    error, peak = traced(
        lambda: anyio.run(drained, decode_content(given(iter(pieces)), headers), "messages")
    )
    figure("bomb/gzip of 1 GiB", peak / MIB)
    figure("over the ceiling", (peak - CEILING) / MIB)
    figure("over twice the ceiling", (peak - 2 * CEILING) / MIB)
    assert error.kind == "limit_exceeded"


def test_9_endless_http_headers_end_within_the_same_bounds() -> None:
    """On a socket: what the HTTP library holds is counted too, and so is the server of the test."""

    async def asking() -> Any:
        options: Any = {
            "deadlines": Deadlines(total=20),
            "retry": RetryPolicy(retries=0),
            "errors": "event",
        }
        script = [b"HTTP/1.1 200 OK\r\n", Repeat(b"x-more: " + b"y" * 100 + b"\r\n")]
        async with scripted(script) as server, make_client(server.url, **options) as made:
            return (await made.respond(make_request(server.url))).error

    anyio.run(asking)  # the first loads the library
    error, peak = traced(lambda: anyio.run(asking))
    figure("bomb/HTTP headers", peak / MIB)
    figure("over the ceiling", (peak - CEILING) / MIB)
    figure("over twice the ceiling", (peak - 2 * CEILING) / MIB)
    assert error.kind == "malformed"
