"""The tables of recorded streams: by wire, by length, through the complete client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from benchmarks.cells import NOTHING, best_and_median, cell, markdown
from streamlib.testing.bench.corpus import STRATA
from streamlib.testing.bench.records import OURS, BenchRun, Figure

Results = Mapping[str, BenchRun | None]

NAMES: Final = {
    "messages": "Messages",
    "responses": "Responses",
    "chat": "Chat",
    "gemini": "Gemini",
    "interactions": "Interactions",
    "converse": "Converse",
    "invoke": "Invoke",
    "ollama": "Ollama",
    "cohere": "Cohere",
}
"""Wire -> its name on the pages."""

STATELESS: Final = {
    "six lines": "six lines of Python",
    "Node: eventsource-parser": "Node: eventsource-parser",
}
"""Reader without state -> heading of its column; they are faster, so they come first."""

READERS: Final = {
    **STATELESS,
    "httpx-sse + json": "httpx-sse + json",
    "Node: Vercel AI SDK": "Node: Vercel AI SDK",
}
"""Contestant that reads many wires -> heading of its column."""

CLIENT: Final = "streamlib's client"
REQUEST: Final = " with its request"
AN_EVENT: Final = "an event"


def _only(
    result: BenchRun, contestant: str, measure: str, workload: str, chunks: str
) -> list[Figure]:
    return result.find(workload=workload, chunks=chunks, contestant=contestant, measure=measure)


def _wires(result: BenchRun) -> Iterator[str]:
    for wire in NAMES:
        if result.find(workload=f"{wire}, all", contestant=OURS):
            yield wire


def _count(result: BenchRun, contestant: str, workload: str, chunks: str) -> int:
    """The number of streams that were read."""
    found = _only(result, contestant, "streams", workload, chunks)
    return int(found[0].median) if found else 0


def _compared(result: BenchRun, contestant: str, wire: str, chunks: str) -> str:
    """How many times as long a peer takes; of how many streams, if it does not read all."""
    workload = f"{wire}, all"
    read, all_streams = (_count(result, name, workload, chunks) for name in (contestant, OURS))
    ratio = _only(result, contestant, "ratio", workload, chunks)
    if not ratio:
        return ""
    if read * 2 < all_streams:
        return f"reads {read} of {all_streams}"
    text = cell(ratio, losses=True)
    return text if read == all_streams else f"{text}, {read} of {all_streams}"


def _sdks(result: BenchRun, wire: str, chunks: str) -> str:
    """The official SDK of a wire."""
    for entry in result.find(workload=f"{wire}, all", chunks=chunks, measure="ratio"):
        name = entry.contestant
        if name not in READERS and not name.startswith(CLIENT) and not name.endswith(REQUEST):
            return f"{name} {_compared(result, name, wire, chunks)}"
    return ""


def _by_wire(chunks: str, readers: Mapping[str, str]) -> Callable[[Results], str]:
    """A row for each wire: our time for an event, and how many times as long others take."""

    def table(results: Results) -> str:
        result = results["recordings"]
        if result is None:
            return NOTHING
        rows: list[list[str]] = []
        for wire in _wires(result):
            own = _only(result, OURS, "event", f"{wire}, all", chunks)
            others = [_compared(result, name, wire, chunks) for name in readers]
            sdk = _sdks(result, wire, chunks)
            rows.append([NAMES[wire], best_and_median(own), *others, sdk])
        return markdown(["API", "streamlib, µs", *readers.values(), "official SDK"], rows)

    return table


def by_length(results: Results) -> str:
    """A row for each wire and stratum: our time for an event and for a response."""
    result = results["recordings"]
    if result is None:
        return NOTHING
    rows: list[list[str]] = []
    for wire in _wires(result):
        for stratum in STRATA:
            workload = f"{wire}, {stratum.name}"
            count = _count(result, OURS, workload, AN_EVENT)
            if not count:
                continue
            cells: list[str] = []
            for measure in ("event", "response"):
                for chunks in (AN_EVENT, "16 KiB"):
                    cells.append(best_and_median(_only(result, OURS, measure, workload, chunks)))
            rows.append([NAMES[wire], stratum.name, str(count), *cells])
    heading = ["API", "length", "streams", "µs an event", "in 16 KiB", "µs a response", "in 16 KiB"]
    return markdown(heading, rows)


def client(results: Results) -> str:
    """A row for each wire: a response through the complete client and through the SDK."""
    result = results["recordings"]
    if result is None:
        return NOTHING
    rows: list[list[str]] = []
    for wire in _wires(result):
        workload = f"{wire}, all"
        if not _only(result, CLIENT, "response", workload, AN_EVENT):
            continue
        cells = [NAMES[wire]]
        sdk = _sdks(result, wire, AN_EVENT).partition(" ")[0]
        for name in (OURS, CLIENT, CLIENT + REQUEST, sdk, sdk + REQUEST):
            found = _only(result, name, "response", workload, AN_EVENT)
            text = best_and_median(found)
            if found and name == sdk:
                text = f"{sdk} {text}"
            cells.append(text)
        rows.append(cells)
    heading = ["API", "parser alone", "client", "with its request", "SDK", "with its request"]
    return markdown(heading, rows)


def streams(results: Results) -> str:
    """How many streams and events were read, in one sentence."""
    result = results["recordings"]
    if result is None:
        return NOTHING
    counts: list[str] = []
    for wire in _wires(result):
        count = _count(result, OURS, f"{wire}, all", AN_EVENT)
        counts.append(f"{NAMES[wire]} {count}")
    return f"Recorded streams: {', '.join(counts)}."


RECORDED_TABLES: Final[dict[str, Callable[[Results], str]]] = {
    "readme": _by_wire(AN_EVENT, STATELESS),
    "recorded streams": streams,
    "recorded one by one": _by_wire(AN_EVENT, READERS),
    "recorded in 16 KiB": _by_wire("16 KiB", READERS),
    "recorded by length": by_length,
    "recorded through the client": client,
}
"""Name of a table in a page -> function that writes it."""
