"""Transport over httpx or httpx2, or over any object with the same methods.

The library is imported by name in `new_client` only: a user's client is used as it is, and
this module works with whichever of the two is installed.
"""

from __future__ import annotations

import contextlib
import importlib
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Any, Final
from urllib.request import getproxies

import anyio

from streamlib.transport.base import KEEPALIVE_SECONDS, HttpResponse, ReadTimeout
from streamlib.transport.closing import CLOSING_SECONDS, ShieldedAwait, exhaust
from streamlib.transport.deadlines import FOREVER, Deadlines
from streamlib.transport.errors import is_connection_closed
from streamlib.transport.httpcore_http2 import Http2Connection, Http2Stream
from streamlib.transport.httpcore_pool import (
    SharedConnections,
    close_half_open,
    keep_only_if_empty,
)

IDLE_CONNECTIONS: Final = 100
"""Idle connections that a client created here keeps."""

FINITE: Final = 1e9
"""Seconds of a timeout that is finite, but long enough to be no limit."""

_CONNECTED: Final = (
    ".connect_tcp.complete",
    ".connect_unix_socket.complete",
    ".start_tls.complete",
)
"""httpcore's trace events whose result is the socket of a new connection."""


def default_library() -> str:
    """The name of httpx, or of httpx2 if only that is loaded or installed.

    Raises:
        ModuleNotFoundError: neither library is installed.
    """
    libraries = ["httpx", "httpx2"]
    # A program that has loaded httpx2 alone should not load a second HTTP library.
    if "httpx2" in sys.modules and "httpx" not in sys.modules:
        libraries.reverse()
    for name in libraries:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
            return name
    raise ModuleNotFoundError(
        "streamlib sends requests with httpx or httpx2: install one of them, "
        "or pass a transport as http="
    )


def new_client(name: str, tls: Any) -> Any:
    """An `AsyncClient` of httpx or httpx2.

    Args:
        name: name of the library.
        tls: TLS context of the client.

    Its pool is unlimited, so that no request waits there; the limit is `HttpxTransport.slots`.

    Raises:
        ModuleNotFoundError: the library is not installed.
    """
    library = importlib.import_module(name)
    limits = library.Limits(
        max_connections=None,
        max_keepalive_connections=IDLE_CONNECTIONS,
        keepalive_expiry=KEEPALIVE_SECONDS,
    )
    # No timeout here: each request has its own.
    return library.AsyncClient(
        limits=limits, timeout=None, follow_redirects=False, verify=tls, cookies=_no_cookies()
    )


def _no_cookies() -> Any:
    """A jar that keeps no cookie: the next request may have another user's key."""
    # Imported here because it takes 2 ms; the HTTP library has imported it by now.
    from http.cookiejar import CookieJar

    class NoCookies(CookieJar):
        def extract_cookies(self, response: Any, request: Any) -> None:
            """Keeps nothing, and does not parse what a server wrote."""

    return NoCookies()


@cache
def tls_context(library: str) -> Any:
    """The library's default TLS context, shared by all clients: reading the CA file takes 23 ms."""
    return importlib.import_module(library).create_ssl_context()


@cache
def trusting_nobody() -> ssl.SSLContext:
    """A TLS context without a CA: whatever is sent over TLS with it fails."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


_SENDING: Final = (".send_connection_init.started", ".send_request_headers.started")
"""Trace events of a request that has its connection."""


_TUNNEL_BEGINS: Final = "socks.setup_socks5_connection.started"
_TUNNEL_ENDS: Final = ("socks.setup_socks5_connection.complete", "proxy.start_tls.started")
"""Trace events of a proxy. A tunnel over HTTP begins with a request of its own, CONNECT."""


class TunnelTimeout(TimeoutError):
    """A proxy did not open its tunnel in time."""


class HttpxTransport:
    """Sends requests through a client with httpx's methods.

    Args:
        client: an `httpx.AsyncClient`, an `httpx2.AsyncClient`, or an object with their
            `build_request`, `send` and `aclose`.
        connections: concurrent streams.
        owned: whether `aclose` closes the client.
    """

    def __init__(self, client: Any, connections: int, *, owned: bool) -> None:
        self._client = client
        self._owned = owned
        self.slots = anyio.CapacityLimiter(connections)
        """One token per stream; the client acquires it before `send`."""
        self._shared = SharedConnections(client)

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """See `Transport`.

        A reused connection that the server had already closed is replaced once, provided that no
        byte of a response was received.
        """
        trace = _Trace(deadlines, self._shared)
        try:
            return await self._send(method, url, headers, body, trace)
        except Exception as error:
            if not (trace.reused and is_connection_closed(error)):
                raise
        return await self._send(method, url, headers, body, _Trace(deadlines, self._shared))

    async def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        trace: _Trace,
    ) -> HttpxResponse:
        extensions = {"timeout": trace.timeouts, "trace": trace}
        request = self._client.build_request(
            method, url, headers=headers, content=body, extensions=extensions
        )
        request.stream = _with_plain_body(request.stream, body)
        response: Any = None
        try:
            with trace.scope:
                response = await self._client.send(request, stream=True, follow_redirects=False)
            if response is None:  # the scope expired
                if trace.is_tunnelling:
                    raise TunnelTimeout("the proxy opened no tunnel")
                raise TimeoutError("no byte of the response was received")
        except BaseException:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + CLOSING_SECONDS):
                await ShieldedAwait(self._close_unused(trace))
            raise
        # The library looks its timeout up again when it begins to read the body. A response from a
        # mock transport has no socket, and nothing that applies it.
        if trace.is_http2 or "network_stream" not in response.extensions:
            return HttpxResponse(response, None, self._shared, trace.http2_stream)
        trace.timeouts["read"] = read_timeout = SocketReadTimeout()
        return HttpxResponse(response, read_timeout, self._shared)

    async def _close_unused(self, trace: _Trace) -> None:
        """Closes the connection that a request opened before it failed or was cancelled."""
        if trace.opening is not None:
            await trace.opening.aclose()
        await self._shared.close_lost()
        network_stream = trace.new_stream
        if network_stream is None:
            return
        # In a handshake the pool does not know the socket yet: it is closed directly.
        with contextlib.suppress(Exception):
            await network_stream.aclose()
        await close_half_open(self._client, network_stream)

    async def aclose(self) -> None:
        """Closes the client if it is owned."""
        if self._owned:
            await self._client.aclose()


class OwnHttpxTransport:
    """Sends requests through clients that this library creates: one over TLS, and one without.

    The first is created by the first request over TLS, since it reads the certificates: a local
    server needs none.

    Args:
        library: name of the HTTP library.
        connections: concurrent streams.
    """

    def __init__(self, library: str, connections: int) -> None:
        self.slots = anyio.CapacityLimiter(connections)
        """One token per stream, for both clients together."""
        self._library = library
        self._connections = connections
        self._has_proxies = bool(getproxies())
        """Whether the environment names proxies: these may need TLS, whatever the URL."""
        self._plain = self._transport(trusting_nobody())
        self._secure: HttpxTransport | None = None
        """None until the first request over TLS."""

    def _transport(self, tls: Any) -> HttpxTransport:
        return HttpxTransport(new_client(self._library, tls), self._connections, owned=True)

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """See `Transport`."""
        if url.startswith("http://") and not self._has_proxies:
            return await self._plain.send(method, url, headers, body, deadlines)
        if self._secure is None:
            self._secure = self._transport(tls_context(self._library))
        return await self._secure.send(method, url, headers, body, deadlines)

    async def aclose(self) -> None:
        """Closes both clients."""
        try:
            await self._plain.aclose()
        finally:
            if self._secure is not None:
                await self._secure.aclose()


class SocketReadTimeout(float):
    """The `read` timeout of a response's body: a deadline for all socket reads of one chunk.

    The library passes it to ``fail_after`` of anyio or trio at each read of the socket, which adds
    it to the current time. That sum is one and the same deadline until the next `start`, so that
    bytes which complete no chunk (chunk extensions, trailers, compressed bytes that unpack to
    nothing) do not postpone it.

    Its value as a number must be finite: trio ignores an infinite timeout without adding it.
    """

    def __new__(cls) -> SocketReadTimeout:
        """A timeout that is no limit before the first `start`."""
        return super().__new__(cls, FINITE)

    def __init__(self) -> None:
        self._seconds = FOREVER
        """Seconds that the current read of a chunk may take."""
        self._deadline: float | None = None
        """Loop time, in seconds, when it must end; None until it waits for the socket."""

    def start(self, seconds: float) -> None:
        """See `ReadTimeout`."""
        self._seconds = seconds
        self._deadline = None

    def __radd__(self, now: float) -> float:
        """The deadline of a read of the socket that begins now.

        Raises:
            TimeoutError: it has passed. A scope that is late from its start would not end the read
                on uvloop where bytes are there at every turn of a busy loop.
        """
        if self._deadline is None:
            self._deadline = now + self._seconds
        elif now >= self._deadline:
            raise TimeoutError
        return self._deadline


class _Trace:
    """httpcore's trace callback for one request: records whether it opened a connection, and which.

    Over HTTP/2 it also applies `first_byte`. A read of that socket says nothing of this response:
    frames for others and pings arrive all the while, and a read timeout would end the others too.
    """

    def __init__(self, deadlines: Deadlines, shared: SharedConnections) -> None:
        self.timeouts: dict[str, float | None] = {
            "connect": deadlines.connect,
            "read": deadlines.first_byte,
            "write": None,  # a large prompt may take long to upload
            "pool": None,  # callers wait at `slots` instead
        }
        """httpcore looks them up when it begins to connect, to write and to read."""
        self.scope = anyio.CancelScope()
        """Around the request, up to the response headers."""
        self.is_http2 = False
        self.is_tunnelling = False
        """Set while a proxy opens its tunnel."""
        self.new_stream: Any = None
        """The socket of a connection opened for this request, while it is this request's alone;
        the TLS stream once there is one."""
        self._shared = shared
        self._connect = deadlines.connect
        self._first_byte = deadlines.first_byte
        self._called = False
        """Set by the first trace event: a client that is not httpcore's reports none."""
        self._connected = False
        """Set when the request began to open a connection."""
        self._is_noted = False
        """Set when the pool was asked whether it still has the connection that was opened."""
        self.opening: Http2Connection | None = None
        """The HTTP/2 connection that the request opens, until it can be used. If it were abandoned
        before that, it would count its streams wrongly, and refuse or stall some."""
        self.http2_stream: Http2Stream | None = None
        """The request on a connection of HTTP/2, until its response is closed."""

    async def __call__(self, event: str, info: Any) -> None:
        self._called = True
        is_connect = event.endswith(_SENDING) and info["request"].method == b"CONNECT"
        if is_connect or event == _TUNNEL_BEGINS or event in _TUNNEL_ENDS:
            self._note_tunnel(is_waiting=event not in _TUNNEL_ENDS)
        if is_connect:
            return  # the request itself follows
        if ".connect_" in event:
            self._connected = True
        if event.endswith(_CONNECTED):
            self.new_stream = info.get("return_value")
        elif self._connected and not self._is_noted and event.endswith(_SENDING):
            self._is_noted = True
            self._shared.note_opened(info["request"])
        if event.startswith("http2."):
            self._note_http2(event, info)
            if event == "http2.response_closed.started" and self.http2_stream is not None:
                # The library's shield is around this, and its own work follows.
                await self.http2_stream.reset()

    def _note_tunnel(self, *, is_waiting: bool) -> None:
        """Applies `connect` while a proxy opens a tunnel, which is part of connecting.

        The library would apply the limit of the response, or none (SOCKS).
        """
        self.is_tunnelling = is_waiting
        self.scope.deadline = FOREVER
        if is_waiting and self._connect is not None:
            self.scope.deadline = anyio.current_time() + self._connect

    def _note_http2(self, event: str, info: Any) -> None:
        self.is_http2 = True
        self.timeouts["read"] = None
        # Other requests may use the connection from now on: this one must not close it.
        self.new_stream = None
        if event == "http2.send_connection_init.started":
            known = self._shared.find(info["request"])
            if known is not None:
                self.opening = Http2Connection(known[1])
                self.opening.open()
        elif event == "http2.send_request_headers.started":
            self.opening = None
            known = self._shared.find(info["request"])
            if known is not None:
                self.http2_stream = Http2Stream(known[1], info["request"], info["stream_id"])
        if event == "http2.receive_response_headers.started" and self._first_byte is not None:
            self.scope.deadline = anyio.current_time() + self._first_byte

    @property
    def reused(self) -> bool:
        """Whether the request went out on an existing connection."""
        return self._called and not self._connected


def _with_plain_body(stream: Any, body: bytes) -> Any:
    """A request body that is not an async generator, if the library has its usual base class.

    httpx's own body is an async generator; one that is cancelled while it is sent stays
    suspended, and trio warns when it is collected.
    """
    for base in type(stream).__mro__:
        if base.__name__ == "AsyncByteStream":
            return _body_type(base)(body)
    return stream


@cache
def _body_type(base: type) -> Any:
    """`_HttpxBody` as a subclass of the library's stream type, which the library checks for."""
    return type("Body", (_HttpxBody, base), {})


class _HttpxBody:
    """The bytes of a request; each iteration yields them once."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __aiter__(self) -> _SingleChunk:
        return _SingleChunk(self._body)


class _SingleChunk:
    """Iterator over one chunk."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        """None once it was yielded."""

    def __aiter__(self) -> _SingleChunk:
        return self

    async def __anext__(self) -> bytes:
        if self._body is None:
            raise StopAsyncIteration
        body, self._body = self._body, None
        return body


class HttpxResponse:
    """A response of httpx or httpx2. See `HttpResponse`."""

    def __init__(
        self,
        response: Any,
        read_timeout: ReadTimeout | None,
        shared: SharedConnections,
        http2_stream: Http2Stream | None = None,
    ) -> None:
        self._response = response
        self._shared = shared
        self._http2_stream = http2_stream
        """None over HTTP/1.1, and with an unknown library."""
        self.read_timeout = read_timeout
        """Ends a late read; None if the library cannot do that."""
        self.status: int = response.status_code
        self.headers: dict[str, str] = {}
        for name, value in response.headers.items():
            self.headers[name.lower()] = value
        # `aiter_raw` costs one more generator per chunk, and closes the response at a point where
        # a cancellation can leave it half closed: it serves objects without `stream` alone.
        chunks = getattr(response, "stream", None)
        if not hasattr(chunks, "__aiter__"):
            chunks = response.aiter_raw()
        self.chunks: AsyncIterator[bytes] = aiter(chunks)  # type: ignore[arg-type]

    async def aclose(self) -> None:
        """See `HttpResponse`.

        A closed response leaves httpx's generators suspended, and the garbage collector would
        warn: they are read to their end.
        """
        if self.read_timeout is not None:
            self.read_timeout.start(FOREVER)  # it may have expired, and the rest is read
        keep_only_if_empty(self._response)
        try:
            if self._http2_stream is not None:
                await self._http2_stream.reset()
                await exhaust(self.chunks)
            await self._response.aclose()
            await exhaust(self.chunks)
        finally:
            await self._shared.close_lost()
