"""The client over a mock transport, on asyncio and trio, against the SDKs over the same transport.

    python -m benchmarks.bench_async [--only WIRE] [--rounds 7] [--quick] [--save]

Each event of the wire is one chunk. The rows of `feed` are the parser alone: the difference is what
the client adds. Our client always has the complete response at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import anyio

import streamlib
from benchmarks.commands import Measured, Options, run
from benchmarks.contestants import Contestant, Outcome, mock, ours, outcome_of
from benchmarks.races import race, versions
from benchmarks.results import Figure
from benchmarks.sdks import PEERS
from streamlib.cli.bench import Bar
from streamlib.testing.bench.records import OURS
from streamlib.testing.bench.workloads import EVENT, WORKLOADS

WIRES: Final = ("messages", "chat", "responses", "gemini")


async def read_events(stream: Any) -> None:
    """Reads a stream event by event."""
    async for _ in stream:
        pass


async def read_snapshots(stream: Any) -> None:
    """Reads a stream event by event, and looks at the response so far at each."""
    async for _ in stream:
        _ = stream.snapshot


async def read_batches(stream: Any) -> None:
    """Reads a stream in the batches in which it is received."""
    async for _ in stream.batches():
        pass


def through_client(wire: Any, name: str, backend: str, read: Callable[[Any], Any]) -> Contestant:
    """`Client.stream` with its deadlines, accumulator and timing.

    Opening the stream is not timed, as for the other contestants.
    """

    async def run(chunks: list[bytes]) -> tuple[float, Outcome]:
        async with mock(chunks, "httpx") as http, streamlib.Client(http=http) as client:
            async with client.stream(
                "x", model="custom:m", wire_api=wire, base_url="http://x", dialects=()
            ) as stream:
                start = time.process_time()
                await read(stream)
                spent = time.process_time() - start
            return spent, outcome_of(stream.response)

    def on_loop(chunks: list[bytes]) -> tuple[float, Outcome]:
        return anyio.run(run, chunks, backend=backend)

    return Contestant(
        name,
        "",
        wire,
        "response",
        lambda chunks: on_loop(chunks)[0],
        lambda chunks: on_loop(chunks)[1],
    )


def sdks(wire: str) -> list[Contestant]:
    """The SDKs of a wire: reading their events, and reading their complete response."""
    found: list[Contestant] = []
    for peer in PEERS:
        is_own = peer.depth == "events" or peer.name.endswith(".stream")
        if peer.wire == wire and is_own and peer.depth != "snapshots" and peer.installed:
            found.append(peer)
    return found


def contestants(wire: str) -> list[Contestant]:
    """Contestants of a wire; ours is first, and the others are compared with it."""
    return [
        through_client(wire, OURS, "asyncio", read_events),
        through_client(wire, "ours, trio", "trio", read_events),
        through_client(wire, "ours, batches", "asyncio", read_batches),
        through_client(wire, "ours, snapshots", "asyncio", read_snapshots),
        ours(wire)._replace(name="ours, feed"),
        *sdks(wire),
    ]


def measure(options: Options, bar: Bar) -> Measured:
    """Measures every wire that an official SDK reads over HTTP."""
    figures: list[Figure] = []
    taking_part: list[Contestant] = []
    for wire in WIRES:
        if not options.takes(wire):
            continue
        racers = contestants(wire)
        taking_part += racers
        events = WORKLOADS[wire].events()
        figures += race("client", wire, events, EVENT, racers, options.rounds, bar.advance)
    return Measured(figures, versions(taking_part))


def main(argv: list[str] | None = None) -> int:
    """Measures every wire that an official SDK reads over HTTP."""
    return run("bench_async", __doc__, measure, argv, steps=lambda options: 28 * options.rounds)


if __name__ == "__main__":
    raise SystemExit(main())
