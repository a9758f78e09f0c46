"""Adapters to HTTP libraries. No other package of streamlib imports one.

`transport_for` accepts whatever a user brings: an `httpx.AsyncClient`, an `httpx2.AsyncClient`, any
object with their methods, an `aiohttp.ClientSession`, or a `Transport` of the user's own.

Every transport keeps these rules: redirects are never followed, the body is never decoded by the
library, and no request waits in the library's own connection pool. A waiter that is cancelled
there occupies its place for ever (encode/httpcore #830), so callers wait at `slots`, an
`anyio.CapacityLimiter`, which can be cancelled safely.
"""

from __future__ import annotations

from typing import Any

from streamlib.transport.base import (
    CONNECTIONS,
    KEEPALIVE_SECONDS,
    UNKNOWN_POOL,
    HttpResponse,
    IteratorResponse,
    ReadTimeout,
    Transport,
)
from streamlib.transport.httpcore_pool import pool_size
from streamlib.transport.httpx import HttpxResponse, HttpxTransport, default_client

__all__ = [
    "CONNECTIONS",
    "KEEPALIVE_SECONDS",
    "UNKNOWN_POOL",
    "HttpResponse",
    "HttpxResponse",
    "HttpxTransport",
    "IteratorResponse",
    "ReadTimeout",
    "Transport",
    "transport_for",
]


def transport_for(http: Any = None, connections: int | None = None) -> Transport:
    """Returns the transport for an HTTP client.

    Args:
        http: None (the library creates a client), an httpx or httpx2 client, any object with their
            methods, an aiohttp session, or a `Transport`, which is returned unchanged.
        connections: Concurrent streams; the default is the size of the client's own pool.

    Raises:
        TypeError: `http` is none of these.
        ModuleNotFoundError: `http` is None and neither httpx nor httpx2 is installed.
    """
    if http is None:
        return HttpxTransport(default_client(), connections or CONNECTIONS, owned=True)
    if hasattr(http, "build_request"):
        return HttpxTransport(http, connections or pool_size(http), owned=False)
    if hasattr(http, "ws_connect"):  # an aiohttp.ClientSession
        # aiohttp is an optional dependency, and importing it takes longer than httpx.
        from streamlib.transport.aiohttp import AiohttpTransport

        return AiohttpTransport(http, connections)
    if not (hasattr(http, "send") and hasattr(http, "aclose")):
        raise TypeError(
            "http= takes an httpx.AsyncClient, an httpx2.AsyncClient, an aiohttp.ClientSession "
            f"or a Transport, not {type(http).__name__}"
        )
    transport: Transport = http
    return transport
