"""The results of benchmarks as records, tables and files."""

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
) -> Record:
    """The record of several rounds; the best is the smallest value."""
    return Record(
        bench, workload, chunks, contestant, measure, unit, min(values), statistics.median(values)
    )


def machine() -> dict[str, str]:
    """Versions, system and processor of this machine."""
    return {
        "streamlib": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": _cpu(),
    }


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


def as_json(records: Iterable[Record]) -> bytes:
    """The contents of a file of records, with the machine that they were measured on."""
    document = msgspec.json.encode({"machine": machine(), "records": list(records)})
    return msgspec.json.format(document, indent=1)


def shown(value: float) -> str:
    """A number with about three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def table(records: Sequence[Record], column: str = "measure") -> str:
    """The best values as text.

    Args:
        records: records to show.
        column: `measure`: a column for each measure, and a row for each contestant and workload;
            `contestant`: a column for each contestant, and a row for each measure and workload.
    """
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    names: dict[str, None] = {}  # columns in order of appearance
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
