"""The compiled build beside the pure one: CPU time of an event of the wire, the two in turn.

    nox -s compiled                                # builds into build/compiled
    python -m benchmarks.bench_compiled [--rounds 9] [--folder build/compiled]

Each build is a process of its own, which measures what it is told to. `feed` is the parser alone;
`stream` is `ResponseStream` over the same chunks, without HTTP, event by event.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import anyio

import streamlib
from streamlib.testing.bench import feed
from streamlib.testing.bench.workloads import EVENT, FAST, WORKLOADS, chunked, chunking
from streamlib_parsers import WireApi
from streamlib_parsers.build_kind import compiled

ROOT: Final = Path(__file__).resolve().parent.parent
STREAMED: Final[tuple[WireApi, ...]] = ("messages", "chat", "responses")
"""Wires that are also measured through a stream."""


class Reader:
    """A process with one of the builds."""

    def __init__(self, name: str, paths: list[Path]) -> None:
        self.name = name
        joined = os.pathsep.join(map(str, paths))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "benchmarks.bench_compiled", "--read"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": joined},
            text=True,
        )
        self.compiled: bool = self._answer()

    def measure(self, case: str) -> float:
        """CPU microseconds for an event of the case."""
        assert self._process.stdin is not None
        print(case, file=self._process.stdin, flush=True)
        return float(self._answer())

    def _answer(self) -> bool | float:
        assert self._process.stdout is not None
        answer: bool | float = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


async def in_chunks(chunks: list[bytes]) -> AsyncIterator[bytes]:
    """The body, as a transport yields it."""
    for chunk in chunks:
        yield chunk


async def stream_seconds(wire: WireApi, chunks: list[bytes]) -> float:
    """CPU seconds to read a stream event by event."""
    async with streamlib.ResponseStream.from_chunks(
        in_chunks(chunks), streamlib.parser(wire)
    ) as stream:
        start = time.process_time()
        async for _ in stream:
            pass
        return time.process_time() - start


def feed_microseconds(case: feed.Case) -> float:
    """CPU microseconds for an event, with the parser alone."""
    return feed.seconds(case) / case.events * 1e6


def stream_microseconds(wire: WireApi, size: int) -> float:
    """CPU microseconds for an event, through a stream."""
    events = WORKLOADS[wire].events()
    return anyio.run(stream_seconds, wire, chunked(events, size)) / len(events) * 1e6


def cases() -> Mapping[str, Callable[[], float]]:
    """Name of a case -> function that returns microseconds for an event."""
    found: dict[str, Callable[[], float]] = {}
    for wire in streamlib.WIRE_APIS:
        for case in feed.cases([WORKLOADS[wire]]):
            found[f"feed {wire}, {case.chunking}"] = partial(feed_microseconds, case)
    for wire in STREAMED:
        for size in (EVENT, FAST):
            found[f"stream {wire}, {chunking(size)}"] = partial(stream_microseconds, wire, size)
    return found


def read() -> None:
    """Measures the cases whose names are read from standard input."""
    measured = cases()
    gc.collect()
    gc.freeze()
    print(json.dumps(compiled), flush=True)
    for line in sys.stdin:
        print(json.dumps(measured[line.strip()]()), flush=True)


def main(argv: list[str] | None = None) -> int:
    """Prints the best and the median of each case and build, and their ratio."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--rounds", type=int, default=9)
    command.add_argument("--folder", type=Path, default=ROOT / "build" / "compiled")
    command.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    arguments = command.parse_args(argv)
    if arguments.read:
        read()
        return 0
    pure = Reader("pure", [ROOT, ROOT / "parsers"])
    compiled = Reader("compiled", [arguments.folder.resolve(), ROOT])
    if pure.compiled or not compiled.compiled:
        print(f"{arguments.folder} holds no compiled build: run `nox -s compiled`")
        return 1
    names = list(cases())
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        for name in names:
            for reader in (pure, compiled):
                times.setdefault((name, reader.name), []).append(reader.measure(name))
    print("| what | pure, best / median | compiled | ratio of the best | of the medians |")
    print("|---|---|---|---|---|")
    for name in names:
        one, other = times[name, "pure"], times[name, "compiled"]
        best, middle = min(one) / min(other), statistics.median(one) / statistics.median(other)
        columns = [f"{min(each):.2f} / {statistics.median(each):.2f}" for each in (one, other)]
        print(f"| {name} | {columns[0]} | {columns[1]} | {best:.2f} | {middle:.2f} |")
    pure.close()
    compiled.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
