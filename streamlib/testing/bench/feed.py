"""Measures `feed` without an event loop or a network: time and memory of a parser.

CPU time, in alternating rounds: on a shared machine the best round has the least noise. Between the
measurements fixed work is timed, because a machine may take twice as long a second later.
"""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from streamlib.testing.bench.records import OURS, Figure, figure, ratio
from streamlib.testing.bench.workloads import Workload, chunked, chunking
from streamlib.testing.fuzz_targets import difference
from streamlib.testing.own_parsers import Read, comparable, fed
from streamlib_parsers.events import Failed, ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.protocol import parser

Progress = Callable[[str], None]
"""Called with the name of the next measurement."""

WINDOW: Final = 0.002
"""Minimum duration of a measurement in seconds: shorter runs are repeated, because the clock of a
process is coarse."""

FIXED_BODY: Final = (
    b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"and"}}\n\n'
    * 20
)
"""What `fixed_work` reads."""


class Case(NamedTuple):
    """A body in chunks, and who reads it.

    Attributes:
        name: name of the workload or file.
        chunks: the body in chunks.
        chunking: text that names the size of the chunks.
        events: number of events of the wire in the body; 0 if it has no known wire.
        read: reads it, and gives the results as they appear.
        contestant: name of the reader.
    """

    name: str
    chunks: list[bytes]
    chunking: str
    events: int
    read: Read
    contestant: str = OURS

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return sum(map(len, self.chunks))


class Body(NamedTuple):
    """A body, and who can read it.

    Attributes:
        name: name of the workload or file.
        events: the body, one chunk for each event of its wire if that is known.
        readers: name -> how it is read; the first is what the others are compared with.
        wire_api: its wire; None if that is not known.
    """

    name: str
    events: list[bytes]
    readers: dict[str, Read]
    wire_api: WireApi | None = None

    def cases(self, size: int) -> list[Case]:
        """Each reader with the body in chunks of this size."""
        chunks = chunked(self.events, size)
        count = len(self.events) if self.wire_api else 0
        made: list[Case] = []
        for contestant, read in self.readers.items():
            made.append(Case(self.name, chunks, chunking(size), count, read, contestant))
        return made


def of_workload(workload: Workload) -> Body:
    """A workload, read by streamlib."""
    readers = {OURS: fed(workload.parser)}
    return Body(workload.name, workload.events(), readers, workload.wire_api)


def cases(workloads: Iterable[Workload], size: int | None = None) -> list[Case]:
    """The workloads in each of their chunkings; if `size` is given, in chunks of `size` bytes."""
    made: list[Case] = []
    for workload in workloads:
        body = of_workload(workload)
        sizes = workload.chunks if size is None else (size,)
        for chunk_size in sizes:
            made += body.cases(chunk_size)
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


@contextmanager
def frozen_heap() -> Generator[None]:
    """Freezes what is alive: else every collection inside the block walks all modules.

    What was frozen before stays so.
    """
    was_frozen = gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


def seconds(case: Case) -> float:
    """CPU seconds for reading the body once, including making and closing the parser."""
    return repeated(lambda: _exhaust(case))


def _exhaust(case: Case) -> None:
    deque(case.read(case.chunks), maxlen=0)


def first_event(case: Case) -> float:
    """CPU seconds from making a parser to its first event."""

    def read() -> None:
        for _ in case.read(case.chunks):
            break

    return repeated(read)


def repeated(run: Callable[[], object]) -> float:
    """CPU seconds of one of as many runs as fill the window."""
    runs = 0
    start = time.process_time()
    while True:
        run()
        runs += 1
        spent = time.process_time() - start
        if spent >= WINDOW:
            return spent / runs


def peak(case: Case) -> int:
    """Peak memory in bytes while the body is read and its events are dropped; without the body."""
    tracemalloc.start()
    try:
        _exhaust(case)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def check_readers(cases: Sequence[Case], warn: Progress) -> None:
    """Reads every case of the parsers of others once: who fails or drops something is not fast.

    Args:
        cases: cases that will be measured.
        warn: called with what makes a figure worthless, once for each parser and body.

    Raises:
        ValueError: a parser raises an error.
    """
    warned: set[tuple[str, str]] = set()
    for case in cases:
        reader = case.contestant
        if reader == OURS or (reader, case.name) in warned:
            continue
        try:
            defect = _defect(case)
        except Exception as error:
            raise ValueError(
                f"{reader} fails on {case.name} in chunks of {case.chunking}: "
                f"{type(error).__name__}: {error} (streamlib fuzz {reader} finds a short "
                "body of that kind)"
            ) from error
        if defect is not None:
            warned.add((reader, case.name))
            warn(f"!! {reader} {defect}")


def _defect(case: Case) -> str | None:
    """What makes the speed of a case worthless; None if nothing does."""
    unsplit = [comparable(result) for result in case.read([b"".join(case.chunks)])]
    if not unsplit:
        return f"gives nothing for {case.name}, and its speed says nothing"
    split = [comparable(result) for result in case.read(case.chunks)]
    if difference(unsplit, split) is None:
        return None
    return (
        f"reads {case.name} otherwise in chunks of {case.chunking} than whole, and its speed there "
        f"says nothing: streamlib fuzz {case.contestant} finds a short body of that kind"
    )


def fixed_work() -> None:
    """The yardstick: work like that of a parser, which no change of a parser changes.

    Never change it: times of two versions are compared by it.
    """
    read: list[str] = []
    for frame in FIXED_BODY.split(b"\n\n"):
        if frame.startswith(b"data: "):
            value = json.loads(frame[6:])
            read.append(value["type"] + value["delta"]["text"])


class Yardstick:
    """Times the fixed work between measurements."""

    def __init__(self) -> None:
        self._before = repeated(fixed_work)
        """Seconds of the fixed work, before the next measurement."""

    def beside(self) -> float:
        """Seconds of the fixed work: the mean of before and after the measurement that ended."""
        after = repeated(fixed_work)
        mean = (self._before + after) / 2
        self._before = after
        return mean


class Timings(NamedTuple):
    """What one case takes.

    Attributes:
        spent: seconds in each round.
        yardstick: seconds of the fixed work beside each round.
    """

    spent: list[float]
    yardstick: list[float]


def rounds_of(
    cases: Sequence[Case],
    rounds: int,
    report: Progress = lambda _: None,
    timed: Callable[[Case], float] = seconds,
) -> list[Timings]:
    """What each case takes in each round. The cases take turns, so that noise is shared."""
    times = [Timings([], []) for _ in cases]
    yardstick = Yardstick()
    for _ in range(rounds):
        for taken, case in zip(times, cases, strict=True):
            report(f"{case.name}, {case.chunking}")
            taken.spent.append(timed(case))
            taken.yardstick.append(yardstick.beside())
    return times


def measure(cases: Sequence[Case], rounds: int, report: Progress = lambda _: None) -> list[Figure]:
    """Measures every case in turn, `rounds` times.

    Args:
        cases: cases to measure; those of one body in one chunking follow each other.
        rounds: number of rounds.
        report: called before each measurement.
    """
    figures: list[Figure] = []
    first: Figure | None = None
    times = rounds_of(cases, rounds, report)
    firsts = rounds_of(cases, rounds, timed=first_event)
    for case, complete, until_first in zip(cases, times, firsts, strict=True):
        made = _figures(case, complete, until_first)
        figures += made
        if first is None or (first.workload, first.chunks) != (case.name, case.chunking):
            first = made[0]
        else:
            figures.append(ratio(made[0], first, f"times as long as {first.contestant}"))
    return figures


def _figures(case: Case, complete: Timings, until_first: Timings) -> list[Figure]:
    key = ("feed", case.name, case.chunking, case.contestant)
    spent, fixed = complete
    if case.events:
        nanoseconds = [value / case.events * 1e9 for value in spent]
        made = [
            figure(*key, "time", "ns/event", nanoseconds, fixed),
            figure(*key, "events", "1/s", [case.events / value for value in spent]),
        ]
    else:
        made = [figure(*key, "time", "µs/body", [value * 1e6 for value in spent], fixed)]
    first = [value * 1e6 for value in until_first.spent]
    return [
        *made,
        figure(*key, "bytes", "MB/s", [case.size / 1e6 / value for value in spent]),
        figure(*key, "first event", "µs", first, until_first.yardstick),
        figure(*key, "peak memory", "KB", [peak(case) / 1e3]),
    ]
