"""Access to private fields of httpcore's connection pool. No other module reads them.

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
"""

from __future__ import annotations

from typing import Any

from streamlib.transport.base import UNKNOWN_POOL


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
