"""Promise 23: twenty thousand streams through one client, a third broken off, a third faulted; memory, descriptors and tasks stay flat."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
import trio

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


def descriptors() -> int:
    """Open files and sockets of this process."""
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else -1


def tasks(backend: str) -> int:
    """Tasks of the running loop."""
    return (
        len(asyncio.all_tasks())
        if backend == "asyncio"
        else trio.lowlevel.current_statistics().tasks_living
    )


class Turns:
    """Which answer the server gives next: every third is a fault."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, request: bytes) -> Script:
        self.n += 1
        return FAULTS[self.n // 3 % len(FAULTS)] if self.n % 3 == 0 else complete_response(MESSAGE)


async def one(made: Client, url: str, n: int) -> str:
    """A stream: every third is left after its second event. How it ended."""
    async with made.stream(make_request(url)) as stream:
        seen = 0
        async for _ in stream:
            seen += 1
            if n % 3 == 1 and seen == 2:
                break
    response = stream.response
    assert response.status != "completed" or response.text == HELLO_TEXT
    return response.status


def held() -> int:
    """Traced bytes that outlive a collection."""
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
        scripted(choose=Turns()) as server,
        open_http(http) as inner,
        make_client(server.url, inner, **options) as made,
    ):
        for n in range(WARM):
            await one(made, server.url, n)
        server.requests.clear()
        tracemalloc.start(1)
        before = (held(), descriptors(), tasks(anyio_backend))
        for n in range(STREAMS):
            status = await one(made, server.url, n)
            ends[status] = ends.get(status, 0) + 1
            if n % 500 == 499:
                server.requests.clear()  # the test's own log
        await anyio.sleep(0.1)
        after = (held(), descriptors(), tasks(anyio_backend))
        tracemalloc.stop()
    figure("streams", sum(ends.values()))
    figure("broken off or faulted", ends.get("cancelled", 0) + ends.get("failed", 0))
    figure("memory growth KiB", (after[0] - before[0]) / 1024)
    figure("descriptors more", after[1] - before[1])
    figure("tasks more", after[2] - before[2])
    assert ends.keys() == {"completed", "cancelled", "failed"}
    assert after[0] - before[0] < 100 * 1024
    assert after[1] <= before[1] + 1
    assert after[2] <= before[2] + 1
