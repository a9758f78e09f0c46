"""Promise 23: memory, descriptors and tasks stay flat over 20,000 streams of one client.

A third of the streams is stopped early, a third fails.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence
from typing import Any, Final

import anyio
import pytest
import trio

from lab.systems import descriptors
from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.transport.deadlines import Deadlines
from tests.support.clients import LIBRARIES, make_client, make_request, open_http
from tests.support.metrics import figure
from tests.support.response_bodies import HELLO, HELLO_TEXT, MESSAGE, OVERLOADED, error_body
from tests.support.scripted_server import (
    END,
    FIN,
    RST,
    Script,
    chunk,
    complete_response,
    head,
    scripted,
)

pytestmark = [pytest.mark.slow]

STREAMS: Final = 5_000
"""On each loop with each library."""
WARM: Final = 600
FAULTS: Final[Sequence[Script]] = (
    [head(), chunk(HELLO), FIN],
    [head(), chunk(HELLO), RST],
    [head(), chunk(HELLO), chunk(OVERLOADED), END],
    [head(), chunk(HELLO), chunk(b"data: {oops\n\n"), END],
    complete_response(error_body("overloaded_error"), "529 Overloaded", "application/json"),
    complete_response(b"<html>", content_type="text/html"),
    [RST],
)


def tasks(backend: str) -> int:
    """Tasks of the running loop."""
    if backend == "asyncio":
        return len(asyncio.all_tasks())
    return trio.lowlevel.current_statistics().tasks_living


class Responses:
    """The response the server sends next: every third is a fault."""

    def __init__(self) -> None:
        self.count = 0
        """Requests so far."""

    def __call__(self, request: bytes) -> Script:
        self.count += 1
        if self.count % 3 == 0:
            return FAULTS[self.count // 3 % len(FAULTS)]
        return complete_response(MESSAGE)


async def read_stream(client: Client, url: str, n: int) -> str:
    """Reads a stream, every third only to its second event; the status of its response."""
    async with client.stream(make_request(url)) as stream:
        seen = 0
        async for _ in stream:
            seen += 1
            if n % 3 == 1 and seen == 2:
                break
    response = stream.response
    assert response.status != "completed" or response.text == HELLO_TEXT
    return response.status


def traced_bytes() -> int:
    """Traced bytes that survive a collection."""
    gc.collect()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("http", LIBRARIES)
async def test_23_a_soak_leaves_memory_sockets_and_tasks_flat(
    http: str, anyio_backend: Any
) -> None:
    ends: dict[str, int] = {}
    options: Any = {
        "retry": RetryPolicy(retries=0),
        "deadlines": Deadlines(total=10),
        "errors": "event",
    }
    async with (
        scripted(choose=Responses()) as server,
        open_http(http) as inner,
        make_client(server.url, inner, **options) as client,
    ):
        for n in range(WARM):
            await read_stream(client, server.url, n)
        server.requests.clear()
        tracemalloc.start(1)
        before = (traced_bytes(), descriptors(), tasks(anyio_backend))
        for n in range(STREAMS):
            status = await read_stream(client, server.url, n)
            ends[status] = ends.get(status, 0) + 1
            if n % 500 == 499:
                server.requests.clear()  # the test's own log
        await anyio.sleep(0.1)
        after = (traced_bytes(), descriptors(), tasks(anyio_backend))
        tracemalloc.stop()
    figure("streams", sum(ends.values()))
    figure("stopped or faulted", ends.get("cancelled", 0) + ends.get("failed", 0))
    figure("memory growth KiB", (after[0] - before[0]) / 1024)
    figure("added descriptors", after[1] - before[1])
    figure("added tasks", after[2] - before[2])
    assert ends.keys() == {"completed", "cancelled", "failed"}
    assert after[0] - before[0] < 100 * 1024
    assert after[1] <= before[1] + 1
    assert after[2] <= before[2] + 1
