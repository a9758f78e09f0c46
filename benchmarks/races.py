"""Times contestants on the same bytes in alternating rounds, after comparing their outcomes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version

from benchmarks.contestants import Contestant
from benchmarks.results import Figure, figure, ratio
from streamlib.testing.bench.records import OURS
from streamlib.testing.bench.workloads import chunked, chunking

Progress = Callable[[str], None]

WINDOW = 0.02
"""Minimum CPU seconds of a measurement: fast readers read the body repeatedly until then."""


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


def seconds(contestant: Contestant, chunks: list[bytes], window: float) -> float:
    """CPU seconds for reading once: the mean of as many readings as fill the window."""
    spent = contestant.seconds(chunks)
    runs = 1
    while spent < window:
        spent += contestant.seconds(chunks)
        runs += 1
    return spent / runs


def race(
    bench: str,
    workload: str,
    events: list[bytes],
    size: int,
    contestants: Sequence[Contestant],
    rounds: int,
    report: Progress = lambda _: None,
    *,
    window: float = WINDOW,
) -> list[Figure]:
    """CPU microseconds for an event of the wire, and each peer's time relative to ours.

    Args:
        bench: name of the benchmark in the figures.
        workload: name of the workload.
        events: body to read, one chunk for each event of the wire.
        size: size of the chunks to read, in bytes, or `EVENT`.
        contestants: contestants; the first is this library's.
        rounds: number of rounds.
        report: called before each measurement.
        window: CPU seconds of each measurement.
    """
    agree(contestants, events)
    chunks = chunked(events, size)
    times: list[list[float]] = [[] for _ in contestants]
    gc.collect()
    # Else every collection walks the modules of all contestants, which slows those most that
    # allocate least.
    gc.freeze()
    for _ in range(rounds):
        for number, contestant in enumerate(contestants):
            report(f"{workload}, {chunking(size)}: {contestant.name}")
            times[number].append(seconds(contestant, chunks, window) / len(events) * 1e6)
    key = (bench, workload, chunking(size))
    figures: list[Figure] = []
    for contestant, spent in zip(contestants, times, strict=True):
        figures.append(figure(*key, contestant.name, "time", "µs/event", spent))
    ours, *peers = figures
    assert ours.contestant == OURS
    return [*figures, *(ratio(peer, ours) for peer in peers)]


def versions(contestants: Iterable[Contestant]) -> dict[str, str]:
    """The versions of the distributions that take part."""
    distributions = {contestant.distribution for contestant in contestants} - {""}
    distributions.add("msgspec")
    return {name: version(name) for name in sorted(distributions)}
