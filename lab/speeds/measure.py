"""Measures what the speed tests check: `python -m lab.speeds` prints it as one JSON object.

In its own process, because the tests before it leave a large heap, and because coverage slows only
the library's own Python.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from benchmarks.bench_async import read_events, through_client
from benchmarks.contestants import Contestant, ours
from benchmarks.floors import floor
from benchmarks.races import agree
from benchmarks.sdks import PEERS
from streamlib.testing.bench import growth
from streamlib.testing.bench.feed import seconds
from streamlib.testing.bench.workloads import EVENT, FAST, WORKLOADS, chunked
from streamlib.wires.encoders import encoder
from streamlib_parsers import ResponseEvent, parser

ROUNDS: Final = 2
ATTEMPTS: Final = 9
"""How often the rounds are repeated until a limit holds: on a busy machine some are too slow."""

DOUBLED: Final = 2.3
"""How many times longer twice the input may take."""


def client(wire: str) -> Contestant:
    """The whole client, on asyncio."""
    return through_client(wire, "streamlib", "asyncio", read_events)


class Floor(NamedTuple):
    """A peer must take at least so many times our time, on a generated response.

    Attributes:
        ours: makes our contestant for a wire.
        peer: name of the peer.
        size: of the chunks.
        least: the ratio.
    """

    ours: Callable[[str], Contestant]
    peer: str
    size: int
    least: float


FLOORS: Final = {
    "anthropic, 16 KiB": Floor(ours, "anthropic", FAST, 7),
    "anthropic, an event": Floor(ours, "anthropic", EVENT, 4),
    "anthropic, through the client": Floor(client, "anthropic", EVENT, 1.5),
    "openai, 16 KiB": Floor(ours, "openai", FAST, 25),
    "openai, through the client": Floor(client, "openai", EVENT, 4),
    "botocore, 16 KiB": Floor(ours, "botocore", FAST, 4),
}
ABOVE_FLOOR: Final = {
    ("messages", EVENT): 1.9,
    ("messages", FAST): 2.8,
    ("chat", EVENT): 2.0,
    ("chat", FAST): 2.8,
    ("responses", EVENT): 1.9,
    ("responses", FAST): 2.6,
    ("gemini", EVENT): 3.0,
    ("gemini", FAST): 3.8,
    ("converse", EVENT): 3.3,
    ("invoke", EVENT): 3.4,
    ("ollama", EVENT): 2.5,
    ("cohere", EVENT): 1.8,
    ("interactions", EVENT): 3.4,
}
"""Wire and size of the chunks -> how many times its floor `feed` may take (`benchmarks.floors`).

A quarter above what they take. The deltas of these streams are equal, which no real stream's are:
recordings are measured apart (docs/benchmarks.md)."""

ABOVE_MESSAGES: Final = {"converse": 1.3, "invoke": 1.8}
"""Wire -> how many times the Messages encoder its encoder may take."""

GROWING: Final = tuple(name for name in WORKLOADS if name != "huge-line")
"""A line of megabytes is limited by the system's memory: test_sse_limits.py measures that."""


def ratio(floor: Floor) -> float:
    """The peer's best time relative to our best, once both have read the same."""
    peer = next(peer for peer in PEERS if peer.name == floor.peer)
    our, events = floor.ours(peer.wire), WORKLOADS[peer.wire].events()
    agree([our, peer], events)
    chunks = chunked(events, floor.size)
    best_ours = best_peer = float("inf")
    for _ in range(ATTEMPTS):
        for _ in range(ROUNDS):
            best_ours = min(best_ours, our.seconds(chunks), our.seconds(chunks))
            best_peer = min(best_peer, peer.seconds(chunks))
        if best_peer / best_ours >= floor.least:
            break
    return best_peer / best_ours


def doubling(name: str) -> float:
    """How many times longer twice the input takes: the least of some attempts.

    A busy machine makes some of them too slow, quadratic code (4.0) all.
    """
    workload = WORKLOADS[name]
    single, double = growth.doubled(workload, workload.chunks[-1], scale=1)
    least = float("inf")
    for _ in range(ATTEMPTS):
        single_times: list[float] = []
        double_times: list[float] = []
        for _ in range(ROUNDS + 1):
            single_times.append(seconds(single))
            double_times.append(seconds(double))
        best, _ = growth.factor(single, double, single_times, double_times)
        least = min(least, best)
        if least <= DOUBLED:
            break
    return least


def floor_name(wire: str, size: int) -> str:
    """The name of a figure of `above_floor`."""
    return f"{wire}, {size or 'an event'}"


def above_floor(wire: str, size: int) -> float:
    """How many times its floor `feed` takes, both at their best."""
    chunks = chunked(WORKLOADS[wire].events(), size)
    read_floor = floor(wire)

    def feed() -> None:
        parse = parser(wire)  # type: ignore[arg-type]
        for chunk in chunks:
            parse.feed(chunk)
        parse.close()

    def read() -> None:
        for _ in read_floor(chunks):
            pass

    return least_ratio(feed, read, ABOVE_FLOOR[wire, size])


def above_messages(wire: str) -> float:
    """How many times the Messages encoder an encoder takes for the same events."""
    parse = parser("messages")
    events: list[ResponseEvent] = []
    for chunk in WORKLOADS["messages"].events():
        events += parse.feed(chunk)
    events += parse.close()

    def encode(name: str) -> None:
        encoding = encoder(name)
        for event in events:
            encoding.feed(event)

    limit = ABOVE_MESSAGES[wire]
    return least_ratio(lambda: encode(wire), lambda: encode("messages"), limit)


def least_ratio(first: Callable[[], Any], second: Callable[[], Any], limit: float) -> float:
    """The best time of `first` relative to that of `second`; stops once it is below the limit."""
    best_first = best_second = float("inf")
    for _ in range(ATTEMPTS):
        for _ in range(ROUNDS + 1):
            best_first = min(best_first, _cpu_seconds(first))
            best_second = min(best_second, _cpu_seconds(second))
        if best_first / best_second <= limit:
            break
    return best_first / best_second


def _cpu_seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
