"""Requests on one HTTP/2 connection: what happens to one never harms the others, or mixes them."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.transport.deadlines import Deadlines
from streamlib.transport.httpcore_http2 import Http2Socket
from streamlib_parsers import Response
from tests.support.clients import LIBRARIES, make_client, make_request, open_http
from tests.support.http2_server import Exchange, http2_server
from tests.support.response_bodies import (
    HELLO,
    HELLO_TEXT,
    LAST,
    MESSAGE,
    START,
    block,
    finish,
    stop,
    text,
)

DEADLINES = Deadlines(headers=30, first_byte=30, first_event=30, idle=30)
"""Longer than anything takes here on a busy machine, unless it stalls."""


def client_of(url: str, http: Any) -> Client:
    """A client without retries."""
    return make_client(url, http, errors="event", retry=RetryPolicy(retries=0), deadlines=DEADLINES)


async def echo(exchange: Exchange) -> None:
    """A response whose text is the key and the path that the server read."""
    received = f"{exchange.fields['x-api-key']} {exchange.path}"
    await exchange.headers()
    await exchange.data(START + block(0) + text(received) + stop() + finish() + LAST)
    await exchange.end()


@pytest.mark.parametrize("http", LIBRARIES)
async def test_cancelled_request_harms_no_neighbour(
    http: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its frames were lost, and with them the server's table of headers: the connection ended."""
    from h2.connection import H2Connection

    take = H2Connection.data_to_send
    cancelled = anyio.CancelScope()
    is_armed = False
    go_on = anyio.Event()

    def take_and_cancel(connection: H2Connection, amount: int | None = None) -> bytes:
        """What is to be written; the request is cancelled before anybody can write it."""
        data = take(connection, amount)
        if is_armed and b"first" in b"".join(known_tables(connection)):
            cancelled.cancel()
        return data

    async def script(exchange: Exchange) -> None:
        if exchange.path.startswith("/slow"):
            await go_on.wait()
        await echo(exchange)

    async with (
        http2_server(script) as server,
        open_http(http, http1=False, http2=True) as inner,
    ):
        client = client_of(server.url, inner)
        texts: dict[str, str] = {}

        async def respond(name: str) -> None:
            request = make_request(f"{server.url}/{name}")
            response = await client.respond(request, api_key=f"sk-{name}")
            texts[name] = response.text or str(response.error)

        await respond("warm")
        async with anyio.create_task_group() as group:
            group.start_soon(respond, "slow")
            await anyio.sleep(0.02)
            monkeypatch.setattr(H2Connection, "data_to_send", take_and_cancel)
            is_armed = True
            with cancelled:
                await respond("first")
            is_armed = False
            for name in ("second", "third"):
                await respond(name)
            go_on.set()
    assert cancelled.cancelled_caught
    names = ("warm", "second", "third", "slow")
    assert texts == {name: f"sk-{name} /{name}/messages" for name in names}
    assert server.connections == 1


def known_tables(connection: Any) -> list[bytes]:
    """Values of the headers that the client has packed so far."""
    return [bytes(value) for _name, value in connection.encoder.header_table.dynamic_entries]


@pytest.mark.parametrize("http", LIBRARIES)
async def test_cancelled_opening_leaves_no_wrong_count(http: str) -> None:
    """httpcore counts streams in 99 steps; cut short, the count refused or stalled later ones."""
    async with http2_server(echo) as server:
        for steps in (60,):  # in the middle of them
            async with open_http(http, http1=False, http2=True) as inner:
                client = client_of(server.url, inner)
                failures: list[Any] = []

                async def respond(client: Client = client, failures: Any = failures) -> None:
                    response = await client.respond(make_request(server.url))
                    if response.error is not None:
                        failures.append(response.error)

                async with anyio.create_task_group() as group:
                    group.start_soon(respond)
                    for _ in range(steps):
                        await anyio.lowlevel.checkpoint()
                    group.cancel_scope.cancel()
                async with anyio.create_task_group() as group:
                    for _ in range(101):
                        group.start_soon(respond)
                assert failures == []


@pytest.mark.parametrize("http", LIBRARIES)
async def test_violation_ends_every_stream_at_once(http: str) -> None:
    """The one that read it failed with `invalid_request`; the others waited for their deadlines."""
    others = 5
    waiting = anyio.Event()
    started = 0

    async def script(exchange: Exchange) -> None:
        nonlocal started
        await exchange.headers()
        await exchange.data(HELLO)
        if exchange.path.startswith("/violates"):
            await waiting.wait()
            await exchange.garbage()
        started += 1
        if started == others:
            waiting.set()
        await anyio.sleep_forever()

    async with (
        http2_server(script) as server,
        open_http(http, http1=False, http2=True) as inner,
    ):
        client = client_of(server.url, inner)
        responses: list[Response] = []

        async def respond(path: str) -> None:
            responses.append(await client.respond(make_request(server.url + path)))

        with anyio.fail_after(20):  # before any deadline
            async with anyio.create_task_group() as group:
                for path in ("/violates", *["/other"] * others):
                    group.start_soon(respond, path)
    kinds = {response.error.kind for response in responses if response.error is not None}
    assert (kinds, len(responses)) == ({"truncated"}, others + 1)
    # What h2 was given together with the violation is lost.
    assert {response.text for response in responses} <= {HELLO_TEXT, ""}


@pytest.mark.parametrize("http", LIBRARIES)
async def test_violation_before_headers_is_not_a_bad_request(http: str) -> None:
    """It is the server's, and another connection may serve the request: it is retried."""
    calls = 0

    async def script(exchange: Exchange) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            await exchange.data(b"x")  # before headers
        else:
            await exchange.headers()
            await exchange.data(MESSAGE)
            await exchange.end()

    async with (
        http2_server(script) as server,
        open_http(http, http1=False, http2=True) as inner,
    ):
        retry = RetryPolicy(retries=1, base=0)
        client = make_client(server.url, inner, errors="event", retry=retry, deadlines=DEADLINES)
        async with client.stream(make_request(server.url)) as stream:
            async for _event in stream:
                pass
    assert stream.response.text == HELLO_TEXT
    assert [failure.kind for failure in stream.retried] == ["connection"]


@pytest.mark.parametrize("http", LIBRARIES)
async def test_stream_is_left_at_once_on_a_crowded_connection(
    http: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its close waited 2 s for its turn to write, and then left generators of httpx suspended."""
    write = Http2Socket._write_parts
    go_on = anyio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.headers()
        await exchange.data(HELLO)
        await go_on.wait()
        await exchange.data(stop() + finish() + LAST)
        await exchange.end()

    async def crowded(socket: Http2Socket, buffer: bytes, seconds: float | None) -> None:
        await go_on.wait()
        await write(socket, buffer, seconds)

    async with (
        http2_server(script) as server,
        open_http(http, http1=False, http2=True) as inner,
    ):
        client = client_of(server.url, inner)
        texts: list[str] = []

        async def respond() -> None:
            texts.append((await client.respond(make_request(server.url))).text)

        async with anyio.create_task_group() as group:
            group.start_soon(respond)
            async with client.stream(make_request(server.url)) as left:
                async for _event in left:
                    break
                await anyio.sleep(0.02)
                monkeypatch.setattr(Http2Socket, "_write_parts", crowded)
                group.start_soon(respond)  # it writes, and everybody else waits
                await anyio.sleep(0.02)
                began = anyio.current_time()
                await left.aclose()
                assert anyio.current_time() - began < 1.8
            go_on.set()
    assert (texts, server.connections) == ([HELLO_TEXT] * 2, 1)
