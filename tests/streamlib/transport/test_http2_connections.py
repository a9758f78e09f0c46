"""Over HTTP/2 streams share a connection: none of them leaves it open, or in the others' way."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from streamlib.client.retry import RetryPolicy
from tests.support.cases import each_case
from tests.support.clients import LIBRARIES, make_client, make_request, open_http
from tests.support.http2_server import Exchange, Http2Server, http2_server
from tests.support.response_bodies import HELLO, HELLO_TEXT, MESSAGE


async def respond(exchange: Exchange) -> None:
    """A complete response."""
    await exchange.headers()
    await exchange.data(MESSAGE)
    await exchange.end()


async def no_socket_is_left(server: Http2Server) -> None:
    """Waits for the server to see that all its connections were closed."""
    with anyio.move_on_after(1):
        while server.open:  # noqa: ASYNC110  # a socket has no event to wait for
            await anyio.sleep(0.005)
    assert server.open == 0


@pytest.mark.parametrize("http", LIBRARIES)
@pytest.mark.parametrize("ends_early", [False, True])
async def test_cancelled_wait_for_a_handshake_leaves_no_socket(http: str, ends_early: bool) -> None:
    """httpcore forgets the connection that another request is about to open."""

    async def script(exchange: Exchange) -> None:
        if ends_early:
            await exchange.reset()
        else:
            await respond(exchange)

    async with http2_server(script) as server:
        for steps in range(12):
            async with open_http(http, http1=False, http2=True) as inner:
                client = make_client(
                    server.url, inner, errors="event", retry=RetryPolicy(retries=0)
                )
                texts: list[str] = []

                async def opening(client: Any = client, texts: Any = texts) -> None:
                    texts.append((await client.respond(make_request(server.url))).text)

                async def waiting(scope: anyio.CancelScope, client: Any = client) -> None:
                    with scope:
                        await client.respond(make_request(server.url))

                scope = anyio.CancelScope()
                async with anyio.create_task_group() as group:
                    group.start_soon(opening)
                    await anyio.lowlevel.checkpoint()
                    group.start_soon(waiting, scope)
                    for _ in range(steps):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()
                assert texts == ["" if ends_early else HELLO_TEXT]
            await no_socket_is_left(server)


@pytest.mark.parametrize("http", LIBRARIES)
@pytest.mark.parametrize("end", ["garbage", "goaway", "abort"])
async def test_connection_that_ended_leaves_no_socket(http: str, end: str) -> None:
    """The streams of the connection end with it, and the next request opens another."""

    async def script(exchange: Exchange) -> None:
        if exchange.path.startswith("/ends"):
            await exchange.headers()
            await exchange.data(HELLO)
            await getattr(exchange, end)()
        else:
            await respond(exchange)

    async with http2_server(script) as server:
        async with open_http(http, http1=False, http2=True) as inner:
            client = make_client(server.url, inner, errors="event", retry=RetryPolicy(retries=0))
            response = await client.respond(make_request(f"{server.url}/ends"))
            assert response.error is not None
            assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        await no_socket_is_left(server)


@pytest.mark.parametrize("http", LIBRARIES)
async def test_abandoned_streams_do_not_stall_their_neighbours(http: str) -> None:
    """Their unread bytes count for the window of the connection (RFC 9113, 5.2.1)."""
    padding = b": " + b"p" * 14_000 + b"\n\n"

    async def script(exchange: Exchange) -> None:
        await exchange.headers()
        if exchange.path.startswith("/abandoned"):
            await exchange.data(HELLO)
            for _ in range(9):
                await exchange.data(padding)
            await anyio.sleep_forever()
        for _ in range(75):
            await exchange.data(padding)
        await exchange.data(MESSAGE)
        await exchange.end()

    async with (
        http2_server(script) as server,
        open_http(http, http1=False, http2=True) as inner,
    ):
        client = make_client(server.url, inner, errors="event", retry=RetryPolicy(retries=0))
        with anyio.fail_after(20):
            for _ in range(200):  # 25 MB; the window is 16 MiB
                async with client.stream(make_request(f"{server.url}/abandoned")) as stream:
                    async for _event in stream:
                        break
            response = await client.respond(make_request(server.url))
    assert (response.text, response.error) == (HELLO_TEXT, None)


@pytest.mark.parametrize("http", LIBRARIES)
@each_case("before", ["headers", "body"], at_once=2)
async def test_abandoned_stream_is_reset_and_closed_at_once(http: str, before: str) -> None:
    """The server stops, and its limit of 100 streams at once (h2's default) holds none of them."""
    stopped = 0

    async def script(exchange: Exchange) -> None:
        nonlocal stopped
        if exchange.path.startswith("/abandoned"):
            try:
                if before == "body":
                    await exchange.headers()
                    await exchange.data(HELLO)
                await anyio.sleep_forever()
            finally:
                stopped += 1
        await respond(exchange)

    async with (
        http2_server(script) as server,
        open_http(http, http1=False, http2=True) as inner,
    ):
        client = make_client(server.url, inner, errors="event", retry=RetryPolicy(retries=0))
        request = make_request(f"{server.url}/abandoned")
        assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        with anyio.fail_after(60):  # one took 2 s to close
            # On a busy machine some requests are left before they were sent.
            while stopped < 110:
                if before == "headers":
                    with anyio.move_on_after(0.01):
                        await client.respond(request)
                    continue
                async with client.stream(request) as stream:
                    async for _event in stream:
                        break
        response = await client.respond(make_request(server.url))
        assert (response.text, response.error, server.connections) == (HELLO_TEXT, None, 1)
