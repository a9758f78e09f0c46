"""What surrounds a request adds nothing to it: no netrc, no cookies; proxies alone are read.

For the clients that streamlib creates, with every HTTP library, and for its WebSocket.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import pytest

from streamlib import StreamError
from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.providers import Provider
from streamlib.transport import httpx as httpx_transport
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.certificates import self_signed
from tests.support.clients import EVERY_TRANSPORT, library, make_request
from tests.support.loops import asyncio_alone
from tests.support.proxies import proxy
from tests.support.response_bodies import HELLO_TEXT, MESSAGE
from tests.support.scripted_server import complete_response, scripted
from tests.support.websocket_scripts import (
    EXPECT,
    ScriptedSocket,
    connected,
    response_frames,
    scripted_socket,
)

PASSWORD: Final = "canary-of-the-netrc-file"
COOKIE: Final = "canary-of-a-cookie"
KEYS: Final = ("sk-of-the-first-user", "sk-of-the-second-user")
PROXY_VARIABLES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy, and a password for every host, where the variable says and in the home folder."""
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    file = tmp_path / ".netrc"
    entry = f"login user password {PASSWORD}"
    file.write_text(f"machine 127.0.0.1 {entry}\nmachine localhost {entry}\ndefault {entry}\n")
    file.chmod(0o600)
    monkeypatch.setenv("NETRC", str(file))
    monkeypatch.setenv("HOME", str(tmp_path))


@asynccontextmanager
async def client_of(http: str, url: str, auth: str = "bearer") -> AsyncIterator[Client]:
    """A client whose HTTP client streamlib creates."""
    library(http)
    provider = Provider(name="faulty", wires=WIRE_APIS, base_url=url, auth=auth)
    options: dict[str, Any] = {"providers": (provider,), "retry": RetryPolicy(retries=0)}
    async with Client(http=http, **options) as client:
        yield client


async def respond(client: Client, url: str, key: str = KEYS[0]) -> str:
    """The text of the response to a request with a key."""
    with anyio.fail_after(15):
        response = await client.respond(make_request(url), api_key=key)
    return response.text


def lines_of(request: bytes, name: bytes) -> list[bytes]:
    """The values of a header."""
    head = request.partition(b"\r\n\r\n")[0]
    pairs = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    return [value.strip() for key, _, value in pairs if key.lower() == name]


# --- netrc ---


@EVERY_TRANSPORT
@pytest.mark.parametrize("auth", ["bearer", "x-api-key"])
async def test_no_password_of_netrc_is_sent(http: str, auth: str) -> None:
    """aiohttp sent it beside the key, or refused to send a request with a bearer token."""
    script = complete_response(MESSAGE)
    async with scripted(script) as server, client_of(http, server.url, auth) as client:
        assert await respond(client, server.url) == HELLO_TEXT
    (request,) = server.requests
    expected = {"bearer": [b"Bearer " + KEYS[0].encode()], "x-api-key": []}
    assert lines_of(request, b"authorization") == expected[auth]


@pytest.mark.anyio
async def test_no_password_of_netrc_is_sent_by_websocket() -> None:
    async with scripted_socket([EXPECT, *response_frames("r1", "One")]) as server:
        assert await text_of(server.url) == "One"
    (handshake,) = server.handshakes
    assert not handshake.get("authorization", "").startswith("Basic")


async def text_of(url: str) -> str:
    """The text of the response to a request over a WebSocket."""
    async with connected(url) as connection, connection.stream("x") as stream:
        async for _ in stream:
            pass
    return stream.response.text


# --- cookies ---


@EVERY_TRANSPORT
async def test_no_cookie_is_sent_back(http: str) -> None:
    """httpx and httpx2 sent the first user's cookie with the second user's key."""
    response = complete_response(MESSAGE, set_cookie=f"session={COOKIE}; Path=/")
    async with scripted(response) as server, client_of(http, server.url) as client:
        for key in (*KEYS, KEYS[0]):
            assert await respond(client, server.url, key) == HELLO_TEXT
    assert len(server.requests) == 3
    for request in server.requests:
        assert lines_of(request, b"cookie") == []
        assert COOKIE.encode() not in request


@pytest.mark.anyio
async def test_no_cookie_is_sent_back_by_websocket() -> None:
    refusal = f"HTTP/1.1 403 No\r\nset-cookie: session={COOKIE}\r\ncontent-length: 0\r\n\r\n"
    async with scripted_socket(status=refusal.encode()) as server:
        for _ in range(2):
            assert await refusal_of(server) == 403
    assert len(server.handshakes) == 2
    assert not [head for head in server.handshakes if "cookie" in head]


async def refusal_of(server: ScriptedSocket) -> int | None:
    """The status with which a server refuses a connection."""
    with pytest.raises(StreamError) as caught:
        async with connected(server.url):
            pass
    return caught.value.info.status


# --- proxies ---


@EVERY_TRANSPORT
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "all_proxy"])
async def test_proxy_of_the_environment_is_used(
    http: str, variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It gets the password of its own URL, and none of netrc."""
    tls = trusted(tmp_path, monkeypatch)
    async with scripted(complete_response(MESSAGE), tls=tls) as server, proxy("connect") as through:
        monkeypatch.setenv(variable, through.url.replace("//", "//me:mine@"))
        url = server.url.replace("127.0.0.1", "localhost")
        async with client_of(http, url) as client:
            assert await respond(client, url) == HELLO_TEXT
    assert through.tunnels == 1
    head = through.received.partition(b"\r\n\r\n")[0]
    assert lines_of(head, b"proxy-authorization") == [b"Basic bWU6bWluZQ=="]


@EVERY_TRANSPORT
async def test_proxy_without_a_password_gets_none_of_netrc(
    http: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tls = trusted(tmp_path, monkeypatch)
    async with scripted(complete_response(MESSAGE), tls=tls) as server, proxy("connect") as through:
        monkeypatch.setenv("HTTPS_PROXY", urlsplit(through.url).netloc)  # without its scheme
        url = server.url.replace("127.0.0.1", "localhost")
        async with client_of(http, url) as client:
            assert await respond(client, url) == HELLO_TEXT
    assert through.tunnels == 1
    assert lines_of(through.received.partition(b"\r\n\r\n")[0], b"proxy-authorization") == []


@EVERY_TRANSPORT
@pytest.mark.parametrize("hosts", ["127.0.0.1", "example.com, 127.0.0.1", "*"])
async def test_proxy_is_not_used_for_excluded_hosts(
    http: str, hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", hosts)
    script = complete_response(MESSAGE)
    async with scripted(script) as server, client_of(http, server.url) as client:
        assert await respond(client, server.url) == HELLO_TEXT


@asyncio_alone
async def test_aiohttp_refuses_a_proxy_of_socks(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was ignored: the request went past the proxy."""
    monkeypatch.setenv("ALL_PROXY", "socks5://user:secret@127.0.0.1:9")
    script = complete_response(MESSAGE)
    async with scripted(script) as server, client_of("aiohttp", server.url) as client:
        with pytest.raises(StreamError, match=r"a proxy of socks5.*http=\"httpx\"") as caught:
            await respond(client, server.url)
    assert caught.value.info.kind == "invalid_request"
    assert "secret" not in str(caught.value)
    assert server.requests == []


# --- certificates ---


@EVERY_TRANSPORT
async def test_certificates_are_those_of_openssl(
    http: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`SSL_CERT_FILE` is OpenSSL's own; it makes nothing part of a request."""
    tls = trusted(tmp_path, monkeypatch)
    async with scripted(complete_response(MESSAGE), tls=tls) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        async with client_of(http, url) as client:
            assert await respond(client, url) == HELLO_TEXT


@pytest.mark.anyio
async def test_certificates_of_a_websocket_are_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tls = trusted(tmp_path, monkeypatch)
    script = [EXPECT, *response_frames("r1", "One")]
    async with scripted_socket(script, tls=tls) as server:
        assert await text_of(server.url.replace("127.0.0.1", "localhost")) == "One"


def trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The TLS context of a server on localhost that new clients trust."""
    context = self_signed(folder)
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "certificate.pem"))
    # Libraries read it once in a process.
    read_again = httpx_transport.tls_context.__wrapped__
    monkeypatch.setattr(httpx_transport, "tls_context", read_again)
    over_aiohttp = pytest.importorskip("streamlib.transport.aiohttp")
    monkeypatch.setattr(over_aiohttp, "tls_context", over_aiohttp.tls_context.__wrapped__)
    return context
