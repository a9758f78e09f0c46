"""Throughput against the size of the chunks: how a parser does when the network is slow or fast.

A model that writes gives chunks of some dozen bytes, a proxy that collects gives kilobytes. A
parser that copies what it holds at every chunk is slow at the left end of the curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamlib.testing.bench.feed import Body, Case, Progress, rounds_of
from streamlib.testing.bench.records import Figure, figure, shown

SIZES: Final = (1, 4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10)
"""Bytes of a chunk."""

BAR: Final = 30
"""Characters of the longest bar."""


def sizes_for(body: Body) -> list[int]:
    """The sizes up to the first that holds the whole body."""
    length = sum(map(len, body.events))
    return [size for size in SIZES if size < 4 * length]


def cases(bodies: Sequence[Body]) -> list[Case]:
    """Each body in chunks of each size, for each reader."""
    made: list[Case] = []
    for body in bodies:
        for size in sizes_for(body):
            made += body.cases(size)
    return made


def measure(cases: Sequence[Case], rounds: int, report: Progress = lambda _: None) -> list[Figure]:
    """Megabytes a second of every case; they take turns.

    Args:
        cases: what to measure.
        rounds: number of rounds.
        report: called before each measurement.
    """
    figures: list[Figure] = []
    for case, taken in zip(cases, rounds_of(cases, rounds, report), strict=True):
        key = ("curve", case.name, case.chunking, case.contestant)
        rates = [case.size / 1e6 / value for value in taken.spent]
        figures.append(figure(*key, "bytes", "MB/s", rates, taken.yardstick))
    return figures


def drawn(figures: Sequence[Figure]) -> str:
    """The curve as text: a bar for each size, with the best round / the median."""
    largest = max(entry.median for entry in figures)
    widths = [max(len(name) for name in names) for names in _names(figures)]
    lines: list[str] = []
    workload = None
    for entry in figures:
        if entry.workload != workload:
            workload = entry.workload
            lines += ["", f"{workload}: MB/s by size of the chunks"]
        bar = "#" * max(1, round(BAR * entry.median / largest))
        name = f"{entry.chunks:>{widths[0]}}  {entry.contestant:<{widths[1]}}"
        lines.append(f"  {name}  {bar:<{BAR}}  {shown(entry.best)} / {shown(entry.median)}")
    return "\n".join([*lines[1:], ""])


def _names(figures: Sequence[Figure]) -> tuple[list[str], list[str]]:
    return [entry.chunks for entry in figures], [entry.contestant for entry in figures]
