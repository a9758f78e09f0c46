"""Summarizes the figures in a few sentences, for the top of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from benchmarks.cells import NOTHING, short
from benchmarks.results import Figure, Result
from streamlib.testing.bench.records import OURS

STATELESS: Final = {
    "splitter": "six lines of Python with msgspec",
    "Node: eventsource-parser": "Node's eventsource-parser with JSON.parse",
}
NO_SDKS: Final = ("floor", "splitter", "httpx-sse + json")
PACED: Final = {"workload": "100 streams", "chunks": "every 0.05 s", "measure": "event"}


def _range(figures: Iterable[Figure]) -> str:
    medians = sorted(entry.median for entry in figures)
    if not medians:
        return NOTHING
    return f"{short(medians[0])} to {short(medians[-1])}"


def _sdks(result: Result, bench: str) -> list[Figure]:
    found: list[Figure] = []
    for entry in result.find(bench=bench, measure="ratio"):
        if entry.contestant not in NO_SDKS and not entry.contestant.startswith("Node"):
            found.append(entry)
    return found


def _faster(result: Result, name: str) -> str:
    """The number of wires on which a reader without state is faster."""
    ratios = result.find(bench="events", contestant=name, measure="ratio", chunks="an event")
    faster = [entry for entry in ratios if entry.median < 1]
    wires = f"{len(faster)} of {len(ratios)} wire APIs"
    if not faster:
        return f"{STATELESS[name]} on none"
    return f"{STATELESS[name]} on {wires} ({_range(faster)} of streamlib's time)"


def _paced(result: Result, name: str) -> str:
    found = result.find(**PACED, contestant=f"{name}, asyncio")
    if not found:
        return NOTHING
    return f"{short(found[0].median)} µs"


def sentences(results: Mapping[str, Result | None]) -> str:
    """The statements of the tables, as a list."""
    peers, sockets = results["against_peers"], results["bench_end_to_end"]
    if peers is None or sockets is None:
        return NOTHING
    own = peers.find(bench="events", contestant=OURS, measure="time")
    snapshots = _range(_sdks(peers, "snapshots"))
    over = f"{_paced(sockets, 'streamlib, httpx')} over httpx"
    over += f", {_paced(sockets, 'streamlib, httpx2')} over httpx2"
    over += f", {_paced(sockets, 'streamlib, aiohttp')} over aiohttp"
    faster = ", ".join([_faster(peers, name) for name in STATELESS])
    events = _range(_sdks(peers, "events"))
    sdk = _paced(sockets, "anthropic")
    return f"""\
- An event takes {_range(own)} µs of CPU time. The official SDKs take {events} times as long.
- With a snapshot at every event on both sides, the SDKs' helpers take {snapshots} times as long.
- Faster than streamlib, one event at a time: {faster}. Both keep no state, and do not notice that a
  response broke off.
- Over sockets, most of the time is spent in the HTTP library and the event loop. With 100 paced
  streams an event takes {over}; through anthropic's SDK {sdk}."""
