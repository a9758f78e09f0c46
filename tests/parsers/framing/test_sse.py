"""SSE framing: WHATWG to the byte, the same in every partition, bounded, linear."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, takewhile
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamlib_parsers.framing import Frame
from streamlib_parsers.framing.sse import MAX_RETRY, SSEFraming
from streamlib_parsers.limits import LIMITS, MIB, Limits
from tests.support.metrics import figure
from tests.support.partitions import byte_by_byte, cut_at, cuts, every_single_cut, random_partitions
from tests.support.shared import CORPUS, Recording, each_vector, recordings, require, vectors

BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Outcome:
    """All results of one run: after `feed` (the standard), then what `close` adds."""

    strict: list[Frame]
    tail: list[Frame]
    last_event_id: str | None
    retry: int | None
    blank: bool
    failed: bool

    @property
    def tolerant(self) -> list[Frame]:
        return self.strict + self.tail


def run(chunks: Iterable[bytes], limits: Limits = LIMITS) -> Outcome:
    framing = SSEFraming(limits)
    strict = [frame for chunk in chunks for frame in framing.feed(chunk)]
    last_event_id, retry = framing.last_event_id, framing.retry
    tail = framing.close()
    failure = framing.failure
    assert framing.close() == []
    if failure is not None:
        assert (failure.info.kind, failure.info.code) == ("limit_exceeded", "event_bytes")
        assert framing.feed(b"data: late\n\n") == []
        assert framing.failure is failure
    return Outcome(strict, tail, last_event_id, retry, framing.blank, failure is not None)


def oracle(body: bytes, limit: int = LIMITS.event_bytes) -> Outcome:
    """Reads the body as the standard does, all at once and block by block.

    Slow, and by other means than the framing.
    """
    *lines, rest = re.split(rb"\r\n|\r|\n", body.removeprefix(BOM))
    *ended, pending = blocks_of(lines)
    blocks = [*ended, [*pending, rest]]
    complete = list(takewhile(lambda block: fits(block, limit), blocks))
    ids = list[str | None]([None])
    for block in complete:
        ids_of_block = [text(value) for value in values(block, b"id") if b"\0" not in value]
        ids.append(ids_of_block[-1] if ids_of_block else ids[-1])
    frames = [read_block(block, ident) for block, ident in zip(complete, ids[1:], strict=True)]
    strict, tail = (
        [frame for frame in part if frame] for part in (frames[: len(ended)], frames[len(ended) :])
    )
    delays = [int(value) for value in values(lines, b"retry") if re.fullmatch(rb"[0-9]+", value)]
    retry = min(delays[-1], MAX_RETRY) if delays else None
    blank = all(line.startswith(b":") for line in [*lines, rest] if line)
    return Outcome(
        strict, tail, ids[: len(ended) + 1][-1], retry, blank, len(complete) < len(blocks)
    )


def blocks_of(lines: list[bytes]) -> list[list[bytes]]:
    blocks = list[list[bytes]]([[]])
    for line in lines:
        if line:
            blocks[-1].append(line)
        else:
            blocks.append([])
    return blocks


def read_block(block: list[bytes], ident: str | None) -> Frame | None:
    data, names, stray = values(block, b"data"), values(block, b"event"), b"\n".join(strays(block))
    if data:
        return Frame(text(names[-1]) or None if names else None, b"\n".join(data), ident, stray)
    return Frame(None, None, ident, stray) if stray else None


def values(lines: list[bytes], name: bytes) -> list[bytes]:
    matches = (
        re.fullmatch(re.escape(name) + rb"(?::[ ]?(.*))?", line, re.DOTALL) for line in lines
    )
    return [match[1] or b"" for match in matches if match]


def strays(lines: list[bytes]) -> list[bytes]:
    return [
        line
        for line in lines
        if not re.match(rb"(data|event|id|retry)?:|(data|event|id|retry)?\Z", line)
    ]


def fits(block: list[bytes], limit: int) -> bool:
    buffered = len(b"\n".join(values(block, b"data"))) + len(b"\n".join(strays(block)))
    return max(buffered, *map(len, block), 0) <= limit


def text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def events(frames: Iterable[Frame]) -> list[dict[str, str]]:
    """Returns frames as the vectors have events; frames that only carry strays are no events."""
    return [
        {
            "type": frame.event or "message",
            "data": frame.data.decode("utf-8", "replace"),
            "id": frame.id or "",
        }
        for frame in frames
        if frame.data is not None
    ]


def report(figures: str) -> None:
    """Prints figures of this run; `pytest -rP` shows them."""
    sys.stdout.write(figures + "\n")


def double_splits(body: bytes) -> Iterator[list[bytes]]:
    return (
        cut_at(body, offsets) for offsets in combinations_with_replacement(range(len(body) + 1), 2)
    )


# ---------------------------------------------------------------- the standard


@each_vector("sse_vectors")
@pytest.mark.parametrize(
    "chunks", [lambda body: [body], byte_by_byte], ids=["one-chunk", "byte-by-byte"]
)
def test_vectors_hold_strict_and_tolerant(
    vector: dict[str, Any], chunks: Callable[[bytes], list[bytes]]
) -> None:
    outcome = run(chunks(base64.b64decode(vector["raw_b64"])))
    assert events(outcome.strict) == vector["strict"]
    assert events(outcome.tolerant) == vector["tolerant"]
    assert (outcome.last_event_id or "") == vector["last_event_id"]
    assert outcome.retry == (None if vector["retry"] is None else min(vector["retry"], MAX_RETRY))
    figure(f"vector/{vector['id']}")


def test_no_partition_changes_a_vector() -> None:
    bodies = [base64.b64decode(vector["raw_b64"]) for vector in vectors("sse_vectors")["vectors"]]
    runs = different = 0
    for body in bodies:
        expected = run([body])
        several = double_splits(body) if len(body) <= 130 else random_partitions(body, 30)
        for chunks in [*every_single_cut(body), byte_by_byte(body), *several]:
            runs += 1
            different += run(chunks) != expected
    report(f"{len(bodies)} vectors, {runs} split runs, {different} differences")
    figure("split runs", runs)
    assert different == 0
    assert runs > 60_000


def sse_bodies() -> list[Recording]:
    return [
        recording
        for folder in sorted((require(CORPUS) / "data").iterdir())
        if any(folder.glob("*.sse"))
        for recording in recordings(folder.name, [".sse"])
    ]


def test_recorded_bodies_have_the_expected_events() -> None:
    agreed = [recording for recording in sse_bodies() if "framing" in recording.expected]
    wrong = [
        recording.path.name
        for recording in agreed
        if framing_of(run([recording.body]).strict) != summary(recording.expected["framing"])
    ]
    report(f"{len(agreed)} recorded bodies, {len(wrong)} differ")
    assert agreed
    assert wrong == []


def framing_of(frames: list[Frame]) -> tuple[int, str]:
    rows = [
        [frame.event or "", frame.data.decode("utf-8", "replace"), frame.id]
        for frame in frames
        if frame.data is not None
    ]
    return len(rows), hashlib.sha256(
        json.dumps(rows, separators=(",", ":"), ensure_ascii=False).encode()
    ).hexdigest()


def summary(framing: dict[str, Any]) -> tuple[int, str]:
    return framing["n_events"], framing["events_sha256"]


def test_no_partition_changes_a_recorded_body() -> None:
    for recording in sse_bodies():
        expected = run([recording.body])
        assert (
            expected
            == run(byte_by_byte(recording.body, 61))
            == run(next(random_partitions(recording.body, 1)))
        ), recording.path.name


FRAGMENTS: Final = st.one_of(
    st.sampled_from(
        [
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b": ",
            b":",
            b" ",
            b"data: ",
            b"data:",
            b"data",
            b"event: ",
            b"event:x",
            b"id: ",
            b"id:",
        ]
    ),
    st.sampled_from(
        [
            b"event: ping\ndata: {}\n\n",
            b"data: {}\n\n",
            b"data: a\r\n\r\n",
            b"id: 7\ndata\n\n",
            b": ping\n\n",
            b"error: {}\n",
            b"[DONE]",
        ]
    ),
    st.sampled_from(
        [
            BOM,
            BOM[:1],
            BOM[:2],
            b"\0",
            b"\xff",
            b"\xf0\x9f",
            "😀".encode(),
            "\u2028".encode(),
            b"\x0b\x0c\x1c\x85",
        ]
    ),
    st.builds(
        lambda number: b"retry:%b" % number,
        st.sampled_from(
            [b"5", b" 10", b"+5", b"1_0", b"", "\u0663".encode(), b"9" * 30, b"0" * 40 + b"7"]
        ),
    ),
    st.binary(max_size=6),
)
BODIES: Final = st.lists(FRAGMENTS, max_size=14).map(b"".join)


@settings(max_examples=1_000)
@given(BODIES, st.data())
@example(BOM + BOM + b"data: x\n\n", None)
def test_any_body_in_any_partition_reads_as_the_standard(
    body: bytes, data: st.DataObject | None
) -> None:
    expected = oracle(body)
    assert run([body]) == expected
    assert run(byte_by_byte(body)) == expected
    if data is not None:
        assert run(data.draw(cuts(body, 6))) == expected


ALIKE: Final = st.sampled_from(
    [
        b"event: a\ndata: {}\n\n",
        b"event: a\r\ndata: {}\r\n\r\n",
        b"data: {}\n\n",
        b"event:  a\r\ndata: \n\n",
    ]
)
BETWEEN: Final = st.sampled_from(
    [
        b": c\n\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"id: 7\n",
        b"stray\n",
        b"data: x\n",
        b"event: b\n",
        b"data: 1\rdata: 2\n\n",
        b"data: a\r\n",
    ]
)


@settings(max_examples=200)
@given(st.lists(st.tuples(ALIKE, st.integers(1, 4), BETWEEN | st.just(b"")), max_size=8), st.data())
@example([(b"event: a\ndata: {}\n\n", 3, b"data: x\n"), (b"event: a\ndata: {}\n\n", 2, b"")], None)
def test_fast_path_reads_as_the_standard(
    runs: list[tuple[bytes, int, bytes]], data: st.DataObject | None
) -> None:
    body = b"".join(event * times + between for event, times, between in runs)
    expected = oracle(body)
    assert run([body]) == run(byte_by_byte(body)) == expected
    assert (
        run([event for event, times, between in runs for event in ([event] * times + [between])])
        == expected
    )
    if data is not None:
        assert run(data.draw(cuts(body, 6))) == expected


def test_carriage_return_emits_the_event_at_once() -> None:
    framing = SSEFraming()
    assert framing.feed(b"data: 1\r\r") == [Frame(None, b"1")]
    assert framing.feed(b"\n") == []
    assert framing.feed(b"data: 2\r\n\r") == [Frame(None, b"2")]
    assert framing.feed(b"\ndata: 3\n\r") == [Frame(None, b"3")]


def test_empty_chunks_do_not_split_a_crlf() -> None:
    assert run([b"", b"data: 1\r", b"", b"\ndata: 2\r\n", b"", b"\r\n"]).strict == [
        Frame(None, b"1\n2")
    ]


def test_unfinished_byte_order_mark_is_text() -> None:
    assert run([b"\xef", b"\xbb", b"data: x\n\n"]).strict == [
        Frame(None, None, None, b"\xef\xbbdata: x")
    ]
    assert run([b"\xef", b"\xbb"]).tolerant == [Frame(None, None, None, b"\xef\xbb")]


def test_event_name_does_not_outlive_a_block_without_data() -> None:
    assert run([b"event: a\ndata: 1\n\nevent: a\n\ndata: 2\n\n"]).strict == [
        Frame("a", b"1"),
        Frame(None, b"2"),
    ]


@pytest.mark.parametrize("line", [b"event", b"event:", b"event: ", b"event: a\nevent:"])
def test_empty_event_name_is_none(line: bytes) -> None:
    assert run([line + b"\ndata: 1\n\n" + line + b"\ndata: 2\n\n"]).strict == [
        Frame(None, b"1"),
        Frame(None, b"2"),
    ]


def test_data_stays_bytes_while_name_and_id_are_decoded() -> None:
    assert run([b"event: \xff\nid: \xf0\x9f\ndata: \xff\n\n"]).strict == [
        Frame("\ufffd", b"\xff", "\ufffd")
    ]


def test_id_applies_at_the_end_of_its_block_and_can_be_reset() -> None:
    framing = SSEFraming()
    framing.feed(b"id: 1\n")
    assert framing.last_event_id is None
    framing.feed(b"\n")
    assert framing.last_event_id == "1"
    assert framing.feed(b"data: a\n\nid\ndata: b\n\ndata: c\n\n") == [
        Frame(None, b"a", "1"),
        Frame(None, b"b", ""),
        Frame(None, b"c", ""),
    ]


@pytest.mark.parametrize(
    ("value", "retry"),
    [
        (b"0", 0),
        (b"03000", 3000),
        (b"%d" % MAX_RETRY, MAX_RETRY),
        (b"%d" % (MAX_RETRY + 1), MAX_RETRY),
        (b"10000000000", MAX_RETRY),
        (b"9" * 100_000, MAX_RETRY),
        (b"0" * 100_000 + b"9", 9),
        (b"+5", None),
        (b"-5", None),
        (b"1_000", None),
        (b" 5", 5),
        (b"  5", None),
        (b"5 ", None),
        (b"", None),
        ("\u0663".encode(), None),
        ("\uff13".encode(), None),
    ],
)
def test_retry_is_ascii_digits_in_milliseconds_and_clamped(value: bytes, retry: int | None) -> None:
    assert run([b"retry:" + value + b"\n"]).retry == retry


def test_id_with_a_null_byte_is_ignored() -> None:
    assert run([b"id: 7\ndata: x\n\nid: 8\0\ndata: y\n\n"]).last_event_id == "7"


def test_unfinished_event_is_emitted_only_by_close() -> None:
    outcome = run([b"id: 7\nevent: e\ndata: x"])
    assert outcome.strict == []
    assert outcome.last_event_id is None
    assert outcome.tail == [Frame("e", b"x", "7")]


def test_close_emits_no_event_without_data() -> None:
    assert run([b"event: e\nid: 7\n"]).tail == []


@pytest.mark.parametrize("body", [b"", BOM, b"\n\r\n\r", b": ping\n\n: ping", b":"])
def test_comments_and_empty_lines_are_blank(body: bytes) -> None:
    assert run([body]).blank
    assert run(byte_by_byte(body)).blank


@pytest.mark.parametrize(
    "body",
    [
        b"data: x\n\n",
        b"data",
        b"id: 1\n",
        b"retry: x\n",
        b"<html>\n",
        b": ping\n\n{}",
        b" ",
        b"event:\n",
    ],
)
def test_any_other_line_is_not_blank(body: bytes) -> None:
    assert not run([body]).blank


# ---------------------------------------------------------------- stray lines


def test_stray_line_only_travels_with_the_next_event() -> None:
    body = b'data: 1\n\nevent: e\nerror: {"code": 429}\ndata: 2\n: hi\n{}\n\ndata: 3\n\n'
    assert run([body]).strict == [
        Frame(None, b"1"),
        Frame("e", b"2", None, b'error: {"code": 429}\n{}'),
        Frame(None, b"3"),
    ]


def test_block_of_stray_lines_is_a_frame_without_data() -> None:
    body = b'id: 1\ndata: 1\n\n{\n  "error": {"code": 503}\n}\r\n\r\ndata: 2\n\n'
    assert run([body]).strict == [
        Frame(None, b"1", "1"),
        Frame(None, None, "1", b'{\n  "error": {"code": 503}\n}'),
        Frame(None, b"2", "1"),
    ]


def test_stray_lines_at_the_end_are_emitted_by_close() -> None:
    assert run([b'{\n "error": 1\n}']).tolerant == [Frame(None, None, None, b'{\n "error": 1\n}')]
    assert run([b"data: 1\nerror: x"]).tail == [Frame(None, b"1", None, b"error: x")]


def test_stray_lines_of_a_block_without_data_are_not_delayed() -> None:
    assert run([b"event: error\n{}\n\ndata: 1\n\n"]).strict == [
        Frame(None, None, None, b"{}"),
        Frame(None, b"1"),
    ]


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from([b"data: 1", b"event: e", b"", b": c", b"id: 7", b"retry: 1"])),
    st.data(),
)
def test_stray_lines_never_change_the_events(lines: list[bytes], data: st.DataObject) -> None:
    strayed = list(lines)
    for index in data.draw(st.lists(st.integers(0, len(lines)), max_size=5)):
        strayed.insert(
            index, data.draw(st.sampled_from([b"error: {}", b"Data: x", b" data: x", b"{", b"dat"]))
        )
    plain, mixed = (run([b"".join(line + b"\n" for line in body)]) for body in (lines, strayed))
    assert events(plain.tolerant) == events(mixed.tolerant)


# ---------------------------------------------------------------- limits


@settings(max_examples=1_000)
@given(BODIES, st.integers(4, 24), st.data())
def test_limit_fails_at_the_same_byte_in_any_partition(
    body: bytes, limit: int, data: st.DataObject
) -> None:
    limits = Limits(event_bytes=limit)
    expected = oracle(body, limit)
    for chunks in ([body], byte_by_byte(body), data.draw(cuts(body, 6))):
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
    for chunks in [[body], byte_by_byte(body), *every_single_cut(body)]:
        outcome = run(chunks, limits)
        assert outcome.failed
        assert outcome.tolerant == [Frame(None, b"1"), Frame("e", b"2")]


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
    assert peak <= 1.2 * limit + 256 * 1024


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
chunk, count = ast.literal_eval(sys.argv[1]), int(sys.argv[2])
once, twice = ([b"data: ", *[chunk] * (times * count), bytes([10, 10])] for times in (1, 2))
# By turns, and the median of the ratios. Three attempts at most: a busy machine distorts one,
# quadratic code (4.0) fails them all.
tries = (statistics.median(seconds(twice) / seconds(once) for _ in range(7)) for _ in range(3))
print(next((ratio for ratio in tries if ratio <= 2.3), 4.0))
"""
"""A program that prints how many times longer twice the chunks take."""


def environment() -> dict[str, str]:
    """Returns this process's environment, with the packages of this checkout importable."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.parametrize(
    ("chunk", "count"),
    [
        # From 32 MiB on, glibc requests every block from the system: a step in cost, so both sizes
        # must be on one side of it.
        (b"x" * 1024, 32 * 1024),
        (b"x", 100_000),
        (b"data: 0123456\n", 20_000),
        (b"\r", 30_000),
        (b"e: \n", 20_000),
        (b"data: {}\n\nda" * 100, 200),
    ],
    ids=[
        "one line of 32 MiB",
        "bytes",
        "one event of many lines",
        "blank lines",
        "stray lines",
        "events split anywhere",
    ],
)
def test_twice_the_input_takes_about_twice_the_time(chunk: bytes, count: int) -> None:
    # In a process of its own: memory that other tests left behind changes the cost of a fresh page,
    # and large lines cost little else.
    run = subprocess.run(
        [sys.executable, "-c", GROWTH, repr(chunk), str(count)],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    ratio = float(run.stdout)
    report(f"{count} chunks of {len(chunk)}, twice as many: x{ratio:.2f}")
    assert ratio <= 2.3
