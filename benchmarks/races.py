"""Contestants on the same bytes, by turns: first they must agree on what they read, then the best and the middle round count."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from importlib.metadata import version

from benchmarks.contestants import Contestant
from streamlib.bench.records import OURS, Record, record
from streamlib.bench.workloads import Workload, chunked, chunking

Tell = Callable[[str], None]


class Disagreement(AssertionError):
    """Two contestants read the same bytes differently: their times mean nothing."""


def agree(contestants: Sequence[Contestant], events: list[bytes]) -> None:
    """All of them read the same. Raises `Disagreement`."""
    first, *others = contestants
    expected = first.read(events)
    for other in others:
        if other.read(events) != expected:
            raise Disagreement(f"{other.name} reads {first.wire} differently from {first.name}")


def race(
    bench: str,
    workload: Workload,
    size: int,
    contestants: Sequence[Contestant],
    rounds: int,
    tell: Tell = lambda _: None,
) -> list[Record]:
    """Microseconds of CPU an event of the wire, and how many times ours each peer takes."""
    events = workload.events()
    agree(contestants, events)
    chunks = chunked(events, size)
    times: list[list[float]] = [[] for _ in contestants]
    gc.collect()
    gc.freeze()  # else everybody pays for the modules of the others, most of all who allocates little
    for _ in range(rounds):
        for at, contestant in enumerate(contestants):
            tell(f"{workload.name}, {chunking(size)}: {contestant.name}")
            times[at].append(contestant.seconds(chunks) / len(events) * 1e6)
    about = (bench, workload.name, chunking(size))
    records = [
        record(*about, one.name, "time", "µs/event", times[at])
        for at, one in enumerate(contestants)
    ]
    return [*records, *(_ratio(records[0], one) for one in records[1:])]


def _ratio(mine: Record, peer: Record) -> Record:
    assert mine.contestant == OURS
    return Record(
        peer.bench,
        peer.workload,
        peer.chunks,
        peer.contestant,
        "ratio",
        "x",
        peer.best / mine.best,
        peer.median / mine.median,
    )


def versions(contestants: Sequence[Contestant]) -> dict[str, str]:
    """Of the distributions that took part."""
    return {
        one.distribution: version(one.distribution)
        for one in contestants
        if one.distribution != "streamlib"
    }
