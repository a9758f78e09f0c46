"""The results of benchmarks in `benchmarks/measured/`.

The tables of docs/benchmarks.md, docs/transports.md and docs/gateway.md are written from
these files (`benchmarks/page.py`), so that a part can be measured again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from streamlib.testing.bench.records import BenchRun, as_json, read, table

MEASURED: Final = Path(__file__).with_name("measured")


def save(name: str, result: BenchRun, folder: Path = MEASURED) -> Path:
    """Writes the result of a benchmark; a compiled build has a file of its own."""
    folder.mkdir(exist_ok=True)
    ending = "-compiled" if result.machine.get("build") == "compiled" else ""
    path = folder / f"{name}{ending}.json"
    path.write_text(as_json(result), encoding="utf-8")
    return path


def load(name: str, folder: Path = MEASURED) -> BenchRun | None:
    """The last result of a benchmark; None if there is none."""
    path = folder / f"{name}.json"
    return read(path) if path.exists() else None


def report(result: BenchRun) -> None:
    """Prints a result, lowest round / median, and at the end who was absent."""
    sys.stdout.write(table(result.figures))
    for why in result.absent:
        sys.stdout.write(f"!! not measured: {why}\n")
