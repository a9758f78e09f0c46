"""What a stream holds while it waits for its next bytes, counted in allocated bytes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from typing import Final

import anyio

from streamlib import Client, HttpResponse
from streamlib.transport import IteratorResponse
from streamlib.transport.deadlines import Deadlines
from tests.support.response_bodies import OPENED, text

FIRST: Final = (OPENED, text("word "))
"""What is read of each stream before it waits."""


class SilentTransport:
    """Answers each request with the start of a response, which never goes on."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, deadlines: Deadlines
    ) -> HttpResponse:
        return IteratorResponse(_first_bytes(), {"content-type": "text/event-stream"})

    async def aclose(self) -> None:
        pass


async def _first_bytes() -> AsyncIterator[bytes]:
    for chunk in FIRST:
        yield chunk
    await anyio.sleep_forever()


def idle_memory(count: int) -> float:
    """Bytes of one of so many streams that wait, its request included."""
    return anyio.run(_bytes_each, count)


async def _bytes_each(count: int) -> float:
    async with Client(http=SilentTransport()) as client:
        await _open(client)  # modules and caches that all streams share
        gc.collect()
        tracemalloc.start(1)
        before = tracemalloc.get_traced_memory()[0]
        streams = [await _open(client) for _ in range(count)]
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / count
        tracemalloc.stop()
        for stream in streams:
            await stream.aclose()
    return each


async def _open(client: Client) -> object:
    stream = client.stream(
        "Hello", "custom:m", wire_api="messages", base_url="http://x", dialects=()
    )
    await stream.__aenter__()
    async for event in stream:
        if event.__struct_config__.tag == "output_text_delta":
            break
    return stream
