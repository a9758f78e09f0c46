"""The client over a mock transport, on asyncio and trio, against the SDKs over the same transport.

python -m benchmarks.bench_async [--rounds 7] [--json F]

Each event of the wire is one chunk. The rows of `feed` are the parser alone: the difference is what
the client adds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio

import streamlib
from benchmarks.contestants import PEERS, Contestant, Outcome, mock, ours, outcome_of
from benchmarks.races import race
from streamlib.bench.records import OURS, Record, as_json, table
from streamlib.bench.workloads import EVENT, WORKLOADS
from streamlib.cli.bench import Bar

WIRES: Final = ("messages", "chat", "responses", "gemini")


async def read_events(stream: Any) -> None:
    """Reads a stream event by event."""
    async for _ in stream:
        pass


async def read_batches(stream: Any) -> None:
    """Reads a stream in the batches in which it arrives."""
    async for _ in stream.batches():
        pass


def through_client(wire: Any, name: str, backend: str, read: Callable[[Any], Any]) -> Contestant:
    """`Client.stream` with its deadlines, accumulator and timing.

    Opening the stream is not counted, as for the other contestants.
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
        "streamlib",
        wire,
        "accumulated",
        lambda chunks: on_loop(chunks)[0],
        lambda chunks: on_loop(chunks)[1],
    )


def contestants(wire: str) -> list[Contestant]:
    """Ours first: the others are compared with it."""
    peers = [peer for peer in PEERS if peer.wire == wire and peer.kind != "framing"]
    return [
        through_client(wire, OURS, "asyncio", read_events),
        through_client(wire, "ours, trio", "trio", read_events),
        through_client(wire, "ours, batches", "asyncio", read_batches),
        ours(wire)._replace(name="ours, feed"),
        *(peer for peer in peers if peer.installed),
    ]


def main(argv: list[str] | None = None) -> int:
    """Measures every wire that an official SDK reads over HTTP."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--rounds", type=int, default=7)
    command.add_argument("--json")
    arguments = command.parse_args(argv)
    rounds = arguments.rounds
    bar = Bar(rounds * sum(len(contestants(wire)) for wire in WIRES))
    records: list[Record] = []
    for wire in WIRES:
        records += race("async", WORKLOADS[wire], EVENT, contestants(wire), rounds, bar.advance)
    bar.done()
    print(table(records, "contestant"), end="")
    if arguments.json:
        Path(arguments.json).write_bytes(as_json(records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
