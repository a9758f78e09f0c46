"""A transport that records exchanges with targets for the request of the current task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from streamlib.gateway.operations import response_path
from streamlib.recording import Chunk, RecordedRequest, Recording
from streamlib.recording.files import kept_headers
from streamlib.recording.masked_bodies import (
    masked_chunks,
    masked_request,
    masked_text,
    secrets_of,
    secrets_of_url,
)
from streamlib.recording.recorder import wire_of_url
from streamlib.transport import HttpResponse, Transport, transport_for
from streamlib.transport.base import CONNECTIONS
from streamlib.transport.deadlines import Deadlines


class UpstreamRecord(Struct, kw_only=True, eq=False):
    """One exchange with a target, while it is recorded.

    Attributes:
        method: HTTP method of the request.
        url: URL without its query, which may contain a key.
        request_headers: request headers without those that hold keys.
        body: body of the request.
        secrets: keys that were sent with the request.
        status: HTTP status of the response; 0 before it.
        headers: response headers without those that hold keys.
        chunks: chunks of the response.
        end: what ended the response, as `Recording.end`.
    """

    method: str
    url: str
    request_headers: dict[str, str]
    body: bytes
    secrets: set[str]
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    end: str | None = "unread"

    def recording(self, secrets: set[str], *, is_stream: bool) -> Recording:
        """The recording of the exchange, with these keys masked."""
        return Recording(
            status=self.status,
            headers=self.headers,
            chunks=masked_chunks(self.chunks, secrets, is_stream=is_stream),
            end=self.end,
            method=self.method,
            url=masked_text(self.url, secrets),
            # A count of tokens is recorded as a request of its wire.
            wire_api=wire_of_url(response_path(self.url)),
            request=RecordedRequest(self.request_headers, masked_request(self.body, secrets)),
        )


class Keeper(Protocol):
    """Parts of an exchange record that this transport needs."""

    upstream: list[UpstreamRecord]

    @property
    def clock(self) -> Callable[[], float]:
        """Returns seconds."""
        ...

    def keep(self, data: bytes) -> bool:
        """Reserves room for further bytes; returns False if there is none."""
        ...


class RecordingTransport:
    """Sends through another transport, and records the exchanges of a request.

    Args:
        http: as in ``Client(http=…)``.
        connections: as in ``Client(connections=…)``.
        current: returns the exchange of the current task; None: nothing is recorded.
    """

    def __init__(
        self, http: Any, connections: int | None, current: Callable[[], Keeper | None]
    ) -> None:
        self._http = http
        self._connections = connections or CONNECTIONS
        self._current = current
        self._opened: Transport | None = None
        """The other transport, created with the first request as in a client."""

    @property
    def _inner(self) -> Transport:
        if self._opened is None:
            self._opened = transport_for(self._http, self._connections)
        return self._opened

    @property
    def slots(self) -> Any:
        """Limiter at which the client waits to send; None: it does not wait."""
        return getattr(self._inner, "slots", None)

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """Sends through the other transport; the response is recorded while it is read."""
        keeper = self._current()
        if keeper is None:
            return await self._inner.send(method, url, headers, body, deadlines)
        record = UpstreamRecord(
            method=method,
            url=url.partition("?")[0],
            request_headers=kept_headers(headers),
            body=body if keeper.keep(body) else b"",
            secrets=secrets_of(headers) | secrets_of_url(url),
        )
        keeper.upstream.append(record)
        sent_at = keeper.clock()
        try:
            response = await self._inner.send(method, url, headers, body, deadlines)
        except BaseException as error:
            record.end = type(error).__name__
            raise
        record.status = response.status
        record.headers = kept_headers(response.headers)
        return _Response(response, record, keeper, sent_at)

    async def aclose(self) -> None:
        """Closes the other transport, unless it is the caller's own."""
        if self._opened is not None and self._opened is not self._http:
            await self._opened.aclose()


class _Response:
    """A response that is recorded while it is read."""

    def __init__(
        self, response: HttpResponse, record: UpstreamRecord, keeper: Keeper, sent_at: float
    ) -> None:
        self._response = response
        self._record = record
        self._keeper = keeper
        self._sent_at = sent_at

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        self._iterator = self._response.chunks
        return self

    def __aiter__(self) -> _Response:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await anext(self._iterator)
        except StopAsyncIteration:
            self._record.end = None
            raise
        except BaseException as error:  # a cancellation ends the recording, too
            self._record.end = type(error).__name__
            raise
        if self._keeper.keep(data):
            self._record.chunks.append(Chunk(self._keeper.clock() - self._sent_at, data))
        return data

    async def aclose(self) -> None:
        """Closes the response."""
        await self._response.aclose()
