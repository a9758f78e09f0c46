"""Logs over HTTP, read by the code of others: Durable Streams' client and suite, `useChat`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import anyio
import httpx
import pytest

from lab.durable.http_adapter import Adapter
from lab.real.stream_readers import absence, conformance, read
from streamlib import accumulate
from streamlib.durable import Log, open_log
from streamlib.durable.http import log_app
from streamlib.durable.log_exchange import PublicLines
from streamlib.transport.deadlines import Deadlines
from tests.real.conftest import ABSENT
from tests.support.asgi_servers import serving_app
from tests.support.client_streams import stream_over
from tests.support.response_bodies import frames_of

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("asgi_server")]

WORDS = 60
TEXT = "".join(f"word {n} " for n in range(WORDS))
GROUPS = (
    "Read Operations|Long-Poll|Browser Security|HEAD Metadata$|HEAD Metadata should|Offset Valid"
    "|Caching and ETag|Chunking|Read-Your-Writes|SSE Mode|JSON Mode|Stream Closure|HTTP Protocol"
    "|Protocol Edge|Property-Based"
)
NOT_SERVED = ("Fork - ", "Producer", "base64", "binary", "TTL", "Expires-At", "dedup")
"""Of the suite: forks, idempotent producers, streams of bytes, times to live that a writer sets."""


@pytest.fixture(autouse=True)
def readers() -> None:
    why = absence()
    if why is not None:
        pytest.skip(f"{ABSENT}: readers of logs, {why}")


class Readers:
    """Allows everybody, and knows when so many requests came: Node takes its time to start."""

    def __init__(self, count: int) -> None:
        self.missing = count
        self.there = anyio.Event()

    def allow(self, scope: Any, log_id: str) -> bool:
        self.missing -= 1
        if self.missing == 0:
            self.there.set()
        return True


def slow_stream(pause: float) -> Any:
    steps: list[bytes | float] = []
    for frame in frames_of(WORDS):
        steps += [frame, pause]
    return stream_over(*steps, errors="event", deadlines=Deadlines(idle=1e9))


async def write(log: Log, readers: Readers) -> None:
    await readers.there.wait()
    await log.write("a", slow_stream(0.03))


async def test_official_client_reads_in_every_mode() -> None:
    async with open_log(interval=0.02) as log, anyio.create_task_group() as group:
        await log.create("a")
        found = Readers(4)
        # The client gives up after three connections of less than a second.
        app = log_app(log, allow=found.allow, poll=0.2, lifetime=1.1)
        async with serving_app(app) as server:
            group.start_soon(write, log, found)
            url = f"{server.url}/log/a"
            modes: list[Any] = [False, "long-poll", "sse", True]
            jobs = [{"do": "stream", "url": url, "live": live} for live in modes]
            results = await read(jobs)
        lines = PublicLines()
        whole = [json.loads(lines.line(entry.event)) async for entry in log.read("a")]
    assert len(whole) > WORDS
    for live, result in zip(modes, results, strict=True):
        assert result["closed"], live
        assert result["items"] == whole, live


async def test_use_chat_resumes_a_message_after_a_reload() -> None:
    async with open_log(interval=0.02) as log, anyio.create_task_group() as group:
        await log.create("a", {"message_id": "m1"})
        found = Readers(4)
        async with serving_app(log_app(log, allow=found.allow)) as server:
            group.start_soon(write, log, found)
            question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "?"}]}
            half = {"id": "m1", "role": "assistant", "parts": [{"type": "text", "text": "word"}]}
            jobs = []
            for sdk in ("ai", "ai7"):
                for messages in ([question], [question, half]):
                    jobs.append({"do": "resume", "sdk": sdk, "id": "a", "messages": messages})
            api = {"api": f"{server.url}/api/chat"}
            results = await read([{**job, **api} for job in jobs])
            again = await read([{**job, **api} for job in jobs])
    for result in results:
        assert (result["status"], result["errors"]) == ("ready", [])
        asked, answer = result["messages"]
        assert (asked, answer["id"]) == (question, "m1")
        texts = [part["text"] for part in answer["parts"] if part["type"] == "text"]
        assert texts == [TEXT]
    # Nothing runs: the page keeps what it has.
    for job, result in zip(jobs, again, strict=True):
        assert result == {"messages": job["messages"], "status": "ready", "errors": []}


async def test_stop_ends_the_message_that_use_chat_resumed() -> None:
    async with open_log(interval=0.02) as log, anyio.create_task_group() as group:
        await log.create("a", {"message_id": "m1"})
        found = Readers(1)
        async with serving_app(log_app(log, allow=found.allow)) as server:
            stream = stream_over(
                *frames_of(9)[:5], 1e9, errors="event", deadlines=Deadlines(idle=1e9)
            )
            group.start_soon(log.write, "a", stream)

            async def stop() -> None:
                await found.there.wait()
                await anyio.sleep(0.5)
                async with httpx.AsyncClient() as http:
                    response = await http.post(f"{server.url}/api/chat/a/stop")
                    assert response.status_code == 204

            group.start_soon(stop)
            job = {"do": "resume", "sdk": "ai", "id": "a", "messages": []}
            (result,) = await read([{**job, "api": f"{server.url}/api/chat"}])
        events = [entry.event async for entry in log.read("a")]
    assert accumulate(events).status == "cancelled"
    (message,) = result["messages"]
    assert message["parts"][-1]["text"] == "word 0 word 1 word 2 "
    assert result["status"] == "ready"


async def test_conformance_suite_passes_where_it_applies() -> None:
    async with open_log(lease=3600) as log, serving_app(Adapter(log)) as server:
        results = await conformance(server.url, GROUPS)
    applying = {}
    for name, result in results.items():
        if not any(word in name for word in NOT_SERVED):
            applying[name] = result
    sys.stdout.write(f"\nconformance: {Counter(applying.values())}\n")
    failed = [name for name, result in applying.items() if result != "passed"]
    assert failed == []
    assert len(applying) > 100
