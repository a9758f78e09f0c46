"""Runs a storm on the current loop, and counts what must not happen."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
import trio

from lab.storm.faults import FORGED, text_of
from lab.storm.plan import Plan, request_values
from lab.storm.server import Seen, StormServer
from lab.storm.stops import STOPS, Observed
from lab.systems import descriptors
from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.transport.deadlines import Deadlines
from tests.support.clients import library, make_client, make_request, open_http

AT_ONCE: Final = 200
CLIENTS: Final = 4
"""Over HTTP/2, where a connection has 100 streams at once: 50 share one, and none waits for it."""
WARM: Final = 20
DEADLINES: Final = Deadlines(
    connect=9, headers=20, first_byte=3, first_event=3, idle=3, total=60, tail=0.05, drain=0.05
)
"""Of a storm: longer than a stream takes while 200 share a core (`-X dev`: 8 ms of it each), since
one that is late says little. A silent server costs a stream so long, while the others go on."""
HTTP2_DEADLINES: Final = msgspec.structs.replace(DEADLINES, first_byte=6, first_event=6, idle=6)
"""A stream costs twice as much where 50 share a connection: each waits for its turn to write."""
SHORT_DEADLINES: Final = msgspec.structs.replace(DEADLINES, first_byte=1, first_event=1, idle=1)
"""Of the small storms, which are as long as their longest stream."""

RESET: Final = "reset behind the end"
"""A reset may overtake the end of a response that was not read yet."""

_TAG: Final = re.compile(r"tag (\d{6})")
_LATE: Final = frozenset({"stalled", "deadline"})
"""What a busy machine does to a stream that is in order."""
_ENDED: Final = frozenset({"connection", "truncated"})
"""What the end of a shared connection does to a stream that is in order."""


class Storm:
    """The streams of one run."""

    def __init__(self, transport: str, streams: int, deadlines: Deadlines) -> None:
        self.counts: Counter[str] = Counter()
        self.pairs: set[tuple[str, str]] = set()
        """Kinds and ways that occurred together."""
        self.examples: list[str] = []
        """The first streams that were not as they must be."""
        self.transport = transport
        self.plan = Plan(transport)
        self.deadlines = deadlines
        self._streams = streams
        self._next = 0
        """Number of the next stream."""

    async def work(self, client: Client, url: str) -> None:
        """Runs streams one after the other, until there are no more."""
        while self._next < self._streams:
            n = self._next
            self._next += 1
            await self._run_stream(client, url, n)

    async def _run_stream(self, client: Client, url: str, n: int) -> None:
        self.pairs.add((self.plan.kind(n), self.plan.way(n)))
        if self.plan.has_own_connection(n):
            async with (
                _http(self.transport) as http,
                make_storm_client(url, http, self.deadlines) as own,
            ):
                await self._observe(own, url, n)
        else:
            await self._observe(client, url, n)

    async def _observe(self, client: Client, url: str, n: int) -> None:
        tag = f"{n:06d}"
        way = self.plan.way(n)
        headers, body = request_values(tag)
        request = make_request(f"{url}/{tag}", body=body)
        request = msgspec.structs.replace(request, headers={**request.headers, **headers})
        seen = Observed(client.stream(request), n)
        began = time.monotonic()
        try:
            with anyio.fail_after(60):
                await STOPS[way](seen)
        except Exception as error:  # noqa: BLE001  # none may come out: `errors="event"`
            place = traceback.extract_tb(error.__traceback__)[-1]
            seconds = time.monotonic() - began
            where = f"{Path(place.filename).name}:{place.lineno}"
            about = f"{tag} ({self.plan.kind(n)}, {way}) after {seconds:.1f} s in {where}"
            self._note("raised", f"{about}: {error!r}")
        except BaseException as error:
            self._note("escaped", f"{tag} ({self.plan.kind(n)}, {way}): {error!r}")
            raise
        self.counts["streams"] += 1
        self._judge(seen, n)

    def _judge(self, seen: Observed, n: int) -> None:
        response = seen.response
        fault = self.plan.faults[self.plan.kind(n)]
        self.counts[response.status] += 1
        about = f"{n} ({self.plan.kind(n)}, {self.plan.way(n)}): {response.status} {response.error}"
        self._judge_text(response.text, n, about)
        if response.status == "completed":
            if not fault.completes or response.text != text_of(f"{n:06d}"):
                self._note("false completed", about)
        if response.error is not None:
            self.counts[f"failed: {response.error.kind}"] += 1
        if seen.after_terminal:
            self._note("events after the terminal", about)
        if response.status != "failed" or not seen.read_to_end or not fault.completes:
            return
        # It was read to its end, and it is complete: only this may have come between.
        assert response.error is not None
        if response.error.kind in _LATE:
            self.counts["late"] += 1
        elif self.plan.is_http2 and response.error.kind in _ENDED:
            self.counts["ended with their connection"] += 1
        elif self.plan.kind(n) != RESET:
            self._note("failed though complete", about)

    def _judge_text(self, text: str, n: int, about: str) -> None:
        """Tells apart what may be wrong with a text.

        - mixed: text of another stream, which is what no stream may ever deliver.
        - late bytes: text of no stream; a server sent it behind a response, and it was taken for
          the response to a later request.
        - gap: text of its own, and yet not a part of it from the start: something is missing.
        """
        tag = f"{n:06d}"
        others = {*_TAG.findall(text)} - {tag}
        if FORGED in others:
            self._note("late bytes", f"{about} {text[:80]}")
        elif others:
            self._note("mixed", f"{about} {text[:80]}")
        elif not text_of(tag).startswith(text):
            self._note("gap", f"{about} {text[:80]}")

    def _note(self, name: str, example: str) -> None:
        self.counts[name] += 1
        if len(self.examples) < 20:
            self.examples.append(f"{name}: {example}")


async def run(transport: str, streams: int, server: Seen) -> Storm:
    """Runs a storm against a server that is up."""
    deadlines = HTTP2_DEADLINES if transport == "http2" else DEADLINES
    await _run(Storm(transport, WARM, deadlines), server)  # what a loop opens once is no leak
    return await _measured(Storm(transport, streams, deadlines), server)


async def run_small(transport: str) -> Storm:
    """Runs every kind and every way once, with the server in this process."""
    plan = Plan(transport)
    async with StormServer(plan).serve() as server:
        await _run(Storm(transport, 1, SHORT_DEADLINES), server)
        return await _measured(Storm(transport, len(plan.kinds), SHORT_DEADLINES), server)


async def _measured(storm: Storm, server: Seen) -> Storm:
    before = (descriptors(), tasks())
    await _run(storm, server)
    with anyio.move_on_after(2):  # a server in this process may still be closing its side
        while descriptors() > before[0] or tasks() > before[1]:  # noqa: ASYNC110
            await anyio.sleep(0.02)
    storm.counts["descriptors left"] = max(0, descriptors() - before[0])
    storm.counts["tasks left"] = max(0, tasks() - before[1])
    return storm


def make_storm_client(url: str, http: Any, deadlines: Deadlines) -> Client:
    """A client without retries: each stream is what one attempt was."""
    return make_client(
        url,
        http,
        retry=RetryPolicy(retries=0),
        deadlines=deadlines,
        errors="event",
        connections=AT_ONCE,
    )


async def _run(storm: Storm, server: Seen) -> None:
    with counted_warnings(storm.counts, storm.examples):
        async with AsyncExitStack() as stack:
            clients: list[Client] = []
            for _ in range(CLIENTS if storm.plan.is_http2 else 1):
                http = await stack.enter_async_context(_http(storm.transport))
                client = make_storm_client(server.url, http, storm.deadlines)
                clients.append(await stack.enter_async_context(client))
            async with anyio.create_task_group() as group:
                for number in range(AT_ONCE):
                    client = clients[number % len(clients)]
                    group.start_soon(storm.work, client, server.url)
            for client in clients:
                slots: Any = client._transport.slots  # type: ignore[attr-defined]
                storm.counts["slots left"] += slots.borrowed_tokens
        stats = server.stats()
        with anyio.move_on_after(5):
            while stats["open"]:
                await anyio.sleep(0.02)
                stats = server.stats()
        storm.counts["sockets left"] = stats["open"]
        storm.counts["connections"] = stats["connections"]
        storm.counts["mixed requests"] = stats["mixed requests"]
        await anyio.sleep(0.05)
        gc.collect()


def _http(transport: str) -> Any:
    """The user's HTTP client."""
    if transport == "aiohttp":
        return open_http(transport)
    name = "httpx" if transport == "http2" else transport
    limits = library(name).Limits(max_connections=None)
    if transport == "http2":
        return open_http(name, http1=False, http2=True, limits=limits)
    return open_http(name, limits=limits)


@contextmanager
def counted_warnings(counts: Counter[str], examples: list[str]) -> Iterator[None]:
    """Counts what leaks report: warnings, unraisable exceptions, errors in the log of the loop."""

    def unraisable(report: Any) -> None:
        counts["unraisable"] += 1
        examples.append(f"unraisable: {report.exc_value!r} in {report.object!r}")

    class Errors(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            counts["errors of the loop"] += 1
            examples.append(f"log: {record.getMessage()[:300]}")

    handler = Errors(logging.ERROR)
    usual = sys.unraisablehook
    sys.unraisablehook = unraisable
    logging.getLogger("asyncio").addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
            gc.collect()
        counts["warnings"] = len(caught)
        examples += [f"warning: {warning.message}" for warning in caught[:5]]
    finally:
        sys.unraisablehook = usual
        logging.getLogger("asyncio").removeHandler(handler)


def tasks() -> int:
    """Tasks of the running loop."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return trio.lowlevel.current_statistics().tasks_living
