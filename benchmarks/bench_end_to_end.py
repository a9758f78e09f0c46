"""Through sockets, on asyncio and in Node: the SDKs, the HTTP libraries alone, ours over them.

    python -m benchmarks.bench_end_to_end [--only READER] [--rounds 3] [--quick] [--save]

A loopback server in a process of its own; each measurement in another one, whose CPU alone counts.
`drained` is the HTTP library alone: it reads the same bytes and drops them.
"""

from __future__ import annotations

from typing import Final

from benchmarks.commands import Measured, Options, run
from benchmarks.socket_readers import READERS
from benchmarks.socket_run import NODE_READERS, Streams, installed, measure, versions
from streamlib.cli.bench import Bar

STREAMS: Final = (
    Streams(1, 20_000, 0),
    Streams(100, 500, 0),
    Streams(500, 100, 0),
    Streams(100, 40, 0.05),
)
EVERYBODY: Final = (*READERS, *NODE_READERS)
QUICK: Final = (Streams(2, 20, 0), Streams(2, 10, 0.01))


def combinations(names: list[str], options: Options) -> list[tuple[str, str, Streams]]:
    """Every reader on asyncio with every kind of streams."""
    made: list[tuple[str, str, Streams]] = []
    for streams in QUICK if options.quick else STREAMS:
        for name in names:
            loop = "node" if name in NODE_READERS else "asyncio"
            made.append((name, loop, streams))
    return made


def measured(options: Options, bar: Bar) -> Measured:
    """Measures all readers that are installed."""
    names, absent = installed([name for name in EVERYBODY if options.takes(name)])
    wanted = combinations(names, options)
    figures, given_up = measure("sockets", wanted, options.rounds, bar)
    return Measured(figures, versions(names), [*absent, *given_up])


def main(argv: list[str] | None = None) -> int:
    """Measures every reader."""

    def steps(options: Options) -> int:
        return len(combinations(list(EVERYBODY), options)) * options.rounds

    return run("bench_end_to_end", __doc__, measured, argv, rounds=3, steps=steps)


if __name__ == "__main__":
    raise SystemExit(main())
