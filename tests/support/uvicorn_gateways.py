"""The gateway on a socket, under uvicorn, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import msgspec
import uvicorn
from anyio.abc import SocketStream

from streamlib import Prompt
from streamlib.gateway import Gateway, RouteRule, RouteTable, gateway
from streamlib_parsers.items import WireApi
from tests.support.gateways import client_request


@asynccontextmanager
async def served(
    upstream: str, *, http: Any = "auto", **options: Any
) -> AsyncGenerator[tuple[str, uvicorn.Server]]:
    """The gateway on a port of its own."""
    table = RouteTable([RouteRule("*", "custom:m", wire_api="messages", base_url=upstream)])
    config = uvicorn.Config(
        gateway(Gateway(table, **options)), port=0, log_level="error", http=http
    )
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve)
        while not server.started:  # noqa: ASYNC110  # uvicorn has no event for it
            await anyio.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", server
        finally:
            server.should_exit = server.force_exit = True


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
