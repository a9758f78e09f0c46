"""What the client needs from an HTTP library: the protocols `Transport` and `HttpResponse`.

    response = await transport.send("POST", url, headers, body, deadlines)
    async for chunk in response.chunks: ...
    await response.aclose()        # close, or keep if the body was read

This module imports no HTTP library; `transport.httpx` and `transport.aiohttp` adapt one each.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Mapping
from typing import Any, Final, Protocol

from streamlib.transport.deadlines import Deadlines

CONNECTIONS: Final = 1000
"""Concurrent streams through an HTTP client that the library created."""

KEEPALIVE_SECONDS: Final = 60.0
"""How long an idle connection is kept: an agent's tools run between two of its requests."""

UNKNOWN_POOL: Final = 100
"""Concurrent streams through a user's client whose pool size is unknown: httpx's own default."""


class ReadTimeout(Protocol):
    """Ends a read that lasts too long, for transports that need no timeout scope for this."""

    def start(self, seconds: float) -> None:
        """A read of the next chunk begins: it raises a timeout once `seconds` have passed.

        They count from now on. Bytes that complete no chunk do not restart them.

        Args:
            seconds: more than zero; infinity means no limit.
        """
        ...


class HttpResponse(Protocol):
    """Status and headers of a response whose body is still to be read.

    A transport that ends a late read by itself may add an attribute `read_timeout`, a
    `ReadTimeout`: the caller then needs no timeout scope around each read (about 10 us). If its
    chunks are complete messages (a WebSocket), it has a true attribute `chunks_are_messages`.
    """

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers, names in lower case."""
        ...

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """The body, as it is received and without content decoding."""
        ...

    def aclose(self) -> Coroutine[Any, Any, None]:
        """Releases the connection and `chunks`.

        Another task may call it while a chunk is being awaited.
        """
        ...


class Transport(Protocol):
    """Adapter to one HTTP library. It follows no redirect and decodes no body.

    A transport may have an attribute `slots`, an `anyio.CapacityLimiter`: the client then waits
    there for its turn to send.
    """

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """Sends a request and waits for the response headers."""
        ...

    async def aclose(self) -> None:
        """Closes every connection that belongs to the transport."""
        ...


class IteratorResponse:
    """Bytes from any async iterable, as an `HttpResponse` with status 200."""

    status = 200

    def __init__(
        self, chunks: AsyncIterable[bytes], headers: Mapping[str, str] | None = None
    ) -> None:
        self.headers: dict[str, str] = {}
        for name, value in (headers or {}).items():
            self.headers[name.lower()] = value
        self.chunks = aiter(chunks)

    async def aclose(self) -> None:
        """Closes the iterator if it has an `aclose`."""
        close = getattr(self.chunks, "aclose", None)
        if close is None:
            return
        # An async generator that another task is reading raises RuntimeError here.
        with contextlib.suppress(RuntimeError):
            await close()
