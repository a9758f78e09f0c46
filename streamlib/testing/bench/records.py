"""The results of benchmarks as records, tables and files."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct


class BenchRecord(Struct, frozen=True):
    """One figure. A smaller value is better unless the unit is "x" or a rate.

    Attributes:
        bench: name of the benchmark.
        workload: name of the workload.
        chunks: text that names the chunking.
        contestant: name of this library or of a peer.
        measure: name of the measured quantity.
        unit: unit of `best` and `median`.
        best: value of the best round.
        median: median of the rounds.
    """

    bench: str
    workload: str
    chunks: str
    contestant: str
    measure: str
    unit: str
    best: float
    median: float


OURS: Final = "streamlib"


def record(
    bench: str,
    workload: str,
    chunks: str,
    contestant: str,
    measure: str,
    unit: str,
    values: Sequence[float],
) -> BenchRecord:
    """The record of several rounds; the best is the smallest value."""
    return BenchRecord(
        bench, workload, chunks, contestant, measure, unit, min(values), statistics.median(values)
    )


def machine(version: str) -> dict[str, str]:
    """Versions, system, processor and load of this machine, and the time.

    Args:
        version: streamlib's own.
    """
    return {
        "streamlib": version,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": _cpu(),
        "load": load_of_machine(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def load_of_machine() -> str:
    """Mean number of busy processes over the last minute and the last five."""
    if not hasattr(os, "getloadavg"):  # Windows
        return "unknown"
    minute, five, _ = os.getloadavg()
    return f"{minute:.1f}, {five:.1f}"


def _cpu() -> str:
    """The processor's name; the type of the machine if the system reports no name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def as_json(records: Iterable[BenchRecord], version: str) -> bytes:
    """The contents of a file of records, with the machine that they were measured on."""
    document = msgspec.json.encode({"machine": machine(version), "records": list(records)})
    return msgspec.json.format(document, indent=1)


def shown(value: float) -> str:
    """A number with about three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def table(records: Sequence[BenchRecord]) -> str:
    """The values as text: that of the best round, then the median where they differ.

    A column for each measure, and a row for each workload, chunking and contestant.
    """
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    names: dict[str, None] = {}  # columns in order of appearance
    for entry in records:
        name = f"{entry.measure} ({entry.unit})"
        names[name] = None
        key = (entry.workload, entry.chunks, entry.contestant)
        rows.setdefault(key, {})[name] = _cell(entry)
    lines = [["workload", "chunks", "of", *names]]
    for row, cells in rows.items():
        lines.append([*row, *(cells.get(name, "") for name in names)])
    return aligned(lines)


def _cell(entry: BenchRecord) -> str:
    if entry.unit == "count":
        return f"{entry.best:,.0f}"
    best, median = shown(entry.best), shown(entry.median)
    return best if best == median else f"{best} / {median}"


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Aligned columns: the first three contain text and are aligned left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows: list[str] = []
    for line in lines:
        cells: list[str] = []
        for number, (cell, width) in enumerate(zip(line, widths, strict=True)):
            if number < 3:
                cells.append(cell.ljust(width))
            else:
                cells.append(cell.rjust(width))
        rows.append("  ".join(cells).rstrip() + "\n")
    return "".join(rows)
