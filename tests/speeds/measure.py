"""Measures what the gate on speed holds, in a process of its own: `python -m tests.speeds` prints one JSON object.

Another process, because the tests before it leave a large heap behind, and because whoever watches lines (coverage) slows our Python alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from benchmarks.bench_async import _single, through_client
from benchmarks.contestants import PEERS, Contestant, ours
from benchmarks.races import agree
from streamlib.bench import growth
from streamlib.bench.feed import seconds
from streamlib.bench.workloads import EVENT, FAST, WORKLOADS, chunked

ROUNDS: Final = 2
PATIENCE: Final = 9
"""Times that many rounds at most, while a floor is not reached: a busy machine spoils some."""

DOUBLED: Final = 2.3


def client(wire: str) -> Contestant:
    """The whole client, on asyncio."""
    return through_client(wire, "streamlib", "asyncio", _single)


class Floor(NamedTuple):
    """At least so many times ours a peer takes: about half of what docs/benchmarks.md shows, taken on a busy machine."""

    mine: Callable[[str], Contestant]
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
"""What a line of megabytes takes is the system's memory: tests/parsers/framing/test_sse_limits.py looks at that."""


def ratio(floor: Floor) -> float:
    """How many times ours the peer takes, best against best, once both have read the same."""
    peer = next(one for one in PEERS if one.name == floor.peer)
    mine, events = floor.mine(peer.wire), WORKLOADS[peer.wire].events()
    agree([mine, peer], events)
    chunks = chunked(events, floor.size)
    best_mine = best_peer = float("inf")
    for _ in range(PATIENCE):
        for _ in range(ROUNDS):
            best_mine = min(best_mine, mine.seconds(chunks), mine.seconds(chunks))
            best_peer = min(best_peer, peer.seconds(chunks))
        if best_peer / best_mine >= floor.least:
            break
    return best_peer / best_mine


def doubling(name: str) -> float:
    """How many times longer twice the input takes, best against best: the least of some tries, each on its own. A busy machine spoils one
    of them, quadratic code (4.0) all.
    """
    workload = WORKLOADS[name]
    once, twice = growth.doubled(workload, workload.chunks[-1], scale=1)
    least = float("inf")
    for _ in range(PATIENCE):
        pairs = [(seconds(once), seconds(twice)) for _ in range(ROUNDS + 1)]
        least = min(
            least,
            growth.factor(once, twice, [short for short, _ in pairs], [long for _, long in pairs])[
                0
            ],
        )
        if least <= DOUBLED:
            break
    return least
