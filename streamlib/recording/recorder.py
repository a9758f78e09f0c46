"""A transport that records every response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import anyio

from streamlib.recording.files import Chunk, Recording, kept_headers
from streamlib.recording.masked_bodies import masked_in_place, secrets_of, secrets_of_url
from streamlib.transport import HttpResponse, Transport, transport_for
from streamlib.transport.deadlines import Deadlines
from streamlib.wires.routes import route
from streamlib_parsers.items import WireApi
from streamlib_parsers.redaction import redact


class Recorder:
    """A transport that records every response; leaving its block closes the transport inside.

    Args:
        http: as in ``Client(http=…)``.
        clock: seconds.
    """

    def __init__(self, http: Any = None, clock: Callable[[], float] = anyio.current_time) -> None:
        self.recordings: list[Recording] = []
        """Each is added when its response is closed."""
        self._inner: Transport = transport_for(http)
        self._clock = clock

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """Sends through the transport inside; the response is recorded while it is read."""
        sent_at = self._clock()
        response = await self._inner.send(method, url, headers, body, deadlines)
        secrets = secrets_of(headers) | secrets_of_url(url)
        return _RecordingResponse(response, self, method, url, sent_at, secrets)

    async def __aenter__(self) -> Recorder:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the transport inside."""
        await self._inner.aclose()

    def clock(self) -> float:
        """The current time in seconds."""
        return self._clock()


class _RecordingResponse:
    """A response that is recorded while it is read."""

    def __init__(
        self,
        response: HttpResponse,
        recorder: Recorder,
        method: str,
        url: str,
        sent_at: float,
        secrets: set[str],
    ) -> None:
        self._response = response
        self._recorder = recorder
        self._method = method
        self._url = redact(url.partition("?")[0])
        """Without the query, which may hold a key (Gemini's ``?key=``)."""
        self._sent_at = sent_at
        self._secrets = secrets
        """Keys of the request, which a server may repeat in its response."""
        self._chunks: list[Chunk] = []
        """Chunks read so far."""
        self._end: str | None = "unread"
        """As `Recording.end`. Set when the body ends or fails."""
        self._is_recorded = False
        """The recording was added, so that a second `aclose` does not add it again."""

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

    def __aiter__(self) -> _RecordingResponse:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await anext(self._iterator)
        except StopAsyncIteration:
            self._end = None
            raise
        except BaseException as error:  # a cancellation too ends the recording
            self._end = type(error).__name__
            raise
        self._chunks.append(Chunk(self._recorder.clock() - self._sent_at, data))
        return data

    async def aclose(self) -> None:
        """Adds the recording, once, and closes the response."""
        if not self._is_recorded:
            self._is_recorded = True
            self._recorder.recordings.append(self._recording())
        await self._response.aclose()

    def _recording(self) -> Recording:
        return Recording(
            status=self.status,
            headers=kept_headers(self._response.headers),
            chunks=masked_in_place(self._chunks, self._secrets),
            end=self._end,
            method=self._method,
            url=self._url,
            wire_api=wire_of_url(self._url),
        )


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
