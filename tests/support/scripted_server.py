"""A server that follows a script, so that every fault of a network is tested on a real socket.

    async with scripted([head(), chunk(b"data: ..."), RST]) as server:
        ... server.url ... server.requests ... server.open

A script is what a connection does after it read one request. Each request takes the next script,
and further requests take the last one. After a script without FIN or RST the connection waits for
the next request.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.tls import TLSListener


class Wait(NamedTuple):
    """A pause."""

    seconds: float


class Repeat(NamedTuple):
    """The same bytes every `every` seconds, until the client closes the connection."""

    data: bytes
    every: float = 0.0


FIN: Final = "FIN"
RST: Final = "RST"
HANG: Final = "HANG"
"""Silence until the client closes the connection."""

Step: TypeAlias = bytes | Wait | Repeat | str
Script: TypeAlias = Sequence[Step]


def head(
    status: str = "200 OK", content_type: str | None = "text/event-stream", **headers: str
) -> bytes:
    """Status line and headers of a chunked response."""
    lines = [f"HTTP/1.1 {status}", "transfer-encoding: chunked"]
    lines += [f"content-type: {content_type}"] if content_type else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """An HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


END: Final = b"0\r\n\r\n"


def complete_response(
    body: bytes,
    status: str = "200 OK",
    content_type: str | None = "text/event-stream",
    **headers: str,
) -> list[Step]:
    """A complete response."""
    steps: list[Step] = [head(status, content_type, **headers)]
    if body:
        steps.append(chunk(body))
    return [*steps, END]


@dataclass
class Server:
    """What the server has seen so far."""

    url: str = ""
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    """Connections that neither side has closed."""
    responding: int = 0
    """Of these, the connections on which a response is being sent."""

    async def quiet(self, seconds: float = 0.1) -> None:
        """Waits until no connection is open, at most so many seconds."""
        with anyio.move_on_after(seconds):
            while self.open:  # noqa: ASYNC110  # a socket has no event to wait for
                await anyio.sleep(0.002)


@asynccontextmanager
async def scripted(
    *scripts: Script,
    tls: ssl.SSLContext | None = None,
    choose: Callable[[bytes], Script] | None = None,
) -> AsyncIterator[Server]:
    """Serves while the block runs. choose: picks the script by the request instead."""
    server = Server()

    async def connection(stream: Any) -> None:
        server.connections += 1
        server.open += 1
        try:
            with suppress(
                anyio.BrokenResourceError,
                anyio.ClosedResourceError,
                anyio.EndOfStream,
                ConnectionError,
            ):
                while await _serve(stream, server, scripts, choose):
                    pass
        finally:
            server.open -= 1
            with anyio.CancelScope(shield=True), suppress(OSError, anyio.BrokenResourceError):
                await stream.aclose()

    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    if tls is not None:
        listener = TLSListener(listener, tls, standard_compatible=False)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, connection)
        yield server
        group.cancel_scope.cancel()


def reset_when_closed(stream: Any) -> None:
    """Makes the close of a connection send RST instead of FIN."""
    # A socket that the client has closed has no options; uvloop's has not even an address.
    with suppress(OSError, AttributeError):
        stream.extra(SocketAttribute.raw_socket).setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )


async def _serve(
    stream: SocketStream,
    server: Server,
    scripts: Sequence[Script],
    choose: Callable[[bytes], Script] | None,
) -> bool:
    """Serves one request; returns whether another may follow."""
    request = await _request(stream)
    script = choose(request) if choose else scripts[min(len(server.requests), len(scripts) - 1)]
    server.requests.append(request)
    server.responding += 1
    try:
        return await _send(stream, script)
    finally:
        server.responding -= 1


async def _send(stream: SocketStream, script: Script) -> bool:
    """Sends one response; returns whether another may follow."""
    for step in script:
        if isinstance(step, bytes):
            await stream.send(step)
        elif isinstance(step, Wait):
            await anyio.sleep(step.seconds)
        elif isinstance(step, Repeat):
            while True:
                await stream.send(step.data)
                await anyio.sleep(step.every)
        elif step == HANG:
            while await stream.receive():
                pass
        elif step == RST:
            reset_when_closed(stream)
            return False
        else:
            return False
    return True


async def _request(stream: SocketStream) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    start, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        int(line.split(b":")[1])
        for line in start.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    while len(body) < sum(lengths):
        body += await stream.receive()
    return start + b"\r\n\r\n" + body
