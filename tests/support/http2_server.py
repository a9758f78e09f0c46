"""An HTTP/2 server (prior knowledge, no TLS) that sends GOAWAY within a response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream


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
