"""Adapters to HTTP libraries. No other package of streamlib imports one.

`transport_for` accepts whatever a user brings: the name of a library, an `httpx.AsyncClient`, an
`httpx2.AsyncClient`, any object with their methods, an `aiohttp.ClientSession`, or a `Transport` of
the user's own.

Every transport keeps these rules: redirects are never followed, the body is never decoded by the
library, and no request waits in the library's own connection pool. A waiter that is cancelled
there stays in the queue for ever (encode/httpcore #830), so callers wait at `slots`, an
`anyio.CapacityLimiter`, which can be cancelled safely.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final
from urllib.request import getproxies

from anyio.lowlevel import current_token

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
from streamlib.transport.httpx import (
    HttpxResponse,
    HttpxTransport,
    OwnHttpxTransport,
    default_library,
)

__all__ = [
    "CONNECTIONS",
    "KEEPALIVE_SECONDS",
    "LIBRARIES",
    "UNKNOWN_POOL",
    "HttpResponse",
    "HttpxResponse",
    "HttpxTransport",
    "IteratorResponse",
    "ReadTimeout",
    "Transport",
    "check_library",
    "transport_for",
]

LIBRARIES: Final = ("httpx", "httpx2", "aiohttp")
"""HTTP libraries that can be named: `transport_for` makes a client or a session of them."""

PROXIES: Final = ("http", "https")
"""Protocols of proxies that aiohttp knows."""


def check_library(http: Any) -> None:
    """Checks what a client is given as `http`, without importing a library.

    Args:
        http: as in `transport_for`.

    Raises:
        TypeError: no requests can be sent with it.
        ValueError: it is a text, and not the name of a library.
        ModuleNotFoundError: the named library is not installed.
    """
    if http is None:
        return
    if not isinstance(http, str):
        _check_http_client(http)
        return
    if http not in LIBRARIES:
        names = ", ".join([f'"{name}"' for name in LIBRARIES])
        raise ValueError(f'http="{http}" names no HTTP library; those that can be named: {names}')
    if find_spec(http) is None:
        raise ModuleNotFoundError(
            f'http="{http}" needs {http}: pip install "streamlib[{http}]"', name=http
        )


def transport_for(http: Any = None, connections: int | None = None) -> Transport:
    """The transport for an HTTP client.

    Args:
        http: None (a client of the library that fits the running loop), the name of one of
            `LIBRARIES` (a client of that one), an httpx or httpx2 client, any object with their
            methods, an aiohttp session, or a `Transport`, which is returned unchanged.
        connections: concurrent streams; the default is the size of the client's own pool.

    Raises:
        TypeError: `http` is none of these.
        ValueError: `http` is a text, and not the name of a library.
        ModuleNotFoundError: `http` is None and neither httpx nor httpx2 is installed, or it names
            a library that is not installed.
    """
    check_library(http)
    if http == "aiohttp":
        # aiohttp is an optional dependency, and importing it takes longer than httpx.
        from streamlib.transport.aiohttp import AiohttpTransport

        return AiohttpTransport(connections=connections)
    if isinstance(http, str):
        return OwnHttpxTransport(http, connections or CONNECTIONS)
    if http is None and _takes_aiohttp():
        return transport_for("aiohttp", connections)
    if http is None:
        return OwnHttpxTransport(default_library(), connections or CONNECTIONS)
    if hasattr(http, "build_request"):
        return HttpxTransport(http, connections or pool_size(http), owned=False)
    if hasattr(http, "ws_connect"):  # an aiohttp.ClientSession
        from streamlib.transport.aiohttp import AiohttpTransport

        return AiohttpTransport(http, connections)
    transport: Transport = http
    return transport


def _check_http_client(http: Any) -> None:
    """Refuses a class, and a client without methods to await, such as `httpx.Client`.

    Raises:
        TypeError: it says what is taken.
    """
    is_client = hasattr(http, "build_request") or hasattr(http, "ws_connect")
    is_sync = is_client and hasattr(http, "__enter__") and not hasattr(http, "__aenter__")
    is_transport = hasattr(http, "send") and hasattr(http, "aclose")
    if not isinstance(http, type) and (is_client or is_transport) and not is_sync:
        return
    kind = f"the class {http.__name__}" if isinstance(http, type) else type(http).__name__
    raise TypeError(
        "http= takes the name of a library, an httpx.AsyncClient, an httpx2.AsyncClient, an "
        f"aiohttp.ClientSession or a Transport, not {kind}"
    )


def _takes_aiohttp() -> bool:
    """Whether aiohttp is installed and can send all requests of this loop.

    On asyncio an event costs a third of what it costs through httpx.
    """
    if find_spec("aiohttp") is None or not _runs_asyncio():
        return False
    proxies = [url for scheme, url in getproxies().items() if scheme != "no"]
    # It knows no SOCKS, which httpx may.
    return all(url.partition("://")[0].lower() in PROXIES or "://" not in url for url in proxies)


def _runs_asyncio() -> bool:
    try:
        loop = current_token()
    except RuntimeError:  # no loop runs
        return False
    return loop.backend_class.__module__.endswith("_asyncio")
