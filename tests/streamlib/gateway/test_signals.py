"""The signals of `streamlib gateway`, sent to real processes: SIGHUP reads the routes again,
SIGTERM lets streams finish and then ends them with an error, a second one ends them at once."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import anyio
import httpx
import msgspec
import pytest
import uvicorn
import websockets

from streamlib.cli import main
from streamlib.cli.gateway_server import GatewayServer
from streamlib.gateway import Gateway, RouteTable
from tests.support.gateway_commands import GatewayProcess, ask_until_served, gateway_process
from tests.support.gateways import parse_stream
from tests.support.loops import asyncio_alone
from tests.support.response_bodies import HELLO, LAST, finish, stop, text
from tests.support.scripted_server import END, Repeat, Script, Wait, chunk, head, scripted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals, and /proc")

SHORT: Final[Script] = [head(), chunk(HELLO), Wait(0.8), chunk(stop() + finish() + LAST), END]
ENDLESS: Final[Script] = [head(), chunk(HELLO), Repeat(chunk(text("more ")), 0.05)]
CHAT_DONE: Final = "[DONE]"


def write_routes(file: Path, url: str, pattern: str = "*") -> None:
    file.write_text(
        f'[[route]]\nmodel = "{pattern}"\nto = "custom:m"\nwire_api = "messages"\n'
        f'base_url = "{url}"\n',
        encoding="utf-8",
    )


async def read_to_end(
    url: str, signals: list[tuple[float, signal.Signals]], gateway: GatewayProcess
) -> str:
    """A stream, during which the gateway gets signals after so many seconds."""
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    received = b""
    async with (
        httpx.AsyncClient(timeout=30) as client,
        client.stream("POST", f"{url}/v1/chat/completions", json=body) as response,
    ):
        chunks = response.aiter_bytes()
        received = await anext(chunks)
        for delay, number in signals:
            await anyio.sleep(delay)
            gateway.send(number)
        async for data in chunks:
            received += data
    return received.decode()


@asyncio_alone
async def test_sighup_and_sigterm_do_what_they_should(tmp_path: Path) -> None:
    file = tmp_path / "routes.toml"
    async with scripted(SHORT, SHORT, ENDLESS) as upstream:
        write_routes(file, upstream.url)
        with gateway_process("--config", str(file), "--grace", "1.2") as gateway:
            # Read again, with a stream under way that ends on its old route.
            write_routes(file, upstream.url, "other")
            complete = await read_to_end(gateway.url, [(0.1, signal.SIGHUP)], gateway)
            assert CHAT_DONE in complete
            await gateway.wait_for("the routes were read again: 1, for 0 clients")
            assert (await ask_until_served(gateway.url)).status_code == 404
            # A file that makes no sense changes nothing.
            file.write_text("[[route]]\nmodel = 1\n", encoding="utf-8")
            gateway.send(signal.SIGHUP)
            await gateway.wait_for("the routes stay as they are")
            assert (await ask_until_served(gateway.url)).status_code == 404
            write_routes(file, upstream.url)
            gateway.send(signal.SIGHUP)
            await anyio.sleep(0.3)
            # One stream finishes in time, the other does not.
            results: list[str] = []

            async def read(delay: float) -> None:
                signals = [(delay, signal.SIGTERM)] if delay else []
                results.append(await read_to_end(gateway.url, signals, gateway))

            async with anyio.create_task_group() as group:
                group.start_soon(read, 0.0)
                await anyio.sleep(0.1)
                group.start_soon(read, 0.1)
            finished, ended = results
            assert "stopping: 2 streams open, up to 1.2 seconds" in gateway.log
            assert CHAT_DONE in finished
            cut = parse_stream("chat", ended.encode())
            assert cut.error is not None
            assert (cut.status, "the gateway is stopping" in cut.error.message) == ("failed", True)
            assert CHAT_DONE not in ended
            assert gateway.wait() == 0
            assert "Traceback" not in gateway.log


@pytest.mark.slow  # test_stopping.py ends streams in this process
@asyncio_alone
async def test_second_sigterm_ends_streams_at_once(tmp_path: Path) -> None:
    file = tmp_path / "routes.toml"
    async with scripted(ENDLESS) as upstream:
        write_routes(file, upstream.url)
        with gateway_process("--config", str(file), "--grace", "60") as gateway:
            signals = [(0.1, signal.SIGTERM), (0.3, signal.SIGTERM)]
            started = time.monotonic()
            ended = await read_to_end(gateway.url, signals, gateway)
            assert parse_stream("chat", ended.encode()).status == "failed"
            assert gateway.wait() == 0
            assert time.monotonic() - started < 15


@asyncio_alone
async def test_killed_worker_is_replaced_until_the_port_closes(tmp_path: Path) -> None:
    file = tmp_path / "routes.toml"
    async with scripted(ENDLESS, SHORT, SHORT) as upstream:
        write_routes(file, upstream.url)
        options = ["--config", str(file), "--workers", "2", "--grace", "5", "--state", "off"]
        with gateway_process(*options) as gateway:
            first: set[int] = set()
            cut: list[str] = []

            async def read() -> None:
                try:
                    cut.append(await read_to_end(gateway.url, [], gateway))
                except httpx.TransportError as error:
                    cut.append(type(error).__name__)

            async with anyio.create_task_group() as group:
                group.start_soon(read)
                while not upstream.requests:  # noqa: ASYNC110 - a server has no event for it
                    await anyio.sleep(0.02)
                first = set(gateway.workers())
                for worker in first:
                    os.kill(worker, signal.SIGKILL)
            # No clean end: the connection broke.
            assert cut == ["RemoteProtocolError"]
            response = await ask_until_served(gateway.url)
            assert CHAT_DONE in response.text
            await gateway.wait_for("another is started")
            assert len(set(gateway.workers()) - first) >= 1
            # A stream goes on while new connections are refused.
            finished: list[str] = []

            async def stop() -> None:
                signals = [(0.1, signal.SIGTERM)]
                finished.append(await read_to_end(gateway.url, signals, gateway))

            async with anyio.create_task_group() as group:
                group.start_soon(stop)
                await gateway.wait_for("stopping: 1 streams")
                await anyio.sleep(0.1)
                with pytest.raises(httpx.ConnectError):
                    await ask_until_served(gateway.url)
                assert finished == []
            assert CHAT_DONE in finished[0]
            assert gateway.wait() == 0


@pytest.mark.slow  # test_stopping.py waits for one in this process
@asyncio_alone
async def test_sigterm_waits_for_a_background_response(tmp_path: Path) -> None:
    file = tmp_path / "routes.toml"
    async with scripted(SHORT) as upstream:
        write_routes(file, upstream.url)
        with gateway_process("--config", str(file), "--log", "memory:", "--grace", "9") as gateway:
            await ask_until_served(gateway.url + "/v1/responses/none")  # no target is asked
            body = {"model": "m", "input": "Hello", "background": True}
            async with httpx.AsyncClient(timeout=30) as client:
                await client.post(f"{gateway.url}/v1/responses", json=body)
            gateway.send(signal.SIGTERM)
            # In a thread: the model is in this loop.
            assert await anyio.to_thread.run_sync(gateway.wait) == 0
            assert "stopping: 0 streams and 1 responses in the background open" in gateway.log
            assert "cancelled" not in gateway.log
            assert re.search(r" responses m -> custom:m at .*: stop, ", gateway.log)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "0"], "at least 1"),
        (["--workers", "2", "--log", "memory:"], "--log memory: cannot be shared"),
        (["--workers", "2", "--config", "{file}"], "the limits of alice for itself"),
    ],
)
def test_workers_refuse_what_each_would_keep_for_itself(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "routes.toml"
    file.write_text(
        f'[[client]]\nname = "alice"\ntoken_sha256 = "{"0" * 64}"\nrequests_per_minute = 1\n',
        encoding="utf-8",
    )
    filled = [option.replace("{file}", str(file)) for option in options]
    assert main(["gateway", "--port", "0", *filled]) == 1
    assert message in capsys.readouterr().err


@asyncio_alone
async def test_sighup_reads_the_keys_of_files_again(tmp_path: Path) -> None:
    file, key = tmp_path / "routes.toml", tmp_path / "key"
    async with scripted(SHORT, SHORT, SHORT) as upstream:
        write_routes(file, upstream.url)
        file.write_text(file.read_text("utf-8") + f'key_file = "{key}"\n', "utf-8")
        key.write_text("first-key\n", "utf-8")
        with gateway_process("--config", str(file)) as gateway:
            assert (await ask_until_served(gateway.url)).status_code == 200
            key.write_text("second-key\n", "utf-8")
            gateway.send(signal.SIGHUP)
            await gateway.wait_for("the routes were read again")
            assert (await ask_until_served(gateway.url)).status_code == 200
            key.unlink()
            gateway.send(signal.SIGHUP)
            await gateway.wait_for("the routes stay as they are")
            assert f"key_file: {key} is empty, or cannot be read" in gateway.log
            assert (await ask_until_served(gateway.url)).status_code == 200
            assert "-key" not in gateway.log.replace("key_file", "")
    keys = [re.findall(rb"(first|second)-key", request) for request in upstream.requests]
    assert keys == [[b"first"], [b"second"], [b"second"]]


@asyncio_alone
async def test_half_sent_requests_leave_room_for_others() -> None:
    with gateway_process("--connections", "40") as gateway:
        assert (await ask_until_served(gateway.url)).status_code == 200
        port = int(gateway.url.rpartition(":")[2])
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(200):
                stream = await anyio.connect_tcp("127.0.0.1", port)
                await stack.enter_async_context(stream)
                await stream.send(b"POST /v1/messages HTTP/1.1\r\nHost: ")
            await anyio.sleep(0.5)
            with anyio.fail_after(2):
                assert (await ask_until_served(gateway.url)).status_code == 200


@asyncio_alone
async def test_websocket_client_gets_a_message() -> None:
    with gateway_process() as gateway:
        await ask_until_served(gateway.url)
        url = gateway.url.replace("http", "ws", 1) + "/v1/responses"
        async with websockets.connect(url) as socket:
            event = msgspec.json.decode(await socket.recv())
            assert (event["type"], event["error"]["code"]) == ("error", "invalid_request_error")
            assert "POST /v1/responses" in event["error"]["message"]
            with pytest.raises(websockets.ConnectionClosed):
                await socket.recv()
        assert "Traceback" not in gateway.log


class Connection:
    """A connection of uvicorn: its last request, and whether it was closed."""

    def __init__(self, cycle: Any = None) -> None:
        self.cycle = cycle
        self.transport = self
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


async def test_connection_has_ten_seconds_for_its_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 109.0, 111.0])
    monkeypatch.setattr(anyio, "current_time", lambda: next(times))
    config = uvicorn.Config("module:app")
    server = GatewayServer(config, Gateway(), grace=1, connections=50, read_routes=RouteTable)
    busy, ended = SimpleNamespace(response_complete=False), SimpleNamespace(response_complete=True)
    half_sent, streaming, used = Connection(), Connection(busy), Connection(ended)
    server.server_state.connections = {half_sent, streaming, used}  # type: ignore[arg-type]
    for _ in range(3):
        server._close_waiting()
        # A request between two looks: its connection waits anew.
        used.cycle = SimpleNamespace(response_complete=True)
    assert (half_sent.is_closed, streaming.is_closed, used.is_closed) == (True, False, False)


async def test_server_looks_for_late_headers_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """uvicorn ticks ten times a second; where there are too many connections, each tick looks."""
    looks: list[int] = []
    config = uvicorn.Config("module:app")
    server = GatewayServer(config, Gateway(), grace=1, connections=1, read_routes=RouteTable)
    monkeypatch.setattr(server, "_close_waiting", lambda: looks.append(1))
    counts: list[int] = []
    for counter in range(30):
        if counter == 25:
            server.server_state.connections = {Connection(), Connection()}  # type: ignore[arg-type]
        await server.on_tick(counter)
        if len(looks) > len(counts):
            counts.append(counter)
    assert counts == [0, 10, 20, 25, 26, 27, 28, 29]


async def test_oldest_connections_without_a_request_leave_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 95.0
    monkeypatch.setattr(anyio, "current_time", lambda: now)
    config = uvicorn.Config("module:app")
    server = GatewayServer(config, Gateway(), grace=1, connections=2, read_routes=RouteTable)
    connections = [Connection() for _ in range(4)]
    server.server_state.connections = set(connections)  # type: ignore[arg-type]
    server._waiting = {each: (90.0 + n, None) for n, each in enumerate(connections)}
    server._close_waiting()
    assert [connection.is_closed for connection in connections] == [True, True, False, False]


async def test_collections_leave_out_what_started_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []

    async def serve(_: uvicorn.Server, sockets: object = None) -> None:
        steps.append("serve")

    monkeypatch.setattr(uvicorn.Server, "serve", serve)
    monkeypatch.setattr(gc, "collect", lambda: steps.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: steps.append("freeze"))
    config = uvicorn.Config("module:app")
    server = GatewayServer(config, Gateway(), grace=1, connections=2, read_routes=RouteTable)
    await server.serve()
    assert steps == ["collect", "freeze", "serve"]
