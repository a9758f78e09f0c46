"""Connections are reused, and the pool survives any number of cancellations."""

from __future__ import annotations

import random
import ssl
from typing import Any

import anyio
import pytest

from streamlib.client.retry import RetryPolicy
from streamlib.transport import httpx as module
from streamlib.transport.deadlines import Deadlines
from tests.support.certificates import self_signed
from tests.support.clients import (
    LIBRARIES,
    library,
    make_client,
    make_request,
    open_http,
)
from tests.support.metrics import figure
from tests.support.response_bodies import HELLO, HELLO_TEXT, MESSAGE, frames_of
from tests.support.scripted_server import (
    END,
    HANG,
    Script,
    Wait,
    chunk,
    complete_response,
    head,
    scripted,
)

# --- connections ---


@pytest.mark.parametrize("http", [None, *LIBRARIES])
async def test_a_hundred_streams_in_a_row_use_one_connection(http: str | None) -> None:
    inner = open_http(http) if http else None
    async with (
        scripted([*complete_response(MESSAGE)]) as server,
        make_client(server.url, inner) as client,
    ):
        for n in range(100):
            async with client.stream(make_request(server.url)) as stream:
                async for event in stream:
                    if n % 2 and type(event).__name__ == "Completed":
                        break
            assert stream.response.text == HELLO_TEXT
        figure("connections", server.connections)
        assert (server.connections, len(server.requests)) == (1, 100)
        if inner is not None:
            await inner.aclose()


@pytest.mark.parametrize("http", LIBRARIES)
async def test_reused_connection_that_was_closed_is_replaced_once(http: str) -> None:
    """The server closes it when the second request comes: too late to be seen before."""
    async with (
        scripted(complete_response(MESSAGE), ["RST"], complete_response(MESSAGE)) as server,
        open_http(http) as inner,
    ):
        async with make_client(server.url, inner, retry=RetryPolicy(retries=0)) as client:
            for _ in range(2):
                assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        assert (server.connections, len(server.requests)) == (2, 3)
    figure("fault/keepalive-stale")


@pytest.mark.parametrize("http", LIBRARIES)
async def test_new_connection_that_is_closed_is_not_replaced(http: str) -> None:
    async with scripted(["RST"], complete_response(MESSAGE)) as server, open_http(http) as inner:
        client = make_client(server.url, inner, retry=RetryPolicy(retries=0), errors="event")
        response = await client.respond(make_request(server.url))
    assert response.error is not None
    assert (response.error.kind, len(server.requests)) == ("connection", 1)


@pytest.mark.parametrize("http", LIBRARIES)
async def test_library_ends_a_silent_read_at_the_next_deadline(
    http: str,
) -> None:
    """No timeout scope is entered then; otherwise it is one per read."""
    even = Deadlines(first_byte=0.15, first_event=0.15, idle=0.15)

    async def check(script: Script, phase: str) -> None:
        async with scripted(script) as server, open_http(http) as inner:
            client = make_client(
                server.url, inner, deadlines=even, retry=RetryPolicy(retries=0), errors="event"
            )
            began = anyio.current_time()
            response = await client.respond(make_request(server.url))
        assert response.error is not None
        assert (response.error.kind, response.error.detail) == ("stalled", {"phase": phase})
        assert 0.1 < anyio.current_time() - began < 1

    async with anyio.create_task_group() as group:
        group.start_soon(check, [HANG], "first_byte")
        group.start_soon(check, [head(), HANG], "first_byte")
        group.start_soon(check, [head(), chunk(HELLO), HANG], "idle")


@pytest.mark.parametrize("http", LIBRARIES)
async def test_reads_enter_no_scope_when_none_is_needed(
    http: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scopes = 0
    original = anyio.CancelScope

    def counted(**options: Any) -> Any:
        nonlocal scopes
        scopes += 1
        return original(**options)

    monkeypatch.setattr("streamlib.client.attempt.anyio.CancelScope", counted)
    frames = [step for frame in frames_of(50) for step in (chunk(frame), Wait(0.001))]
    async with (
        scripted([head(), *frames, END]) as server,
        open_http(http) as inner,
        make_client(server.url, inner) as client,
    ):
        monkeypatch.setattr(module.anyio, "CancelScope", original)
        before = scopes
        async with client.stream(make_request(server.url)) as stream:
            batches = [batch async for batch in stream.batches()]
    assert len(batches) > 20
    assert scopes - before < 10


# --- cancellations ---


async def storm(http: str, cancellations: int, connections: int = 4) -> None:
    """Random cancellations of many streams on a small pool; then every slot must still work."""
    httpx, rng = library(http), random.Random(7)
    script = [Wait(0.001), head(), chunk(HELLO), Wait(0.002), chunk(MESSAGE[len(HELLO) :]), END]
    async with (
        scripted(script) as server,
        httpx.AsyncClient(limits=httpx.Limits(max_connections=connections)) as inner,
    ):
        async with make_client(server.url, inner) as client:

            async def respond(delay: float) -> None:
                with anyio.move_on_after(delay):
                    await client.respond(make_request(server.url))

            for _ in range(0, cancellations, 20):
                async with anyio.create_task_group() as group:
                    for _ in range(20):
                        group.start_soon(respond, rng.random() * 0.012)
            with anyio.fail_after(5):
                async with anyio.create_task_group() as group:
                    for _ in range(connections * 2):
                        group.start_soon(respond, 5)
            assert client._transport.slots.borrowed_tokens == 0  # type: ignore[attr-defined]
        assert all(connection.is_idle() for connection in inner._transport._pool.connections), (
            inner._transport._pool.connections
        )
        assert inner._transport._pool._requests == []
        await inner.aclose()
        await server.quiet()
        assert server.open == 0
    figure("cancellations", cancellations)


@pytest.mark.parametrize("http", LIBRARIES)
async def test_a_thousand_cancellations_leave_the_pool_usable(http: str) -> None:
    await storm(http, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("http", LIBRARIES)
async def test_ten_thousand_cancellations_leave_the_pool_usable(http: str) -> None:
    await storm(http, 10_000)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """The TLS context of a server."""
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("http", LIBRARIES)
async def test_cancellation_in_a_handshake_closes_the_socket(
    http: str, tls: ssl.SSLContext
) -> None:
    """The libraries close it only where the handshake fails, not where it is cancelled."""
    async with (
        scripted(complete_response(MESSAGE), tls=tls) as server,
        open_http(http, verify=False) as inner,
    ):
        async with make_client(server.url, inner) as client:
            for n in range(40):
                with anyio.move_on_after(n * 0.0005):
                    await client.respond(make_request(server.url))
            assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        pool = inner._transport._pool
        assert all(connection.is_idle() for connection in pool.connections)
