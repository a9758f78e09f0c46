"""The gateway on real sockets, under uvicorn and on trio under hypercorn: clients that disconnect,
clients that do not read, and a server that is stopped."""

from __future__ import annotations

import random
import socket
import struct
from contextlib import suppress
from typing import Any, Final

import anyio
import httpx
import pytest
from anyio.abc import SocketAttribute, SocketStream

from streamlib import Prompt
from tests.support.gateways import CLIENTS, common_fields, parse_stream, send
from tests.support.response_bodies import HELLO, finish, stop, text
from tests.support.response_bodies import LAST as MESSAGE_STOP
from tests.support.scripted_server import Repeat, Server, Step, Wait, chunk, head, scripted
from tests.support.served_gateways import connected, request_bytes, served

pytestmark = pytest.mark.usefixtures("asgi_server")

BLOCK: Final = 64 << 10


def endless(every: float = 0.001) -> list[Step]:
    """A response without an end."""
    return [head(), chunk(HELLO), Repeat(chunk(text("more ")), every)]


async def disconnect(url: str, rng: random.Random) -> None:
    """A client that disconnects at a random moment, with a FIN or a RST."""
    stream = await connected(url)
    request = request_bytes(rng.choice(CLIENTS), url)
    if rng.random() < 0.25:
        request = request[: rng.randrange(len(request))]
    await stream.send(request)
    with anyio.move_on_after(rng.random() * 0.5):
        while await stream.receive(rng.randrange(1, 5000)):
            pass
    if rng.random() < 0.5:
        # Lingering for 0 seconds makes `close` send a RST.
        stream.extra(SocketAttribute.raw_socket).setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
    with suppress(OSError, anyio.BrokenResourceError):
        await stream.aclose()


async def run_disconnects(count: int) -> Server:
    """Runs clients that disconnect, twenty at a time; returns the server behind the gateway."""
    rng = random.Random(count)
    limiter = anyio.CapacityLimiter(20)

    async def client(url: str) -> None:
        async with limiter:
            await disconnect(url, rng)

    async with scripted(endless()) as upstream, served(upstream.url, keep_alive=0.02) as (url, _):
        # The first request creates the HTTP client, which takes longer than the others wait.
        async with await connected(url) as first:
            await first.send(request_bytes("chat", url))
            await first.receive()
        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(client, url)
        await upstream.quiet(3.0)
        assert upstream.open == 0, f"{upstream.open} of {upstream.connections} connections are left"
    return upstream


async def test_disconnects_leave_no_connection_upstream() -> None:
    reached = 0
    # On a busy machine most clients are gone before the gateway has connected.
    for _ in range(25):
        reached += (await run_disconnects(60)).connections
        if reached > 20:
            break
    assert reached > 20


@pytest.mark.slow
async def test_thousand_disconnects_leave_no_connection_upstream() -> None:
    assert (await run_disconnects(1000)).connections > 500


async def test_client_that_does_not_read_slows_the_model() -> None:
    sent = 0

    async def flood(stream: SocketStream) -> None:
        nonlocal sent
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
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
            await client.send(request_bytes("chat", url))
            before = -1
            while before != sent:
                before = sent
                await anyio.sleep(0.3)
            assert 0 < sent < 32 << 20, "no more than the buffers of the sockets between"
        group.cancel_scope.cancel()


async def test_stopping_server_lets_its_streams_finish() -> None:
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
            server.stop()

        async with anyio.create_task_group() as group:
            group.start_soon(stop_soon)
            response = await send(client, "chat", Prompt("Hello"))
        assert common_fields(parse_stream("chat", response.content))["stop_reason"] == "stop"
        with pytest.raises(httpx.TransportError):
            await client.get("/", headers={"connection": "close"})


async def test_headers_and_keep_alives_come_during_silence() -> None:
    script = [head(), Wait(0.3), chunk(HELLO + stop() + finish() + MESSAGE_STOP), b"0\r\n\r\n"]
    async with (
        scripted(script) as upstream,
        served(upstream.url, keep_alive=0.05) as (url, _),
        await connected(url) as client,
    ):
        await client.send(request_bytes("messages", url))
        with anyio.fail_after(0.25):
            received = await client.receive()
            while b"event: ping" not in received:
                received += await client.receive()
        assert received.startswith(b"HTTP/1.1 200")
        assert b"message_start" not in received
