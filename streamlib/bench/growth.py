"""Twice the input: how many times longer it takes. Linear is 2, quadratic 4."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streamlib.bench.feed import Case, Tell, seconds
from streamlib.bench.records import OURS, Record
from streamlib.bench.workloads import Workload, chunked, chunking

SCALE: Final = 2
"""Of the shorter body: some milliseconds, long enough to be measured."""


def doubled(workload: Workload, size: int, scale: int = SCALE) -> tuple[Case, Case]:
    """A body, and one with twice as much of the same."""
    once, twice = workload.events(scale), workload.events(2 * scale)
    return (
        Case(workload.name, chunked(once, size), chunking(size), len(once), workload.parser),
        Case(workload.name, chunked(twice, size), chunking(size), len(twice), workload.parser),
    )


def factor(
    once: Case, twice: Case, times_once: list[float], times_twice: list[float]
) -> tuple[float, float]:
    """Growth for exactly twice the bytes, by the best rounds and by the median ones."""
    bytes_ratio = twice.size / once.size
    middle = len(times_once) // 2
    by_best = min(times_twice) / min(times_once)
    by_median = sorted(times_twice)[middle] / sorted(times_once)[middle]
    return 2 * by_best / bytes_ratio, 2 * by_median / bytes_ratio


def measure(
    workloads: Iterable[Workload], rounds: int, tell: Tell = lambda _: None
) -> list[Record]:
    """The growth of every workload in the last of its chunkings; short and long by turns."""
    records: list[Record] = []
    for workload in workloads:
        size = workload.chunks[-1]
        once, twice = doubled(workload, size)
        pairs: list[tuple[float, float]] = []
        for _ in range(rounds):
            tell(f"{workload.name} doubled")
            pairs.append((seconds(once), seconds(twice)))
        best, median = factor(
            once, twice, [short for short, _ in pairs], [long for _, long in pairs]
        )
        records.append(
            Record("growth", workload.name, chunking(size), OURS, "doubling", "x", best, median)
        )
    return records
