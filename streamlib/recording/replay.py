"""A transport that replays recordings without a network, with other chunks and with faults."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import anyio
from msgspec.structs import replace

from streamlib.recording.files import Chunk, Recording, no_response
from streamlib.recording.recorder import wire_of_url
from streamlib.request.mistakes import check_kind
from streamlib.transport import HttpResponse
from streamlib.transport.deadlines import Deadlines
from streamlib.wires.faults import MALFORMED, Fault, check_fault, fault_index
from streamlib.wires.frame_offsets import frame_offsets
from streamlib_parsers.items import WireApi
from streamlib_parsers.stream_error import StreamError

Split: TypeAlias = Literal["recorded", "whole", "random"] | int
"""How a replay splits the body: as recorded, not at all, at random offsets, or every so many
bytes."""

SPLITS: Final = ("recorded", "whole", "random")


class Replay:
    """A transport that answers each request with the next recording, in turn.

    Args:
        recordings: at least one; after the last comes the first again.
        speed: 1 is the recorded pace, 2 twice as fast; 0 does not wait.
        split: how bodies are split into chunks.
        seed: of the offsets of `split="random"`; each request has others.
        fault: what goes wrong with each body.
        at: events of the body (frames of its wire) before the fault, however it is split; a shorter
            body has it in its middle.
        failing: how many requests get the fault, from the first on; None: all. They do not use up a
            recording.

    Raises:
        TypeError: something else than recordings is given, or an option is of the wrong kind.
        ValueError: there is no recording, or an option has a value that it cannot have.
    """

    def __init__(
        self,
        *recordings: Recording,
        speed: float = 0.0,
        split: Split = "recorded",
        seed: int = 0,
        fault: Fault | None = None,
        at: int = 3,
        failing: int | None = None,
    ) -> None:
        if not recordings:
            raise ValueError("there is no recording to replay")
        for recording in recordings:
            check_kind("a replay", recording, Recording, "of recordings: `Replay(*load_all(…))`")
        check_kind("speed", speed, (int, float), "a number")
        check_kind("seed", seed, int, "a whole number")
        if not speed >= 0:  # nor NaN
            raise ValueError(f"speed is 0 (no pauses) or a positive number, not {speed}")
        check_split(split)
        check_fault(fault, at, failing)
        self._recordings = recordings
        self._speed = speed
        self._split: Split = split
        self._seed = seed
        self._fault: Fault | None = fault
        self._fault_at = at
        self._failing = failing
        self._requests = 0
        """Number of requests so far."""
        self._sent = 0
        """Recordings that were used up."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        """The next recording; the request is ignored."""
        recording = self._recordings[self._sent % len(self._recordings)]
        fault = self._fault
        if self._failing is not None and self._requests >= self._failing:
            fault = None
        is_retried = fault is not None and self._failing is not None
        if not is_retried:
            self._sent += 1
        seed = self._seed + self._requests
        self._requests += 1
        missing = no_response(recording)
        if missing is not None:
            # The client would name the server of the request, which was not asked.
            raise StreamError(replace(missing, detail={"address": "a recording"}))
        recorded: Sequence[Chunk] = recording.chunks
        if fault is not None:
            wire_api = wire_of_url(url) or recording.wire_api
            recorded = faulty_chunks(recorded, wire_api, fault, self._fault_at)
        chunks = list(pieces(recorded, self._split, seed))
        return _ReplayedResponse(recording, chunks, self._speed, fault)

    async def aclose(self) -> None:
        """Does nothing: nothing is open."""


class _ReplayedResponse:
    def __init__(
        self, recording: Recording, chunks: list[Chunk], speed: float, fault: Fault | None
    ) -> None:
        self.status = recording.status
        self.headers: Mapping[str, str] = recording.headers
        self._end = recording.end
        if fault == "truncate":
            self._end = None
        elif fault == "disconnect":
            self._end = "the connection was reset (fault)"
        self._stalls = fault == "stall"
        """Silence follows the last chunk."""
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
            if self._stalls:
                await anyio.sleep_forever()
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


# --- chunks ---


def check_split(split: object) -> None:
    """Checks how a body should be split, where that is passed.

    Raises:
        ValueError: it is neither a name of `Split` nor a number of bytes.
    """
    if isinstance(split, int) and not isinstance(split, bool) and split >= 1:
        return
    if split not in SPLITS:
        raise ValueError(f"split is one of {', '.join(SPLITS)} or bytes a chunk, not {split!r}")


def pieces(chunks: Sequence[Chunk], split: Split, seed: int = 0) -> Iterator[Chunk]:
    """The same bytes with other boundaries.

    A new chunk has the time of the recorded one that it begins in; the whole body has the time of
    the last.

    Args:
        chunks: as recorded.
        split: how to split them.
        seed: of random offsets.

    Raises:
        ValueError: `split` is none of its values.
    """
    check_split(split)
    if split == "recorded":
        yield from chunks
        return
    if split == "whole":
        end = 0.0
        if chunks:
            end = chunks[-1].at
        yield Chunk(end, b"".join(chunk.data for chunk in chunks))
        return
    if split == "random":
        yield from _random_chunks(chunks, seed)
        return
    for chunk in chunks:
        for start in range(0, len(chunk.data), max(1, split)):
            yield Chunk(chunk.at, chunk.data[start : start + split])


def _random_chunks(chunks: Sequence[Chunk], seed: int) -> Iterator[Chunk]:
    body = b"".join(chunk.data for chunk in chunks)
    recorded = iter(chunks)
    seconds = 0.0
    recorded_end = 0  # offset after the recorded chunk of `seconds`
    offset = 0
    for data in random_pieces(body, seed):
        while recorded_end <= offset < len(body):
            chunk = next(recorded)
            seconds = chunk.at
            recorded_end += len(chunk.data)
        if data:
            yield Chunk(seconds, data)
        offset += len(data)


def random_pieces(body: bytes, seed: int, most: int = 40) -> list[bytes]:
    """The body split at random offsets, the same ones for the same seed."""
    rng = random.Random(seed)  # noqa: S311  # splits a body, protects no secret
    count = rng.randint(1, most)
    offsets = sorted(rng.randint(0, len(body)) for _ in range(count))
    return [body[start:end] for start, end in pairwise([0, *offsets, len(body)])]


# --- faults ---


def faulty_chunks(
    chunks: Sequence[Chunk], wire_api: WireApi | None, fault: Fault, after: int
) -> list[Chunk]:
    """The chunks up to a fault; with `malformed`, all of them around the malformed bytes.

    Args:
        chunks: as recorded.
        wire_api: whose frames are counted; None: the body is one frame.
        fault: what goes wrong; a connection is lost in the middle of a frame.
        after: frames before it.
    """
    body = b"".join(chunk.data for chunk in chunks)
    frames = [(0, len(body))]
    if wire_api is not None:
        frames = list(frame_offsets(wire_api, body)) or frames
    start, end = frames[fault_index(len(frames), after)]
    if fault == "disconnect":
        start += (end - start) // 2
    before = _chunks_between(chunks, 0, start)
    if fault != "malformed":
        return before
    seconds = 0.0
    if before:
        seconds = before[-1].at
    return [*before, Chunk(seconds, MALFORMED), *_chunks_between(chunks, start, len(body))]


def _chunks_between(chunks: Sequence[Chunk], start: int, stop: int) -> list[Chunk]:
    """The chunks of the bytes from `start` to `stop`."""
    inside: list[Chunk] = []
    offset = 0
    for chunk in chunks:
        data = chunk.data[max(0, start - offset) : max(0, stop - offset)]
        if data:
            inside.append(Chunk(chunk.at, data))
        offset += len(chunk.data)
    return inside
