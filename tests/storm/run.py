"""Runs a storm on the current loop, and counts what must not happen."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import sys
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import trio

from streamlib.client import Client
from streamlib.client.retry import RetryPolicy
from streamlib.transport.deadlines import Deadlines
from tests.storm.faults import FAULTS, text_of
from tests.storm.http2_faults import HTTP2_FAULTS
from tests.storm.stops import STOPS, Observed
from tests.support.clients import library, make_client, make_request, open_http
from tests.support.http2_server import Exchange, http2_server
from tests.support.scripted_server import Script, scripted

TRANSPORTS: Final = ("httpx", "httpx2", "aiohttp", "http2")
AT_ONCE: Final = 200
WARM: Final = 20
DEADLINES: Final = Deadlines(
    connect=9, headers=9, first_byte=3, first_event=3, idle=3, total=30, tail=0.05, drain=0.05
)
RARELY: Final = 9
"""One round in so many has the faults that end every response of a connection. It has no divisor in
common with the number of ways to stop, so that they meet all of them."""

RESET: Final = "reset behind the end"
"""A reset may overtake the end of a response that was not read yet."""

_TAG: Final = re.compile(r"tag (\d{6})")
_LATE: Final = frozenset({"stalled", "deadline"})
"""What a busy machine does to a stream that is in order."""


class Storm:
    """The streams of one run."""

    def __init__(self, transport: str, streams: int) -> None:
        self.counts: Counter[str] = Counter()
        self.pairs: set[tuple[str, str]] = set()
        """Kinds and ways that occurred together."""
        self.examples: list[str] = []
        """The first streams that were not as they must be."""
        self.transport = transport
        self._is_http2 = transport == "http2"
        self._faults: Any = HTTP2_FAULTS if self._is_http2 else FAULTS
        self._kinds = list(self._faults)
        self._ways = list(STOPS)
        self._streams = streams
        self._next = 0
        """Number of the next stream."""

    @property
    def kinds(self) -> int:
        """How many kinds of responses there are."""
        return len(self._kinds)

    def kind(self, tag: str) -> str:
        """The kind of fault of a stream."""
        turn, index = divmod(int(tag), len(self._kinds))
        kind = self._kinds[index]
        # What ends a whole connection would leave nothing to complete if it came in every round.
        if self._faults[kind].ends_connection and (turn + 1) % RARELY:
            kind = "whole"
        return kind

    def way(self, n: int) -> str:
        """How a stream is stopped."""
        return self._ways[n // len(self._kinds) % len(self._ways)]

    def http1_script(self, request: bytes) -> Script:
        """The response to a request, by the tag in its path."""
        tag = request.split(b" ", 2)[1].split(b"/")[1].decode()
        script: Script = self._faults[self.kind(tag)].script(tag)
        return script

    async def http2_script(self, exchange: Exchange) -> None:
        """The same over HTTP/2."""
        tag = exchange.path.split("/")[1]
        await self._faults[self.kind(tag)].play(exchange, tag)

    async def work(self, client: Client, url: str) -> None:
        """Runs streams one after the other, until there are no more."""
        while self._next < self._streams:
            n = self._next
            self._next += 1
            await self._run_stream(client, url, n)

    async def _run_stream(self, client: Client, url: str, n: int) -> None:
        tag = f"{n:06d}"
        way = self.way(n)
        self.pairs.add((self.kind(tag), way))
        seen = Observed(client.stream(make_request(f"{url}/{tag}")), n)
        try:
            with anyio.fail_after(60):
                await STOPS[way](seen)
        except Exception as error:  # noqa: BLE001  # none may come out: `errors="event"`
            self._note("raised", f"{tag}: {error!r}")
        except BaseException as error:
            self._note("escaped", f"{tag} ({self.kind(tag)}, {way}): {error!r}")
            raise
        self.counts["streams"] += 1
        self._judge(seen, tag)

    def _judge(self, seen: Observed, tag: str) -> None:
        response = seen.response
        fault = self._faults[self.kind(tag)]
        self.counts[response.status] += 1
        about = f"{tag} ({self.kind(tag)}, {self.way(seen.n)}): {response.status} {response.error}"
        if not set(_TAG.findall(response.text)) <= {tag}:
            self._note("mixed", about)
        if response.status == "completed":
            if not fault.completes or response.text != text_of(tag):
                self._note("false completed", about)
        elif not text_of(tag).startswith(response.text):
            self._note("mixed", about)
        if response.error is not None:
            self.counts[f"failed: {response.error.kind}"] += 1
        if seen.after_terminal:
            self._note("events after the terminal", about)
        failed = response.status == "failed" and response.error is not None
        # Over HTTP/2 a neighbour may have ended the connection.
        is_sure = fault.completes and not self._is_http2 and self.kind(tag) != RESET
        if seen.read_to_end and failed and is_sure:
            assert response.error is not None
            if response.error.kind in _LATE:
                self.counts["late"] += 1
            else:
                self._note("failed though complete", about)

    def _note(self, name: str, example: str) -> None:
        self.counts[name] += 1
        if len(self.examples) < 20:
            self.examples.append(f"{name}: {example}")


async def run(transport: str, streams: int) -> Storm:
    """Runs a storm."""
    await _run(Storm(transport, WARM))  # what a loop opens once is no leak
    before = (_descriptors(), _tasks())
    storm = Storm(transport, streams)
    await _run(storm)
    storm.counts["descriptors left"] = max(0, _descriptors() - before[0])
    storm.counts["tasks left"] = max(0, _tasks() - before[1])
    return storm


async def _run(storm: Storm) -> None:
    transport = storm.transport
    with _counted_warnings(storm):
        async with _server(transport, storm) as server:
            async with _http(transport) as http:
                client = make_client(
                    server.url,
                    http,
                    retry=RetryPolicy(retries=0),
                    deadlines=DEADLINES,
                    errors="event",
                    connections=AT_ONCE,
                )
                async with client, anyio.create_task_group() as group:
                    for _ in range(AT_ONCE):
                        group.start_soon(storm.work, client, server.url)
                slots: Any = client._transport.slots  # type: ignore[attr-defined]
                storm.counts["slots left"] = slots.borrowed_tokens
            with anyio.move_on_after(5):
                while server.open:  # noqa: ASYNC110  # a socket has no event to wait for
                    await anyio.sleep(0.01)
            storm.counts["sockets left"] = server.open
            storm.counts["connections"] = server.connections
        await anyio.sleep(0.1)
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


@asynccontextmanager
async def _server(transport: str, storm: Storm) -> AsyncIterator[Any]:
    if transport == "http2":
        async with http2_server(storm.http2_script) as http2:
            yield http2
    else:
        async with scripted(choose=storm.http1_script) as http1:
            yield http1


@contextmanager
def _counted_warnings(storm: Storm) -> Iterator[None]:
    """Counts what leaks report: warnings, unraisable exceptions, errors in the log of the loop."""

    def unraisable(report: Any) -> None:
        storm.counts["unraisable"] += 1
        storm.examples.append(f"unraisable: {report.exc_value!r} in {report.object!r}")

    class Errors(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            storm.counts["errors of the loop"] += 1
            storm.examples.append(f"log: {record.getMessage()[:300]}")

    handler = Errors(logging.ERROR)
    usual = sys.unraisablehook
    sys.unraisablehook = unraisable
    logging.getLogger("asyncio").addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
            gc.collect()
        storm.counts["warnings"] = len(caught)
        storm.examples += [f"warning: {warning.message}" for warning in caught[:5]]
    finally:
        sys.unraisablehook = usual
        logging.getLogger("asyncio").removeHandler(handler)


def _descriptors() -> int:
    """Open files and sockets of this process."""
    folder = Path("/proc/self/fd")
    if not folder.exists():
        return 0
    return len(list(folder.iterdir()))


def _tasks() -> int:
    """Tasks of the running loop."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return trio.lowlevel.current_statistics().tasks_living
