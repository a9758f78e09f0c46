"""The server of the loopback provider: anyio sockets and h11, so that it can make network faults.

It sends one response for each request, in HTTP chunks of a given size and at a given pace. A fault
occurs after `at` chunks of the body:

    truncate     the body ends cleanly, but too early
    disconnect   the connection is reset in the middle of a chunk
    malformed    one chunk contains data that is not valid on the wire
    stall        nothing more is sent until the client disconnects
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream, TaskStatus

from streamlib.pipeline.branches import leave_group
from streamlib.testing.provider.behaviour import Behaviour, ReceivedRequest, RequestHook
from streamlib.testing.provider.connections import is_upgrade, reset_on_close
from streamlib.testing.provider.provider import Loopback, Responder
from streamlib.testing.provider.responses import echo_response
from streamlib.wires.faults import MALFORMED, Fault, fault_index
from streamlib.wires.routes import route, stored_route

LIMIT_HEADERS: Final = {
    "anthropic-ratelimit-requests-limit": "1000",
    "anthropic-ratelimit-requests-remaining": "999",
    "anthropic-ratelimit-tokens-limit": "100000",
    "anthropic-ratelimit-tokens-remaining": "99000",
}
"""Rate limits of the loopback provider, so that user interfaces have some to show."""


async def serve(
    behaviour: Behaviour | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    answers: Responder = echo_response,
    on_request: RequestHook | None = None,
    task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serves until cancelled.

    Args:
        behaviour: settings of the responses; by default there are no faults.
        host: address to listen on.
        port: TCP port; 0 selects any free port.
        answers: makes the events of a response if there is no recording.
        on_request: called with each request of a wire, before it is checked.
        task_status: reports the base URL once the server listens:
            `url = await group.start(serve)` is `http://127.0.0.1:PORT`.
    """
    provider = Loopback(behaviour or Behaviour(), answers, on_request)
    listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    async with listener:
        bound = listener.extra(SocketAttribute.local_port)
        task_status.started(f"http://{host}:{bound}")
        await listener.serve(partial(serve_connection, provider))


@asynccontextmanager
async def running(
    behaviour: Behaviour | None = None, *, port: int = 0, on_request: RequestHook | None = None
) -> AsyncGenerator[str]:
    """Serves while the block runs; yields the base URL.

    An exception of the block is raised unchanged, not inside a task group's exception group.

    Args:
        behaviour: settings of the responses.
        port: TCP port; 0 selects any free port.
        on_request: called with each request of a wire, before it is checked.
    """
    group = await anyio.create_task_group().__aenter__()
    try:
        yield await group.start(partial(serve, behaviour, port=port, on_request=on_request))
    except BaseException as error:
        await leave_group(group, error)
        raise
    await leave_group(group)


async def serve_connection(provider: Loopback, stream: SocketStream) -> None:
    """Serves one connection, request after request, until either side closes it."""
    async with stream:
        try:
            await _Connection(stream, provider).run()
        except (
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
            anyio.EndOfStream,
            h11.RemoteProtocolError,
        ):
            return


class _Connection:
    """HTTP/1.1 by h11 over one socket."""

    def __init__(self, stream: SocketStream, provider: Loopback) -> None:
        self._stream = stream
        self._provider = provider
        self._http = h11.Connection(h11.SERVER)
        """HTTP state of the connection; a new cycle begins with each request."""

    async def run(self) -> None:
        while True:
            request = await self._event()
            if not isinstance(request, h11.Request):
                return
            if is_upgrade(request):
                # Imported here, because few requests open a WebSocket and it loads a wire.
                from streamlib.testing.provider.websocket import serve_websocket

                # Bytes received after the handshake belong to the first message.
                early, _ = self._http.trailing_data
                await serve_websocket(self._provider, self._stream, request, early)
                return
            body = await self._body()
            await self._respond(request, body)
            # There is no further request after a disconnect, a stall or `connection: close`.
            if self._http.our_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _event(self) -> Any:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            try:
                data = await self._stream.receive(65536)
            except anyio.EndOfStream:
                data = b""  # h11's form of the end of input
            self._http.receive_data(data)

    async def _body(self) -> bytes:
        body = bytearray()
        event = await self._event()
        while isinstance(event, h11.Data):
            body += event.data
            event = await self._event()
        return bytes(body)

    async def _respond(self, request: h11.Request, body: bytes) -> None:
        path = request.target.decode("ascii", "replace")
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        method = request.method.decode("ascii")
        matched = route(path)
        known = matched or stored_route(path)
        if known is not None:
            self._provider.record(ReceivedRequest(known.wire_api, method, path, headers, body))
        response = self._provider.response(matched, body, headers, path, method)
        behaviour = response.behaviour
        response_headers = {
            "content-type": response.media_type,
            "request-id": "req_loopback",
            **LIMIT_HEADERS,
            **behaviour.headers,
        }
        header_list = list(response_headers.items())
        await self._send(h11.Response(status_code=response.status, headers=header_list))
        chunks = response.chunks
        if request.method == b"HEAD":  # a response to HEAD has no body (RFC 9110)
            chunks = ()
        fault_before = fault_index(len(chunks), behaviour.at)
        for n, chunk in enumerate(chunks):
            if behaviour.fault and n == fault_before:
                ended = await self._make_fault(behaviour.fault, chunk)
                if ended:
                    return
            await self._send(h11.Data(data=chunk))
            await anyio.sleep(behaviour.pace)
        await self._send(h11.EndOfMessage())

    async def _send(self, event: Any) -> None:
        data = self._http.send(event)
        if data:
            await self._stream.send(data)

    async def _make_fault(self, fault: Fault, chunk: bytes) -> bool:
        """Makes the fault; returns whether the response ended with it."""
        match fault:
            case "truncate":
                await self._send(h11.EndOfMessage())
            case "malformed":
                await self._send(h11.Data(data=MALFORMED))
                return False
            case "disconnect":
                # Bypasses h11: the chunk's full size is sent, but only half of its bytes.
                await self._stream.send(b"%x\r\n" % len(chunk) + chunk[: len(chunk) // 2])
                reset_on_close(self._stream)
            case "stall":
                # The request was received, so this returns only when the client disconnects.
                await self._stream.receive(1)
        return True
