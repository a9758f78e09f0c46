"""How the tests of the client ask: requests made by hand, a client with a key to keep, and both HTTP libraries."""

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
"""The HTTP libraries that everything on a socket is tested with."""


def library(name: str) -> Any:
    """An HTTP library, or a skip that says which is missing."""
    return pytest.importorskip(
        name, reason=f"{name} is not installed: half of the promises on sockets go untested"
    )


def open_http(name: str, **options: Any) -> Any:
    """A client of that library. Trust is read from the disk once: it takes longer than most tests."""
    if name == "aiohttp":
        return _aiohttp()
    return library(name).AsyncClient(**{"verify": tls_context(name), **options})


def _aiohttp() -> Any:
    """Our transport of aiohttp, with the life of a client."""
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
    place = Provider(name="faulty", wires=WIRE_APIS, base_url=url, auth="x-api-key")
    return Client(
        **{"providers": (place,), "api_key": KEY, "http": http, "jitter": lambda: 0.0, **options}
    )


class MemoryResponse:
    """An answer from memory."""

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
    """A transport that answers from memory: one list of chunks or exceptions a request; a float is a pause."""

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
        self.answers: list[MemoryResponse] = []

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> MemoryResponse:
        script = self.scripts[min(len(self.sent), len(self.scripts) - 1)]
        self.sent.append((method, url, headers, body, deadlines))
        answer = MemoryResponse(play(script), self.status, self.headers)
        self.answers.append(answer)
        return answer

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
