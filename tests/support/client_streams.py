"""Helpers for tests of response streams: frames, and streams over them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import anyio
import anyio.lowlevel

from streamlib.client.stream import ResponseStream
from streamlib_parsers import (
    parser,
)
from tests.support.response_bodies import (
    LAST,
    OPENED,
    START,
    finish,
    stop,
    text,
)

EVENTS: Final = [text("Hello"), text(" there")]
FRAMES: Final = [START, OPENED.removeprefix(START), *EVENTS, stop(), finish(), LAST]


def stream_over(
    *chunks: bytes | float | BaseException, wire: Any = "messages", **options: Any
) -> ResponseStream:
    """A stream over chunks from memory; a number is a pause in seconds."""

    async def bytes_of() -> AsyncIterator[bytes]:
        for step in chunks:
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, bytes):
                yield step
            else:
                await anyio.sleep(step)

    return ResponseStream.from_chunks(bytes_of(), parser(wire), **options)


async def all_events(stream: ResponseStream) -> list[Any]:
    """All events of a stream."""
    async with stream:
        return [event async for event in stream]


async def until(settled: Callable[[], bool], seconds: float) -> None:
    """Waits until a condition is true; fails after this many seconds."""
    with anyio.move_on_after(seconds):
        while not settled():  # noqa: ASYNC110  # a socket has no event to wait for
            await anyio.sleep(0.001)
