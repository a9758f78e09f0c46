"""Measures `feed` without an event loop or a network: time and memory of a parser.

CPU time, in alternating rounds: on a shared machine the best round has the least noise.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from streamlib.testing.bench.records import OURS, BenchRecord, record
from streamlib.testing.bench.workloads import KIB, Workload, chunked, chunking
from streamlib_parsers.events import Failed, ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import Parser, parser, wire

Progress = Callable[[str], None]
"""Called with the name of the next measurement."""

WINDOW: Final = 0.002
"""Minimum duration of a measurement in seconds: shorter runs are repeated, because the clock of a
process is coarse."""


class Case(NamedTuple):
    """A body in chunks, and how to parse it.

    Attributes:
        name: name of the workload or file.
        chunks: the body in chunks.
        chunking: text that names the size of the chunks.
        events: number of events of the wire in the body.
        parser: makes a parser for the body.
    """

    name: str
    chunks: list[bytes]
    chunking: str
    events: int
    parser: Callable[[], Parser]

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return sum(map(len, self.chunks))


def cases(workloads: Iterable[Workload], size: int | None = None) -> list[Case]:
    """The workloads in each of their chunkings; if `size` is given, in chunks of `size` bytes."""
    made: list[Case] = []
    for workload in workloads:
        events = workload.events()
        sizes = workload.chunks if size is None else (size,)
        for chunk_size in sizes:
            chunks = chunked(events, chunk_size)
            case = Case(workload.name, chunks, chunking(chunk_size), len(events), workload.parser)
            made.append(case)
    return made


def complete_events(name: str, body: bytes, wire_api: WireApi) -> list[ResponseEvent]:
    """The events of a captured stream.

    Raises:
        ValueError: it does not parse: failures must not be timed.
    """
    parse = parser(wire_api)
    events = [*parse.feed(body), *parse.close()]
    failures = [event for event in events if isinstance(event, Failed)]
    if failures:
        error = failures[0].error
        raise ValueError(
            f"{name} is not a complete stream of {wire_api}: {error.kind}, {error.message}"
        )
    return events


def capture(
    name: str, body: bytes, wire_api: WireApi, sizes: Sequence[int] = (KIB, 16 * KIB)
) -> list[Case]:
    """Cases for a captured stream.

    Raises:
        ValueError: it does not parse: failures must not be timed.
    """
    framing = wire(wire_api).framing(LIMITS)
    frames = [*framing.feed(body), *framing.close()]
    complete_events(name, body, wire_api)
    count = max(1, len(frames))
    made: list[Case] = []
    for size in sizes:
        chunks = chunked([body], size)
        made.append(Case(name, chunks, chunking(size), count, lambda: parser(wire_api)))
    return made


def seconds(case: Case) -> float:
    """CPU seconds for reading the body once, including making and closing the parser."""
    runs = 0
    start = time.process_time()
    while True:
        parse = case.parser()
        for chunk in case.chunks:
            parse.feed(chunk)
        parse.close()
        runs += 1
        spent = time.process_time() - start
        if spent >= WINDOW:
            return spent / runs


def first_event(case: Case) -> float:
    """Seconds of wall time from making a parser to its first event."""
    start = time.perf_counter()
    parse = case.parser()
    for chunk in case.chunks:
        if parse.feed(chunk):
            break
    return time.perf_counter() - start


def peak(case: Case) -> int:
    """Peak memory in bytes while the body is read and its events are dropped; without the body."""
    tracemalloc.start()
    try:
        parse = case.parser()
        for chunk in case.chunks:
            parse.feed(chunk)
        parse.close()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measure(
    cases: Sequence[Case], rounds: int, report: Progress = lambda _: None
) -> list[BenchRecord]:
    """Measures every case in turn, `rounds` times.

    Args:
        cases: cases to measure.
        rounds: number of rounds.
        report: called before each measurement.
    """
    times: list[list[float]] = [[] for _ in cases]
    first_times: list[list[float]] = [[] for _ in cases]
    for _ in range(rounds):
        for number, case in enumerate(cases):
            report(f"{case.name}, {case.chunking}")
            times[number].append(seconds(case))
            first_times[number].append(first_event(case))
    records: list[BenchRecord] = []
    for case, spent, first in zip(cases, times, first_times, strict=True):
        records += _records(case, spent, first)
    return records


def _records(case: Case, spent: list[float], first: list[float]) -> list[BenchRecord]:
    key = ("feed", case.name, case.chunking, OURS)
    total = record(*key, "", "", spent)
    megabytes = case.size / 1e6
    event_times = [seconds_spent / case.events * 1e9 for seconds_spent in spent]
    first_times = [seconds_spent * 1e6 for seconds_spent in first]
    return [
        record(*key, "time", "ns/event", event_times),
        BenchRecord(*key, "events", "1/s", case.events / total.best, case.events / total.median),
        BenchRecord(*key, "bytes", "MB/s", megabytes / total.best, megabytes / total.median),
        record(*key, "first event", "µs", first_times),
        record(*key, "peak memory", "KB", [peak(case) / 1e3]),
    ]
