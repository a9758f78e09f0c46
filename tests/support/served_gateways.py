"""The gateway on a socket, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import msgspec
from anyio.abc import SocketStream

from streamlib import Prompt
from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from streamlib.providers.loopback import loopback_at
from streamlib.testing import running
from streamlib_parsers.items import WireApi
from tests.support.asgi_servers import Served, serving_app
from tests.support.gateways import client_request


@asynccontextmanager
async def loopback_gateway(wire: WireApi, model: str = "*") -> AsyncGenerator[Gateway]:
    """A gateway in front of the loopback provider, not entered yet."""
    route = RouteRule("*", f"loopback:{model}", wire_api=wire)
    async with running() as url:
        yield Gateway(RouteTable([route], [loopback_at(url)]))


@asynccontextmanager
async def served(
    upstream: str, *, server_options: dict[str, Any] | None = None, **options: Any
) -> AsyncGenerator[tuple[str, Served]]:
    """The gateway on a port of its own, in front of a Messages server."""
    table = RouteTable([RouteRule("*", "custom:m", wire_api="messages", base_url=upstream)])
    app = gateway(Gateway(table, **options))
    async with serving_app(app, **(server_options or {})) as server:
        yield server.url, server


def request_bytes(wire: WireApi, url: str) -> bytes:
    """A request for a stream."""
    request = client_request(wire, Prompt("Hello"))
    path, body = request.url.removeprefix("http://127.0.0.1:8900"), request.body
    if wire == "gemini":
        path = f"/v1beta{path}"
    else:
        body = msgspec.json.encode({**msgspec.json.decode(body), "stream": True})
    lines = [
        f"POST {path} HTTP/1.1",
        f"host: {urlsplit(url).netloc}",
        f"content-length: {len(body)}",
        "content-type: application/json",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def connected(url: str) -> SocketStream:
    address = urlsplit(url)
    return await anyio.connect_tcp(str(address.hostname), address.port or 0)
