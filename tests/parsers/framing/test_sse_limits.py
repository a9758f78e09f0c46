"""SSE framing: limits, memory and time."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamlib_parsers.framing import Frame
from streamlib_parsers.framing.sse import SSEFraming
from streamlib_parsers.limits import LIMITS, MIB, Limits
from tests.support.partitions import byte_by_byte, every_single_split, partitions
from tests.support.sse_oracle import BODIES, oracle, report, run
from tests.support.thorough import THOROUGH

# ---------------------------------------------------------------- limits


@settings(max_examples=1_000 if THOROUGH else 300)
@given(BODIES, st.integers(4, 24), st.data())
def test_limit_fails_at_the_same_byte_in_any_partition(
    body: bytes, limit: int, data: st.DataObject
) -> None:
    limits = Limits(event_bytes=limit)
    expected = oracle(body, limit)
    for chunks in ([body], byte_by_byte(body), data.draw(partitions(body, 6))):
        outcome = run(chunks, limits)
        assert (outcome.tolerant, outcome.failed) == (expected.tolerant, expected.failed)


@pytest.mark.parametrize(
    "block",
    [
        b"data: " + b"x" * 95,
        b": " + b"x" * 99,
        b"x" * 101,
        b"event: " + b"x" * 94,
        b"\n".join([b"data: " + b"x" * 33] * 3),
        b"data\n" * 102,
        b"x\n" * 51,
        b"data: " + b"x" * 50 + b"\nstray " + b"x" * 45,
        b"stray " + b"x" * 45 + b"\ndata: " + b"x" * 50,
    ],
    ids=[
        "data",
        "comment",
        "stray",
        "name",
        "joined data",
        "empty data lines",
        "joined stray",
        "data and stray",
        "stray and data",
    ],
)
def test_block_over_the_limit_fails_after_earlier_frames(
    block: bytes,
) -> None:
    limits = Limits(event_bytes=100)
    body = b"data: 1\n\nevent: e\ndata: 2\n\n" + block + b"\n\ndata: 3\n\n"
    for chunks in [[body], byte_by_byte(body), *every_single_split(body)]:
        outcome = run(chunks, limits)
        assert outcome.failed
        assert outcome.tolerant == [Frame(None, b"1"), Frame("e", b"2")]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_large_event_fails_behind_usual_ones_of_its_chunk(line_end: bytes) -> None:
    usual, large = b"event: a\ndata: 1\n\n", b"event: a\ndata: " + b"x" * 95 + b"\n\n"
    body = (usual * 30 + large + usual * 30).replace(b"\n", line_end)
    for chunks in ([body], byte_by_byte(body, 16), byte_by_byte(body, 300)):
        outcome = run(chunks, Limits(event_bytes=100))
        assert outcome.failed
        assert outcome.tolerant == [Frame("a", b"1")] * 30


@pytest.mark.parametrize(
    "block",
    [
        b"data: " + b"x" * 94,
        b"\n".join([b"data:" + b"x" * 49] * 2),
        b"data: " + b"x" * 49 + b"\nstray " + b"x" * 45,
    ],
)
def test_block_as_long_as_the_limit_is_complete(block: bytes) -> None:
    outcome = run([block + b"\r\n\r\n", b"data: 2\n\n"], Limits(event_bytes=100))
    assert not outcome.failed
    assert [frame.data is not None for frame in outcome.strict] == [True, True]


def test_line_over_the_limit_fails_before_its_end() -> None:
    framing = SSEFraming(Limits(event_bytes=100))
    assert framing.feed(b"data: 1\n\n" + b"x" * 101) == [Frame(None, b"1")]
    assert framing.failure is not None


def test_unfinished_event_over_the_limit_fails_in_close() -> None:
    body = b"data: " + b"x" * 60 + b"\ndata: " + b"x" * 60
    framing = SSEFraming(Limits(event_bytes=100))
    assert framing.feed(body) == []
    assert framing.failure is None
    assert framing.close() == []
    assert framing.failure is not None


OF_THE_RUNNER: Final = 640 * 1024
"""What a thread of the test runner may take meanwhile: the numbers of the next tests, for example.
All the input of the smallest case is more than twice as much."""


def peak_of(chunks: Iterable[bytes], limits: Limits) -> tuple[int, SSEFraming, int]:
    """Feeds the chunks; returns the peak of traced bytes, the framing and the number of frames."""
    framing = SSEFraming(limits)
    tracemalloc.start()
    count = sum(len(framing.feed(chunk)) for chunk in chunks)
    buffered, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert buffered < 128 * 1024  # complete or failed: nothing stays buffered
    return peak, framing, count


@pytest.mark.parametrize(
    ("chunk", "limit"),
    [
        (b"x" * 65536, 8 * MIB),
        (b"xy", MIB // 4),
        (b"data: ab\n" * 1000, MIB // 4),
        (b"data\n" * 1000, MIB // 4),
        (b"stray\n" * 1000, MIB // 4),
    ],
    ids=["line", "tiny chunks", "data lines", "empty data lines", "stray lines"],
)
def test_endless_event_buffers_little_more_than_the_limit(chunk: bytes, limit: int) -> None:
    peak, framing, _ = peak_of(
        (chunk for _ in range(6 * limit // len(chunk))), Limits(event_bytes=limit)
    )
    assert framing.failure is not None
    assert peak <= 1.2 * limit + OF_THE_RUNNER


def test_line_as_long_as_the_limit_is_buffered_at_most_twice() -> None:
    limit = 8 * MIB
    body = b"data: " + b"x" * (limit - 6) + b"\n\n"
    peak, framing, count = peak_of(byte_by_byte(body, 1024), Limits(event_bytes=limit))
    assert (framing.failure, count) == (None, 1)
    assert (
        peak - len(body) // 1024 * 1100 <= 2 * limit + 2 * MIB
    )  # the chunks themselves are traced too


def test_endless_small_events_do_not_grow_memory() -> None:
    chunks = (
        b"event: name-%d\nid: %d\ndata: {}\n\nretry: %d\nevent: alone\n: ping\n\n" % (n, n, n)
        for n in range(20_000)
    )
    peak, framing, count = peak_of(chunks, LIMITS)
    assert (framing.failure, count) == (None, 20_000)
    assert peak < 256 * 1024


def test_invented_event_names_do_not_grow_memory() -> None:
    chunks = (b"event: %064d\ndata: {}\n\n" % number * 2 for number in range(10_000))
    peak, framing, count = peak_of(chunks, LIMITS)
    assert (framing.failure, count) == (None, 20_000)
    assert peak < 128 * 1024


def test_long_event_names_are_not_cached() -> None:
    _, _, count = peak_of(
        (b"event: %d%b\ndata: {}\n\n" % (n, b"x" * 10_000) for n in range(60)), LIMITS
    )
    assert count == 60


# ---------------------------------------------------------------- time

BIG: Final = Limits(event_bytes=96 * MIB)


GROWTH = """
import ast, statistics, sys, time
from streamlib_parsers.framing.sse import SSEFraming
from streamlib_parsers.limits import Limits
def seconds(chunks):
    framing = SSEFraming(Limits(event_bytes=1 << 30))
    start = time.process_time()
    for chunk in chunks:
        framing.feed(chunk)
    framing.close()
    assert framing.failure is None
    return time.process_time() - start
for chunk, count in ast.literal_eval(sys.argv[1]):
    once, twice = ([b"data: ", *[chunk] * (times * count), bytes([10, 10])] for times in (1, 2))
    # By turns, and the median of the ratios. Five tries at most: a busy machine distorts one,
    # quadratic code (4.0) fails them all.
    tries = []
    while not tries or (tries[-1] > 2.3 and len(tries) < 5):
        tries.append(statistics.median(seconds(twice) / seconds(once) for _ in range(3)))
    print(min(tries), len(tries))
"""
"""A program that prints for each input how many times longer twice the chunks take, and the number
of tries that this is the least of."""


def environment() -> dict[str, str]:
    """Returns this process's environment, with the packages of this checkout importable."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


GROWING: Final = {
    # From 32 MiB on, glibc requests every block from the system: a step in cost, so both sizes
    # must be on one side of it.
    "one line of 32 MiB": (b"x" * 1024, 32 * 1024),
    "bytes": (b"x", 100_000),
    "one event of many lines": (b"data: 0123456\n", 20_000),
    "blank lines": (b"\r", 30_000),
    "stray lines": (b"e: \n", 20_000),
    "events split anywhere": (b"data: {}\n\nda" * 100, 200),
}
"""Chunk and count of each input."""


@pytest.mark.timing
def test_twice_the_input_takes_about_twice_the_time() -> None:
    # In a process of their own: memory that other tests left behind changes the cost of a fresh
    # page, and large lines cost little else.
    run = subprocess.run(
        [sys.executable, "-c", GROWTH, repr([*GROWING.values()])],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    ratios: dict[str, float] = {}
    for name, line in zip(GROWING, run.stdout.splitlines(), strict=True):
        ratio, tries = line.split()
        ratios[name] = float(ratio)
        report(f"{name}, twice as many: x{ratios[name]:.2f}, tries: {tries}")
    assert {name: ratio for name, ratio in ratios.items() if ratio > 2.3} == {}
