"""Measures what the speed tests check: `python -m tests.speeds` prints it as one JSON object.

In its own process, because the tests before it leave a large heap, and because coverage slows only
the library's own Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from benchmarks.bench_async import read_events, through_client
from benchmarks.contestants import Contestant, ours
from benchmarks.races import agree
from benchmarks.sdks import PEERS
from streamlib.bench import growth
from streamlib.bench.feed import seconds
from streamlib.bench.workloads import EVENT, FAST, WORKLOADS, chunked

ROUNDS: Final = 2
ATTEMPTS: Final = 9
"""How often the rounds are repeated until a limit holds: on a busy machine some are too slow."""

DOUBLED: Final = 2.3
"""How many times longer twice the input may take."""


def client(wire: str) -> Contestant:
    """The whole client, on asyncio."""
    return through_client(wire, "streamlib", "asyncio", read_events)


class Floor(NamedTuple):
    """A peer must take at least so many times our time: about half of docs/benchmarks.md.

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
