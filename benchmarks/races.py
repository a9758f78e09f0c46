"""Times contestants on the same bytes in alternating rounds, once they agree on what they read."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from importlib.metadata import version

from benchmarks.contestants import Contestant
from streamlib.bench.records import OURS, Record, record
from streamlib.bench.workloads import Workload, chunked, chunking

Progress = Callable[[str], None]


class Disagreement(AssertionError):
    """Two contestants read the same bytes differently: their times cannot be compared."""


def agree(contestants: Sequence[Contestant], events: list[bytes]) -> None:
    """Checks that all contestants have the same outcome.

    Raises:
        Disagreement: two of them differ.
    """
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
    report: Progress = lambda _: None,
) -> list[Record]:
    """Microseconds of CPU for an event of the wire, and each peer's time relative to ours.

    Args:
        bench: name of the benchmark in the records.
        workload: what is read.
        size: of the chunks, in bytes, or `EVENT`.
        contestants: the first is this library's.
        rounds: how often each is timed.
        report: called before each measurement.
    """
    events = workload.events()
    agree(contestants, events)
    chunks = chunked(events, size)
    times: list[list[float]] = [[] for _ in contestants]
    gc.collect()
    # Else every collection walks the modules of all contestants, which costs those most that
    # allocate least.
    gc.freeze()
    for _ in range(rounds):
        for number, contestant in enumerate(contestants):
            report(f"{workload.name}, {chunking(size)}: {contestant.name}")
            times[number].append(contestant.seconds(chunks) / len(events) * 1e6)
    key = (bench, workload.name, chunking(size))
    records: list[Record] = []
    for contestant, spent in zip(contestants, times, strict=True):
        records.append(record(*key, contestant.name, "time", "µs/event", spent))
    ours, *peers = records
    return [*records, *(_ratio(ours, peer) for peer in peers)]


def _ratio(ours: Record, peer: Record) -> Record:
    assert ours.contestant == OURS
    key = (peer.bench, peer.workload, peer.chunks, peer.contestant)
    return Record(*key, "ratio", "x", peer.best / ours.best, peer.median / ours.median)


def versions(contestants: Sequence[Contestant]) -> dict[str, str]:
    """The versions of the distributions that take part, ours excepted."""
    distributions = {contestant.distribution for contestant in contestants} - {"streamlib"}
    return {name: version(name) for name in distributions}
