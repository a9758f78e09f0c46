"""The pages' tables, written from what was measured: `python -m benchmarks --page`.

A page has `<!-- table: NAME -->` and `<!-- end of table -->`; what is between them is written here,
and a test compares it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from benchmarks import goals, summary
from benchmarks.cells import NOTHING, cell, markdown, origin, short
from benchmarks.contestants import Depth
from benchmarks.results import Figure, Result, load
from benchmarks.socket_pages import SOCKET_TABLES, number_of_streams
from streamlib.testing.bench.records import OURS

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "docs" / "benchmarks.md",
    ROOT / "docs" / "transports.md",
    ROOT / "docs" / "gateway" / "load.md",
)
PARTS: Final = (
    "against_peers",
    "bench_frameworks",
    "bench_async",
    "bench_end_to_end",
    "transports",
    "bench_accumulators",
    "gateway",
    "bench_import",
)
"""The benchmarks whose results are on the pages."""

COMPILED: Final = "against_peers-compiled"
"""Name of the compiled build's results."""

BLOCK: Final = re.compile(
    r"(?P<begin><!-- table: (?P<name>[\w -]+) -->\n).*?(?P<end><!-- end of table -->)", re.DOTALL
)

Results = Mapping[str, Result | None]

WIRES: Final = {
    "messages": "Messages",
    "responses": "Responses",
    "chat": "Chat",
    "chat-text": "Chat, texts alone",
    goals.SNAPSHOTS: "Messages, 20,000 deltas",
    "gemini": "Gemini",
    "interactions": "Interactions",
    "converse": "Converse",
    "invoke": "Invoke",
    "ollama": "Ollama",
    "cohere": "Cohere",
}
"""Workload -> its name on the pages."""

FRAMINGS: Final = {
    "floor": "floor",
    "splitter": "six lines",
    "httpx-sse + json": "httpx-sse + json",
    "Node: eventsource-parser": "Node: eventsource-parser + JSON.parse",
    "Node: Vercel AI SDK": "Node: Vercel AI SDK",
}
"""Contestant that reads many wires -> heading of its column."""


def known() -> dict[str, Result | None]:
    """The last results of each benchmark, and those of the compiled build."""
    found: dict[str, Result | None] = {}
    for name in PARTS:
        found[name] = load(name)
        found[f"{name}-compiled"] = load(f"{name}-compiled")
    return found


# --- against others, without a socket ---


def _depth(depth: Depth, chunks: str, part: str = "against_peers") -> Callable[[Results], str]:
    def table(results: Results) -> str:
        result = results[part]
        if result is None:
            return NOTHING
        rows: list[list[str]] = []
        for workload in _workloads(result, depth):
            rows.append(_row(result, depth, workload, chunks))
        heading = ["wire", "streamlib, µs", *FRAMINGS.values(), "official SDK"]
        return markdown(heading, rows)

    return table


def _workloads(result: Result, depth: Depth) -> Iterator[str]:
    seen: dict[str, None] = {}
    for entry in result.find(bench=depth, contestant=OURS):
        seen[entry.workload] = None
    yield from seen


def _row(result: Result, depth: Depth, workload: str, chunks: str) -> list[str]:
    key = {"bench": depth, "workload": workload, "chunks": chunks}
    cells = [WIRES[workload], cell(result.find(**key, contestant=OURS))]
    for name in FRAMINGS:
        cells.append(cell(result.find(**key, contestant=name, measure="ratio"), losses=True))
    sdks: list[str] = []
    for entry in result.find(**key, measure="ratio"):
        if entry.contestant not in FRAMINGS:
            sdks.append(f"{entry.contestant} {cell([entry], losses=True)}")
    return [*cells, ", ".join(sdks)]


def losses(results: Results) -> str:
    """Every peer that is faster, except the floor, which makes no complete response."""
    result = results["against_peers"]
    if result is None:
        return NOTHING
    rows: dict[tuple[str, str], list[str]] = {}
    for entry in result.find(measure="ratio"):
        if entry.median < 1 and entry.contestant != "floor":
            text = f"{WIRES[entry.workload]} {short(entry.median)}"
            rows.setdefault((f"{entry.bench}, {entry.chunks}", entry.contestant), []).append(text)
    lines: list[list[str]] = []
    for (what, name), texts in rows.items():
        lines.append([what, FRAMINGS.get(name, name), ", ".join(texts)])
    if not lines:
        return "Nobody."
    return markdown(["what", "faster than streamlib", "share of streamlib's time"], lines)


def frameworks(results: Results) -> str:
    """The table of frameworks on top of the SDKs."""
    result = results["bench_frameworks"]
    if result is None:
        return NOTHING
    rows: list[list[str]] = []
    for entry in result.find(measure="ratio"):
        own = result.find(
            bench=entry.bench, workload=entry.workload, chunks=entry.chunks, contestant=OURS
        )
        what = f"{entry.bench}, {WIRES[entry.workload]}, {entry.chunks}"
        rows.append([what, entry.contestant, cell(own), cell([entry], losses=True)])
    return markdown(["of", "framework", "streamlib, µs", "takes … times as long"], rows)


def arguments(results: Results) -> str:
    """The table of one long call."""
    result = results["bench_accumulators"]
    if result is None:
        return NOTHING
    return _matrix(result.find(measure="time"), "arguments")


def client(results: Results) -> str:
    """The table of the complete client."""
    result = results["bench_async"]
    if result is None:
        return NOTHING
    own = (OURS, "ours, trio", "ours, batches", "ours, snapshots", "ours, feed")
    rows: list[list[str]] = []
    for entry in result.find(contestant=OURS):
        key = {"workload": entry.workload}
        cells = [WIRES[entry.workload]]
        for name in own:
            cells.append(cell(result.find(**key, contestant=name, measure="time")))
        sdks: list[str] = []
        for peer in result.find(**key, measure="ratio"):
            if peer.contestant not in own:
                sdks.append(f"{peer.contestant} {cell([peer], losses=True)}")
        rows.append([*cells, ", ".join(sdks)])
    heading = ["wire", "asyncio, µs", "trio", "in batches", "a snapshot at every event"]
    return markdown([*heading, "parser alone", "SDK takes … times as long"], rows)


def _matrix(figures: list[Figure], heading: str) -> str:
    """A row for each workload, a column for each contestant."""
    names: dict[str, None] = {}
    rows: dict[str, dict[str, str]] = {}
    for entry in figures:
        names[entry.contestant] = None
        rows.setdefault(entry.workload, {})[entry.contestant] = cell([entry])
    lines: list[list[str]] = []
    for workload, cells in rows.items():
        lines.append([workload, *(cells.get(name, "") for name in names)])
    return markdown([heading, *names], lines)


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


# --- README ---


def readme(results: Results) -> str:
    """The table of README."""
    result = results["against_peers"]
    if result is None:
        return NOTHING
    rows: list[list[str]] = []
    key = {"bench": "events", "chunks": "an event", "measure": "time"}
    for name in ("anthropic", "openai", "google-genai", "cohere", "botocore"):
        for entry in result.find(**key, contestant=name):
            rows.append(_readme_row(result, name, entry.workload))
    heading = [
        "API",
        "streamlib",
        "its official SDK",
        "the SDK takes",
        "both with the response so far",
    ]
    return markdown(heading, rows)


def _readme_row(result: Result, name: str, workload: str) -> list[str]:
    key = {"bench": "events", "workload": workload, "chunks": "an event"}
    [own] = result.find(**key, contestant=OURS, measure="time")
    [sdk] = result.find(**key, contestant=name, measure="time")
    [ratio] = result.find(**key, contestant=name, measure="ratio")
    snapshots = result.find(
        bench="snapshots", workload=workload, contestant=f"{name}.stream", measure="ratio"
    )
    equal_work = "no such helper"
    if snapshots:
        equal_work = f"{short(snapshots[0].median)} times as long"
    return [
        WIRES[workload],
        f"{short(own.median)} µs",
        f"{name}: {short(sdk.median)} µs",
        f"{short(ratio.median)} times as long",
        equal_work,
    ]


def _origin(name: str) -> Callable[[Results], str]:
    return lambda results: origin(results[name])


TABLES: Final[dict[str, Callable[[Results], str]]] = {
    "events one by one": _depth("events", "an event"),
    "events in 16 KiB": _depth("events", "16 KiB"),
    "compiled one by one": _depth("events", "an event", COMPILED),
    "compiled in 16 KiB": _depth("events", "16 KiB", COMPILED),
    "snapshots": _depth("snapshots", "an event"),
    "responses one by one": _depth("response", "an event"),
    "responses in 16 KiB": _depth("response", "16 KiB"),
    "losses": losses,
    "frameworks": frameworks,
    "arguments": arguments,
    "client": client,
    "gateway": gateway,
    "imports": imports,
    "goals": lambda results: goals.table(results["against_peers"], results[COMPILED]),
    "readme": readme,
    "summary": summary.sentences,
    **SOCKET_TABLES,
    **{f"run of {name}": _origin(name) for name in (*PARTS, COMPILED)},
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
