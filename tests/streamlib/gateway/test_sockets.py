"""The gateway on real sockets, under uvicorn: clients that go, clients that do not read, and a server that is told to stop."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import httpx
import msgspec
import pytest
import uvicorn
from anyio.abc import SocketAttribute, SocketStream

from streamlib import Prompt
from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from streamlib_parsers.items import WireApi
from tests.support.gateways import CLIENTS, ask, plain, request, said
from tests.support.response_bodies import HELLO, finish, stop, text
from tests.support.response_bodies import LAST as MESSAGE_STOP
from tests.support.scripted_server import Repeat, Server, Step, Wait, chunk, head, scripted

BLOCK: Final = 64 << 10


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio."""
    return "asyncio"


@asynccontextmanager
async def served(upstream: str, **options: Any) -> AsyncGenerator[tuple[str, uvicorn.Server]]:
    """The gateway on a port of its own."""
    table = RouteTable([RouteRule("*", "custom:m", wire_api="messages", base_url=upstream)])
    server = uvicorn.Server(
        uvicorn.Config(gateway(Gateway(table, **options)), port=0, log_level="error")
    )
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve)
        while not server.started:  # noqa: ASYNC110  # uvicorn tells nobody
            await anyio.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", server
        finally:
            server.should_exit = server.force_exit = True


def endless(every: float = 0.001) -> list[Step]:
    """An answer without an end."""
    return [head(), chunk(HELLO), Repeat(chunk(text("more ")), every)]


def spoken(wire: WireApi, url: str) -> bytes:
    """A request for a stream, as bytes."""
    made = request(wire, Prompt("Hello"))
    body = (
        made.body
        if wire == "gemini"
        else msgspec.json.encode({**msgspec.json.decode(made.body), "stream": True})
    )
    path = made.url.removeprefix("http://127.0.0.1:8900")
    lines = [
        f"POST {'/v1beta' if wire == 'gemini' else ''}{path} HTTP/1.1",
        f"host: {urlsplit(url).netloc}",
        f"content-length: {len(body)}",
    ]
    return "\r\n".join([*lines, "content-type: application/json", "", ""]).encode() + body


async def connected(url: str) -> SocketStream:
    place = urlsplit(url)
    return await anyio.connect_tcp(str(place.hostname), place.port or 0)


async def leave(url: str, chance: random.Random) -> None:
    """A client that goes at a random moment, politely or not."""
    stream = await connected(url)
    asked = spoken(chance.choice(CLIENTS), url)
    part = asked[
        : chance.choice([len(asked), len(asked), len(asked), chance.randrange(len(asked))])
    ]
    await stream.send(part)
    with anyio.move_on_after(chance.random() * 0.08):
        while await stream.receive(chance.randrange(1, 5000)):
            pass
    if chance.random() < 0.5:
        stream.extra(SocketAttribute.raw_socket).setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
    with suppress(OSError, anyio.BrokenResourceError):
        await stream.aclose()


async def disconnects(count: int) -> Server:
    """So many clients, twenty at a time; the server that all their answers came from."""
    chance = random.Random(count)
    at_once = anyio.CapacityLimiter(20)

    async def one(url: str) -> None:
        async with at_once:
            await leave(url, chance)

    async with scripted(endless()) as upstream, served(upstream.url, keep_alive=0.02) as (url, _):
        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(one, url)
        await upstream.quiet(3.0)
        assert upstream.open == 0, f"{upstream.open} of {upstream.connections} connections are left"
    return upstream


async def test_clients_that_go_leave_no_connection_upstream() -> None:
    assert (await disconnects(60)).connections > 20


@pytest.mark.slow
async def test_a_thousand_clients_that_go_leave_no_connection_upstream() -> None:
    assert (await disconnects(1000)).connections > 500


async def test_a_client_that_does_not_read_holds_the_model_back() -> None:
    sent = 0

    async def flood(stream: SocketStream) -> None:
        nonlocal sent
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
            await stream.receive()
            await stream.send(head() + chunk(HELLO))
            while True:
                await stream.send(chunk(text("x" * BLOCK)))
                sent += BLOCK

    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    upstream = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, flood)
        async with served(upstream) as (url, _), await connected(url) as client:
            await client.send(spoken("chat", url))
            before = -1
            while before != sent:
                before = sent
                await anyio.sleep(0.3)
            assert 0 < sent < 32 << 20, "what the sockets between hold, and no more"
        group.cancel_scope.cancel()


async def test_a_server_that_is_told_to_stop_lets_its_streams_finish() -> None:
    script = [
        head(),
        chunk(HELLO),
        Wait(0.3),
        chunk(text(" there") + stop() + finish() + MESSAGE_STOP),
        b"0\r\n\r\n",
    ]
    async with (
        scripted(script) as upstream,
        served(upstream.url) as (url, server),
        httpx.AsyncClient(base_url=url) as client,
    ):

        async def stop_soon() -> None:
            await anyio.sleep(0.1)
            server.should_exit = True

        async with anyio.create_task_group() as group:
            group.start_soon(stop_soon)
            answer = await ask(client, "chat", Prompt("Hello"))
        assert plain(said("chat", answer.content))["stop_reason"] == "stop"
        with pytest.raises(httpx.TransportError):
            await client.get("/", headers={"connection": "close"})


async def test_the_head_and_signs_of_life_come_while_the_model_is_silent() -> None:
    script = [head(), Wait(0.3), chunk(HELLO + stop() + finish() + MESSAGE_STOP), b"0\r\n\r\n"]
    async with (
        scripted(script) as upstream,
        served(upstream.url, keep_alive=0.05) as (url, _),
        await connected(url) as client,
    ):
        await client.send(spoken("messages", url))
        with anyio.fail_after(0.25):
            got = await client.receive()
            while b"event: ping" not in got:
                got += await client.receive()
        assert got.startswith(b"HTTP/1.1 200")
        assert b"message_start" not in got
