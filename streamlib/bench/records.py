"""What a benchmark found: one shape for every one of them, and its tables and files."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from streamlib import __version__


class Record(Struct, frozen=True):
    """One number. `best` and `median` are over the rounds, in `unit`; a smaller one is better unless the unit is "x" or a rate.

    bench: which benchmark. workload, chunks: what was read, and in which pieces. contestant: by whom. measure: what was measured.
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
    """The record of some rounds; the best is the smallest."""
    return Record(
        bench, workload, chunks, contestant, measure, unit, min(values), statistics.median(values)
    )


def machine() -> dict[str, str]:
    """Where the numbers were taken."""
    return {
        "streamlib": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": _cpu(),
    }


def _cpu() -> str:
    """The processor's name, as far as the system tells."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(
                (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
                platform.machine(),
            )
    except OSError:
        return platform.processor() or platform.machine()


def as_json(records: Iterable[Record]) -> bytes:
    """A file of records, with the machine they were taken on."""
    return msgspec.json.format(
        msgspec.json.encode({"machine": machine(), "records": list(records)}), indent=1
    )


def shown(value: float) -> str:
    """A number with about three digits."""
    return (
        f"{value:,.0f}"
        if abs(value) >= 100
        else f"{value:.1f}"
        if abs(value) >= 10
        else f"{value:.2f}"
    )


def table(records: Sequence[Record], column: str = "measure") -> str:
    """The best values as text, a row for each thing measured: a column for each `measure`, or for each `contestant`."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    names: list[str] = []
    for one in records:
        name = f"{one.measure} ({one.unit})" if column == "measure" else one.contestant
        names += [name] if name not in names else []
        row = (
            one.workload,
            one.chunks,
            one.contestant if column == "measure" else f"{one.measure} ({one.unit})",
        )
        rows.setdefault(row, {})[name] = shown(one.best)
    lines = [["workload", "chunks", "of" if column == "measure" else "measure", *names]]
    lines += [[*row, *(cells.get(name, "") for name in names)] for row, cells in rows.items()]
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns under each other, numbers to the right."""
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    pads = [str.ljust if at < 3 else str.rjust for at in range(len(widths))]
    rows = (zip(line, pads, widths, strict=True) for line in lines)
    return "".join(
        "  ".join(pad(cell, width) for cell, pad, width in row).rstrip() + "\n" for row in rows
    )
