"""One hop: our client over a mock transport, an event of the wire a chunk, on both loops; against the SDKs over the same transport.

python -m benchmarks.bench_async [--rounds 7] [--json F]

The rows of `feed` are the parser alone: what is above them is the hop.
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


async def _single(stream: Any) -> None:
    async for _ in stream:
        pass


async def _batches(stream: Any) -> None:
    async for _ in stream.batches():
        pass


def through_client(wire: Any, name: str, backend: str, read: Callable[[Any], Any]) -> Contestant:
    """`Client.stream` with its deadlines, its accumulator and its timing; opening it is not counted, as it is not for the others."""

    async def run(chunks: list[bytes]) -> tuple[float, Outcome]:
        async with mock(chunks, "httpx") as http, streamlib.Client(http=http) as client:
            async with client.stream(
                "x", model="custom:m", wire_api=wire, base_url="http://x", dialects=()
            ) as stream:
                began = time.process_time()
                await read(stream)
                spent = time.process_time() - began
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
    return [
        through_client(wire, OURS, "asyncio", _single),
        through_client(wire, "ours, trio", "trio", _single),
        through_client(wire, "ours, batches", "asyncio", _batches),
        ours(wire)._replace(name="ours, feed"),
        *(one for one in PEERS if one.wire == wire and one.kind != "framing" and one.installed),
    ]


def main(argv: list[str] | None = None) -> int:
    """Every wire that is read over HTTP by an official SDK."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--json")
    asked = arguments.parse_args(argv)
    bar = Bar(asked.rounds * sum(len(contestants(wire)) for wire in WIRES))
    records: list[Record] = []
    for wire in WIRES:
        records += race(
            "async", WORKLOADS[wire], EVENT, contestants(wire), asked.rounds, bar.advance
        )
    bar.done()
    print(table(records, "contestant"), end="")
    if asked.json:
        Path(asked.json).write_bytes(as_json(records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
