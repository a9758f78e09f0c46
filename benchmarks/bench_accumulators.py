"""Growing arguments: what accumulates one long call, at 50, 100 and 200 KB of it.

    python -m benchmarks.bench_accumulators [--rounds 3] [--quick] [--save]

The arguments arrive in deltas of ten characters. A quadratic reader takes a minute for a megabyte.
"""

from __future__ import annotations

from typing import Final

from benchmarks import node_readers
from benchmarks.against_peers import contestants
from benchmarks.commands import Measured, Options, run
from benchmarks.contestants import ours
from benchmarks.races import race, versions
from benchmarks.results import Figure
from streamlib.cli.bench import Bar
from streamlib.testing.bench.bodies import messages
from streamlib.testing.bench.responses import ELEMENT, SampleCall, elements
from streamlib.testing.bench.workloads import EVENT

KILOBYTES: Final = (50, 100, 200)
PEERS: Final = ("anthropic.stream", "pydantic-ai", "Node: Vercel AI SDK")


def body(kilobytes: int) -> list[bytes]:
    """The events of a stream whose only call has this many characters of arguments."""
    call = SampleCall("call_0", "f", elements(kilobytes * 1000 // len(ELEMENT)))
    return list(messages((call,)))


def measure(options: Options, bar: Bar) -> Measured:
    """Measures every size with every peer that accumulates."""
    peers = [peer for peer in contestants("messages", "response") if peer.name in PEERS]
    racers = [ours("messages", "response"), *peers]
    figures: list[Figure] = []
    for kilobytes in (10,) if options.quick else KILOBYTES:
        events = body(kilobytes)
        name = f"{kilobytes} KB of arguments"
        figures += race("arguments", name, events, EVENT, racers, options.rounds, bar.advance)
    found = versions(racers)
    if any(peer.name.startswith("Node") for peer in peers):
        found |= node_readers.versions()
    return Measured(figures, found)


def main(argv: list[str] | None = None) -> int:
    """Measures every size."""
    steps = len(KILOBYTES) * (1 + len(PEERS))
    return run(
        "bench_accumulators",
        __doc__,
        measure,
        argv,
        rounds=3,
        steps=lambda options: steps * options.rounds,
    )


if __name__ == "__main__":
    raise SystemExit(main())
