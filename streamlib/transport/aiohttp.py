"""Transport over aiohttp: on asyncio, an event costs a fraction of what it costs through httpx.

    from streamlib import AiohttpTransport, Client

    async with Client(http=AiohttpTransport()) as client: ...   # or http= a ClientSession of yours

The rules of the other transport hold: no redirect is followed, nothing is decoded, callers wait at
`slots`, and a reused connection that turns out to be closed is replaced once.

aiohttp's own read timeout keeps running while the caller handles an event, and any byte restarts
it. So this module limits the reads of a body, by one timer per stream that most reads do not touch:
when the timer fires, it ends a read that is overdue, and otherwise it is set again.
"""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from os import environ
from typing import Any, Final, NoReturn
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import aiohttp
import anyio
from yarl import URL

from streamlib.transport.base import CONNECTIONS, KEEPALIVE_SECONDS, UNKNOWN_POOL, ReadTimeout
from streamlib.transport.deadlines import FOREVER, Deadlines
from streamlib.transport.errors import is_connection_closed
from streamlib_parsers.stream_error import invalid_request

__all__ = ["AiohttpResponse", "AiohttpTransport"]

LINE_BYTES: Final = 64 * 1024
"""Maximum length of a header line. All headers together have their own limit, in `client`."""

SKIPPED_HEADERS: Final = frozenset({"accept", "accept-encoding", "content-type", "user-agent"})
"""Headers that aiohttp would add: a request is sent exactly as it was built."""


class AiohttpTransport:
    """Sends requests through an aiohttp session. asyncio only.

    Args:
        session: a session, which its owner closes; None: one is created at the first request.
        connections: concurrent streams; the default is the limit of the session's connector.
    """

    def __init__(
        self, session: aiohttp.ClientSession | None = None, connections: int | None = None
    ) -> None:
        self._session = session
        """None until the first request, if the transport creates it."""
        self._owned = session is None
        self._proxies: dict[str, str] = {}
        """URLs of the environment's proxies by scheme; none for a session of the user's."""
        self._open_responses: WeakSet[AiohttpResponse] = WeakSet()
        """The responses that somebody holds: they end with a session that this transport owns."""
        if session is not None:
            _trace_reuse(session)
        self.slots = anyio.CapacityLimiter(connections or _pool_size(session))
        """One token per stream; the client acquires it before `send`."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> AiohttpResponse:
        """See `Transport`.

        A reused connection that the server had already closed is replaced once, provided that no
        byte of a response was received. A connection with bytes of an earlier response is closed.
        """
        session = self._open_session()
        target = URL(url, encoded=True)  # aiohttp would encode the path again: voids a signature
        proxy = await self._proxy_for(target)
        tls = self._tls_for(target, proxy)
        has_replaced = False
        while True:
            trace = _ConnectionTrace()
            try:
                response = await _send(
                    session, method, target, headers, body, deadlines, trace, proxy, tls
                )
            except Exception as error:
                is_stale = trace.reused and is_connection_closed(error)
                if not trace.has_unread and (has_replaced or not is_stale):
                    raise
                has_replaced = True
                continue
            came_too_early = trace.reused and body and not trace.is_sending
            if not (trace.has_unread or came_too_early):
                self._open_responses.add(response)
                return response
            # Earlier bytes were taken for the response. The request was not sent: `_AiohttpBody`.
            await response.aclose()

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            _require_asyncio()
            # No limit: requests wait at `slots`. No cookies: a request is sent as it was built.
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar()
            )
            self._proxies = getproxies()
            _trace_reuse(self._session)
        return self._session

    def _tls_for(self, url: URL, proxy: str | None) -> ssl.SSLContext | bool:
        """The TLS context of a request; True for that of aiohttp, or for none.

        Certificates are read when they are needed: a local server needs none.
        """
        if self._owned and (url.scheme == "https" or proxy):
            return tls_context()
        return True

    async def _proxy_for(self, url: URL) -> str | None:
        """The proxy that the environment names for a URL.

        aiohttp would read it with ``trust_env``, and then send the passwords of ``~/.netrc`` too,
        to providers and to proxies.

        Raises:
            StreamError: aiohttp lacks the proxy's protocol.
        """
        proxy = self._proxies.get(url.scheme) or self._proxies.get("all")
        if not proxy:
            return None
        # In a thread, because on Windows it may ask a name server.
        if await asyncio.to_thread(proxy_bypass, url.host or ""):
            return None
        if "://" not in proxy:
            return f"http://{proxy}"
        protocol = proxy.partition("://")[0].lower()
        if protocol not in ("http", "https"):
            message = f"the environment names a proxy of {protocol}, which aiohttp lacks"
            raise invalid_request(f'{message}: use Client(http="httpx")', "proxy")
        return proxy

    async def aclose(self) -> None:
        """Closes the session if the transport created it."""
        if self._owned and self._session is not None:
            # aiohttp would let their readers wait for ever.
            for response in list(self._open_responses):
                await response.aclose()
            await self._session.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a transport has connections: it cannot be pickled or copied")


def _require_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            'aiohttp runs on asyncio alone: on trio give http= an httpx client, "httpx" or nothing'
        ) from None


def _pool_size(session: aiohttp.ClientSession | None) -> int:
    """The number of connections that a session allows; 0 means no limit in aiohttp."""
    if session is None:
        return CONNECTIONS
    if session.connector is None:
        return UNKNOWN_POOL
    limits = (session.connector.limit, session.connector.limit_per_host)
    return min((limit for limit in limits if limit > 0), default=CONNECTIONS)


@cache
def tls_context() -> ssl.SSLContext:
    """The certificates that httpx trusts: certifi's, unless the environment names others.

    One for all sessions: reading them takes 23 ms.
    """
    file, folder = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if not (file or folder) and find_spec("certifi") is not None:
        file = import_module("certifi").where()
    context = ssl.create_default_context(cafile=file, capath=folder)
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _send(
    session: aiohttp.ClientSession,
    method: str,
    url: URL,
    headers: Mapping[str, str],
    body: bytes,
    deadlines: Deadlines,
    trace: _ConnectionTrace,
    proxy: str | None,
    tls: ssl.SSLContext | bool,  # noqa: FBT001  # what aiohttp takes
) -> AiohttpResponse:
    response = await session.request(
        method,
        url,
        headers=headers,
        proxy=proxy,
        ssl=tls,
        data=_AiohttpBody(body, trace) if body else None,
        skip_auto_headers=SKIPPED_HEADERS,
        allow_redirects=False,
        raise_for_status=False,
        auto_decompress=False,
        max_line_size=LINE_BYTES,
        max_field_size=LINE_BYTES,
        timeout=aiohttp.ClientTimeout(
            total=None,
            connect=_connecting_seconds(deadlines),
            sock_connect=deadlines.connect,
            sock_read=deadlines.first_byte,
        ),
        trace_request_ctx=trace,
    )
    connection = response.connection
    if connection is not None and connection.protocol is not None:
        # The headers are here; reads of the body are limited by `_Chunks`.
        connection.protocol.read_timeout = None
        connection.protocol.start_timeout()
    return AiohttpResponse(response)


def _connecting_seconds(deadlines: Deadlines) -> float | None:
    """Seconds for TCP, the tunnel of a proxy and TLS together.

    aiohttp has none for the tunnel alone: it waits for a proxy as for the response.
    """
    if deadlines.connect is None:
        return None
    return 3 * deadlines.connect


class AiohttpResponse:
    """A response of aiohttp. See `HttpResponse`."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers = _joined_headers(response.headers.items())
        self.chunks = _Chunks(response.content)
        self.read_timeout: ReadTimeout = self.chunks
        """Ends a late read."""
        self._response = response

    async def aclose(self) -> None:
        """See `HttpResponse`.

        aiohttp returns a connection to its pool by itself when the body was read to its end; any
        other connection is closed here.
        """
        self.chunks.stop()
        self._response.close()


def _joined_headers(headers: Any) -> dict[str, str]:
    """Names in lower case; the values of a repeated header are joined to one list."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        if key in joined:
            joined[key] = f"{joined[key]}, {value}"
        else:
            joined[key] = value
    return joined


class _Chunks:
    """The body. A class, since an abandoned generator would stay suspended."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content
        self._loop = asyncio.get_running_loop()
        self._is_reading = False
        """Set while a read waits; only then does the deadline apply."""
        self._deadline = FOREVER
        """Loop time, in seconds, from which the latest read is overdue."""
        self._timer: asyncio.TimerHandle | None = None
        """Set by the first read, and again when it fires; None once it fired without a reader."""
        self._fires_at = FOREVER
        """Loop time, in seconds, at which the timer fires."""

    def __aiter__(self) -> _Chunks:
        return self

    def start(self, seconds: float) -> None:
        """See `ReadTimeout`."""
        self._deadline = self._loop.time() + seconds
        if self._deadline < self._fires_at:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = self._deadline
        self._timer = self._loop.call_at(self._fires_at, self._on_timer)

    async def __anext__(self) -> bytes:
        self._is_reading = True
        try:
            chunk = await self._content.readany()
        finally:
            self._is_reading = False
        if not chunk:
            self.stop()
            raise StopAsyncIteration
        return chunk

    def _on_timer(self) -> None:
        """Ends an overdue read; sets the timer again for any other; stops while nobody reads."""
        self._timer = None
        self._fires_at = FOREVER
        if not self._is_reading or self._deadline == FOREVER:
            return
        if self._deadline > self._loop.time():
            self._set_timer()
        else:
            self._content.set_exception(TimeoutError("the read lasted too long"))

    def stop(self) -> None:
        """Cancels the timer: nothing more is read."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._fires_at = FOREVER


class _ConnectionTrace:
    """Trace of one request."""

    def __init__(self) -> None:
        self.reused = False
        """Set if the request is sent on an existing connection."""
        self.is_sending = False
        """Set when the first byte of the request's body is about to be sent."""
        self.has_unread = False
        """Set if that connection held bytes before the request was sent: it must not be used."""


class _AiohttpBody(aiohttp.BytesIOPayload):
    """The body of a request, which is not sent to a connection that holds unread bytes.

    aiohttp looks for them when a response ends, but not when a connection is used again: what was
    received in between would be the response to this request. A payload, not bytes, also because
    aiohttp warns about bytes over 1 MiB.
    """

    def __init__(self, body: bytes, trace: _ConnectionTrace) -> None:
        super().__init__(io.BytesIO(body))
        self._trace = trace

    async def write(self, writer: Any) -> None:
        """Writes the body, in aiohttp before 3.12."""
        self._check_connection(writer)
        await super().write(writer)

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        """Writes the body, in aiohttp 3.12 and later."""
        self._check_connection(writer)
        await super().write_with_length(writer, content_length)

    def _check_connection(self, writer: Any) -> None:
        self._trace.is_sending = True
        if not self._trace.reused or writer.transport is None:
            return
        # True also for bytes that were received since the last response.
        if writer.transport.get_protocol().should_close:
            self._trace.has_unread = True
            raise ConnectionResetError("the connection holds bytes of an earlier response")


async def _on_reused(session: aiohttp.ClientSession, context: Any, params: Any) -> None:
    # A user's own requests on the same session have another context, or none.
    if isinstance(context.trace_request_ctx, _ConnectionTrace):
        context.trace_request_ctx.reused = True


def _trace_reuse(session: aiohttp.ClientSession) -> None:
    """Makes the session report to `_ConnectionTrace` when it reuses a connection."""
    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(_on_reused)
    trace.freeze()
    session.trace_configs.append(trace)
