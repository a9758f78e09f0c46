"""Transport over aiohttp: on asyncio, an event costs a fraction of what it costs through httpx.

    from streamlib import AiohttpTransport, Client

    async with Client(http=AiohttpTransport()) as client: ...   # or http= a ClientSession of yours

The rules of the other transport hold: no redirect is followed, nothing is decoded, callers wait at
`slots`, and a reused connection that turns out to be closed is replaced once.

aiohttp's own read timeout keeps running while the caller handles an event. So the silence within a
body is measured here, by one timer per stream which a read does not touch: when the timer fires, it
ends a read that is overdue, and otherwise sets itself again.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import aiohttp
import anyio
from yarl import URL

from streamlib.transport.base import CONNECTIONS, KEEPALIVE_SECONDS, UNKNOWN_POOL
from streamlib.transport.deadlines import FOREVER, Deadlines
from streamlib.transport.errors import is_connection_closed

__all__ = ["AiohttpResponse", "AiohttpTransport"]

LINE_BYTES: Final = 64 * 1024
"""Maximum length of a header line. All headers together have their own limit, in `client`."""

SKIPPED_HEADERS: Final = frozenset({"accept", "accept-encoding", "content-type", "user-agent"})
"""Headers that aiohttp would add: a request is sent exactly as it was built."""


class AiohttpTransport:
    """Sends requests through an aiohttp session. asyncio only.

    Args:
        session: A session that stays its owner's to close; None creates one at the first request.
        connections: Concurrent streams; the default is the limit of the session's connector.
    """

    def __init__(
        self, session: aiohttp.ClientSession | None = None, connections: int | None = None
    ) -> None:
        self._session = session
        """None until the first request, if the transport creates it."""
        self._owned = session is None
        if session is not None:
            _trace_reuse(session)
        self.slots = anyio.CapacityLimiter(connections or _pool_size(session))
        """One token per stream; the client acquires it before `send`."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> AiohttpResponse:
        """See `Transport`.

        A reused connection that the server had already closed is replaced once, provided that no
        byte of a response was received.
        """
        session = self._open_session()
        trace = _ConnectionTrace()
        try:
            return await _send(session, method, url, headers, body, deadlines, trace)
        except Exception as error:
            if not (trace.reused and is_connection_closed(error)):
                raise
        return await _send(session, method, url, headers, body, deadlines, _ConnectionTrace())

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            _require_asyncio()
            # No limit: requests wait at `slots`. No cookies: a request is sent as it was built.
            # The environment is trusted for proxies, as httpx does.
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=True
            )
            _trace_reuse(self._session)
        return self._session

    async def aclose(self) -> None:
        """Closes the session if the transport created it."""
        if self._owned and self._session is not None:
            await self._session.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a transport has connections: it cannot be pickled or copied")


def _require_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "aiohttp runs on asyncio alone: on trio give http= an httpx client, or nothing"
        ) from None


def _pool_size(session: aiohttp.ClientSession | None) -> int:
    """The number of connections that a session allows; 0 means no limit in aiohttp."""
    if session is None:
        return CONNECTIONS
    if session.connector is None:
        return UNKNOWN_POOL
    limits = (session.connector.limit, session.connector.limit_per_host)
    return min((limit for limit in limits if limit > 0), default=CONNECTIONS)


async def _send(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    deadlines: Deadlines,
    trace: _ConnectionTrace,
) -> AiohttpResponse:
    response = await session.request(
        method,
        URL(url, encoded=True),  # aiohttp would encode the path again, and void a signature
        headers=headers,
        data=io.BytesIO(body) if body else None,  # aiohttp warns about bytes over 1 MiB
        skip_auto_headers=SKIPPED_HEADERS,
        allow_redirects=False,
        raise_for_status=False,
        auto_decompress=False,
        max_line_size=LINE_BYTES,
        max_field_size=LINE_BYTES,
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=deadlines.connect, sock_read=deadlines.first_byte
        ),
        trace_request_ctx=trace,
    )
    connection = response.connection
    if connection is not None and connection.protocol is not None:
        # The headers are here; silence within the body is measured by `_Chunks`.
        connection.protocol.read_timeout = None
        connection.protocol.start_timeout()
    return AiohttpResponse(response, deadlines.longest_silence)


class AiohttpResponse:
    """A response of aiohttp. See `HttpResponse`."""

    def __init__(self, response: aiohttp.ClientResponse, read_timeout: float | None) -> None:
        self.status = response.status
        self.headers = _joined_headers(response.headers.items())
        self.read_timeout = FOREVER if read_timeout is None else read_timeout
        """Seconds after which `chunks` ends a silent read."""
        self.chunks = _Chunks(response.content, self.read_timeout)
        self._response = response

    async def aclose(self) -> None:
        """See `HttpResponse`.

        aiohttp returns a connection to its pool by itself when the body was read to its end; any
        other connection is closed here.
        """
        self.chunks.stop()
        self._response.close()


def _joined_headers(headers: Any) -> dict[str, str]:
    """Names in lower case; a header that was sent several times becomes one list."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        if key in joined:
            joined[key] = f"{joined[key]}, {value}"
        else:
            joined[key] = value
    return joined


class _Chunks:
    """The body. A class, since a generator that is left would stay suspended."""

    def __init__(self, content: aiohttp.StreamReader, read_timeout: float) -> None:
        self._content = content
        self._read_timeout = read_timeout
        self._loop = asyncio.get_running_loop()
        self._deadline: float | None = None
        """Loop time when the current read is overdue; None while nobody reads."""
        self._timer: asyncio.TimerHandle | None = None
        """Set by the first read, and again by itself; None once it fired without a reader."""

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        if self._read_timeout < FOREVER:
            self._deadline = self._loop.time() + self._read_timeout
            if self._timer is None:
                self._timer = self._loop.call_at(self._deadline, self._on_timer)
        try:
            chunk = await self._content.readany()
        finally:
            self._deadline = None
        if not chunk:
            self.stop()
            raise StopAsyncIteration
        return chunk

    def _on_timer(self) -> None:
        """Ends a read that is overdue; waits on for one that is not; rests while nobody reads."""
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline > self._loop.time():
            self._timer = self._loop.call_at(self._deadline, self._on_timer)
        else:
            self._content.set_exception(TimeoutError("no bytes were received"))

    def stop(self) -> None:
        """Cancels the timer: nothing more is read."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _ConnectionTrace:
    """Trace of one request: `reused` is set if it was sent on an existing connection."""

    def __init__(self) -> None:
        self.reused = False


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
