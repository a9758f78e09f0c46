"""aiohttp, behind the same four words as `transport.py`: on asyncio, a fraction of what an event costs through httpx.

    from streamlib.transport.aiohttp import AiohttpTransport

    async with streamlib.Client(http=AiohttpTransport()) as client: ...      # or http= a ClientSession of your own

What the other transport promises holds here: no redirect is followed, nothing is unpacked behind our back, callers queue at `slots`, a
kept connection that turns out to be closed is replaced once. aiohttp's own read timeout also runs while the caller holds an event, so
in a body silence is watched by one timer a stream, which a read does not touch: it looks when it fires, and goes to sleep again.
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
"""The longest line of a head that is read; the whole head has its own ceiling, for every transport."""
UNASKED: Final = frozenset({"accept", "accept-encoding", "content-type", "user-agent"})
"""Headers that aiohttp would add: a request is sent as it was built."""


class AiohttpTransport:
    """A session of ours, made at the first request, or one that is given and stays its owner's."""

    def __init__(
        self, session: aiohttp.ClientSession | None = None, connections: int | None = None
    ) -> None:
        self._session = session
        self._owned = session is None
        if session is not None:
            _watch(session)
        self.slots = anyio.CapacityLimiter(
            connections or (CONNECTIONS if session is None else _pool_size(session))
        )

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> AiohttpResponse:
        """See `Transport`. A kept connection that turns out to be closed is replaced, once, if no byte of an answer came."""
        session, used = self._opened(), _ConnectionTrace()
        try:
            return await _sent(session, method, url, headers, body, deadlines, used)
        except Exception as error:
            if not (used.before and is_connection_closed(error)):
                raise
        return await _sent(session, method, url, headers, body, deadlines, _ConnectionTrace())

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            _on_asyncio()
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=True
            )
            _watch(self._session)
        return self._session

    async def aclose(self) -> None:
        """Closes the session if it is ours."""
        if self._owned and self._session is not None:
            await self._session.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a transport has connections: it cannot be pickled or copied")


def _on_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "aiohttp runs on asyncio alone: on trio give http= an httpx client, or nothing"
        ) from None


def _pool_size(session: aiohttp.ClientSession) -> int:
    """How many connections a user's session may have; 0 is boundless there."""
    limits = (
        [session.connector.limit, session.connector.limit_per_host]
        if session.connector is not None
        else [UNKNOWN_POOL]
    )
    return min((limit for limit in limits if limit > 0), default=CONNECTIONS)


async def _sent(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    deadlines: Deadlines,
    used: _ConnectionTrace,
) -> AiohttpResponse:
    response = await session.request(
        method,
        URL(url, encoded=True),
        headers=headers,
        data=io.BytesIO(body) if body else None,  # of bytes aiohttp would warn, where they are many
        skip_auto_headers=UNASKED,
        allow_redirects=False,
        raise_for_status=False,
        auto_decompress=False,
        max_line_size=LINE_BYTES,
        max_field_size=LINE_BYTES,
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=deadlines.connect, sock_read=deadlines.first_byte
        ),
        trace_request_ctx=used,
    )
    protocol = response.connection.protocol if response.connection is not None else None
    if protocol is not None:  # from here on, silence is watched by `_Chunks`
        protocol.read_timeout = None
        protocol.start_timeout()
    return AiohttpResponse(response, deadlines.longest_silence)


class AiohttpResponse:
    """A response of aiohttp's. See `Answer`."""

    def __init__(self, response: aiohttp.ClientResponse, read_timeout: float | None) -> None:
        self.status = response.status
        self.headers = _joined(response.headers.items())
        self.read_timeout = FOREVER if read_timeout is None else read_timeout
        self.chunks = _Chunks(response.content, self.read_timeout)
        self._response = response

    async def aclose(self) -> None:
        """See `Answer`. A connection whose answer was read to its end is kept already; any other is closed."""
        self.chunks.stop()
        self._response.close()


def _joined(headers: Any) -> dict[str, str]:
    """Names in lower case; a header that came several times is one list."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


class _Chunks:
    """The body as it comes. A class, so that leaving it leaves nothing half run."""

    def __init__(self, content: aiohttp.StreamReader, read_timeout: float) -> None:
        self._content = content
        self._read_timeout = read_timeout
        self._loop = asyncio.get_running_loop()
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        if self._read_timeout < FOREVER:
            self._due = self._loop.time() + self._read_timeout
            if self._timer is None:
                self._timer = self._loop.call_at(self._due, self._look)
        try:
            chunk = await self._content.readany()
        finally:
            self._due = None  # nobody waits
        if not chunk:
            self.stop()
            raise StopAsyncIteration
        return chunk

    def _look(self) -> None:
        """The timer: ends a read that waits too long, comes again for one that may wait longer, rests where none waits."""
        self._timer = None
        if self._due is not None:
            if self._due > self._loop.time():
                self._timer = self._loop.call_at(self._due, self._look)
            else:
                self._content.set_exception(TimeoutError("no bytes came"))

    def stop(self) -> None:
        """Nothing more is read."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _ConnectionTrace:
    """Told by aiohttp's trace whether a request got a connection that was used `before`."""

    def __init__(self) -> None:
        self.before = False


async def _on_reused(session: aiohttp.ClientSession, context: Any, params: Any) -> None:
    if isinstance(context.trace_request_ctx, _ConnectionTrace):
        context.trace_request_ctx.before = True


def _watch(session: aiohttp.ClientSession) -> None:
    """Lets the session tell about our requests; it says nothing of anybody else's."""
    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(_on_reused)
    trace.freeze()
    session.trace_configs.append(trace)
