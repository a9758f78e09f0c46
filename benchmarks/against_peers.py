"""`feed` against the official SDKs, httpx-sse and the frameworks that are installed: the same bytes, by turns, equal results first.

python -m benchmarks.against_peers [--wire W] [--rounds 7] [--json F] [--chart F.svg]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.contestants import PEERS, Contestant, ours
from benchmarks.frameworks import FRAMEWORKS
from benchmarks.races import race, versions
from streamlib.bench.chart import bars
from streamlib.bench.records import Record, as_json, table
from streamlib.bench.workloads import EVENT, FAST, WORKLOADS
from streamlib.cli.bench import Bar


def contestants(wire: str, kinds: tuple[str, ...]) -> list[Contestant]:
    """Those of a wire that are installed and give out one of these kinds."""
    return [
        one
        for one in (*PEERS, *FRAMEWORKS)
        if one.wire == wire and one.kind in kinds and one.installed
    ]


def measured(wires: list[str], rounds: int, bar: Bar) -> list[Record]:
    """Both kinds, both chunkings."""
    records: list[Record] = []
    for wire in wires:
        for bench, kinds in (("raw", ("raw", "framing")), ("accumulated", ("accumulated",))):
            peers = contestants(wire, kinds)
            for size in (EVENT, FAST) if peers else ():
                mine = ours(wire, "raw" if bench == "raw" else "accumulated")
                records += race(bench, WORKLOADS[wire], size, [mine, *peers], rounds, bar.advance)
    return records


def main(argv: list[str] | None = None) -> int:
    """Every wire that an official library reads."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--wire", action="append", choices=sorted({one.wire for one in PEERS}))
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--json")
    arguments.add_argument("--chart")
    asked = arguments.parse_args(argv)
    wires = asked.wire or list(dict.fromkeys(one.wire for one in PEERS))
    took_part = [one for one in (*PEERS, *FRAMEWORKS) if one.wire in wires and one.installed]
    bar = Bar(2 * asked.rounds * (len(took_part) + 2 * len(wires)))
    records = measured(wires, asked.rounds, bar)
    bar.done()
    print(*(f"{name} {number}" for name, number in sorted(versions(took_part).items())), sep=", ")
    for bench in ("raw", "accumulated"):
        print(
            f"\n{bench}\n{table([one for one in records if one.bench == bench], 'contestant')}",
            end="",
        )
    if asked.json:
        Path(asked.json).write_bytes(as_json(records))
    if asked.chart:
        ratios = [one for one in records if one.unit == "x"]
        Path(asked.chart).write_text(
            bars("CPU time of others for the same bytes, streamlib = 1", ratios), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
