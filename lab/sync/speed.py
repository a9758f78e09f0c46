"""Microseconds of CPU time an event, of the synchronous client and of the asynchronous one."""

from __future__ import annotations

import time
from typing import Any

import anyio

from tests.support.clients import MemoryTransport, make_client, make_request
from tests.support.response_bodies import LAST, OPENED, finish, stop, text
from tests.support.sync_clients import make_sync_client

URL = "http://memory.example"


def body(events: int) -> list[bytes]:
    """The frames of a response with so many deltas."""
    deltas = [text(f"word {n} ") for n in range(events)]
    return [OPENED, *deltas, stop(), finish(), LAST]


def chunks_of(frames: list[bytes], size: int | None) -> list[bytes]:
    """One frame a chunk, or chunks of so many bytes."""
    if size is None:
        return frames
    joined = b"".join(frames)
    return [joined[start : start + size] for start in range(0, len(joined), size)]


def sync_seconds(chunks: list[bytes]) -> tuple[float, int]:
    """Seconds of CPU time to read a response, and the number of its events."""
    count = 0
    with (
        make_sync_client(URL, MemoryTransport(chunks)) as client,
        client.stream(make_request(URL)) as stream,
    ):
        began = time.process_time()
        for _ in stream:
            count += 1
        return time.process_time() - began, count


def async_seconds(chunks: list[bytes]) -> tuple[float, int]:
    """The same with the asynchronous client."""

    async def read() -> tuple[float, int]:
        count = 0
        async with (
            make_client(URL, MemoryTransport(chunks)) as client,
            client.stream(make_request(URL)) as stream,
        ):
            began = time.process_time()
            async for _ in stream:
                count += 1
            return time.process_time() - began, count

    return anyio.run(read)


def measure(events: int = 4000, tries: int = 7) -> dict[str, Any]:
    """Microseconds of CPU time an event, the best of several tries."""
    frames = body(events)
    result: dict[str, Any] = {}
    for name, size in (("one event a chunk", None), ("4 KB chunks", 4096)):
        chunks = chunks_of(frames, size)
        best: dict[str, float] = {}
        for _ in range(tries):
            for kind, seconds_of in (("sync", sync_seconds), ("async", async_seconds)):
                seconds, count = seconds_of(chunks)
                best[kind] = min(best.get(kind, 1e9), 1e6 * seconds / count)
        result[name] = {kind: round(value, 2) for kind, value in best.items()}
    return result
