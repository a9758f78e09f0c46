"""The parsers against frameworks on top of the official SDKs: pydantic-ai, litellm, any-llm.

    python -m benchmarks.bench_frameworks [--only WIRE] [--rounds 5] [--quick] [--save]

They need an environment of their own (`frameworks_environment`), which `python -m benchmarks
--part bench_frameworks` makes.
"""

from __future__ import annotations

from benchmarks.commands import Measured, Options, run
from benchmarks.contestants import DEPTHS, Contestant, ours
from benchmarks.frameworks import FRAMEWORKS
from benchmarks.races import race, versions
from benchmarks.results import Figure
from benchmarks.sdks import PEERS
from streamlib.cli.bench import Bar
from streamlib.testing.bench.workloads import EVENT, WORKLOADS

SDKS = ("anthropic", "openai")
"""SDKs that the frameworks use."""


def measure(options: Options, bar: Bar) -> Measured:
    """Measures every wire with every depth that a framework has."""
    able = [peer for peer in FRAMEWORKS if peer.installed]
    figures: list[Figure] = []
    for wire in dict.fromkeys(peer.wire for peer in able):
        if not options.takes(wire):
            continue
        events = WORKLOADS[wire].events()
        for depth in DEPTHS:
            peers: list[Contestant] = []
            for peer in able:
                if peer.wire == wire and peer.depth == depth:
                    peers.append(peer)
            if peers:
                racers = [ours(wire, depth), *peers]
                figures += race(depth, wire, events, EVENT, racers, options.rounds, bar.advance)
    absent = sorted({f"{peer.name} is not installed" for peer in FRAMEWORKS if peer not in able})
    built_on = [peer for peer in PEERS if peer.name in SDKS]
    return Measured(figures, versions([*able, *built_on]), absent)


def main(argv: list[str] | None = None) -> int:
    """Measures all that are installed."""
    return run(
        "bench_frameworks",
        __doc__,
        measure,
        argv,
        rounds=5,
        steps=lambda options: 20 * options.rounds,
    )


if __name__ == "__main__":
    raise SystemExit(main())
