"""The results of benchmarks with all their rounds: as tables and as files.

`streamlib bench --json` and `python -m benchmarks` write the same files, which
`streamlib bench --compare` reads.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from streamlib import __version__
from streamlib_parsers import build_kind

OURS: Final = "streamlib"
RATES: Final = ("MB/s", "1/s")
"""Units of which more is better; of all others less is."""


class Figure(Struct, frozen=True, omit_defaults=True):
    """One figure, measured in several rounds. A smaller value is better unless it is a rate.

    Attributes:
        bench: name of the benchmark.
        workload: name of the workload.
        chunks: text that names the chunking.
        contestant: name of this library or of a peer.
        measure: name of the measured quantity.
        unit: unit of the rounds.
        rounds: result of each round, in order; those of one process follow each other.
        yardstick: µs of `feed.fixed_work` beside each round: it says how fast the machine was then.
            () where it was not done.
        processes: number of processes in which the rounds were; each had as many of them.
    """

    bench: str
    workload: str
    chunks: str
    contestant: str
    measure: str
    unit: str
    rounds: tuple[float, ...]
    yardstick: tuple[float, ...] = ()
    processes: int = 1

    @property
    def is_rate(self) -> bool:
        """Whether a larger value is better."""
        return self.unit in RATES

    @property
    def best(self) -> float:
        """The best round: on a shared machine it has the least noise."""
        return max(self.rounds) if self.is_rate else min(self.rounds)

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest round."""
        return min(self.rounds), max(self.rounds)

    def by_process(self, values: Sequence[float]) -> list[Sequence[float]]:
        """Values of the rounds, such as `rounds` or `yardstick`, for each process."""
        size = len(values) // self.processes
        return [values[start : start + size] for start in range(0, len(values), size)]


def figure(
    bench: str,
    workload: str,
    chunks: str,
    contestant: str,
    measure: str,
    unit: str,
    rounds: Iterable[float],
    yardstick: Iterable[float] = (),
) -> Figure:
    """A figure; rounds are rounded to four digits, more than repeated runs have in common.

    Args:
        bench, workload, chunks, contestant, measure, unit, rounds: as of a `Figure`.
        yardstick: seconds of the fixed work beside each round.
    """
    digits = tuple(_four_digits(value) for value in rounds)
    fixed = tuple(_four_digits(value * 1e6) for value in yardstick)
    return Figure(bench, workload, chunks, contestant, measure, unit, digits, fixed)


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


def joined(processes: Sequence[Sequence[Figure]]) -> list[Figure]:
    """The same figures of several processes, as one: all their rounds."""
    made: list[Figure] = []
    for same in zip(*processes, strict=True):
        rounds = tuple(chain.from_iterable(each.rounds for each in same))
        yardstick = tuple(chain.from_iterable(each.yardstick for each in same))
        of_all = {"rounds": rounds, "yardstick": yardstick, "processes": len(same)}
        made.append(msgspec.structs.replace(same[0], **of_all))
    return made


def ratio(peer: Figure, ours: Figure, name: str = "ratio") -> Figure:
    """A peer's time divided by ours, for each round: noise slows both in the same round."""
    rounds = [theirs / own for theirs, own in zip(peer.rounds, ours.rounds, strict=True)]
    return figure(peer.bench, peer.workload, peer.chunks, peer.contestant, name, "x", rounds)


class BenchRun(Struct, frozen=True):
    """One run of one benchmark.

    Attributes:
        command: command that was run.
        date: end of the run, in UTC.
        machine: versions, system, processor and build; the load at the start and at the end.
        versions: versions of the distributions and packages that took part.
        figures: all figures.
        absent: reasons why others could not take part.
    """

    command: str
    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    figures: tuple[Figure, ...]
    absent: tuple[str, ...] = ()

    def find(self, **wanted: str) -> list[Figure]:
        """The figures whose attributes have these values."""
        matching: list[Figure] = []
        for entry in self.figures:
            if all(getattr(entry, name) == value for name, value in wanted.items()):
                matching.append(entry)
        return matching

    def origin(self) -> list[str]:
        """When, with what and where it was measured, in short lines."""
        about = self.machine
        return [
            self.date,
            f"load {about['load']}",
            f"streamlib {about['streamlib']}, {about['build']}, Python {about['python']}",
            f"{about['cores']} cores of {about['cpu']}",
        ]


def make_result(
    command: str,
    figures: Iterable[Figure],
    load: str,
    versions: Mapping[str, str] | None = None,
    absent: Iterable[str] = (),
) -> BenchRun:
    """The result of this process, with the machine and the time.

    Args:
        command: command that was run.
        figures: all figures.
        load: load of the machine at the start.
        versions: versions of the participants.
        absent: reasons why others could not take part.
    """
    about = {
        "streamlib": __version__,
        "build": "compiled" if build_kind.compiled else "pure Python",
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "load": f"{load} before, {load_of_machine()} after",
    }
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return BenchRun(command, date, about, dict(versions or {}), tuple(figures), tuple(absent))


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


def as_json(result: BenchRun) -> str:
    """The contents of a file of a result: a line for each figure, because it is read in diffs."""
    document = msgspec.to_builtins(result)
    lines = [msgspec.json.encode(entry).decode() for entry in document.pop("figures")]
    head = msgspec.json.format(msgspec.json.encode(document), indent=1).decode().rstrip("}\n")
    body = ",\n  ".join(lines)
    return f'{head},\n "figures": [\n  {body}\n ]\n}}\n'


def read(path: Path) -> BenchRun:
    """The result that a file holds.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=BenchRun)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path}: not written by `streamlib bench --json`: {error}") from None


def shown(value: float) -> str:
    """A number with about three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def table(figures: Iterable[Figure]) -> str:
    """The values as text: that of the best round, then the median where they differ.

    A column for each measure, and a row for each workload, chunking and contestant.
    """
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    names: dict[str, None] = {}  # columns in order of appearance
    for entry in figures:
        name = f"{entry.measure} ({entry.unit})"
        names[name] = None
        key = (entry.workload, entry.chunks, entry.contestant)
        rows.setdefault(key, {})[name] = _cell(entry)
    lines = [["workload", "chunks", "of", *names]]
    for row, cells in rows.items():
        lines.append([*row, *(cells.get(name, "") for name in names)])
    return aligned(lines)


def _cell(entry: Figure) -> str:
    if entry.unit == "count":
        return f"{entry.best:,.0f}"
    if entry.unit == "x":  # of times of the same round: the best ratio is an accident
        return shown(entry.median)
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
