"""The complete chat as two processes behind a proxy, of which one is killed, in Chromium."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from lab.real.ui_readers import HOME, absence, chromium
from streamlib.testing import Behaviour
from tests.examples.serving import Provider
from tests.real.conftest import ABSENT
from tests.support.redis_servers import free_port, running_server, valkey_binary
from tests.support.shared import ROOT

pytestmark = [pytest.mark.slow]  # half a minute in a browser: `pytest -m slow tests/examples`

SCRIPT: Final = Path(__file__).with_name("complete_chat.mjs")
APP: Final = ROOT / "examples" / "chat" / "app.py"
LEASE: Final = 1.0


class PageServer:
    """A process of the example."""

    def __init__(self, log_url: str, provider_url: str) -> None:
        self.port = free_port()
        self._command = [sys.executable, str(APP), "--port", str(self.port)]
        self._command += ["--log", log_url, "--lease", str(LEASE)]
        self._environment = {**os.environ, "STREAMLIB_BASE_URL": provider_url}
        self._environment["STREAMLIB_MODEL"] = "loopback:echo"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Starts it, until it accepts connections."""
        self._process = self._run()
        with anyio.fail_after(20):
            while True:
                with suppress(OSError):
                    async with await anyio.connect_tcp("127.0.0.1", self.port):
                        return
                await anyio.sleep(0.05)

    def _run(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, env=self._environment)

    def kill(self) -> None:
        """Ends it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None


@asynccontextmanager
async def balanced(servers: list[PageServer]) -> AsyncIterator[str]:
    """A proxy: each connection goes to the first server that is there."""

    async def connection(client: SocketStream) -> None:
        async with client:
            for server in servers:
                with suppress(OSError):
                    async with await anyio.connect_tcp("127.0.0.1", server.port) as upstream:
                        await _join(client, upstream)
                        return

    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, connection)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


async def _join(client: SocketStream, upstream: SocketStream) -> None:
    async with anyio.create_task_group() as group:

        async def copy(source: SocketStream, target: SocketStream) -> None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async for data in source:
                    await target.send(data)
            group.cancel_scope.cancel()

        group.start_soon(copy, client, upstream)
        group.start_soon(copy, upstream, client)


@asynccontextmanager
async def provider_of_all() -> AsyncIterator[str]:
    """A slow model."""
    provider = Provider(Behaviour(pace=0.15))
    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, provider.connection)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


@pytest.mark.parametrize("engine", ["sqlite", "redis"])
def test_chat_survives_the_server_that_writes(tmp_path: Path, engine: str) -> None:
    """An approval, a reload in the middle, a denial, another user, Stop, and a dead server."""
    why = absence() or (None if chromium() else "there is no chromium")
    if why is not None:
        pytest.skip(f"{ABSENT}: browser, {why}")
    if engine == "sqlite":
        page = anyio.run(_visit, f"sqlite:///{tmp_path / 'chats.db'}")
    else:
        with running_server(valkey_binary(), tmp_path) as log_server:
            page = anyio.run(_visit, log_server.url)
    assert "failure" not in page, page
    assert page["errors"] == []
    assert page["asked"] == {"state": "approval-requested", "ran": False}
    assert page["allowed"]["state"] == "output-available"
    assert page["allowed"]["text"].count("The tool says: Booked: 3 days in Lisbon.") == 1
    assert page["allowed"]["messages"] == 2
    assert page["denied"]["state"] == "output-error"
    assert page["stranger"] == 0
    assert page["stopped"] == {"cut": True}
    assert page["killed"] == {"kept": True, "messages": 8}


async def _visit(log_url: str) -> dict[str, Any]:
    async with provider_of_all() as provider_url:
        servers = [PageServer(log_url, provider_url) for _ in range(2)]
        try:
            for server in servers:
                await server.start()
            async with balanced(servers) as url:
                page = await _browse(url, servers)
        finally:
            for server in servers:
                server.kill()
    return page


async def _browse(url: str, servers: list[PageServer]) -> dict[str, Any]:
    command = ["node", str(SCRIPT), str(HOME), chromium() or ""]
    with anyio.fail_after(120):
        async with await anyio.open_process(command, stderr=None) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            lines = BufferedByteReceiveStream(process.stdout)
            settings = {"proxy": url}
            await process.stdin.send(json.dumps(settings).encode() + b"\n")
            while True:
                found: dict[str, Any] = json.loads(await lines.receive_until(b"\n", 1_000_000))
                match found.get("step"):
                    case "kill":
                        servers[0].kill()
                    case "start":
                        await servers[0].start()
                    case _:
                        return found
                await process.stdin.send(b"\n")
