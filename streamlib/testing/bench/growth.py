"""Measures how much longer twice the input takes: linear growth is 2, quadratic 4."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Final

from streamlib.testing.bench.feed import Case, Progress, of_workload, seconds
from streamlib.testing.bench.records import OURS, Figure, figure
from streamlib.testing.bench.workloads import Workload, chunking

SCALE: Final = 2
"""Scale of the shorter body: parsing it takes some milliseconds, long enough to measure."""


def doubled(workload: Workload, size: int, scale: int = SCALE) -> tuple[Case, Case]:
    """A body, and one of the same kind that is twice as long."""
    return _scaled(workload, size, scale), _scaled(workload, size, 2 * scale)


def _scaled(workload: Workload, size: int, scale: int) -> Case:
    events = workload.events(scale)
    (case,) = of_workload(workload)._replace(events=events).cases(size)
    return case


def factor(
    single: Case, double: Case, single_times: list[float], double_times: list[float]
) -> tuple[float, float]:
    """Growth for exactly twice the bytes: between the best rounds, and between the medians."""
    bytes_ratio = double.size / single.size
    best_ratio = min(double_times) / min(single_times)
    median_ratio = statistics.median_high(double_times) / statistics.median_high(single_times)
    return 2 * best_ratio / bytes_ratio, 2 * median_ratio / bytes_ratio


def measure(
    workloads: Iterable[Workload], rounds: int, report: Progress = lambda _: None
) -> list[Figure]:
    """The growth of every workload in the last of its chunkings, in alternating rounds.

    Args:
        workloads: workloads to measure.
        rounds: number of rounds.
        report: called before each measurement.
    """
    figures: list[Figure] = []
    for workload in workloads:
        size = workload.chunks[-1]
        single, double = doubled(workload, size)
        single_times: list[float] = []
        double_times: list[float] = []
        for _ in range(rounds):
            report(f"{workload.name} doubled")
            single_times.append(seconds(single))
            double_times.append(seconds(double))
        key = ("growth", workload.name, chunking(size), OURS)
        factors: list[float] = []
        for once, twice in zip(single_times, double_times, strict=True):
            factors.append(factor(single, double, [once], [twice])[0])
        figures.append(figure(*key, "doubling", "x", factors))
    return figures
