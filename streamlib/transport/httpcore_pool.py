"""Access to private fields of httpcore's connection pool. `httpcore_http2` has those of HTTP/2.

Verified with httpx 0.28.1 on httpcore 1.0.9 and httpx2 2.16.2 on httpcore2 2.16.2, whose fields
have the same names. Every read has a default: on a version that renamed a field, the pool size
becomes `UNKNOWN_POOL`, and a connection that a cancelled request left half open stays in the pool.
`tests/streamlib/transport/test_connections.py` fails then, in its tests of cancellations.

What is read:

- `AsyncClient._transport` and `AsyncClient._mounts` (httpx): its transports
- ``AsyncHTTPTransport._pool`` (httpx): the ``AsyncConnectionPool``
- ``AsyncConnectionPool._max_connections``
- ``AsyncHTTPConnection._connection`` and ``AsyncHTTP11Connection._network_stream``: the socket
- `connection.info()`, public, whose text holds the state: `'http://host:80', HTTP/1.1, NEW, ...`
- ``_stream``, ``_httpcore_stream`` and ``_connection`` of the streams under a response's body, down
  to the ``AsyncHTTP11Connection``, and its ``_h11_state``, an ``h11.Connection``
- ``_stream`` of its socket: an anyio or trio stream, with ``transport_stream`` under TLS. anyio
  buffers in ``_protocol.read_queue`` (asyncio) and ``_read_bio`` (TLS), trio in ``_incoming`` (TLS)
- ``AsyncConnectionPool._requests``, each with `request` and `connection`
"""

from __future__ import annotations

import contextlib
from typing import Any

from streamlib.transport.base import UNKNOWN_POOL
from streamlib.transport.httpcore_http2 import LAYERS


def pool_size(client: Any) -> int:
    """The number of connections that a user's httpx client allows: its smallest pool."""
    sizes: list[int] = []
    for pool in _pools(client):
        size = getattr(pool, "_max_connections", None)
        if isinstance(size, int) and size > 0:
            sizes.append(size)
    return min(sizes, default=UNKNOWN_POOL)


async def close_half_open(client: Any, network_stream: Any) -> None:
    """Closes the pool's connection over `network_stream` if it has carried no request yet.

    A request that is cancelled during the handshake, or before the first byte of its response,
    leaves such a connection. httpcore 1 never closes it, and it counts for the pool's limit for
    ever.
    """
    for pool in _pools(client):
        # A copy: closing a connection removes it from the pool's list.
        connections: list[Any] = list(getattr(pool, "connections", ()))
        for connection in connections:
            protocol = getattr(connection, "_connection", None)
            if getattr(protocol, "_network_stream", None) is not network_stream:
                continue
            if ", NEW," in connection.info():
                await connection.aclose()


class SharedConnections:
    """Connections that requests of a client opened, and that the pool may have lost.

    While one request opens a connection that may carry several (HTTP/2), others wait for it. If one
    of those is cancelled, httpcore takes the connection for failed and forgets it: it is then
    opened and used, but never closed.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lost: list[tuple[Any, Any]] = []
        """Pairs of a pool and a connection that the pool has forgotten."""

    def find(self, request: Any) -> tuple[Any, Any] | None:
        """The pool and the connection of a request that is being sent, if they are known."""
        for pool in _pools(self._client):
            for entry in getattr(pool, "_requests", ()):
                if getattr(entry, "request", None) is request:
                    return pool, getattr(entry, "connection", None)
        return None

    def note_opened(self, request: Any) -> None:
        """Called when a request has opened its connection, and is about to use it."""
        known = self.find(request)
        if known is None:
            return
        pool, connection = known
        # Usually the pool has it, and closes it.
        if connection is not None and connection not in pool.connections:
            self._lost.append(known)

    async def close_lost(self) -> None:
        """Closes the connections that the pool has forgotten and no request uses any more."""
        for lost in list(self._lost):
            pool, connection = lost
            users = [entry.connection for entry in pool._requests]
            # Another task may have closed it while this one closed the one before.
            if connection in users or lost not in self._lost:
                continue
            self._lost.remove(lost)
            with contextlib.suppress(Exception):
                await connection.aclose()


def keep_only_if_empty(response: Any) -> None:
    """Makes the pool close the connection of a response if it holds bytes after that response.

    They would be read as the response to the next request. httpcore looks for such bytes in the
    socket alone; they may also be in a buffer: of h11, of the event loop, or of TLS.
    """
    connection = _http11_connection(response)
    if connection is None:
        return
    state = connection._h11_state
    if state.trailing_data[0] or _has_buffered_bytes(connection._network_stream):
        # The public way to make h11 refuse another request: httpcore closes the connection then.
        state.send_failed()


def _http11_connection(response: Any) -> Any:
    """The connection under a response of HTTP/1.1; None for any other, or an unknown library."""
    layer = getattr(response, "stream", None)
    for _ in range(LAYERS):
        for name in ("_stream", "_httpcore_stream", "_connection"):
            below = getattr(layer, name, None)
            if below is not None:
                break
        else:
            return None
        layer = below
        if hasattr(layer, "_h11_state") and hasattr(layer, "_network_stream"):
            return layer
    return None


def _has_buffered_bytes(network_stream: Any) -> bool:
    layer = getattr(network_stream, "_stream", None)
    for _ in range(LAYERS):
        if layer is None:
            return False
        if getattr(getattr(layer, "_protocol", None), "read_queue", None):
            return True
        for name in ("_read_bio", "_incoming", "_ssl_object"):
            if _pending(getattr(layer, name, None)):
                return True
        layer = getattr(layer, "transport_stream", None)
    return False


def _pending(buffer: Any) -> int:
    """Bytes in a buffer of TLS."""
    pending: Any = getattr(buffer, "pending", 0)
    if callable(pending):  # of an SSLObject; a MemoryBIO has a number
        pending = pending()
    count: int = pending
    return count


def _pools(client: Any) -> list[Any]:
    """The httpcore pools of a client; none for an object that only has httpx's methods."""
    transports = [getattr(client, "_transport", None)]
    transports.extend(dict(getattr(client, "_mounts", {})).values())
    pools: list[Any] = []
    for transport in transports:
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pools.append(pool)
    return pools
