"""Recordings of answers, with their chunk boundaries and times: recorded from any client, replayed at any speed and split.

    async with Recorder() as recorder, Client(http=recorder) as client: ...     # as ever, over the network
    save(recorder.recordings[0], "answer.jsonl")

    async with Client(http=Replay(load("answer.jsonl")), …) as client: ...      # the same answer again, without a network

A recording is a file of JSON lines: a head (status, headers, where it came from), then one line a chunk, then how it ended; a file may
hold several, one after the other. Of the headers only those on an allow-list are kept, and nothing of the request but its method and
the address without its query: no key can be in it. The event log of a stream is JSON lines too (`dump_events`, `load_events`).
"""

from __future__ import annotations

import random
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import anyio
import msgspec
from msgspec import Struct

from streamlib.transport import HttpResponse, Transport, transport_for
from streamlib.transport.deadlines import Deadlines
from streamlib.wires.routes import route
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.protocol import parser
from streamlib_parsers.redaction import redact

VERSION: Final = 1
HEAD: Final = "streamlib_recording"
"""The key by which the head of a recording is known."""
KEPT_HEADERS: Final = (
    "content-type",
    "date",
    "retry-after",
    "request-id",
    "x-request-id",
    "ratelimit",
    "openai-processing-ms",
    "x-should-retry",
)
"""Headers are kept whose name holds one of these: what a parser reads, and nothing that names an account or a session."""

Split: TypeAlias = Literal["recorded", "whole"] | int
"""How a replay cuts the body: as it was recorded, not at all, or every so many bytes."""


class Chunk(Struct, frozen=True, array_like=True):
    """Bytes that came together. `at`: seconds since the request was sent."""

    at: float
    data: bytes


class Recording(Struct, frozen=True):
    """One answer.

    end: None where the body ended; `unread` where whoever recorded it stopped reading; else the name of the exception that cut it.
    wire_api: as far as the address said it.
    """

    status: int
    headers: dict[str, str]
    chunks: tuple[Chunk, ...]
    end: str | None = None
    method: str = "POST"
    url: str = ""
    wire_api: WireApi | None = None

    @property
    def body(self) -> bytes:
        """All the bytes."""
        return b"".join(chunk.data for chunk in self.chunks)

    def events(self, wire_api: WireApi | None = None, **options: Any) -> list[ResponseEvent]:
        """What the recording says, chunk by chunk as it was recorded. wire_api: where the recording does not know it."""
        wire_api = wire_api or self.wire_api
        if wire_api is None:
            raise ValueError("the address of the recording does not say its wire: give `wire_api`")
        parse = parser(wire_api, headers=self.headers, **options)
        return [
            *(event for chunk in self.chunks for event in parse.feed(chunk.data)),
            *parse.close(),
        ]


# --- files ---


def save(recording: Recording, path: str | Path) -> None:
    """Writes a recording as JSON lines."""
    Path(path).write_bytes(dump(recording))


def append(recording: Recording, path: str | Path) -> None:
    """Adds a recording to the end of a file of recordings."""
    with Path(path).open("ab") as file:
        file.write(dump(recording))


def dump(recording: Recording) -> bytes:
    """A recording as JSON lines: what its file holds."""
    head = {
        HEAD: VERSION,
        "method": recording.method,
        "url": recording.url,
        "status": recording.status,
        "headers": recording.headers,
        "wire_api": recording.wire_api,
    }
    lines: list[Any] = [head]
    lines += [
        {"at": round(chunk.at, 6), "data": b64encode(chunk.data).decode("ascii")}
        for chunk in recording.chunks
    ]
    lines.append({"end": recording.end})
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def load(path: str | Path) -> Recording:
    """Reads the one recording of a file; ValueError on any other file."""
    found = load_all(path)
    if len(found) != 1:
        raise ValueError(f"{path} holds {len(found)} recordings: use `load_all`")
    return found[0]


def load_all(path: str | Path) -> list[Recording]:
    """Reads a file of recordings, in their order; ValueError on any other file."""
    try:
        return parse(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not a recording: {error}") from None


def parse(data: bytes) -> list[Recording]:
    """The recordings that JSON lines hold; ValueError on anything else."""
    if not is_recording(data):
        raise ValueError(of_another_kind(data) or f"it does not begin with {HEAD}")
    found, broken = read(data)
    if broken is not None:
        raise ValueError(broken)
    return found


def read(data: bytes) -> tuple[list[Recording], str | None]:
    """The whole recordings at the beginning of JSON lines, and why those behind them cannot be read; None where all can."""
    found: list[Recording] = []
    held: list[dict[str, Any]] = []
    number = 0
    try:
        for number, line in enumerate(data.splitlines(), 1):  # noqa: B007  # it is said behind the loop
            held.append(msgspec.json.decode(line, type=dict[str, Any]))
            if "end" in held[-1]:
                found.append(_recording(*held))
                held = []
    except (LookupError, TypeError, ValueError) as error:
        return found, f"line {number} breaks it: {error}"
    return (
        found,
        f"it stops before the end of a recording, at line {number}" if held or not found else None,
    )


def is_recording(data: bytes) -> bool:
    """Whether a file's bytes begin as a recording does."""
    return data.startswith(b'{"%s"' % HEAD.encode())


def of_another_kind(data: bytes) -> str | None:
    """What a file is that streamlib wrote, or nobody yet, and that holds no recording; None where that is not known."""
    first = data.partition(b"\n")[0]
    if not data.strip():
        return "it is empty"
    if first.startswith(b'{"streamlib_history"'):
        return "it is a saved history (read it with load_history)"
    return (
        "it is an event log (read it with load_events)"
        if first.startswith(b'{"type":') and _is_event(first)
        else None
    )


def _is_event(line: bytes) -> bool:
    try:
        return bool(load_events(line))
    except ValueError:
        return False


def _recording(head: dict[str, Any], *rest: dict[str, Any]) -> Recording:
    if head[HEAD] != VERSION:
        raise ValueError(f"version {head[HEAD]} of the format")
    chunks = [(float(line["at"]), b64decode(line["data"], validate=True)) for line in rest[:-1]]
    fields = {name: head[name] for name in ("method", "url", "status", "headers")}
    return msgspec.convert(
        {**fields, "chunks": chunks, "end": rest[-1]["end"], "wire_api": head.get("wire_api")},
        Recording,
    )


def from_body(
    body: bytes, *, headers: Mapping[str, str] | None = None, status: int = 200
) -> Recording:
    """A recording of a body that was captured without its times: one chunk."""
    return Recording(status, dict(headers or {}), (Chunk(0.0, body),) if body else ())


def dump_events(events: Iterable[ResponseEvent]) -> bytes:
    """An event log: one JSON object a line, `type` and `seq` in each."""
    return b"".join(msgspec.json.encode(event) + b"\n" for event in events)


def load_events(data: bytes) -> list[ResponseEvent]:
    """The events of a log; ValueError on any other text."""
    decode: Any = msgspec.json.Decoder(ResponseEvent).decode
    try:
        return [decode(line) for line in data.splitlines() if line.strip()]
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not an event log: {error}") from None


# --- recording ---


class Recorder:
    """A transport that records every answer that goes through it. `http` is what `Client(http=…)` takes; the block closes it."""

    def __init__(self, http: Any = None, clock: Callable[[], float] = anyio.current_time) -> None:
        self.recordings: list[Recording] = []
        self._inner: Transport = transport_for(http)
        self._clock = clock

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """Sends by the transport inside; the answer is recorded while it is read."""
        sent = self._clock()
        answer = await self._inner.send(method, url, headers, body, deadlines)
        return _RecordingResponse(answer, self, method, url, sent)

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
        """Now."""
        return self._clock()


class _RecordingResponse:
    """An answer that is written down while it is read."""

    def __init__(
        self, answer: HttpResponse, recorder: Recorder, method: str, url: str, sent: float
    ) -> None:
        self._answer = answer
        self._recorder = recorder
        self._chunks: list[Chunk] = []
        self._made = (method, redact(url.partition("?")[0]))
        self._sent = sent
        self._end: str | None = "unread"
        self._kept = False

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        self._iterator = self._answer.chunks
        return self

    def __aiter__(self) -> _RecordingResponse:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await anext(self._iterator)
        except StopAsyncIteration:
            self._end = None
            raise
        except BaseException as error:
            self._end = type(error).__name__
            raise
        self._chunks.append(Chunk(self._recorder.clock() - self._sent, data))
        return data

    async def aclose(self) -> None:
        """Keeps the recording, once, and closes the answer."""
        if not self._kept:
            self._kept = True
            method, url = self._made
            headers = kept_headers(self._answer.headers)
            self._recorder.recordings.append(
                Recording(
                    self.status, headers, tuple(self._chunks), self._end, method, url, _wire_of(url)
                )
            )
        await self._answer.aclose()


def _wire_of(url: str) -> WireApi | None:
    """The wire that an address speaks; what stands before it in the path is the provider's own."""
    parts = urlsplit(url).path.split("/")[1:]
    rests = ["/".join(parts[at:]) for at in range(len(parts))]
    found = (
        route(prefix + rest) for rest in rests for prefix in ("/", "/v1/")
    )  # Vertex has a project in between
    return next((one.wire_api for one in found if one is not None), None)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers a recording may hold."""
    return {
        name.lower(): redact(value)
        for name, value in headers.items()
        if any(part in name.lower() for part in KEPT_HEADERS)
    }


# --- replaying ---


class Replay:
    """A transport that answers from recordings, one a request, in turn. `speed` 1 is the recorded pace, 0 is at once."""

    def __init__(
        self, *recordings: Recording, speed: float = 0.0, split: Split = "recorded"
    ) -> None:
        self._recordings = recordings
        self._speed = speed
        self._split: Split = split
        self._sent = 0

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """The next recording."""
        recording = self._recordings[self._sent % len(self._recordings)]
        self._sent += 1
        return _ReplayedResponse(
            recording, list(pieces(recording.chunks, self._split)), self._speed
        )

    async def aclose(self) -> None:
        """Nothing is open."""


class _ReplayedResponse:
    def __init__(self, recording: Recording, chunks: list[Chunk], speed: float) -> None:
        self.status = recording.status
        self.headers: Mapping[str, str] = recording.headers
        self._end = recording.end
        self._left = iter(chunks)
        self._speed = speed
        self._began: float | None = None

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> _ReplayedResponse:
        return self

    async def __anext__(self) -> bytes:
        chunk = next(self._left, None)
        if chunk is None:
            if self._end is not None:
                raise ConnectionError(f"the recording was cut here: {self._end}")
            raise StopAsyncIteration
        await self._wait(chunk.at)
        return chunk.data

    async def _wait(self, at: float) -> None:
        now = anyio.current_time()
        self._began = now if self._began is None else self._began
        await anyio.sleep(max(0.0, at / self._speed - (now - self._began)) if self._speed else 0)

    async def aclose(self) -> None:
        """Nothing is open."""


def pieces(chunks: Sequence[Chunk], split: Split) -> Iterator[Chunk]:
    """The chunks, cut another way; each piece keeps the time of the chunk it begins in."""
    if split == "recorded":
        yield from chunks
    elif split == "whole":
        yield Chunk(chunks[-1].at if chunks else 0.0, b"".join(chunk.data for chunk in chunks))
    else:
        for chunk in chunks:
            yield from (
                Chunk(chunk.at, chunk.data[at : at + split])
                for at in range(0, len(chunk.data), max(1, split))
            )


def random_pieces(body: bytes, seed: int, most: int = 40) -> list[bytes]:
    """The body cut at random places, the same ones for the same seed."""
    rng = random.Random(seed)  # noqa: S311  # to cut a body, not to keep a secret
    places = sorted(rng.randint(0, len(body)) for _ in range(rng.randint(1, most)))
    return [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
