"""A server on 127.0.0.1 in its own process, so that the client's CPU time is the client's alone.

    python -m benchmarks.loopback PORT_FILE

`POST /WIRE/EVENTS/PACE/GROUP[/close][/…]` responds with this many events of a wire, each one HTTP
chunk. After the first event it waits for `POST /go/GROUP`; then the rest follows, PACE seconds
between two events, or at once where that is 0. With `close` the body has no chunks and the
connection is closed at its end: for readers without HTTP. What an SDK appends to the path is
ignored.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from streamlib.testing.bench import bodies
from streamlib.testing.bench.responses import SampleText, seeded_deltas

HEADERS: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
GONE: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
SEED: Final = "end to end"
GOLDEN: Final = 0.618
"""Multiples of it, modulo 1, are spread evenly."""


@cache
def events_of(wire: str, count: int) -> list[bytes]:
    """The events of a response whose text has this many deltas."""
    text = SampleText(seeded_deltas(SEED, count))
    return bodies.body(wire, (text,))  # type: ignore[arg-type]  # the name of a wire


@cache
def chunks_of(wire: str, count: int) -> list[bytes]:
    """The same events as HTTP chunks."""
    chunks = [b"%x\r\n%s\r\n" % (len(event), event) for event in events_of(wire, count)]
    return [*chunks, b"0\r\n\r\n"]


class Server:
    """Serves connections until it is terminated."""

    def __init__(self) -> None:
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        """Group of streams -> event that is set when they may continue."""
        self._streams = 0
        """Number of streams so far."""

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves the requests of one connection, in order."""
        try:
            closing = False
            while not closing:
                headers = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = headers.partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or b"0"))
                parts = headers.split(b" ")[1].decode().split("/")[1:]
                if parts[0] == "go":
                    self._gates[parts[1]].set()
                    writer.write(GONE)
                    continue
                closing = "close" in parts
                await self._stream(writer, parts, closing=closing)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _stream(
        self, writer: asyncio.StreamWriter, parts: list[str], *, closing: bool
    ) -> None:
        wire, count, pace, group = parts[:4]
        if closing:
            framing = b"connection: close\r\n\r\n"
            chunks = events_of(wire, int(count))
        else:
            framing = b"transfer-encoding: chunked\r\n\r\n"
            chunks = chunks_of(wire, int(count))
        first, *rest = chunks
        writer.write(HEADERS + framing + first)
        self._streams += 1
        # Spread over the pace, so that events of many streams are not sent at the same moment.
        delay = self._streams * GOLDEN % 1 * float(pace)
        await self._gates[group].wait()
        await _write(writer, rest, float(pace), delay)


async def _write(
    writer: asyncio.StreamWriter, chunks: list[bytes], pace: float, delay: float
) -> None:
    if pace:
        start = asyncio.get_running_loop().time() + delay
        for number, chunk in enumerate(chunks):
            # Scheduled by the clock, so that a busy server sends no fewer events.
            due = start + number * pace
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            writer.write(chunk)
    else:
        writer.write(b"".join(chunks))
    await writer.drain()


async def serve(started: Callable[[int], object]) -> None:
    """Serves until it is terminated; calls `started` with its port."""
    server = await asyncio.start_server(Server().respond, "127.0.0.1", 0, backlog=8192)
    started(server.sockets[0].getsockname()[1])
    await server.serve_forever()


@contextmanager
def running() -> Iterator[str]:
    """The URL of such a server, in another process."""
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        process = subprocess.Popen([sys.executable, "-m", "benchmarks.loopback", str(port_file)])
        try:
            while not (port_file.exists() and port_file.read_text(encoding="ascii")):
                time.sleep(0.01)
            yield f"http://127.0.0.1:{port_file.read_text(encoding='ascii')}"
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    asyncio.run(serve(lambda port: Path(sys.argv[1]).write_text(str(port), encoding="ascii")))
