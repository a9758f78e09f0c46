"""The signals of `streamlib gateway`, sent to real processes: SIGHUP reads the routes again,
SIGTERM lets streams finish and then ends them with an error, a second one ends them at once."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Final

import anyio
import httpx
import pytest

from streamlib.cli import main
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
