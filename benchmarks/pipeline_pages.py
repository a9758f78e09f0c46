"""The tables of docs/pipeline.md: what stages cost, and the same job through other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.cells import NOTHING, cell, markdown, short
from streamlib.testing.bench.records import OURS, BenchRun, Figure

BARE: Final = "a bare loop"
SECTIONS: Final = (
    ("replace",),
    ("words", "lines", "sentences", "blocks"),
    ("map_text",),
    ("stop_at",),
    ("limit",),
    ("guard",),
    ("coalesce",),
    ("smooth",),
    ("timeout",),
    ("map_events", "map_async"),
    ("tap",),
    ("until",),
    ("only", "without", "filter_events", "aggregate", "window"),
    ("Measure",),
)
"""Stages that have a section of the page, alone or together."""

Results = Mapping[str, BenchRun | None]


def stages(results: Results) -> str:
    """A row for each stage."""
    result = results["pipeline"]
    if result is None:
        return NOTHING
    rows: list[list[str]] = []
    for entry in result.find(measure="time"):
        held = result.find(workload=entry.workload, measure="held")
        characters = f"{held[0].median:.0f}" if held else ""
        name, comma, detail = entry.workload.partition(", ")
        rows.append([f"`{name}`{comma}{detail}", cell([entry]), characters])
    return markdown(["stage", "µs an event", "characters held"], rows)


def cost_of(*names: str) -> Callable[[Results], str]:
    """A sentence with the costs of some operators, for their section of the page."""

    def told(results: Results) -> str:
        result = results["pipeline"]
        if result is None:
            return NOTHING
        costs: list[str] = []
        for entry in result.find(measure="time"):
            name, _, detail = entry.workload.partition(", ")
            if name not in names:
                continue
            label = detail
            if len(names) > 1:
                label = f"`{name}`"
            costs.append(f"{label} {short(entry.median)} µs".strip())
        return f"Cost of an event: {', '.join(costs)}."

    return told


def jobs(results: Results) -> str:
    """The same job through everybody, the fastest first."""
    result = results["pipeline"]
    if result is None:
        return NOTHING
    rows: list[list[str]] = []
    for entry in _fastest_first(result, "job"):
        cells = [entry.contestant, _bold([entry], result), f"{1e6 / entry.median:,.0f}"]
        for measure in ("first", "memory"):
            of_it = result.find(workload="job", contestant=entry.contestant, measure=measure)
            cells.append(_bold(of_it, result))
        rows.append(cells)
    heading = ["", "µs an event", "events a second", "first text, µs", "memory, KB"]
    return markdown(heading, rows)


def alone(results: Results) -> str:
    """One operator and eight, through everybody."""
    result = results["pipeline"]
    if result is None:
        return NOTHING
    rows: list[list[str]] = []
    for entry in _fastest_first(result, "one filter"):
        eight = result.find(workload="eight maps", contestant=entry.contestant, measure="event")
        rows.append([entry.contestant, _bold([entry], result), _bold(eight, result)])
    return markdown(["µs an event", "one filter", "eight maps"], rows)


def _fastest_first(result: BenchRun, workload: str) -> list[Figure]:
    return sorted(result.find(workload=workload, measure="event"), key=lambda entry: entry.median)


def _bold(figures: Sequence[Figure], result: BenchRun) -> str:
    """A cell; in bold where another library needs less than streamlib."""
    if not figures or figures[0].contestant == BARE:
        return cell(figures)
    entry = figures[0]
    ours = result.find(workload=entry.workload, contestant=OURS, measure=entry.measure)
    if ours and entry.median < ours[0].median:
        return f"**{cell(figures)}**"
    return cell(figures)


PIPELINE_TABLES: Final[dict[str, Callable[[Results], str]]] = {
    "cost of stages": stages,
    **{f"cost of {' '.join(names)}": cost_of(*names) for names in SECTIONS},
    "pipelines": jobs,
    "pipeline stages": alone,
}
