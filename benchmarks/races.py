"""Times contestants on the same recorded streams, after comparing what they read.

A reader that fails on a stream, or reads something else, is not timed with it: its times are
compared with ours on the streams that it reads, and the number of these is a figure, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import NamedTuple

from benchmarks.contestants import Contestant, Outcome
from streamlib.testing.bench.corpus import STRATA, Stratum, Stream
from streamlib.testing.bench.feed import frozen_heap
from streamlib.testing.bench.records import Figure, figure, ratio
from streamlib.testing.bench.workloads import chunked, chunking

Progress = Callable[[str], None]

WINDOW = 0.001
"""Minimum CPU seconds of a measurement: fast readers read a stream repeatedly until then."""

ALL = Stratum("all", 1, float("inf"))


class Racer(NamedTuple):
    """A contestant and what it reads.

    Attributes:
        contestant: the contestant.
        readable: numbers of the streams that it reads as we do.
        rounds: for each round, the CPU seconds for each of these streams.
    """

    contestant: Contestant
    readable: list[int]
    rounds: list[dict[int, float]]


def outcome_of(contestant: Contestant, stream: Stream) -> Outcome | None:
    """What it reads of a stream; None if it fails."""
    try:
        found = contestant.read(stream.events)
    except Exception:  # noqa: BLE001  # each library has its own
        return None
    # As JSON, because some libraries have classes of their own for objects.
    arguments = [json.dumps(value, sort_keys=True, default=str) for value in found.arguments]
    return Outcome(found.text, arguments)


def reads_the_same(ours: Outcome | None, theirs: Outcome | None) -> bool:
    """Whether a reader finds our text and our calls; of a hosted tool it may find more."""
    if ours is None or theirs is None:
        return False
    has_calls = all(arguments in theirs.arguments for arguments in ours.arguments)
    return has_calls and theirs.text == ours.text


def entrants(contestants: Iterable[Contestant], streams: Sequence[Stream]) -> list[Racer]:
    """The contestants with the streams that each reads as the first one does."""
    first, *others = contestants
    expected = [outcome_of(first, stream) for stream in streams]
    able = [number for number, outcome in enumerate(expected) if outcome is not None]
    racers = [Racer(first, able, [])]
    for other in others:
        readable: list[int] = []
        for number in able:
            if reads_the_same(expected[number], outcome_of(other, streams[number])):
                readable.append(number)
        racers.append(Racer(other, readable, []))
    return racers


def race(
    streams: Sequence[Stream],
    sizes: Iterable[int],
    contestants: Iterable[Contestant],
    rounds: int,
    report: Progress = lambda _: None,
    *,
    window: float = WINDOW,
) -> list[Figure]:
    """CPU time for an event and for a response in each stratum, and each peer's relative to ours.

    Args:
        streams: streams of one wire.
        sizes: sizes of the chunks to read, in bytes, or `EVENT`.
        contestants: contestants; the first is this library's.
        rounds: number of rounds.
        report: called before each measurement.
        window: CPU seconds of each measurement.
    """
    figures: list[Figure] = []
    racers = entrants(contestants, streams)
    for size in sizes:
        chunks = [chunked(stream.events, size) for stream in streams]
        report(f"{streams[0].wire_api}, {chunking(size)}")
        timed = _timed(racers, chunks, rounds, window)
        for stratum in (ALL, *STRATA):
            figures += _of_stratum(stratum, streams, size, timed)
    return figures


def _timed(
    racers: Sequence[Racer], chunks: Sequence[list[bytes]], rounds: int, window: float
) -> list[Racer]:
    """All racers with their times. They take turns in each round, so that noise is shared."""
    timed = [racer._replace(rounds=[]) for racer in racers]
    # Else every collection walks the modules of all contestants, which slows those most that
    # allocate least.
    with frozen_heap():
        for _ in range(rounds):
            for racer in timed:
                racer.rounds.append({})
            for racer in timed:
                # All streams in turn, because a reader is slower right after another library.
                for number in racer.readable:
                    racer.rounds[-1][number] = racer.contestant.seconds(chunks[number], window)
    return timed


def _of_stratum(
    stratum: Stratum, streams: Sequence[Stream], size: int, racers: Sequence[Racer]
) -> list[Figure]:
    numbers: list[int] = []
    for number, stream in enumerate(streams):
        if stratum.least <= len(stream.events) <= stratum.most:
            numbers.append(number)
    key = ("recordings", f"{streams[0].wire_api}, {stratum.name}", chunking(size))
    ours = racers[0]
    figures: list[Figure] = []
    for racer in racers:
        read = [number for number in numbers if number in racer.readable]
        if not read:
            continue
        events = sum(len(streams[number].events) for number in read)
        named = (*key, racer.contestant.name)
        event = figure(*named, "event", "µs", _totals(racer, read, events))
        figures += [
            figure(*named, "streams", "count", [len(read)]),
            event,
            figure(*named, "response", "µs", _totals(racer, read, len(read))),
        ]
        if racer is not ours:
            # Ours on the same streams, in the same rounds.
            own = figure(*key, ours.contestant.name, "event", "µs", _totals(ours, read, events))
            figures.append(ratio(event, own))
    return figures


def _totals(racer: Racer, numbers: Sequence[int], divisor: int) -> list[float]:
    """For each round, the microseconds of these streams, divided."""
    totals: list[float] = []
    for times in racer.rounds:
        totals.append(sum(times[number] for number in numbers) / divisor * 1e6)
    return totals


def versions(contestants: Iterable[Contestant]) -> dict[str, str]:
    """The versions of the distributions that take part."""
    distributions = {contestant.distribution for contestant in contestants} - {""}
    distributions.add("msgspec")
    return {name: version(name) for name in sorted(distributions)}
