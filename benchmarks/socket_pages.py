"""The tables of measurements over sockets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.cells import NOTHING, cell, markdown
from streamlib.testing.bench.records import BenchRun

Results = Mapping[str, BenchRun | None]
AT_ONCE: Final = "at once"


def _contestants(result: BenchRun) -> list[str]:
    seen: dict[str, None] = {}
    for entry in result.figures:
        seen[entry.contestant] = None
    return list(seen)


def _columns(result: BenchRun, measure: str, *, paced: bool) -> list[tuple[str, str]]:
    """Measured streams, as (workload, chunks), ordered by number of streams."""
    seen: dict[tuple[str, str], None] = {}
    for entry in result.find(measure=measure):
        if (entry.chunks != AT_ONCE) == paced:
            seen[entry.workload, entry.chunks] = None
    return sorted(seen, key=lambda column: int(column[0].partition(" ")[0]))


def _heading(column: tuple[str, str]) -> str:
    workload, chunks = column
    name = number_of_streams(workload)
    return name if chunks == AT_ONCE else f"{name}, {chunks}"


def number_of_streams(workload: str) -> str:
    """The number of streams in words: `1 stream`, `5,000 streams`."""
    count = int(workload.partition(" ")[0])
    return "1 stream" if count == 1 else f"{count:,} streams"


def _by_reader(part: str, measure: str, *, paced: bool) -> Callable[[Results], str]:
    """A row for each reader, a column for each number of streams."""

    def table(results: Results) -> str:
        result = results[part]
        if result is None:
            return NOTHING
        columns = _columns(result, measure, paced=paced)
        rows: list[list[str]] = []
        for name in _contestants(result):
            cells: list[str] = []
            for workload, chunks in columns:
                key = {"workload": workload, "chunks": chunks, "contestant": name}
                cells.append(cell(result.find(**key, measure=measure)))
            rows.append([_named(name), *cells])
        return markdown(["reader, loop", *map(_heading, columns)], rows)

    return table


def _named(name: str) -> str:
    """A reader's name in tables; `httptools + parser` is the minimum of a client of our own."""
    return name.replace(", drained", " alone")


TRIO: Final = ("streamlib, httpx, trio", "streamlib, httpx2, trio", "httptools + parser, trio")


TRIO_ROWS: Final = (("event", "event, µs"), ("setup", "stream, µs"), ("memory", "stream, KB"))


def _on_trio(results: Results) -> str:
    """The readers on trio, and the minimum that a client of our own would need."""
    result = results["transports"]
    if result is None:
        return NOTHING
    rows: list[list[str]] = []
    for measure, what in TRIO_ROWS:
        for workload, chunks in _columns(result, measure, paced=measure == "event"):
            key = {"workload": workload, "chunks": chunks, "measure": measure}
            cells = [cell(result.find(**key, contestant=name)) for name in TRIO]
            if all(cells):
                rows.append([f"{what}: {_heading((workload, chunks))}", *cells])
    heading = ["trio", "over httpx", "over httpx2", "lower bound"]
    return markdown(heading, rows)


SOCKET_TABLES: Final[dict[str, Callable[[Results], str]]] = {
    "transports paced": _by_reader("transports", "event", paced=True),
    "transports setup": _by_reader("transports", "setup", paced=False),
    "transports on trio": _on_trio,
    "transports memory": _by_reader("transports", "memory", paced=False),
}
"""Name of a table in a page -> function that writes it."""
