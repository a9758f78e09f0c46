"""The pages' tables, written from what was measured: `python -m benchmarks --page`.

A page has `<!-- table: NAME -->` and `<!-- end of table -->`; what is between them is written here,
and a test compares it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.cells import NOTHING, cell, markdown, origin
from benchmarks.pipeline_pages import PIPELINE_TABLES
from benchmarks.recorded_pages import RECORDED_TABLES
from benchmarks.results import load
from benchmarks.socket_pages import SOCKET_TABLES, number_of_streams
from streamlib.testing.bench.records import BenchRun

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "docs" / "benchmarks.md",
    ROOT / "docs" / "transports.md",
    ROOT / "docs" / "gateway" / "deploy.md",
    ROOT / "docs" / "pipeline.md",
)
PARTS: Final = ("recordings", "transports", "gateway", "bench_import", "pipeline")
"""The benchmarks whose results are on the pages."""

BLOCK: Final = re.compile(
    r"(?P<begin><!-- table: (?P<name>[\w -]+) -->\n).*?(?P<end><!-- end of table -->)", re.DOTALL
)

Results = Mapping[str, BenchRun | None]


def known() -> dict[str, BenchRun | None]:
    """The last results of each benchmark."""
    return {name: load(name) for name in PARTS}


def gateway(results: Results) -> str:
    """The table of the gateway: CPU and latency."""
    result = results["gateway"]
    if result is None:
        return NOTHING
    measures = ("CPU", "p50", "added p50", "p99", "added p99")
    rows: list[list[str]] = []
    for entry in result.find(measure="CPU"):
        key = {"workload": entry.workload, "contestant": entry.contestant}
        cells = [cell(result.find(**key, measure=measure)) for measure in measures]
        streams = number_of_streams(entry.workload)
        rows.append([f"{streams}, {entry.chunks}", entry.contestant, *cells])
    heading = ["streams, an event", "server, client", "CPU, µs an event", "median, ms", "added"]
    return markdown([*heading, "99 of 100 within, ms", "added"], rows)


def imports(results: Results) -> str:
    """The table of imports: time, modules, and the size of an installation."""
    result = results["bench_import"]
    if result is None:
        return NOTHING
    rows: list[list[str]] = []
    for entry in result.find(measure="CPU"):
        modules = result.find(contestant=entry.contestant, measure="modules")
        rows.append([f"`import {entry.contestant}`", cell([entry]), cell(modules)])
    table = markdown(["", "CPU, ms", "modules"], rows)
    size = result.find(measure="size")
    count = result.find(measure="distributions")
    if size and count:
        table += (
            f"\n\n`pip install streamlib` installs {cell(count)} other distributions, "
            f"{cell(size)} MB with ours."
        )
    return table


def _origin(name: str) -> Callable[[Results], str]:
    return lambda results: origin(results[name])


TABLES: Final[dict[str, Callable[[Results], str]]] = {
    "gateway": gateway,
    "imports": imports,
    **RECORDED_TABLES,
    **SOCKET_TABLES,
    **PIPELINE_TABLES,
    **{f"run of {name}": _origin(name) for name in PARTS},
}
"""Name of a table in a page -> function that writes it."""


def fill(text: str, results: Results) -> str:
    """The text of a page with its tables written again."""

    def replaced(block: re.Match[str]) -> str:
        return f"{block['begin']}{TABLES[block['name']](results)}\n{block['end']}"

    return BLOCK.sub(replaced, text)


def write() -> list[Path]:
    """Writes the tables of all pages; returns those that changed."""
    changed: list[Path] = []
    results = known()
    for path in PAGES:
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        filled = fill(text, results)
        if filled != text:
            path.write_text(filled, encoding="utf-8")
            changed.append(path)
    return changed
