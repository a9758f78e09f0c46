"""A gateway that is killed, or its Redis: no stream ends as if it were complete."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
import httpx
import pytest

from streamlib import ResponseEvent, parser
from streamlib.gateway import Gateway, RouteTable, gateway
from streamlib.gateway.clients.identity import digest_of
from streamlib.gateway.clients.named_clients import NamedClient
from streamlib.testing import Behaviour, running
from streamlib_parsers.events import Completed, Failed
from streamlib_parsers.items import WireApi
from tests.support.gateways import (
    CLIENTS,
    Upstream,
    rule,
    send,
    stream_response,
    weather_chunks,
    weather_prompt,
)
from tests.support.redis_servers import running_server, valkey_binary

# coredis leaves its in-memory streams open where a connection breaks.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ALICE: Final = "a-token-of-alice"


@pytest.fixture(autouse=True)
def collected(frozen_heap: None) -> Iterator[None]:
    """What is left open warns here, not in the test of another file."""
    yield
    gc.collect()


def outcome(wire: WireApi, response: httpx.Response) -> str:
    """How a client's stream ended: `completed`, `failed` by an error in it or instead of it, or
    `cut`."""
    if response.status_code != 200:
        return "failed"
    stream_parser = parser(wire)
    events: list[ResponseEvent] = stream_parser.feed(response.content)
    # An error that was received; one that the parser finds at the end of the input is a cut.
    if any(isinstance(event, Failed) for event in events):
        return "failed"
    last = stream_parser.close()[-1:] or events[-1:]
    return "completed" if isinstance(last[0], Completed) else "cut"


async def test_killed_redis_truncates_no_stream_silently(tmp_path: Path) -> None:
    # The first of the file: what coredis leaves is collected in a test that follows.
    pytest.importorskip("coredis", reason="no client for Redis: the extra is not installed")
    chunks: list[bytes | float] = []
    for chunk in weather_chunks("messages"):
        chunks += [chunk, 0.02]
    upstream = Upstream(stream_response("messages", *chunks))
    alice = NamedClient(
        "alice", digest_of(ALICE), requests_per_minute=1000, tokens_per_minute=10**9
    )
    outcomes: list[str] = []

    async def ask(client: httpx.AsyncClient, wire: WireApi) -> None:
        response = await send(client, wire, weather_prompt(), x_api_key=ALICE)
        outcomes.append(outcome(wire, response))

    with running_server(valkey_binary(), tmp_path) as redis:
        table = RouteTable([rule("messages")], clients=[alice])
        shared = {"state": redis.url, "limits": redis.url}
        async with (
            Gateway(table, client={"http": upstream}, **shared) as gateway_,
            httpx.AsyncClient(
                transport=httpx.ASGITransport(gateway(gateway_)), base_url="http://localhost"
            ) as client,
        ):
            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    for wire in CLIENTS:
                        group.start_soon(ask, client, wire)
                    await anyio.sleep(0.2)
                    redis.kill()
                before = list(outcomes)
                async with anyio.create_task_group() as group:  # each waits for the dead server
                    for wire in CLIENTS:
                        group.start_soon(ask, client, wire)
    assert before == ["completed"] * len(CLIENTS), "what was under way is not disturbed"
    assert "cut" not in outcomes


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
async def test_killed_gateway_breaks_its_streams_off(tmp_path: Path) -> None:
    """A client of HTTP/1.1 sees that the last chunk is missing."""
    broken: list[str] = []

    async def read(url: str, number: int) -> None:
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi " * 99}]}
        async with (
            httpx.AsyncClient(timeout=30) as client,
            client.stream("POST", f"{url}/v1/chat/completions", json=body) as response,
        ):
            try:
                async for _ in response.aiter_bytes():
                    started.add(number)
            except httpx.TransportError as error:
                broken.append(type(error).__name__)

    started: set[int] = set()
    async with running(Behaviour(pace=0.02)) as model:
        routes = tmp_path / "routes.toml"
        text = f"""
            [[route]]
            model = "*"
            to = "custom:m"
            wire_api = "chat"
            base_url = "{model}/v1"
        """
        await anyio.Path(routes).write_text(text)
        command = [sys.executable, "-m", "streamlib", "gateway", "--port", "0"]
        process = await anyio.open_process(
            [*command, "--config", str(routes)], stderr=subprocess.DEVNULL
        )
        async with process:
            assert process.stdout is not None
            found = re.search(r"http://[\d.]+:\d+", (await process.stdout.receive()).decode())
            assert found
            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    for number in range(4):
                        group.start_soon(read, found[0], number)
                    while len(started) < 4:  # noqa: ASYNC110  # other tasks fill it
                        await anyio.sleep(0.01)
                    os.kill(process.pid, signal.SIGKILL)
    assert len(broken) == 4
