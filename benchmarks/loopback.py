"""A server on 127.0.0.1 in its own process, so that the client's CPU time is the client's alone.

    python -m benchmarks.loopback PORT_FILE          responds to POST /WIRE/EVENTS/PACE[/close]

Each event of the wire is one HTTP chunk. PACE is seconds between two events; 0 sends all at once.
With `close` the body has no chunks and the connection is closed at its end: for readers without
HTTP.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from streamlib.bench import bodies
from streamlib.bench.responses import SampleText, seeded_deltas

HEADERS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


@cache
def events_of(wire: str, count: int) -> list[bytes]:
    """The events of a text of so many deltas."""
    text = SampleText(seeded_deltas("end to end", count))
    return list(getattr(bodies, wire)((text,)))


@cache
def chunks_of(wire: str, count: int) -> list[bytes]:
    """The same events as HTTP chunks."""
    chunks = [b"%x\r\n%s\r\n" % (len(event), event) for event in events_of(wire, count)]
    return [*chunks, b"0\r\n\r\n"]


async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serves the requests of one connection, in order."""
    try:
        closing = False
        while not closing:
            headers = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = headers.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or b"0"))
            _, wire, count, pace, *rest = headers.split(b" ")[1].decode().split("/")
            closing = rest[-1:] == ["close"]
            if closing:
                framing = b"connection: close\r\n\r\n"
                chunks = events_of(wire, int(count))
            else:
                framing = b"transfer-encoding: chunked\r\n\r\n"
                chunks = chunks_of(wire, int(count))
            writer.write(HEADERS + framing)
            await _write(writer, chunks, float(pace))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _write(writer: asyncio.StreamWriter, chunks: list[bytes], pace: float) -> None:
    if pace:
        for chunk in chunks:
            writer.write(chunk)
            await asyncio.sleep(pace)
    else:
        writer.write(b"".join(chunks))
    await writer.drain()


async def serve(started: Callable[[int], object]) -> None:
    """Serves until it is terminated; calls `started` with its port."""
    server = await asyncio.start_server(respond, "127.0.0.1", 0, backlog=2048)
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
