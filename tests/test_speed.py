"""The gate on speed: ratios and growth on the same bytes in one process, never nanoseconds.

The floors lie at about half of what is measured on a busy machine (docs/benchmarks.md), so that only a change of the code fails them.
The best of the rounds counts on both sides, and rounds go on until the floor is reached or the patience is at its end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from benchmarks.bench_async import _single, through_client
from benchmarks.contestants import PEERS, Contestant, ours
from benchmarks.races import agree
from streamlib.bench import growth
from streamlib.bench.feed import seconds
from streamlib.bench.workloads import EVENT, FAST, WORKLOADS, chunked

ROUNDS = 2
PATIENCE = 9
"""Times that many rounds at most."""


def ratio(mine: Contestant, peer: Contestant, chunks: list[bytes], floor: float) -> float:
    """How many times ours the peer takes, best against best."""
    best_mine = best_peer = float("inf")
    for _ in range(PATIENCE):
        for _ in range(ROUNDS):
            best_mine = min(best_mine, mine.seconds(chunks), mine.seconds(chunks))
            best_peer = min(best_peer, peer.seconds(chunks))
        if best_peer / best_mine >= floor:
            break
    return best_peer / best_mine


def client(wire: str) -> Contestant:
    return through_client(wire, "streamlib", "asyncio", _single)


@pytest.mark.parametrize(
    ("mine", "peer", "size", "floor"),
    [
        (ours, "anthropic", FAST, 8),
        (ours, "anthropic", EVENT, 4),
        (client, "anthropic", EVENT, 1.5),
        (ours, "openai", FAST, 25),
        (client, "openai", EVENT, 4),
        (ours, "botocore", FAST, 4),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_the_same_answer_is_read_in_a_fraction_of_a_peers_time(
    mine: Callable[[str], Contestant], peer: str, size: int, floor: float
) -> None:
    other = next(one for one in PEERS if one.name == peer)
    contestant, events = mine(other.wire), WORKLOADS[other.wire].events()
    agree([contestant, other], events)
    reached = ratio(contestant, other, chunked(events, size), floor)
    sys.stdout.write(f"{peer}: x{reached:.1f}, at least {floor}\n")
    assert reached >= floor


@pytest.mark.parametrize(
    "name", [name for name in WORKLOADS if name != "huge-line"]
)  # its memory is the system's: tests/parsers/test_sse.py
def test_twice_the_input_takes_at_most_2_3_times_as_long(name: str) -> None:
    workload = WORKLOADS[name]
    once, twice = growth.doubled(workload, workload.chunks[-1], scale=1)
    short, long = [seconds(once)], [seconds(twice)]
    for _ in range(PATIENCE):
        for _ in range(ROUNDS):
            short.append(seconds(once))
            long.append(seconds(twice))
        if growth.factor(once, twice, short, long)[0] <= 2.3:
            break
    factor, _ = growth.factor(once, twice, short, long)
    sys.stdout.write(f"{name}: x{factor:.2f}\n")
    assert factor <= 2.3
