"""A transport that records exchanges: for `Recorder`, and for a sink of one's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import anyio
from msgspec import Struct, field

from streamlib.recording.files import Chunk, Recording, kept_headers
from streamlib.recording.masked_bodies import masked_in_place, secrets_of, secrets_of_url
from streamlib.transport import HttpResponse, Transport, transport_for
from streamlib.transport.base import CONNECTIONS
from streamlib.transport.deadlines import Deadlines
from streamlib.wires.routes import route
from streamlib_parsers.items import WireApi
from streamlib_parsers.redaction import redact


class HttpRecord(Struct, kw_only=True, eq=False):
    """One exchange while it is recorded.

    Attributes:
        method: HTTP method of the request.
        url: URL without its query, which may hold a key (Gemini's ``?key=``).
        request_headers: request headers without those that hold keys.
        body: body of the request; empty if the sink has no room for it.
        secrets: keys of the request, which a server may repeat in its response.
        sent_at: when the request was sent, in seconds of the sink's clock.
        status: HTTP status of the response; 0 before it.
        headers: response headers without those that hold keys.
        chunks: chunks of the response that were read.
        end: what ended the response, as `Recording.end`.
    """

    method: str
    url: str
    request_headers: dict[str, str]
    body: bytes
    secrets: set[str]
    sent_at: float
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    end: str | None = "unread"


class ExchangeSink(Protocol):
    """Where exchanges are recorded."""

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds."""
        ...

    def keep(self, data: bytes) -> bool:
        """Reserves room for bytes of a body; returns False if there is none."""
        ...

    def sent(self, record: HttpRecord) -> None:
        """A request is sent. The record grows while its response is read."""
        ...

    def closed(self, record: HttpRecord) -> None:
        """The response was closed, for the first time: its record is complete."""
        ...


class RecordingTransport:
    """Sends through another transport, and records exchanges while their responses are read.

    Args:
        http: as in ``Client(http=…)``.
        connections: as in ``Client(connections=…)``.
        sink: returns where the current task's exchange is recorded; None: nowhere.
    """

    def __init__(
        self, http: Any, connections: int | None, sink: Callable[[], ExchangeSink | None]
    ) -> None:
        self._http = http
        self._connections = connections or CONNECTIONS
        self._sink = sink
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
        sink = self._sink()
        if sink is None:
            return await self._inner.send(method, url, headers, body, deadlines)
        record = HttpRecord(
            method=method,
            url=url.partition("?")[0],
            request_headers=kept_headers(headers),
            body=body if sink.keep(body) else b"",
            secrets=secrets_of(headers) | secrets_of_url(url),
            sent_at=sink.clock(),
        )
        sink.sent(record)
        try:
            response = await self._inner.send(method, url, headers, body, deadlines)
        except BaseException as error:
            record.end = type(error).__name__
            raise
        record.status = response.status
        record.headers = kept_headers(response.headers)
        return _RecordedResponse(response, record, sink)

    async def aclose(self) -> None:
        """Closes the other transport, unless it is the caller's own."""
        if self._opened is not None and self._opened is not self._http:
            await self._opened.aclose()


class _RecordedResponse:
    """A response that is recorded while it is read."""

    def __init__(self, response: HttpResponse, record: HttpRecord, sink: ExchangeSink) -> None:
        self._response = response
        self._record = record
        self._sink = sink
        self._is_closed = False

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

    def __aiter__(self) -> _RecordedResponse:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await anext(self._iterator)
        except StopAsyncIteration:
            self._record.end = None
            raise
        except BaseException as error:  # a cancellation too ends the recording
            self._record.end = type(error).__name__
            raise
        if self._sink.keep(data):
            seconds = self._sink.clock() - self._record.sent_at
            self._record.chunks.append(Chunk(seconds, data))
        return data

    async def aclose(self) -> None:
        """Closes the response, and completes its record."""
        if not self._is_closed:
            self._is_closed = True
            self._sink.closed(self._record)
        await self._response.aclose()


class Recorder(RecordingTransport):
    """A transport that records every response; leaving its block closes the transport inside.

    Args:
        http: as in ``Client(http=…)``.
        clock: seconds.
    """

    def __init__(self, http: Any = None, clock: Callable[[], float] = anyio.current_time) -> None:
        super().__init__(http, None, lambda: self)
        # Now, so that a transport that is none is found where it is passed in.
        self._opened = transport_for(http)
        self.recordings: list[Recording] = []
        """Each is added when its response is closed."""
        self._clock = clock

    @property
    def clock(self) -> Callable[[], float]:
        """The current time in seconds."""
        return self._clock

    def keep(self, data: bytes) -> bool:
        """All bodies are kept (see `ExchangeSink`)."""
        return True

    def sent(self, record: HttpRecord) -> None:
        """Requests are not recorded (see `ExchangeSink`)."""
        record.body = b""

    def closed(self, record: HttpRecord) -> None:
        """Adds the recording of a response (see `ExchangeSink`)."""
        url = redact(record.url)
        self.recordings.append(
            Recording(
                status=record.status,
                headers=record.headers,
                chunks=masked_in_place(record.chunks, record.secrets),
                end=record.end,
                method=record.method,
                url=url,
                wire_api=wire_of_url(url),
            )
        )

    async def __aenter__(self) -> Recorder:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the transport inside."""
        await self._inner.aclose()


def wire_of_url(url: str) -> WireApi | None:
    """The wire API that a URL serves, whatever the provider has before the wire's own path."""
    segments = urlsplit(url).path.split("/")[1:]
    for start in range(len(segments)):
        path = "/".join(segments[start:])
        # Vertex has project and location between /v1 and the rest of Google's path.
        for prefix in ("/", "/v1/"):
            served = route(prefix + path)
            if served is not None:
                return served.wire_api
    return None
