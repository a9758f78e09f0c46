"""The server of a storm: in the process of the storm, or in one of its own.

    python -m lab.storm.server http2

prints its address, and for each line that it reads what it has seen so far. A process of its own
takes the server's work off the measured one, and leaves it the descriptors of the client alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread

from lab.storm.plan import TAG, Plan, is_mixed
from tests.support.http2_server import Exchange, http2_server
from tests.support.scripted_server import Script, scripted
from tests.support.shared import ROOT

NOBODY: Final = 0
"""The number of a request whose path names no stream."""


class Seen(Protocol):
    """What a server has seen."""

    @property
    def url(self) -> str:
        """Its address."""
        ...

    def stats(self) -> dict[str, int]:
        """Connections, those that are open, and requests that were mixed of several."""
        ...


class StormServer:
    """The scripts of one storm, and the server that plays them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._server: Any = None
        """Set once it serves."""
        self._mixed = 0
        """Requests whose path, header and body did not name the same stream."""

    @property
    def url(self) -> str:
        """Its address."""
        url: str = self._server.url
        return url

    def stats(self) -> dict[str, int]:
        """See `Seen`."""
        server = self._server
        return {
            "connections": server.connections,
            "open": server.open,
            "mixed requests": self._mixed,
        }

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[StormServer]:
        """Serves while the block runs."""
        if self._plan.is_http2:
            async with http2_server(self._http2_script) as self._server:
                yield self
        else:
            async with scripted(choose=self._http1_script) as self._server:
                yield self

    def _stream_of(self, request: bytes) -> int:
        """The number of the stream that a request belongs to, which each of its parts names."""
        tags: list[bytes] = []
        for in_text, in_path in TAG.findall(request):
            tags.append(in_text or in_path)
        if is_mixed(tags) or len(tags) != 3:
            self._mixed += 1
        return int(tags[0]) if tags else NOBODY

    def _http1_script(self, request: bytes) -> Script:
        n = self._stream_of(request)
        self._server.requests.clear()  # they are kept for tests that look at them
        script: Script = self._plan.faults[self._plan.kind(n)].script(f"{n:06d}")
        return script

    async def _http2_script(self, exchange: Exchange) -> None:
        start = f"POST {exchange.path}\n{exchange.fields.get('x-tag')}\n"
        n = self._stream_of(start.encode() + exchange.body)
        await self._plan.faults[self._plan.kind(n)].play(exchange, f"{n:06d}")


class ServerProcess:
    """A server in a process of its own."""

    def __init__(self, transport: str) -> None:
        command = [sys.executable, "-m", "lab.storm.server", transport]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url: str = self._answer()["url"]
        """Its address."""

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def stats(self) -> dict[str, int]:
        """See `Seen`."""
        assert self._process.stdin is not None
        self._process.stdin.write("stats\n")
        self._process.stdin.flush()
        return self._answer()

    def stop(self) -> None:
        """Ends the process."""
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


@contextmanager
def server_process(transport: str) -> Iterator[ServerProcess]:
    """A server in a process of its own, while the block runs."""
    process = ServerProcess(transport)
    try:
        yield process
    finally:
        process.stop()


async def serve(transport: str) -> None:
    """Serves until the standard input ends."""
    async with StormServer(Plan(transport)).serve() as server:
        sys.stdout.write(json.dumps({"url": server.url}) + "\n")
        sys.stdout.flush()
        while await anyio.to_thread.run_sync(sys.stdin.readline):
            sys.stdout.write(json.dumps(server.stats()) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1])
