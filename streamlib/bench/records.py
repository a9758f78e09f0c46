"""The results of benchmarks: one type for all of them, and their tables and files."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from streamlib import __version__


class Record(Struct, frozen=True):
    """One figure. A smaller one is better unless the unit is "x" or a rate.

    Attributes:
        bench: which benchmark.
        workload: what was read.
        chunks: in which chunks.
        contestant: by whom: this library or a peer.
        measure: what was measured.
        unit: of `best` and `median`.
        best: the best round.
        median: the median of the rounds.
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
) -> Record:
    """The record of some rounds; the best is the smallest value."""
    return Record(
        bench, workload, chunks, contestant, measure, unit, min(values), statistics.median(values)
    )


def machine() -> dict[str, str]:
    """The versions, system and processor that the figures were taken with."""
    return {
        "streamlib": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": _cpu(),
    }


def _cpu() -> str:
    """The processor's name, if the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def as_json(records: Iterable[Record]) -> bytes:
    """A file of records, with the machine they were taken on."""
    document = msgspec.json.encode({"machine": machine(), "records": list(records)})
    return msgspec.json.format(document, indent=1)


def shown(value: float) -> str:
    """A number with about three digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def table(records: Sequence[Record], column: str = "measure") -> str:
    """The best values as text.

    Args:
        records: what is shown.
        column: `measure`: a column for each measure, a row for each contestant and workload;
            `contestant`: the other way round.
    """
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    names: dict[str, None] = {}  # columns, in order of appearance
    for entry in records:
        measure = f"{entry.measure} ({entry.unit})"
        if column == "measure":
            name, row_name = measure, entry.contestant
        else:
            name, row_name = entry.contestant, measure
        names[name] = None
        key = (entry.workload, entry.chunks, row_name)
        rows.setdefault(key, {})[name] = shown(entry.best)
    row_heading = "of" if column == "measure" else "measure"
    lines = [["workload", "chunks", row_heading, *names]]
    for row, cells in rows.items():
        lines.append([*row, *(cells.get(name, "") for name in names)])
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Aligned columns: the first three, which are text, to the left, numbers to the right."""
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
