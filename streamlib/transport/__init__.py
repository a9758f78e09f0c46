"""The HTTP library, behind four words. Nothing else in the package knows one.

    answer = await transport.send("POST", url, headers, body, deadlines)
    async for chunk in answer.chunks: ...
    await answer.aclose()                       # the connection is closed, or kept where everything was read

`transport_for` takes whatever a user brings: an `httpx.AsyncClient`, an `httpx2.AsyncClient`, anything with their methods, an
`aiohttp.ClientSession` (`transport_aiohttp.py`), or a `Transport` of one's own. Redirects are never followed, the body is never decoded
behind our back, and no request ever waits in httpx's own pool: a cancelled waiter there loses its place for ever (encode/httpcore #830),
so callers queue at `slots`, which is cancelled cleanly.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Mapping
from functools import cache
from typing import Any, Final, Protocol

import anyio

from streamlib.transport.closing import CLOSING_SECONDS, ShieldedAwait, exhaust
from streamlib.transport.deadlines import FOREVER, Deadlines
from streamlib.transport.errors import is_connection_closed

CONNECTIONS: Final = 1000
"""Streams at once through a client of ours."""
KEPT_CONNECTIONS: Final = 100
KEEPALIVE_SECONDS: Final = 60.0
"""An agent's tools run between two requests: the connection should still be there."""

UNKNOWN_POOL: Final = 100
"""Streams at once through a client whose pool does not tell its size: httpx's own default."""


class HttpResponse(Protocol):
    """The answer to a request, its body still to come.

    A transport whose reads end by themselves after `deadlines.longest_silence` may say so in an attribute `read_timeout`, in seconds: the
    caller then needs no timeout of its own around each read. Without it, reads are taken to wait for ever.
    """

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        ...

    def aclose(self) -> Coroutine[Any, Any, None]:
        """Lets go of the connection, and of `chunks` with it; allowed from another task while a chunk is waited for."""
        ...


class Transport(Protocol):
    """What the client needs of an HTTP library. It follows no redirect."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """Sends a request and waits for the head of its answer."""
        ...

    async def aclose(self) -> None:
        """Lets go of every connection."""
        ...


def transport_for(http: Any = None, connections: int | None = None) -> Transport:
    """The transport of `http`: None (a client of ours), an httpx or httpx2 client, anything with their methods, an aiohttp session, or a
    `Transport`.
    """
    if http is None:
        return HttpxTransport(_own_client(), connections or CONNECTIONS, owned=True)
    if hasattr(http, "build_request"):
        return HttpxTransport(http, connections or pool_size(http), owned=False)
    if hasattr(http, "ws_connect"):  # aiohttp's session
        from streamlib.transport.aiohttp import AiohttpTransport

        return AiohttpTransport(http, connections)
    if not (hasattr(http, "send") and hasattr(http, "aclose")):
        raise TypeError(
            f"http= takes an httpx.AsyncClient, an httpx2.AsyncClient, an aiohttp.ClientSession or a Transport, not {type(http).__name__}"
        )
    transport: Transport = http
    return transport


def _own_client() -> Any:
    """httpx, or httpx2 where only that is loaded or installed. Its pool is boundless: `slots` are the bound."""
    preferred = (
        ("httpx2", "httpx")
        if "httpx2" in sys.modules and "httpx" not in sys.modules
        else ("httpx", "httpx2")
    )
    for name in preferred:
        with contextlib.suppress(ModuleNotFoundError):
            library = importlib.import_module(name)
            limits = library.Limits(
                max_connections=None,
                max_keepalive_connections=KEPT_CONNECTIONS,
                keepalive_expiry=KEEPALIVE_SECONDS,
            )
            return library.AsyncClient(
                limits=limits, timeout=None, follow_redirects=False, verify=_tls(name)
            )
    raise ModuleNotFoundError(
        "streamlib sends requests with httpx or httpx2: install one of them, or give http= a transport"
    )


@cache
def _tls(library: str) -> Any:
    """The library's own trust, read once: it takes a tenth of a second, for every client."""
    return importlib.import_module(library).create_ssl_context()


def pool_size(client: Any) -> int:
    """How many connections a user's client may have, as far as it tells: its smallest pool."""
    sizes = [getattr(pool, "_max_connections", None) for pool in _pools(client)]
    return min([size for size in sizes if isinstance(size, int) and size > 0], default=UNKNOWN_POOL)


def _pools(client: Any) -> list[Any]:
    """httpcore's pools in a client, where it is made of them."""
    transports = [
        getattr(client, "_transport", None),
        *dict(getattr(client, "_mounts", {})).values(),
    ]
    return [pool for one in transports if (pool := getattr(one, "_pool", None)) is not None]


class HttpxTransport:
    """A client with httpx's methods."""

    def __init__(self, client: Any, connections: int, *, owned: bool) -> None:
        self._client = client
        self._owned = owned
        self.slots = anyio.CapacityLimiter(connections)

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """See `Transport`. A kept connection that turns out to be closed is replaced, once, if no byte of an answer came."""
        trace = _Trace()
        try:
            return await self._send(method, url, headers, body, deadlines, trace)
        except Exception as error:
            if not (trace.reused and is_connection_closed(error)):
                raise
        return await self._send(method, url, headers, body, deadlines, _Trace())

    async def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        deadlines: Deadlines,
        trace: _Trace,
    ) -> HttpxResponse:
        # One dict, read by the library when it begins to wait for the head and again for the body.
        timeouts = {
            "connect": deadlines.connect,
            "read": deadlines.first_byte,
            "write": None,
            "pool": None,
        }
        extensions = {"timeout": timeouts, "trace": trace}
        request = self._client.build_request(
            method, url, headers=headers, content=body, extensions=extensions
        )
        request.stream = _with_plain_body(request.stream, body)
        try:
            response = await self._client.send(request, stream=True, follow_redirects=False)
        except BaseException:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + CLOSING_SECONDS):
                await ShieldedAwait(self._close_half_open(trace.made))
            raise
        timeouts["read"] = deadlines.longest_silence
        return HttpxResponse(
            response, timeouts["read"] if "network_stream" in response.extensions else None
        )

    async def _close_half_open(self, made: Any) -> None:
        """Closes the connection that a request made before it failed: cancelled in a handshake, or before its first byte, it would be
        left open, and in httpcore 1 keep its place in the pool for ever.
        """
        if made is None:
            return
        with contextlib.suppress(Exception):
            await made.aclose()
        for connection in [
            one for pool in _pools(self._client) for one in getattr(pool, "connections", ())
        ]:
            if (
                getattr(getattr(connection, "_connection", None), "_network_stream", None) is made
                and ", NEW," in connection.info()
            ):
                await connection.aclose()

    async def aclose(self) -> None:
        """Closes the client if it is ours."""
        if self._owned:
            await self._client.aclose()


class _Trace:
    """Told by httpcore what it does: which connection it makes, or that it uses a kept one."""

    def __init__(self) -> None:
        self.made: Any = None
        self._connected = self._told = False

    async def __call__(self, event: str, info: Any) -> None:
        self._told = True
        self._connected |= ".connect_" in event
        if event.endswith(
            (".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")
        ):
            self.made = info.get("return_value")

    @property
    def reused(self) -> bool:
        return self._told and not self._connected


def _with_plain_body(stream: Any, body: bytes) -> Any:
    """httpx's own body is an async generator: a cancellation while it is sent leaves it half run, for trio to complain of."""
    bases = [kind for kind in type(stream).__mro__ if kind.__name__ == "AsyncByteStream"]
    return _body_type(bases[0])(body) if bases else stream


@cache
def _body_type(base: type) -> Any:
    return type("Body", (_Body, base), {})


class _Body:
    """The bytes of a request, once for each time they are sent."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __aiter__(self) -> _SingleChunk:
        return _SingleChunk(self._body)


class _SingleChunk:
    """One chunk."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    def __aiter__(self) -> _SingleChunk:
        return self

    async def __anext__(self) -> bytes:
        if self._body is None:
            raise StopAsyncIteration
        body, self._body = self._body, None
        return body


class HttpxResponse:
    """A response of httpx's kind. See `Answer`."""

    def __init__(self, response: Any, read_timeout: float | None) -> None:
        self._response = response
        self.read_timeout = FOREVER if read_timeout is None else read_timeout
        self.status: int = response.status_code
        self.headers: dict[str, str] = {
            name.lower(): value for name, value in response.headers.items()
        }
        # Not `aiter_raw`: it is one hop more, and closes the response where a cancellation can leave it half closed.
        stream: Any = getattr(response, "stream", None)
        self.chunks: AsyncIterator[bytes] = aiter(
            stream if hasattr(stream, "__aiter__") else response.aiter_raw()
        )

    async def aclose(self) -> None:
        """See `Answer`. A closed response leaves httpx's generators half run, for the collector to complain of: they are run out."""
        await self._response.aclose()
        await exhaust(self.chunks)


class IteratorResponse:
    """Bytes from anywhere, as an `Answer`."""

    status = 200

    def __init__(
        self, chunks: AsyncIterable[bytes], headers: Mapping[str, str] | None = None
    ) -> None:
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        self.chunks = aiter(chunks)

    async def aclose(self) -> None:
        """Closes the iterator, if that can be done."""
        close = getattr(self.chunks, "aclose", None)
        if close is not None:
            with contextlib.suppress(RuntimeError):  # it is being read by another task
                await close()
