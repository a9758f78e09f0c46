"""The loopback provider as a transport in memory, whose connections break where a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import anyio

from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.providers import Provider
from streamlib.testing import Behaviour, echo_response
from streamlib.testing.provider.provider import Loopback
from streamlib.transport import Transport
from streamlib.transport.deadlines import Deadlines
from streamlib.wires.routes import route
from tests.support.clients import KEY, MemoryResponse

URL: Final = "https://background.example/v1"

PROVIDER: Final = Provider(
    name="keeper", wires=("responses", "interactions"), base_url=URL, auth="x-api-key"
)

AT_ONCE: Final = RetryPolicy(base=0.0)
"""Connects again without a delay."""


class BreakingProvider:
    """A transport. Each response is sent in one chunk, up to the byte where its connection breaks.

    Args:
        recordings: What is sent, unchanged; without any, an echo.
        breaks: Bytes of the first connection, of the second …; the later ones do not break.
        error: What the break raises; None: the body ends.
    """

    def __init__(
        self,
        recordings: Sequence[bytes] = (),
        breaks: Sequence[int] = (),
        error: Exception | None = None,
        *,
        is_silent: bool = False,
        stalls: bool = False,
    ) -> None:
        self.loopback = Loopback(Behaviour(recordings=recordings), echo_response)
        self.breaks = breaks
        self.error = error
        self.is_silent = is_silent
        """Whether connections behind those of `breaks` end without an event."""
        self.stalls = stalls
        """Whether nothing more comes where a connection would break."""
        self.sent: list[tuple[str, str, Mapping[str, str]]] = []
        """Method, URL and headers of each request."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> MemoryResponse:
        number = len(self.sent)
        self.sent.append((method, url, headers))
        path = url.removeprefix("https://background.example")
        served = self.loopback.response(route(path), body, dict(headers), path, method)
        end: int | None = 0 if self.is_silent else None
        if number < len(self.breaks):
            end = self.breaks[number]
        chunks = _until(served.chunks, end, self.error, stalls=self.stalls)
        return MemoryResponse(chunks, served.status, {"content-type": served.media_type})

    async def aclose(self) -> None:
        pass


async def _until(
    chunks: Sequence[bytes], end: int | None, error: Exception | None, *, stalls: bool
) -> AsyncIterator[bytes]:
    """The bytes up to `end` as one chunk, then the break; all of them where there is none."""
    received = bytearray()
    for chunk in chunks:
        if end is not None and len(received) >= end:
            break
        received += chunk
    yield bytes(received[:end])
    if end is not None and stalls:
        await anyio.sleep_forever()
    if end is not None and error is not None:
        raise error


def open_client(transport: Transport, **options: Any) -> Client:
    """A client of that provider."""
    defaults: dict[str, Any] = {"retry": AT_ONCE, "jitter": lambda: 0.0}
    return Client(http=transport, providers=(PROVIDER,), api_key=KEY, **{**defaults, **options})
