"""Results of benchmarks with all their rounds, as JSON in `benchmarks/measured/`.

The tables of docs/benchmarks.md, docs/transports.md and docs/gateway.md are written from
these files (`benchmarks/page.py`), so that a part can be measured again.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

import streamlib
from streamlib.testing.bench.records import BenchRecord, load_of_machine, machine, table
from streamlib_parsers import build_kind

MEASURED: Final = Path(__file__).with_name("measured")


class Figure(Struct, frozen=True):
    """One figure, measured in several rounds. A smaller one is better.

    Attributes:
        bench: name of the benchmark.
        workload: name of the workload.
        chunks: text that names the chunking.
        contestant: name of this library or of a peer.
        measure: name of the measured quantity.
        unit: unit of the rounds.
        rounds: result of each round, in order.
    """

    bench: str
    workload: str
    chunks: str
    contestant: str
    measure: str
    unit: str
    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest round."""
        return min(self.rounds), max(self.rounds)

    def record(self) -> BenchRecord:
        """Best and median, for charts."""
        key = (self.bench, self.workload, self.chunks, self.contestant, self.measure, self.unit)
        return BenchRecord(*key, min(self.rounds), self.median)


def figure(
    bench: str,
    workload: str,
    chunks: str,
    contestant: str,
    measure: str,
    unit: str,
    rounds: Sequence[float],
) -> Figure:
    """A figure; rounds are rounded to four digits, more than repeated runs have in common."""
    digits = tuple(float(f"{value:.4g}") for value in rounds)
    return Figure(bench, workload, chunks, contestant, measure, unit, digits)


def ratio(peer: Figure, ours: Figure, name: str = "ratio") -> Figure:
    """A peer's time divided by ours, for each round: noise slows both in the same round."""
    rounds = [theirs / own for theirs, own in zip(peer.rounds, ours.rounds, strict=True)]
    return figure(peer.bench, peer.workload, peer.chunks, peer.contestant, name, "x", rounds)


class Result(Struct, frozen=True):
    """One run of one benchmark.

    Attributes:
        command: command that was run.
        date: end of the run, in UTC.
        machine: versions, system and processor; the load at the start and at the end.
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
        found: list[Figure] = []
        for entry in self.figures:
            if all(getattr(entry, name) == value for name, value in wanted.items()):
                found.append(entry)
        return found


def make_result(
    command: str,
    figures: Iterable[Figure],
    versions: Mapping[str, str],
    absent: Iterable[str],
    load: str,
) -> Result:
    """Makes a result of this process; adds the machine and the time.

    Args:
        command: command that was run.
        figures: all figures.
        versions: versions of the participants.
        absent: reasons why others could not take part.
        load: load of the machine at the start.
    """
    about = machine(streamlib.__version__)
    about["cores"] = str(os.cpu_count())
    about["load"] = f"{load} before, {load_of_machine()} after"
    about["build"] = "compiled" if is_compiled() else "pure Python"
    date = about.pop("date")
    return Result(command, date, about, dict(versions), tuple(figures), tuple(absent))


def is_compiled() -> bool:
    """Whether the imported parsers are compiled."""
    return build_kind.compiled


def save(name: str, result: Result, folder: Path = MEASURED) -> Path:
    """Writes the result of a benchmark; a compiled build has a file of its own."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}{'-compiled' if is_compiled() else ''}.json"
    # Formatted by hand, a line for each figure: the file is read in diffs.
    document = msgspec.to_builtins(result)
    lines = [msgspec.json.encode(entry).decode() for entry in document.pop("figures")]
    head = msgspec.json.format(msgspec.json.encode(document), indent=1).decode().rstrip("}\n")
    body = ",\n  ".join(lines)
    path.write_text(f'{head},\n "figures": [\n  {body}\n ]\n}}\n', encoding="utf-8")
    return path


def load(name: str, folder: Path = MEASURED) -> Result | None:
    """The last result of a benchmark; None if there is none."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    return msgspec.json.decode(path.read_bytes(), type=Result)


def report(result: Result) -> None:
    """Prints a result, lowest round / median, and at the end who was absent."""
    sys.stdout.write(table([entry.record() for entry in result.figures]))
    for why in result.absent:
        sys.stdout.write(f"!! not measured: {why}\n")
