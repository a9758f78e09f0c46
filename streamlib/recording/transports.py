"""Transports that record responses, and that replay them without a network."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import TracebackType
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import anyio

from streamlib.recording.files import Chunk, Recording, kept_headers
from streamlib.transport import HttpResponse, Transport, transport_for
from streamlib.transport.deadlines import Deadlines
from streamlib.wires.routes import route
from streamlib_parsers.items import WireApi
from streamlib_parsers.redaction import redact

Split: TypeAlias = Literal["recorded", "whole"] | int
"""How a replay splits the body: as recorded, not at all, or every so many bytes."""


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
        return _RecordingResponse(response, self, method, url, sent_at)

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
        self, response: HttpResponse, recorder: Recorder, method: str, url: str, sent_at: float
    ) -> None:
        self._response = response
        self._recorder = recorder
        self._method = method
        self._url = redact(url.partition("?")[0])
        """Without the query, which may hold a key (Gemini's ``?key=``)."""
        self._sent_at = sent_at
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
            chunks=tuple(self._chunks),
            end=self._end,
            method=self._method,
            url=self._url,
            wire_api=_wire_of(self._url),
        )


def _wire_of(url: str) -> WireApi | None:
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


class Replay:
    """A transport that answers each request with the next recording, in turn.

    Args:
        recordings: at least one; after the last comes the first again.
        speed: 1 is the recorded pace, 2 twice as fast; 0 does not wait.
        split: how bodies are split into chunks.
    """

    def __init__(
        self, *recordings: Recording, speed: float = 0.0, split: Split = "recorded"
    ) -> None:
        self._recordings = recordings
        self._speed = speed
        self._split: Split = split
        self._sent = 0
        """Number of requests so far."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """The next recording; the request is ignored."""
        recording = self._recordings[self._sent % len(self._recordings)]
        self._sent += 1
        chunks = list(pieces(recording.chunks, self._split))
        return _ReplayedResponse(recording, chunks, self._speed)

    async def aclose(self) -> None:
        """Does nothing: nothing is open."""


class _ReplayedResponse:
    def __init__(self, recording: Recording, chunks: list[Chunk], speed: float) -> None:
        self.status = recording.status
        self.headers: Mapping[str, str] = recording.headers
        self._end = recording.end
        self._remaining = iter(chunks)
        self._speed = speed
        self._start: float | None = None
        """Time at which the first chunk was requested."""

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> _ReplayedResponse:
        return self

    async def __anext__(self) -> bytes:
        chunk = next(self._remaining, None)
        if chunk is None:
            if self._end is not None:
                raise ConnectionError(f"the recording ends here: {self._end}")
            raise StopAsyncIteration
        await self._wait_until(chunk.at)
        return chunk.data

    async def _wait_until(self, seconds: float) -> None:
        """Waits until a chunk recorded at `seconds` is due."""
        now = anyio.current_time()
        if self._start is None:
            self._start = now
        delay = 0.0
        if self._speed:
            delay = max(0.0, seconds / self._speed - (now - self._start))
        await anyio.sleep(delay)  # also without a delay: other tasks run between chunks

    async def aclose(self) -> None:
        """Does nothing: nothing is open."""


def pieces(chunks: Sequence[Chunk], split: Split) -> Iterator[Chunk]:
    """The same bytes with other boundaries.

    A new chunk has the time of the recorded one that it begins in; the whole body has the time of
    the last.
    """
    if split == "recorded":
        yield from chunks
        return
    if split == "whole":
        end = 0.0
        if chunks:
            end = chunks[-1].at
        yield Chunk(end, b"".join(chunk.data for chunk in chunks))
        return
    for chunk in chunks:
        for start in range(0, len(chunk.data), max(1, split)):
            yield Chunk(chunk.at, chunk.data[start : start + split])


def random_pieces(body: bytes, seed: int, most: int = 40) -> list[bytes]:
    """The body split at random offsets, the same ones for the same seed."""
    rng = random.Random(seed)  # noqa: S311  # splits a body, protects no secret
    count = rng.randint(1, most)
    offsets = sorted(rng.randint(0, len(body)) for _ in range(count))
    return [body[start:end] for start, end in pairwise([0, *offsets, len(body)])]
