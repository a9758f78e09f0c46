"""Measures what the speed tests check: `python -m lab.speeds` prints it as one JSON object.

In its own process, because the tests before it leave a large heap, and because coverage slows only
the library's own Python.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

import anyio

from benchmarks.contestants import Contestant, ours
from benchmarks.framings import FRAMINGS, SPLITTER
from benchmarks.races import entrants
from benchmarks.sdks import PEERS
from lab.speeds import short
from streamlib.testing.bench import growth
from streamlib.testing.bench.corpus import Stream, files_in, load
from streamlib.testing.bench.feed import seconds
from streamlib.testing.bench.workloads import WORKLOADS
from streamlib.wires.encoders import encoder
from streamlib_parsers import ResponseEvent, parser
from tests.support.shared import ROOT

ROUNDS: Final = 2
ATTEMPTS: Final = 9
"""How often the rounds are repeated until a limit holds: on a busy machine some are too slow."""

DOUBLED: Final = 2.3
"""How many times longer twice the input may take."""


ABOVE_SPLITTER: Final = {
    "messages": 6.5,
    "responses": 8.5,
    "chat": 6.0,
    "gemini": 13.0,
    "converse": 17.0,
    "ollama": 8.5,
}
"""Wire -> how many times as long as the six-line splitter the parser may take, on the recordings of
`tests/recordings`: some are 5 events long, so that the start and the end of a response decide."""

SDKS: Final = {"messages": 2.7, "chat": 7.0, "responses": 12.0, "converse": 1.2}
"""Wire -> how many times as long as the parser its official SDK must take, on the same."""

ABOVE_PARSER: Final = 6.2
"""How many times as long as its parser a short response may take, above a transport that costs
nothing."""

ABOVE_MESSAGES: Final = {"converse": 1.3, "invoke": 1.8}
"""Wire -> how many times the Messages encoder its encoder may take."""

GROWING: Final = tuple(name for name in WORKLOADS if name != "huge-line")
"""A line of megabytes is limited by the system's memory: test_sse_limits.py measures that."""


class Measured(NamedTuple):
    """A ratio, and how many attempts it is the best of."""

    ratio: float
    attempts: int


@cache
def recorded() -> list[Stream]:
    """The recorded streams."""
    return load(files_in(ROOT / "tests" / "recordings"))[0]


def above_splitter(wire: str) -> Measured:
    """How many times as long as the splitter the parser takes, both at their best."""
    [splitter] = [peer for peer in FRAMINGS if peer.wire == wire and peer.name == SPLITTER]
    return above(splitter, ABOVE_SPLITTER[wire])


def above_sdk(wire: str) -> Measured:
    """The share of the time of the official SDK that the parser takes, both at their best."""
    sdk = next(peer for peer in PEERS if peer.wire == wire)
    return above(sdk, 1 / SDKS[wire])


def above(peer: Contestant, limit: float) -> Measured:
    """How many times as long as a peer the parser takes, on the recordings that both read."""
    streams = [stream for stream in recorded() if stream.wire_api == peer.wire]
    own, other = entrants([ours(peer.wire), peer], streams)

    def reading(contestant: Contestant) -> Callable[[], float]:
        events = [streams[number].events for number in other.readable]
        return lambda: sum(contestant.seconds(chunks, 0) for chunks in events)

    return least_ratio(reading(own.contestant), reading(peer), limit)


def above_parser() -> Measured:
    """How many times as long as its parser a short response takes, in the best of some attempts."""
    least = float("inf")
    attempts = 0
    while least > ABOVE_PARSER and attempts < ATTEMPTS:
        attempts += 1
        parts = anyio.run(short.measure)
        least = min(least, parts["response"] / parts["parser"])
    return Measured(least, attempts)


def doubling(name: str) -> Measured:
    """How many times longer twice the input takes: the least of some attempts.

    A busy machine makes some of them too slow, quadratic code (4.0) all.
    """
    workload = WORKLOADS[name]
    single, double = growth.doubled(workload, workload.chunks[-1], scale=1)
    least = float("inf")
    attempts = 0
    while least > DOUBLED and attempts < ATTEMPTS:
        attempts += 1
        single_times: list[float] = []
        double_times: list[float] = []
        for _ in range(ROUNDS + 1):
            single_times.append(seconds(single))
            double_times.append(seconds(double))
        best, _ = growth.factor(single, double, single_times, double_times)
        least = min(least, best)
    return Measured(least, attempts)


def above_messages(wire: str) -> Measured:
    """How many times the Messages encoder an encoder takes for the same events."""
    parse = parser("messages")
    events: list[ResponseEvent] = []
    for chunk in WORKLOADS["messages"].events():
        events += parse.feed(chunk)
    events += parse.close()

    def encode(name: str) -> float:
        start = time.process_time()
        encoding = encoder(name)
        for event in events:
            encoding.feed(event)
        return time.process_time() - start

    limit = ABOVE_MESSAGES[wire]
    return least_ratio(lambda: encode(wire), lambda: encode("messages"), limit)


def least_ratio(first: Callable[[], float], second: Callable[[], float], limit: float) -> Measured:
    """The best time of `first` relative to that of `second`; stops once it is below the limit."""
    best_first = best_second = float("inf")
    attempts = 0
    while attempts < ATTEMPTS:
        attempts += 1
        for _ in range(ROUNDS + 1):
            best_first = min(best_first, first())
            best_second = min(best_second, second())
        if best_first / best_second <= limit:
            break
    return Measured(best_first / best_second, attempts)
