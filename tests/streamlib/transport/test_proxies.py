"""Through a proxy of the user's client the same holds: deadlines, named errors, keys, stops."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.transport.deadlines import Deadlines
from streamlib_parsers import ErrorInfo, Response
from tests.support.certificates import self_signed
from tests.support.clients import KEY, library, make_client, make_request
from tests.support.proxies import Kind, Proxy, proxy
from tests.support.response_bodies import HELLO, HELLO_TEXT, MESSAGE, PING, text
from tests.support.scripted_server import END, HANG, Repeat, Script, chunk, head, scripted

LIBRARIES = pytest.mark.parametrize(
    ("http", "kind"),
    [
        ("httpx", "connect"),
        ("httpx", "socks5"),
        ("httpx2", "connect"),
        ("httpx2", "socks5"),
        ("aiohttp", "connect"),
    ],
)
PATIENT = Deadlines(connect=5, headers=5, first_byte=5, first_event=5, idle=5)
"""Longer than a busy machine takes."""
CONNECT = replace(PATIENT, connect=0.15)
IDLE = replace(PATIENT, idle=0.15)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """The TLS context of a server: a tunnel is for what is encrypted."""
    return self_signed(tmp_path_factory.mktemp("tls"))


def is_impossible(http: str, loop: str) -> bool:
    """Whether a library does not run on a loop."""
    return http == "aiohttp" and loop == "trio"


@asynccontextmanager
async def client_through(
    through: Proxy, http: str, kind: Kind, url: str, deadlines: Deadlines = PATIENT
) -> AsyncIterator[Client]:
    """A client over a user's HTTP client that has a proxy."""
    if kind == "socks5":
        pytest.importorskip("socksio", reason="socksio is not installed: SOCKS goes untested")
    if http == "aiohttp":
        aiohttp = library(http)
        options: dict[str, Any] = {"connector": aiohttp.TCPConnector(ssl=False)}
        inner = aiohttp.ClientSession(proxy=through.url, **options)
    else:
        inner = library(http).AsyncClient(proxy=through.url, verify=False)
    async with inner:
        yield make_client(
            url, inner, errors="event", retry=RetryPolicy(retries=0), deadlines=deadlines
        )


async def response_through(
    fault: Any,
    http: str,
    kind: Kind,
    tls: ssl.SSLContext,
    script: Script,
    deadlines: Deadlines = PATIENT,
) -> tuple[Response, Proxy]:
    """What a client received, and what the proxy saw."""
    async with scripted(script, tls=tls) as server, proxy(kind, fault) as through:
        async with client_through(through, http, kind, server.url, deadlines) as client:
            with anyio.fail_after(15):
                response = await client.respond(make_request(server.url))
        await nothing_is_open(through, server)
    return response, through


async def nothing_is_open(through: Proxy, server: Any) -> None:
    """Waits for both to see that their connections are closed."""
    with anyio.move_on_after(2):
        while through.open or server.open:  # noqa: ASYNC110  # a socket has no event to wait for
            await anyio.sleep(0.002)
    assert (through.open, server.open) == (0, 0)


def error_of(response: Response) -> ErrorInfo:
    """The failure of a response."""
    assert response.error is not None
    return response.error


@LIBRARIES
async def test_response_and_key_pass_through_a_tunnel(
    http: str, kind: Kind, tls: ssl.SSLContext, anyio_backend_name: str
) -> None:
    """The proxy sees neither: it only learns the destination."""
    if is_impossible(http, anyio_backend_name):
        return
    script = [head(), chunk(MESSAGE), END]
    response, through = await response_through("", http, kind, tls, script)
    assert (response.text, response.error) == (HELLO_TEXT, None)
    assert through.tunnels == 1
    assert KEY.encode() not in through.received
    assert b"x-api-key" not in through.received.lower()


@LIBRARIES
@pytest.mark.parametrize(
    ("fault", "failure"),
    [("refuses", "connection"), ("hangs", "stalled"), ("cuts", "connection")],
)
async def test_proxy_at_fault_is_a_named_error(
    http: str, kind: Kind, fault: str, failure: str, tls: ssl.SSLContext, anyio_backend_name: str
) -> None:
    """It belongs to connecting: one that hangs is left after `connect`, not after `first_byte`."""
    if is_impossible(http, anyio_backend_name):
        return
    script = [head(), chunk(MESSAGE), END]
    deadlines = CONNECT if fault == "hangs" else PATIENT
    response, through = await response_through(fault, http, kind, tls, script, deadlines)
    error = error_of(response)
    assert error.kind == failure, error
    if fault == "hangs":
        assert error.detail["phase"] == "connect"
        assert error.detail["address"].startswith("https://127.0.0.1:")
        assert len(error.detail) == 2
    assert through.tunnels == 0
    assert KEY.encode() not in through.received


@LIBRARIES
async def test_deadlines_hold_through_a_proxy(
    http: str, kind: Kind, tls: ssl.SSLContext, anyio_backend_name: str
) -> None:
    if is_impossible(http, anyio_backend_name):
        return
    script = [head(), chunk(HELLO), Repeat(chunk(PING), 0.02)]
    response, _ = await response_through("", http, kind, tls, script, IDLE)
    error = error_of(response)
    assert (error.kind, error.detail) == ("stalled", {"phase": "idle"})
    assert response.text == HELLO_TEXT


@LIBRARIES
async def test_broken_tunnel_truncates_the_response(
    http: str, kind: Kind, tls: ssl.SSLContext, anyio_backend_name: str
) -> None:
    if is_impossible(http, anyio_backend_name):
        return
    script = [head(), chunk(HELLO), *[chunk(text("more" * 200))] * 3, HANG]
    response, _ = await response_through("cuts within", http, kind, tls, script)
    assert error_of(response).kind == "truncated"
    assert response.text.startswith(HELLO_TEXT)


@LIBRARIES
async def test_stop_closes_the_tunnel(
    http: str, kind: Kind, tls: ssl.SSLContext, anyio_backend_name: str
) -> None:
    if is_impossible(http, anyio_backend_name):
        return
    script = [head(), chunk(HELLO), HANG]
    async with (
        scripted(script, tls=tls) as server,
        proxy(kind) as through,
        client_through(through, http, kind, server.url) as client,
    ):
        async with client.stream(make_request(server.url)) as stream:
            async for _event in stream:
                break
        await nothing_is_open(through, server)  # while the user's client is open
        with anyio.move_on_after(0.05):
            await client.respond(make_request(server.url))
        await nothing_is_open(through, server)
