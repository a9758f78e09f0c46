"""`feed` alone, without a loop or a network: time and memory of a parser on given chunks.

CPU time, in rounds by turns: on a shared machine the best round is the one that was disturbed least.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from streamlib.bench.records import OURS, Record, record
from streamlib.bench.workloads import KIB, Workload, chunked, chunking
from streamlib_parsers.events import Failed
from streamlib_parsers.items import WireApi
from streamlib_parsers.limits import LIMITS
from streamlib_parsers.protocol import Parser, parser, wire

Tell = Callable[[str], None]
"""Told what is measured next."""

WINDOW: Final = 0.002
"""Seconds that one measurement takes at least: shorter runs are repeated, since the clock of a process is coarse."""


class Case(NamedTuple):
    """Chunks, who reads them, and how many events of the wire they hold."""

    name: str
    chunks: list[bytes]
    chunking: str
    events: int
    parser: Callable[[], Parser]

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(map(len, self.chunks))


def cases(workloads: Iterable[Workload], size: int | None = None) -> list[Case]:
    """The workloads in the chunks they are measured in, or all in chunks of `size` bytes."""
    found: list[Case] = []
    for workload in workloads:
        events = workload.events()
        sizes = workload.chunks if size is None else (size,)
        found += [
            Case(workload.name, chunked(events, one), chunking(one), len(events), workload.parser)
            for one in sizes
        ]
    return found


def capture(
    name: str, body: bytes, wire_api: WireApi, sizes: Sequence[int] = (KIB, 16 * KIB)
) -> list[Case]:
    """A recorded stream of somebody's own. Raises ValueError where it does not parse, so that nobody times a failure."""
    framing = wire(wire_api).framing(LIMITS)
    frames = [*framing.feed(body), *framing.close()]
    whole = parser(wire_api)
    failures = [event for event in (*whole.feed(body), *whole.close()) if isinstance(event, Failed)]
    for failed in failures:
        raise ValueError(
            f"{name} is no whole stream of {wire_api}: {failed.error.kind}, {failed.error.message}"
        )
    count = max(1, len(frames))
    return [
        Case(name, chunked([body], size), chunking(size), count, lambda: parser(wire_api))
        for size in sizes
    ]


def seconds(case: Case) -> float:
    """CPU seconds of one whole reading, the parser's making and its end included."""
    runs, began = 0, time.process_time()
    while True:
        parse = case.parser()
        for chunk in case.chunks:
            parse.feed(chunk)
        parse.close()
        runs += 1
        spent = time.process_time() - began
        if spent >= WINDOW:
            return spent / runs


def first_event(case: Case) -> float:
    """Seconds from the making of a parser to its first event."""
    began = time.perf_counter()
    parse = case.parser()
    for chunk in case.chunks:
        if parse.feed(chunk):
            break
    return time.perf_counter() - began


def peak(case: Case) -> int:
    """The most bytes of memory while the body is read and its events are let go at once, without the body itself."""
    tracemalloc.start()
    try:
        parse = case.parser()
        for chunk in case.chunks:
            parse.feed(chunk)
        parse.close()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measure(found: Sequence[Case], rounds: int, tell: Tell = lambda _: None) -> list[Record]:
    """Every case, by turns, `rounds` times."""
    spent: list[list[float]] = [[] for _ in found]
    first: list[list[float]] = [[] for _ in found]
    for _ in range(rounds):
        for at, case in enumerate(found):
            tell(f"{case.name}, {case.chunking}")
            spent[at].append(seconds(case))
            first[at].append(first_event(case))
    return [one for at, case in enumerate(found) for one in _records(case, spent[at], first[at])]


def _records(case: Case, spent: list[float], first: list[float]) -> list[Record]:
    about = ("feed", case.name, case.chunking, OURS)
    best, median = record(*about, "", "", spent).best, record(*about, "", "", spent).median
    return [
        record(*about, "time", "ns/event", [one / case.events * 1e9 for one in spent]),
        Record(*about, "events", "1/s", case.events / best, case.events / median),
        Record(*about, "bytes", "MB/s", case.size / best / 1e6, case.size / median / 1e6),
        record(*about, "first event", "µs", [one * 1e6 for one in first]),
        record(*about, "peak memory", "KB", [peak(case) / 1e3]),
    ]
