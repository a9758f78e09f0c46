"""Many clients at once, and clients that take their time, on real sockets under
uvicorn and on trio under hypercorn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from streamlib_parsers.items import WireApi
from tests.support.gateways import (
    CLIENTS,
    Chunks,
    Upstream,
    common_fields,
    parse_stream,
    weather_response,
)
from tests.support.response_bodies import HELLO, text
from tests.support.scripted_server import chunk, head
from tests.support.served_gateways import connected, request_bytes, served

pytestmark = pytest.mark.usefixtures("asgi_server")

BLOCK = 64 << 10


class Gate(Upstream):
    """A provider that responds once as many requests are open as it waits for."""

    def __init__(self, count: int) -> None:
        super().__init__(weather_response("messages"))
        self.most = 0
        """Requests that were open at the same time."""
        self._count = count
        self._opened = anyio.Event()

    async def _read(self, chunks: Chunks) -> AsyncIterator[bytes]:
        self.open += 1
        self.most = max(self.most, self.open)
        if self.open == self._count:
            self._opened.set()
        try:
            await self._opened.wait()
            for part in chunks:
                assert isinstance(part, bytes)
                yield part
        finally:
            self.open -= 1


async def whole_response(stream: SocketStream) -> bytes:
    """The body of one chunked response."""
    received = b""
    while not received.endswith(b"0\r\n\r\n"):
        received += await stream.receive()
    body = received.partition(b"\r\n\r\n")[2]
    parts: list[bytes] = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        parts.append(rest[:length])
        body = rest[length + 2 :]
    return b"".join(parts)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
async def test_many_clients_are_served_at_once(count: int) -> None:
    """Each gets its own wire's complete response, while all streams are open together."""
    gate = Gate(count)
    ends: list[str] = []

    async def client(url: str, wire: WireApi) -> None:
        async with await connected(url) as stream:
            await stream.send(request_bytes(wire, url))
            response = parse_stream(wire, await whole_response(stream))
            assert common_fields(response)["text"] == "I ask for both."
            ends.append(str(response.stop_reason))

    async with served("http://unused", client={"http": gate}) as (url, _):
        with anyio.fail_after(120):
            async with anyio.create_task_group() as group:
                for number in range(count):
                    # Gemini clients without `alt=sse` get an array.
                    group.start_soon(client, url, CLIENTS[number % 3])
    assert ends == ["tool_calls"] * count
    assert (gate.most, gate.open) == (count, 0)


async def test_reader_of_single_bytes_slows_nobody_else() -> None:
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
        async with (
            served(upstream) as (url, _),
            await connected(url) as slow,
            await connected(url) as fast,
        ):
            await slow.send(request_bytes("chat", url))
            sent_before: list[int] = []
            # The upstream may go on until the buffers of the sockets between are full.
            while sent == 0 or sent_before[-4:] != [sent] * 4:
                sent_before.append(sent)
                await slow.receive(1)
                await anyio.sleep(0.1)
                assert sent < 32 << 20, "more than the buffers of the sockets between"
            with anyio.fail_after(10):
                await fast.send(request_bytes("chat", url))
                received = 0
                while received < 4 << 20:
                    received += len(await fast.receive())
        group.cancel_scope.cancel()


@pytest.mark.parametrize("path", [b"/v1/messages", b"/v1/messages/count_tokens"])
async def test_client_that_sends_its_body_slowly_is_refused(path: bytes) -> None:
    """Behind a refused count of tokens the connection stayed, and took the rest of the body."""
    async with (
        served("http://unused", body_seconds=0.2) as (url, _),
        await connected(url) as stream,
    ):
        request = request_bytes("messages", url).replace(b"/v1/messages", path, 1)
        await stream.send(request[:-5])
        with anyio.fail_after(5):
            received = await stream.receive()
            with suppress(anyio.EndOfStream):
                while True:
                    received += await stream.receive()
        assert received.startswith(b"HTTP/1.1 408")
        assert b"longer than 0.2 seconds" in received


async def test_second_host_header_is_refused_by_any_server() -> None:
    async with served("http://unused") as (url, _), await connected(url) as stream:
        request = request_bytes("messages", url).replace(b"host:", b"host: evil.example\r\nhost:")
        await stream.send(request)
        with anyio.fail_after(5):
            assert (await stream.receive()).startswith(b"HTTP/1.1 400")
