"""Helpers of the client's tests: requests, clients with a key, transports, HTTP libraries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import anyio
import pytest

from streamlib.client import Client
from streamlib.providers import Provider
from streamlib.request.build import Request
from streamlib.transport.deadlines import Deadlines
from streamlib.transport.httpx import tls_context
from streamlib_parsers.items import Origin
from streamlib_parsers.protocol import WIRE_APIS

KEY: Final = "sk-canary-0123456789abcdef"
LIBRARIES: Final = ("httpx", "httpx2")
"""The HTTP libraries that tests on sockets run with."""

EVERY_TRANSPORT: Final = pytest.mark.parametrize(
    ("anyio_backend", "http"),
    [
        ("asyncio", "httpx"),
        ("asyncio", "httpx2"),
        ("asyncio", "aiohttp"),
        ("trio", "httpx"),
        ("trio", "httpx2"),
    ],
)
"""The HTTP libraries, on the loops that each supports."""


def library(name: str) -> Any:
    """An HTTP library; skips the test if it is missing."""
    return pytest.importorskip(
        name, reason=f"{name} is not installed: tests on sockets with it are skipped"
    )


def open_http(name: str, **options: Any) -> Any:
    """A client of that library. The TLS context is shared: reading it takes longer than a test."""
    if name == "aiohttp":
        return _aiohttp()
    return library(name).AsyncClient(**{"verify": tls_context(name), **options})


def _aiohttp() -> Any:
    """Our aiohttp transport, as a context manager like a client."""
    library("aiohttp")
    from streamlib.transport.aiohttp import AiohttpTransport

    class Opened(AiohttpTransport):
        async def __aenter__(self) -> Any:
            return self

        async def __aexit__(self, *_: object) -> None:
            await self.aclose()

    return Opened()


def make_request(url: str, wire: Any = "messages", body: bytes = b'{"stream":true}') -> Request:
    """A request for any wire, as a builder would make it."""
    headers = {"content-type": "application/json"}
    return Request(
        "POST", f"{url}/{wire}", headers, body, [], wire, "m-1", Origin(wire, "faulty", url, "m-1")
    )


def make_client(url: str, http: Any = None, **options: Any) -> Client:
    """A client of a provider at that address."""
    provider = Provider(name="faulty", wires=WIRE_APIS, base_url=url, auth="x-api-key")
    return Client(
        **{"providers": (provider,), "api_key": KEY, "http": http, "jitter": lambda: 0.0, **options}
    )


class MemoryResponse:
    """A response from memory."""

    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.headers = dict(headers or {})
        self.chunks = chunks
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        close = getattr(self.chunks, "aclose", None)
        if close is not None:
            await close()


class MemoryTransport:
    """A transport that responds from memory.

    scripts: chunks and exceptions of each response; a number is a pause in seconds.
    """

    def __init__(
        self,
        *scripts: Sequence[bytes | float | BaseException],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.scripts = scripts
        self.status = status
        self.headers = headers
        self.sent: list[tuple[str, str, Mapping[str, str], bytes, Deadlines]] = []
        self.responses: list[MemoryResponse] = []

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> MemoryResponse:
        script = self.scripts[min(len(self.sent), len(self.scripts) - 1)]
        self.sent.append((method, url, headers, body, deadlines))
        response = MemoryResponse(play(script), self.status, self.headers)
        self.responses.append(response)
        return response

    async def aclose(self) -> None:
        pass


async def play(script: Sequence[bytes | float | BaseException]) -> AsyncIterator[bytes]:
    """The chunks of a script, with its pauses, or its exception."""
    for step in script:
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, bytes):
            yield step
        else:
            await anyio.sleep(step)
