"""Small real proxies: HTTP CONNECT and SOCKS5, in order or at fault.

    async with proxy("connect") as through: ... through.url ... through.received ... through.open

Faults: "refuses" the destination, "hangs" or "cuts" before it responds, "cuts within" the tunnel
once the server has sent some bytes.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import anyio
from anyio.abc import SocketAttribute, SocketStream

Kind: TypeAlias = Literal["connect", "socks5"]
Fault: TypeAlias = Literal["", "refuses", "hangs", "cuts", "cuts within"]

CUT_AFTER: Final = 2_000
"""Bytes of a server that pass before "cuts within": a handshake, and the start of a response."""

SOCKS_VERSION: Final = 5
DOMAIN_NAME: Final = 3
"""RFC 1928, 5: the type of an address that is a name."""


@dataclass
class Proxy:
    """What the proxy has seen so far."""

    url: str = ""
    tunnels: int = 0
    """Tunnels that were opened."""
    open: int = 0
    """Connections of clients that neither side has closed."""
    received: bytes = b""
    """Every byte that clients sent, to the proxy and through its tunnels."""


@asynccontextmanager
async def proxy(kind: Kind, fault: Fault = "") -> AsyncIterator[Proxy]:
    """Serves while the block runs."""
    seen = Proxy()
    handshake: Callable[[SocketStream, Proxy, Fault], Awaitable[tuple[str, int] | None]]
    handshake = connect_handshake if kind == "connect" else socks_handshake

    async def connection(client: SocketStream) -> None:
        seen.open += 1
        try:
            async with client:
                with suppress(
                    anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream
                ):
                    destination = await handshake(client, seen, fault)
                    if destination is not None:
                        seen.tunnels += 1
                        await tunnel(client, destination, seen, fault)
        finally:
            seen.open -= 1

    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, connection)
        scheme = "http" if kind == "connect" else "socks5"
        seen.url = f"{scheme}://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        yield seen
        group.cancel_scope.cancel()


async def receive(stream: SocketStream, seen: Proxy) -> bytes:
    """The next bytes of a client, which are recorded."""
    data = await stream.receive()
    seen.received += data
    return data


async def connect_handshake(
    stream: SocketStream, seen: Proxy, fault: Fault
) -> tuple[str, int] | None:
    """RFC 9110, 9.3.6: the destination; None if no tunnel is opened."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += await receive(stream, seen)
    if fault == "hangs":
        await stream.receive()  # until the client closes the connection
    if fault == "cuts":
        return None
    if fault == "refuses":
        await stream.send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        return None
    await stream.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
    host, _, port = head.split(b" ")[1].decode().rpartition(":")
    return host, int(port)


async def socks_handshake(
    stream: SocketStream, seen: Proxy, fault: Fault
) -> tuple[str, int] | None:
    """RFC 1928: the destination; None if no tunnel is opened."""
    await receive(stream, seen)  # the ways to authenticate
    if fault == "hangs":
        await stream.receive()
    if fault == "cuts":
        return None
    await stream.send(bytes([SOCKS_VERSION, 0]))
    request = await receive(stream, seen)
    if request[3] == DOMAIN_NAME:
        name_end = 5 + request[4]
        host = request[5:name_end].decode()
    else:
        name_end = 8
        host = socket.inet_ntoa(request[4:name_end])
    port = int.from_bytes(request[name_end : name_end + 2], "big")
    refused = 2 if fault == "refuses" else 0
    await stream.send(bytes([SOCKS_VERSION, refused, 0, 1, 0, 0, 0, 0, 0, 0]))
    return None if refused else (host, port)


async def tunnel(
    client: SocketStream, destination: tuple[str, int], seen: Proxy, fault: Fault
) -> None:
    """Passes bytes both ways until one side closes, or until it is cut."""
    async with await anyio.connect_tcp(*destination) as server, anyio.create_task_group() as group:

        async def upstream() -> None:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                while True:
                    await server.send(await receive(client, seen))
            group.cancel_scope.cancel()

        async def downstream() -> None:
            passed = 0
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                while fault != "cuts within" or passed < CUT_AFTER:
                    data = await server.receive()
                    await client.send(data)
                    passed += len(data)
            group.cancel_scope.cancel()

        group.start_soon(upstream)
        group.start_soon(downstream)
