"""Access to private fields of httpcore's HTTP/2 connections. No other module reads them.

Many requests share such a connection, so a step that is left incomplete for one of them harms the
others. httpcore leaves three steps incomplete, which this module completes:

- A request that is cancelled while its frames are written loses them, and with them frames of
  other requests, since httpcore writes what all of them have ready. The server then reads the
  headers of later requests with another table than they were packed with (RFC 7541, 2.3.2): a path
  or a key of one request may be in another. See `Http2Socket`.
- A request that is abandoned is not reset. See `Http2Stream.reset`.
- When a server violates the protocol, the request that reads it fails, and the others wait for
  frames that will not come. See `Http2Connection.note_end`.

Verified with httpcore 1.0.9, httpcore2 2.16.2 and h2 4.4.1. What is read: ``_connection`` down to
the ``AsyncHTTP2Connection``; its ``_h2_state``, ``_network_stream``, ``_events``,
``_connection_terminated`` and ``_write_outgoing_data``; ``streams`` and ``state_machine`` of h2.
"""

from __future__ import annotations

import contextlib
import importlib
import select
from typing import Any, Final

import anyio

from streamlib.transport.closing import CLOSING_SECONDS, ShieldedAwait

LAYERS: Final = 8
"""Maximum depth of streams and connections that wrap others."""

CANCEL: Final = 8
"""RFC 9113, 7: the error code of a stream that is no longer needed."""

RESET_SECONDS: Final = 0.5
"""Limit of the wait for RST_STREAM to be sent: a part of `CLOSING_SECONDS`."""

WRITE_BYTES: Final = 1 << 14
"""Bytes of one write: a socket that accepts writes at all has room for so many."""


class Http2Connection:
    """A connection of HTTP/2 in httpcore's pool."""

    def __init__(self, connection: Any) -> None:
        self.protocol = _protocol(connection)
        """The ``AsyncHTTP2Connection``; None for a connection of another HTTP version."""

    def open(self) -> None:
        """Puts an `Http2Socket` before its socket, once."""
        if self.protocol is None:
            return
        socket: Any = self.protocol._network_stream
        if not isinstance(socket, Http2Socket):
            self.protocol._network_stream = Http2Socket(socket)

    def note_end(self) -> None:
        """Ends the other requests too if h2 has closed the connection.

        After a violation of the protocol h2 accepts nothing more. httpcore raises an error only in
        the request that read it; the others would wait for their deadlines.
        """
        state = self.protocol._h2_state
        if state.state_machine.state.name != "CLOSED":
            return
        if self.protocol._connection_terminated is None:
            # As after a GOAWAY of the server: waiting requests fail, and the last one closes it.
            self.protocol._connection_terminated = _event(
                "ConnectionTerminated", error_code=1, last_stream_id=None, additional_data=None
            )

    async def aclose(self) -> None:
        """Closes the connection, which nobody may use any more."""
        if self.protocol is not None:
            with contextlib.suppress(Exception):
                await self.protocol.aclose()


class Http2Stream:
    """A request on a connection of HTTP/2."""

    def __init__(self, connection: Any, request: Any, stream_id: int) -> None:
        self._connection = Http2Connection(connection)
        self._connection.open()  # a request of the user's may have opened the connection
        self._request = request
        self._stream_id = stream_id

    async def reset(self) -> None:
        """Ends the stream: it sends RST_STREAM if the response has not ended, and drops the rest.

        httpcore sends none. The server would go on sending, and what nobody reads would count for
        the connection's window and its number of streams, until no other stream got anything.
        """
        protocol = self._connection.protocol
        if protocol is None:
            return
        self._connection.note_end()
        # On a crowded connection each writer waits for its turn. The next writer also sends the
        # frame of this stream; the steps below must not wait for that.
        with anyio.move_on_after(RESET_SECONDS):
            # The connection may have ended meanwhile, and the stream with it.
            with contextlib.suppress(Exception):
                await self._reset(protocol)

    async def _reset(self, protocol: Any) -> None:
        state = protocol._h2_state
        stream = state.streams.get(self._stream_id)
        is_open = stream is not None and not stream.closed
        unread = 0
        events: list[Any] = protocol._events.get(self._stream_id, [])
        for event in events:
            unread += getattr(event, "flow_controlled_length", None) or 0
        # A read of the remaining body fails at once: no more frames will come for it.
        # It must not end: the end of the body completes a response of some wires.
        events[:] = [
            _event("StreamReset", stream_id=self._stream_id, error_code=CANCEL, remote_reset=False)
        ]
        if is_open:
            state.reset_stream(self._stream_id, CANCEL)
        if unread:
            state.acknowledge_received_data(unread, self._stream_id)
        if is_open or unread:
            await protocol._write_outgoing_data(self._request)


class Http2Socket:
    """The socket of a connection: a request that is cancelled does not truncate a write.

    It has the methods of httpcore's ``AsyncNetworkStream``, and their arguments.
    """

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._is_whole = True
        """False during a write, and after a write that was incomplete."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """The next bytes."""
        data: bytes = await self._socket.read(max_bytes, timeout)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Writes all of it, or closes the connection."""
        self._is_whole = False
        try:
            await ShieldedAwait(self._write_parts(buffer, timeout))
        finally:
            if not self._is_whole:
                deadline = anyio.current_time() + CLOSING_SECONDS
                with anyio.CancelScope(shield=True, deadline=deadline):
                    await self._socket.aclose()

    async def _write_parts(self, buffer: bytes, timeout: float | None) -> None:  # noqa: ASYNC109
        for start in range(0, len(buffer), WRITE_BYTES):
            part = buffer[start : start + WRITE_BYTES]
            if self._takes_writes():
                # The socket takes the part at once: a cancellation could only come before it.
                deadline = anyio.current_time() + CLOSING_SECONDS
                with anyio.CancelScope(shield=True, deadline=deadline) as scope:
                    await self._socket.write(part, timeout)
                if scope.cancelled_caught:
                    raise TimeoutError("the connection accepts no more data")
            else:
                # The server reads nothing: this wait may be long, and a cancellation ends it.
                await self._socket.write(part, timeout)
        self._is_whole = True

    def _takes_writes(self) -> bool:
        raw = self._socket.get_extra_info("socket")
        if raw is None or raw.fileno() < 0 or not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(raw.fileno(), select.POLLOUT)
        return bool(poll.poll(0))

    async def aclose(self) -> None:
        """Closes the socket."""
        await self._socket.aclose()

    def get_extra_info(self, info: str) -> Any:
        """Values that httpcore asks for: the socket, its addresses, whether it is readable."""
        return self._socket.get_extra_info(info)


def _protocol(connection: Any) -> Any:
    """The ``AsyncHTTP2Connection`` of a pool's connection; None if it is none."""
    for _ in range(LAYERS):
        if hasattr(connection, "_h2_state"):
            return connection
        connection = getattr(connection, "_connection", None)
    return None


def _event(name: str, **values: Any) -> Any:
    """An event of h2. Its versions differ in what the constructor takes."""
    kind: Any = getattr(importlib.import_module("h2.events"), name)
    event = kind.__new__(kind)
    for key, value in values.items():
        setattr(event, key, value)
    return event
