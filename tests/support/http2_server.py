"""HTTP/2 servers (prior knowledge, no TLS): one that sends GOAWAY, one that runs a script.

async def script(exchange: Exchange) -> None:
    await exchange.headers()
    await exchange.data(b"data: ...")
    await exchange.ping()

async with http2_server(script) as server: ... server.url ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio
import anyio.abc
import pytest
from anyio.abc import SocketAttribute, SocketStream

from tests.support.scripted_server import reset_when_closed


@asynccontextmanager
async def goaway_server(chunks: Sequence[bytes], error_code: int = 0) -> AsyncIterator[str]:
    """Its URL. It responds to each request with the chunks, sends GOAWAY, and closes."""
    pytest.importorskip("h2", reason="h2 is not installed: GOAWAY within a stream goes untested")

    async def connection(stream: SocketStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            async with stream:
                await _respond(stream, chunks, error_code)

    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, connection)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.cancel_scope.cancel()


async def _respond(stream: SocketStream, chunks: Sequence[bytes], error_code: int) -> None:
    import h2.config
    import h2.connection
    import h2.events

    http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    http.initiate_connection()
    ended: list[int] = []
    while not ended:
        events = http.receive_data(await stream.receive())
        ended = [
            event.stream_id
            for event in events
            if isinstance(event, h2.events.StreamEnded) and event.stream_id
        ]
        await stream.send(http.data_to_send())
    http.send_headers(ended[0], [(":status", "200"), ("content-type", "text/event-stream")])
    for chunk in chunks:
        http.send_data(ended[0], chunk)
    await stream.send(http.data_to_send())
    http.close_connection(error_code, last_stream_id=ended[0])
    await stream.send(http.data_to_send())


class Exchange:
    """One request on a connection, and what a script sends for it."""

    def __init__(
        self, connection: Connection, stream_id: int, fields: dict[str, str], body: bytes
    ) -> None:
        self.fields = fields
        """Headers of the request, and what HTTP/2 has for its request line."""
        self.path = fields[":path"]
        self.body = body
        """Body of the request."""
        self._connection = connection
        self._stream_id = stream_id

    async def headers(self, status: int = 200) -> None:
        """Sends the response headers."""
        fields = [(":status", str(status)), ("content-type", "text/event-stream")]
        self._connection.http.send_headers(self._stream_id, fields)
        await self._connection.flush()

    async def data(self, body: bytes) -> None:
        """Sends a DATA frame once the windows allow it; an empty one brings the client no byte."""
        connection = self._connection
        while connection.http.local_flow_control_window(self._stream_id) < len(body):
            await connection.window_opened.wait()
        self._connection.http.send_data(self._stream_id, body)
        await self._connection.flush()

    async def end(self) -> None:
        """Ends the response."""
        self._connection.http.end_stream(self._stream_id)
        await self._connection.flush()

    async def reset(self) -> None:
        """Sends RST_STREAM."""
        self._connection.http.reset_stream(self._stream_id, error_code=2)
        await self._connection.flush()

    async def goaway(self) -> None:
        """Sends GOAWAY, and closes the connection."""
        self._connection.http.close_connection(0)
        await self._connection.flush()
        await self._connection.socket.aclose()

    async def abort(self) -> None:
        """Closes the connection with RST."""
        reset_when_closed(self._connection.socket)
        await self._connection.socket.aclose()

    async def ping(self) -> None:
        """Sends PING, which concerns the connection alone."""
        self._connection.http.ping(b"12345678")
        await self._connection.flush()

    async def window(self) -> None:
        """Sends WINDOW_UPDATE for the request."""
        if self._stream_id not in self._connection.http.streams:
            raise anyio.ClosedResourceError  # the client has reset it, and h2 has forgotten it
        self._connection.http.increment_flow_control_window(1, self._stream_id)
        await self._connection.flush()

    async def garbage(self) -> None:
        """Sends bytes that are no frame."""
        await self._connection.send(b"\x00\x00\x01\x00\x00\x00\x00\x00\x00x" * 4)


Http2Script: TypeAlias = Callable[[Exchange], Awaitable[None]]


class Connection:
    """One connection of a client: each request runs the script in a task of its own."""

    def __init__(self, socket_stream: SocketStream, script: Http2Script) -> None:
        import h2.config
        import h2.connection

        self.socket = socket_stream
        configuration = h2.config.H2Configuration(client_side=False, validate_outbound_headers=True)
        self.http = h2.connection.H2Connection(configuration)
        self._script = script
        self._sending = anyio.Lock()
        """Held while a task sends."""
        self.window_opened = anyio.Event()
        """Set and replaced at each WINDOW_UPDATE."""
        self._fields: dict[int, dict[str, str]] = {}
        """Stream id to the headers of the request."""
        self._bodies: dict[int, bytes] = {}
        """Stream id to the body of the request, as far as it was received."""
        self._scopes: dict[int, anyio.CancelScope] = {}
        """Stream id to the scope of its script: a request that the client resets ends it."""

    async def flush(self) -> None:
        """Sends what h2 has ready; several scripts may call it at once.

        It is of all of them: a script that is cancelled here would lose frames of the others.
        """
        with anyio.CancelScope(shield=True):
            async with self._sending:
                await self.socket.send(self.http.data_to_send())

    async def send(self, data: bytes) -> None:
        """Sends bytes that h2 knows nothing of."""
        async with self._sending:
            await self.socket.send(data)

    async def serve(self) -> None:
        """Reads frames until the client closes the connection."""
        import h2.exceptions

        self.http.initiate_connection()
        await self.flush()
        async with anyio.create_task_group() as group:
            while True:
                try:
                    events = self.http.receive_data(await self.socket.receive())
                except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    break
                except h2.exceptions.ProtocolError:  # what the client sent after GOAWAY
                    break
                for event in events:
                    self._handle(event, group)
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await self.flush()
            group.cancel_scope.cancel()

    def _handle(self, event: Any, group: anyio.abc.TaskGroup) -> None:
        import h2.events

        if isinstance(event, h2.events.RequestReceived):
            fields = {as_text(name): as_text(value) for name, value in event.headers}
            self._fields[event.stream_id] = fields
            self._bodies[event.stream_id] = b""
        elif isinstance(event, h2.events.DataReceived):
            self._bodies[event.stream_id] += event.data
            self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            group.start_soon(self._run, event.stream_id)
        elif isinstance(event, h2.events.WindowUpdated):
            self.window_opened.set()
            self.window_opened = anyio.Event()
        elif isinstance(event, h2.events.StreamReset):
            if event.stream_id in self._scopes:
                self._scopes[event.stream_id].cancel()

    async def _run(self, stream_id: int) -> None:
        import h2.exceptions

        fields = self._fields.pop(stream_id)
        exchange = Exchange(self, stream_id, fields, self._bodies.pop(stream_id))
        # The client may close the connection, or the script itself, at any moment.
        with (
            suppress(
                anyio.BrokenResourceError, anyio.ClosedResourceError, h2.exceptions.ProtocolError
            ),
            anyio.CancelScope() as self._scopes[stream_id],
        ):
            await self._script(exchange)


def as_text(value: bytes | str) -> str:
    """Names and values of headers are bytes in some versions of h2, and text in others."""
    return value.decode() if isinstance(value, bytes) else value


@dataclass
class Http2Server:
    """What the server has seen so far."""

    url: str = ""
    connections: int = 0
    open: int = 0
    """Connections that neither side has closed."""


@asynccontextmanager
async def http2_server(script: Http2Script) -> AsyncIterator[Http2Server]:
    """Serves HTTP/2 with prior knowledge while the block runs."""
    pytest.importorskip("h2", reason="h2 is not installed: HTTP/2 goes untested")
    server = Http2Server()

    async def connection(stream: SocketStream) -> None:
        server.connections += 1
        server.open += 1
        try:
            async with stream:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await Connection(stream, script).serve()
        finally:
            server.open -= 1

    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, connection)
        server.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        yield server
        group.cancel_scope.cancel()
