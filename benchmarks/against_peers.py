"""`feed` against the official SDKs, httpx-sse and the frameworks that are installed.

python -m benchmarks.against_peers [--wire W] [--rounds 7] [--json F] [--chart F.svg]

All read the same bytes, in alternating rounds; first their results are compared.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.contestants import PEERS, Contestant, Kind, ours
from benchmarks.frameworks import FRAMEWORKS
from benchmarks.other_sdks import COHERE, MISTRAL
from benchmarks.races import race, versions
from streamlib.bench.chart import bars
from streamlib.bench.records import Record, as_json, table
from streamlib.bench.workloads import EVENT, FAST, WORKLOADS
from streamlib.cli.bench import Bar

BENCHES: tuple[tuple[str, Kind, tuple[Kind, ...]], ...] = (
    ("raw", "raw", ("raw", "framing")),
    ("accumulated", "accumulated", ("accumulated",)),
)
"""Name of a benchmark, what this library returns in it, and what its peers return."""


def contestants(wire: str, kinds: tuple[Kind, ...]) -> list[Contestant]:
    """The installed peers of a wire that return one of these kinds."""
    return [peer for peer in _installed([wire]) if peer.kind in kinds]


def _installed(wires: list[str]) -> list[Contestant]:
    peers = (*PEERS, COHERE, *FRAMEWORKS)
    return [peer for peer in peers if peer.wire in wires and peer.installed]


def measured(wires: list[str], rounds: int, bar: Bar) -> list[Record]:
    """The records of both benchmarks in both chunkings."""
    records: list[Record] = []
    for wire in wires:
        for bench, kind, peer_kinds in BENCHES:
            peers = contestants(wire, peer_kinds)
            if not peers:
                continue
            for size in (EVENT, FAST):
                racers = [ours(wire, kind), *peers]
                records += race(bench, WORKLOADS[wire], size, racers, rounds, bar.advance)
    if "chat" in wires and MISTRAL.installed:
        # Texts alone: its reader takes calls in one delta, as Mistral sends them.
        for size in (EVENT, FAST):
            racers = [ours("chat"), MISTRAL]
            records += race("raw", WORKLOADS["chat-text"], size, racers, rounds, bar.advance)
    return records


def main(argv: list[str] | None = None) -> int:
    """Measures every wire that an official library reads."""
    wires = list(dict.fromkeys(peer.wire for peer in (*PEERS, COHERE)))
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--wire", action="append", choices=sorted(wires))
    command.add_argument("--rounds", type=int, default=7)
    command.add_argument("--json")
    command.add_argument("--chart")
    arguments = command.parse_args(argv)
    wires = arguments.wire or wires
    peers = _installed(wires)
    # Each peer and, for each wire and benchmark, this library: in two chunkings.
    bar = Bar(2 * arguments.rounds * (len(peers) + 2 * len(wires)))
    records = measured(wires, arguments.rounds, bar)
    bar.done()
    print(*(f"{name} {number}" for name, number in sorted(versions(peers).items())), sep=", ")
    for bench, _, _ in BENCHES:
        rows = table([record for record in records if record.bench == bench], "contestant")
        print(f"\n{bench}\n{rows}", end="")
    if arguments.json:
        Path(arguments.json).write_bytes(as_json(records))
    if arguments.chart:
        ratios = [record for record in records if record.unit == "x"]
        picture = bars("CPU time of others for the same bytes, streamlib = 1", ratios)
        Path(arguments.chart).write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
