"""Which HTTP library on which event loop: CPU of an event and of a stream, memory of an idle one.

    python -m benchmarks.transports [--only READER] [--rounds 3] [--quick] [--save]

A loopback server in a process of its own; each measurement in another one, whose CPU alone counts.
In a burst the server sends all events at once; paced, one after the other, as a model writes them.
"""

from __future__ import annotations

from typing import Final

from benchmarks.commands import Measured, Options, run
from benchmarks.socket_readers import READERS
from benchmarks.socket_run import Streams, installed, measure, versions
from streamlib.cli.bench import Bar

OURS: Final = ("streamlib, httpx", "streamlib, httpx2", "streamlib, aiohttp")
COMPARED: Final = (
    "httpx, drained",
    "httpx2, drained",
    "aiohttp, drained",
    "httptools + parser",
    "anthropic",
    "openai",
)
"""Readers for comparison: HTTP alone, the minimum that a client of our own would need, the SDKs."""

BURSTS: Final = (
    Streams(1, 20_000, 0),
    Streams(100, 500, 0),
    Streams(500, 100, 0),
)
PACED: Final = (
    Streams(1, 400, 0.005),
    Streams(100, 40, 0.05),
    Streams(500, 20, 0.2),
)
LARGE: Final = (Streams(5000, 6, 2.5), Streams(5000, 20, 0))
"""Measured last, and the burst on asyncio only: opening 5,000 streams takes httpx a minute."""
QUICK: Final = (Streams(2, 20, 0), Streams(2, 10, 0.01))


def combinations(names: list[str], options: Options) -> list[tuple[str, str, Streams]]:
    """Every reader on each of its loops, with every kind of streams.

    Readers for comparison are measured with one stream and with a hundred.
    """
    made: list[tuple[str, str, Streams]] = []
    for streams in QUICK if options.quick else (*BURSTS, *PACED, *LARGE):
        for name in names:
            if name in COMPARED and streams.count > 100:
                continue
            loops = READERS[name].loops
            if streams == LARGE[-1]:
                loops = loops[:1]
            for loop in loops:
                made.append((name, loop, streams))
    return made


def measured(options: Options, bar: Bar) -> Measured:
    """Measures all readers that are installed."""
    wanted = [name for name in (*OURS, *COMPARED) if options.takes(name)]
    names, absent = installed(wanted)
    wanted = combinations(names, options)
    figures, given_up = measure("transports", wanted, options.rounds, bar)
    return Measured(figures, versions(names), [*absent, *given_up])


def main(argv: list[str] | None = None) -> int:
    """Measures every combination."""

    def steps(options: Options) -> int:
        return len(combinations([*OURS, *COMPARED], options)) * options.rounds

    return run("transports", __doc__, measured, argv, rounds=3, steps=steps)


if __name__ == "__main__":
    raise SystemExit(main())
