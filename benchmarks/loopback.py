"""A server on 127.0.0.1 in a process of its own, so that a client's CPU time is the client's alone.

    python -m benchmarks.loopback PORT_FILE          answers any POST by its path: /WIRE/EVENTS/PACE/…

Every event of the wire is one HTTP chunk. PACE is seconds between two events; 0 sends all at once. A path that ends in `close` is
answered without chunks, and the connection closed: for readers that know no HTTP.
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
from streamlib.bench.answers import Said, words

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


@cache
def events_of(wire: str, count: int) -> list[bytes]:
    """A text of so many deltas."""
    return list(getattr(bodies, wire)((Said(words("end to end", count)),)))


@cache
def chunks_of(wire: str, count: int) -> list[bytes]:
    """Its events as HTTP chunks."""
    return [b"%x\r\n%s\r\n" % (len(event), event) for event in events_of(wire, count)] + [
        b"0\r\n\r\n"
    ]


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Requests of one connection, one after the other."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(
                int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
            )
            _, wire, count, pace, *rest = head.split(b" ")[1].decode().split("/")
            closing = rest[-1:] == ["close"]
            chunks = events_of(wire, int(count)) if closing else chunks_of(wire, int(count))
            writer.write(
                HEAD
                + (
                    b"connection: close\r\n\r\n"
                    if closing
                    else b"transfer-encoding: chunked\r\n\r\n"
                )
            )
            if float(pace):
                for chunk in chunks:
                    writer.write(chunk)
                    await asyncio.sleep(float(pace))
            else:
                writer.write(b"".join(chunks))
            await writer.drain()
            if closing:
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve(tell: Callable[[int], object]) -> None:
    """Until it is killed; tells its port."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2048)
    tell(server.sockets[0].getsockname()[1])
    await server.serve_forever()


@contextmanager
def running() -> Iterator[str]:
    """The address of such a server, in another process."""
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
