"""The transports: what is accepted, and the request on the wire."""

from __future__ import annotations

import gzip
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, Final

import pytest

import streamlib.transport as package
from streamlib.client import Client
from streamlib.client.retry import NO_RETRY, RetryPolicy
from streamlib.transport import CONNECTIONS, UNKNOWN_POOL, transport_for
from streamlib.transport import httpx as module
from streamlib.transport.deadlines import Deadlines
from streamlib.transport.httpcore_pool import pool_size
from streamlib.transport.httpx import OwnHttpxTransport, trusting_nobody
from streamlib_parsers.stream_error import StreamError
from tests.support.clients import (
    LIBRARIES,
    MemoryTransport,
    library,
    make_client,
    make_request,
    open_http,
)
from tests.support.response_bodies import HELLO_TEXT, MESSAGE
from tests.support.scripted_server import complete_response, scripted
from tests.support.shared import ROOT

# --- what is accepted ---


def test_object_without_http_methods_is_refused() -> None:
    with pytest.raises(TypeError, match=r"httpx\.AsyncClient"):
        transport_for(object())


def test_custom_transport_is_used_unchanged() -> None:
    memory = MemoryTransport()
    assert transport_for(memory) is memory


@pytest.mark.parametrize("http", LIBRARIES)
async def test_stream_limit_is_at_most_the_users_pool(http: str) -> None:
    httpx = library(http)
    async with (
        httpx.AsyncClient(limits=httpx.Limits(max_connections=3)) as three,
        httpx.AsyncClient() as usual,
    ):
        assert pool_size(three) == 3
        assert pool_size(usual) == 100
        assert transport_for(three).slots.total_tokens == 3  # type: ignore[attr-defined]
        assert transport_for(three, 2).slots.total_tokens == 2  # type: ignore[attr-defined]
    assert pool_size(object()) == UNKNOWN_POOL


@pytest.mark.parametrize("name", LIBRARIES)
async def test_named_library_sends_and_is_closed(name: str) -> None:
    async with (
        scripted(complete_response(MESSAGE)) as server,
        make_client(server.url, name) as client,
    ):
        assert (await client.respond(make_request(server.url))).text == HELLO_TEXT
        transport = client._opened_transport
    assert isinstance(transport, OwnHttpxTransport)
    client = transport._plain._client
    assert type(client).__module__.partition(".")[0] == name
    assert transport.slots.total_tokens == CONNECTIONS
    assert client.is_closed
    assert transport._secure is None  # no certificates are read for a local server


def test_unknown_library_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r'"requests".*"httpx", "httpx2", "aiohttp"'):
        Client(http="requests")


def test_missing_library_is_named_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: None)
    for name in package.LIBRARIES:
        with pytest.raises(ModuleNotFoundError, match=rf"streamlib\[{name}\]"):
            Client(http=name)


async def test_aiohttp_is_taken_on_asyncio_alone(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    taken = type(transport_for()).__name__
    assert taken == {"asyncio": "AiohttpTransport", "trio": "OwnHttpxTransport"}[anyio_backend]
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:9")
    assert isinstance(transport_for(), OwnHttpxTransport)  # aiohttp lacks SOCKS
    monkeypatch.delenv("all_proxy")
    monkeypatch.setattr(package, "find_spec", lambda name: None)
    assert isinstance(transport_for(), OwnHttpxTransport)


async def test_entering_a_client_loads_its_library() -> None:
    async with Client() as client:
        assert client._opened_transport is not None


async def test_own_client_has_an_unlimited_pool() -> None:
    ours = transport_for("httpx")
    assert isinstance(ours, OwnHttpxTransport)
    client = ours._plain._client
    assert pool_size(client) == sys.maxsize
    assert ours.slots.total_tokens == CONNECTIONS
    assert client.follow_redirects is False
    await ours.aclose()
    assert client.is_closed


@pytest.mark.parametrize("url", ["https://127.0.0.1:9", "http://127.0.0.1:9"])
async def test_certificates_are_read_for_tls_and_for_proxies(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if url.startswith("http://"):
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    ours = transport_for("httpx")
    assert isinstance(ours, OwnHttpxTransport)
    with pytest.raises(Exception, match=r"connect"):
        await ours.send("POST", url, {}, b"{}", Deadlines())
    secure = ours._secure
    assert secure is not None
    assert pool_size(secure._client) == sys.maxsize
    await ours.aclose()
    assert secure._client.is_closed
    assert trusting_nobody().verify_mode is ssl.CERT_REQUIRED
    assert trusting_nobody().cert_store_stats()["x509_ca"] == 0


@pytest.mark.parametrize("http", LIBRARIES)
async def test_client_of_the_user_stays_open(http: str) -> None:
    async with open_http(http) as users:
        async with make_client("http://127.0.0.1:9", users, retry=RetryPolicy(retries=0)) as client:
            with pytest.raises(StreamError):
                await client.respond(make_request("http://127.0.0.1:9"))
        assert not users.is_closed


@pytest.mark.parametrize("only", LIBRARIES)
def test_library_that_is_loaded_already_is_used(only: str) -> None:
    code = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'parsers')]!r}; "
    code += f"import {only}, streamlib.transport as t; "
    code += "print(type(t.transport_for()._plain._client).__module__)"
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.partition(".")[0].strip() == only


def test_error_without_a_library_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(module.importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match="httpx or httpx2"):
        transport_for()


# --- the request on the wire ---


@pytest.mark.parametrize("http", LIBRARIES)
async def test_request_is_sent_as_it_was_built(http: str) -> None:
    body = bytes(range(256)) * 10
    async with (
        scripted(complete_response(MESSAGE)) as server,
        open_http(http) as inner,
        make_client(server.url, inner) as client,
    ):
        await client.respond(make_request(server.url, body=body))
    sent, _, payload = server.requests[0].partition(b"\r\n\r\n")
    lines = sent.lower().split(b"\r\n")
    assert lines[0] == b"post /messages http/1.1"
    assert payload == body
    assert b"content-length: 2560" in lines
    assert b"accept-encoding: identity" in lines
    assert not [line for line in lines if line.startswith(b"transfer-encoding")]


@pytest.mark.parametrize("http", LIBRARIES)
async def test_encoded_path_is_sent_unchanged(http: str) -> None:
    """A signature covers these very bytes."""
    async with (
        scripted(complete_response(MESSAGE)) as server,
        open_http(http) as inner,
        make_client(server.url, inner) as client,
    ):
        request = make_request(server.url)
        url = f"{server.url}/model/us.a%3Ab%2Fc/x?alt=sse"
        await client.respond(
            type(request)("POST", url, request.headers, b"{}", [], "messages", "m", request.origin)
        )
    assert server.requests[0].startswith(b"POST /model/us.a%3Ab%2Fc/x?alt=sse HTTP/1.1")


@pytest.mark.parametrize("http", LIBRARIES)
async def test_redirect_is_not_followed_by_a_users_client(http: str) -> None:
    moved = b"HTTP/1.1 308 x\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"
    async with (
        scripted([moved]) as server,
        open_http(http, follow_redirects=True) as inner,
        make_client(server.url, inner) as client,
    ):
        with pytest.raises(StreamError, match="redirects"):
            await client.respond(make_request(server.url))
    assert len(server.requests) == 1


@pytest.mark.parametrize("http", LIBRARIES)
async def test_response_of_a_mock_transport_is_read(http: str) -> None:
    httpx = library(http)
    for content in (MESSAGE, gzip.compress(MESSAGE)):
        headers = {"content-type": "text/event-stream"}
        if content != MESSAGE:
            headers["content-encoding"] = "gzip"
        script = httpx.MockTransport(
            lambda request, content=content, headers=headers: httpx.Response(
                200, headers=headers, content=content
            )
        )
        async with (
            httpx.AsyncClient(transport=script) as inner,
            make_client("http://a.example", inner) as client,
        ):
            assert (await client.respond(make_request("http://a.example"))).text == HELLO_TEXT


@pytest.mark.parametrize("http", LIBRARIES)
async def test_request_without_a_trace_is_not_repeated(http: str) -> None:
    """Only a connection of the pool may have been closed before: nobody knows of one here."""
    httpx = library(http)
    requests: list[Any] = []

    def refuse(request: Any) -> Any:
        requests.append(request)
        raise httpx.RemoteProtocolError("Server disconnected without sending a response.")

    async with (
        httpx.AsyncClient(transport=httpx.MockTransport(refuse)) as inner,
        make_client("http://a.example", inner, retry=NO_RETRY) as client,
    ):
        with pytest.raises(StreamError):
            await client.respond(make_request("http://a.example"))
    assert len(requests) == 1


@pytest.mark.parametrize(("sizes", "expected"), [([3, 5], 3), ([0, 5], 5), ([0], UNKNOWN_POOL)])
def test_size_of_a_pool_is_the_smallest_known_one(sizes: list[int], expected: int) -> None:
    """None of these says "no connection at all": with that, no request would be sent."""
    pools = [SimpleNamespace(_pool=SimpleNamespace(_max_connections=size)) for size in sizes]
    client = SimpleNamespace(_transport=pools[0], _mounts=dict(enumerate(pools[1:])))
    assert pool_size(client) == expected


async def test_object_with_only_the_methods_is_accepted() -> None:
    class Response:
        status_code = 200
        headers: Final = {"Content-Type": "text/event-stream"}
        extensions: Final[dict[str, Any]] = {}

        async def aiter_raw(self) -> AsyncIterator[bytes]:
            yield MESSAGE

        async def aclose(self) -> None:
            pass

    class Lookalike:
        def build_request(self, method: str, url: str, **options: Any) -> Any:
            return type("Request", (), {"stream": None})()

        async def send(self, request: Any, **options: Any) -> Response:
            assert options == {"stream": True, "follow_redirects": False}
            return Response()

        async def aclose(self) -> None:
            raise AssertionError("it is not ours")

    async with make_client("http://a.example", Lookalike()) as client:
        assert (await client.respond(make_request("http://a.example"))).text == HELLO_TEXT


# --- closing ---


def test_transport_is_created_by_the_first_request() -> None:
    assert Client()._opened_transport is None
