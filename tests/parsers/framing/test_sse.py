"""SSE framing: WHATWG to the byte, the same in every partition, bounded, linear."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations_with_replacement
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamlib_parsers.build_kind import compiled
from streamlib_parsers.framing import Frame
from streamlib_parsers.framing.sse import MAX_RETRY, SSEFraming, _has_few_lines, _name_in
from tests.support.cases import each_case
from tests.support.metrics import figure
from tests.support.partitions import (
    byte_by_byte,
    every_single_split,
    partitions,
    random_partitions,
    split_at,
)
from tests.support.shared import CORPUS, Recording, each_vector, recordings, require, vectors
from tests.support.sse_oracle import BODIES, BOM, oracle, report, run
from tests.support.thorough import THOROUGH


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


def double_splits(body: bytes) -> Iterator[list[bytes]]:
    return (
        split_at(body, offsets)
        for offsets in combinations_with_replacement(range(len(body) + 1), 2)
    )


# ---------------------------------------------------------------- the standard


@each_vector("sse_vectors")
@each_case("chunks", [lambda body: [body], byte_by_byte])
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
        for chunks in [*every_single_split(body), byte_by_byte(body), *several]:
            runs += 1
            different += run(chunks) != expected
    report(f"{len(bodies)} vectors, {runs} split runs, {different} differences")
    figure("partitions", runs)
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


@settings(max_examples=1_000 if THOROUGH else 300)
@given(BODIES, st.data())
@example(BOM + BOM + b"data: x\n\n", None)
def test_any_body_in_any_partition_reads_as_the_standard(
    body: bytes, data: st.DataObject | None
) -> None:
    expected = oracle(body)
    assert run([body]) == expected
    assert run(byte_by_byte(body)) == expected
    if data is not None:
        assert run(data.draw(partitions(body, 6))) == expected


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
        assert run(data.draw(partitions(body, 6))) == expected


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


@each_case(
    "value, retry",
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


@each_case(
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


@each_case(
    "chunk, expected",
    [
        (b"data: a\n\n", (None, b"a")),
        (b"event: x\ndata: a\n\n", ("x", b"a")),
        (b"event:x\ndata: a\n\n", ("x", b"a")),
        (b"event: \ndata: a\n\n", (None, b"a")),
        (b"event: x\ndata: \n\n", ("x", b"")),
        (b"event: " + b"x" * 129 + b"\ndata: a\n\n", None),
        (b"event: x\ndata: " + b"a" * 5000 + b"\n\n", ("x", b"a" * 5000)),
        (b"event: x\r\ndata: a\r\n\r\n", ("x", b"a")),
        (b"event: x\ndata: a\r\n\n", ("x", b"a")),
        (b"event: x\r\ndata: a\n\r\n", ("x", b"a")),
        (b"event: x\ndata: a\r\r\n\n", None),
        (b"data: a\r\r\n\r\n", None),
        (b"\ndata: a\n\n", None),
        (b"data: a\n\r", None),
        (b"event: a\n\n", None),
        (b"event: data: a\n\n", None),
        (b"\xef\xbb\xbfdata: a\n\n", None),
        (b"event: x\rdata: a\r\r", None),
        (b"event: x\ndata: a\rb\n\n", None),
        (b"event: x\ndata: a\ndata: b\n\n", None),
        (b"event: x\ndata: a\n\nevent: x\ndata: b\n\n", None),
        (b"id: 1\ndata: a\n\n", None),
        (b": comment\n\n", None),
        (b"event: x\ndata: a\n", None),
        (b"event: x\ndata: a\n\n\n", None),
    ],
)
def test_single_event_is_what_reading_by_lines_returns(
    chunk: bytes, expected: tuple[str | None, bytes] | None
) -> None:
    framing, by_lines = SSEFraming(), SSEFraming()
    for each in (framing, by_lines):
        each.feed(b"event: y\ndata: first\n\n")
    # Twice, since the first may add its name to the table.
    for _ in range(2):
        single = framing.single(chunk)
        assert single == expected
        if single is not None:
            frames = [frame for byte in byte_by_byte(chunk) for frame in by_lines.feed(byte)]
            assert [(frame.event, frame.data) for frame in frames] == [single]


def test_no_event_is_single_where_a_line_is_unfinished() -> None:
    framing = SSEFraming()
    framing.feed(b"data: a\n\nda")
    assert framing.single(b"ta: a\n\n") is None
    assert framing.single(b"data: a\n\n") is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"data", True), (b"event: a\ndata: b\n\n", True), (b"data: a\n\ndata: b\n\n", False)],
)
def test_few_lines_are_those_of_one_event(data: bytes, *, expected: bool) -> None:
    """On it depends what a large chunk costs, and nothing else."""
    assert _has_few_lines(data) is expected


cannot_replace = pytest.mark.skipif(compiled, reason="no method of a compiled class is replaced")


@cannot_replace
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_usual_events_are_not_read_by_lines(
    line_end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[bytes] = []
    read_line = SSEFraming._read_line

    def counted(framing: SSEFraming, line: bytes) -> None:
        lines.append(line)
        read_line(framing, line)

    monkeypatch.setattr(SSEFraming, "_read_line", counted)
    different = [b"event: a\ndata: 1\n\n", b"data: 2\n\n", b"event: b\ndata: 3\n\n"]
    chunks = [event.replace(b"\n", line_end) for event in different] * 20
    expected = [Frame("a", b"1"), Frame(None, b"2"), Frame("b", b"3")] * 20
    assert run(chunks).strict == run([b"".join(chunks)]).strict == expected
    assert run(byte_by_byte(b"".join(chunks), 200)).strict == expected
    # Only the events that the chunks of 200 bytes divide.
    assert len(lines) < 20


@cannot_replace
def test_events_of_a_chunk_that_starts_inside_one_are_usual(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    framing = SSEFraming()
    framing.feed(b"data: 1\n\ndata: ")
    lines: list[bytes] = []
    monkeypatch.setattr(SSEFraming, "_read_line", lambda _, line: lines.append(line))
    frames = framing.feed(b"2\n\ndata: 3\n\ndata: 4\n\nda")
    assert lines == [b"data: 2"]
    assert frames == [Frame(None, b"3"), Frame(None, b"4")]


def test_invented_event_names_do_not_grow_the_table() -> None:
    framing = SSEFraming()
    framing.feed(b"data: first\n\n")
    for number in range(1000):
        name, event = f"name {number}", b"event: name %d\ndata: x\n\n" % number
        assert framing.single(event) == (name, b"x")
        assert framing.feed(event + event) == [Frame(name, b"x")] * 2
    assert len(framing._names) <= 65


def test_event_names_of_one_stream_are_unknown_to_another() -> None:
    SSEFraming().feed(b"event: a\ndata: x\n\nevent: a\ndata: x\n\n")
    assert SSEFraming()._names == {}


def test_names_kept_for_all_streams_are_bounded_and_short() -> None:
    for number in range(100):
        assert SSEFraming().single(b"event: n%d\ndata: x\n\n" % number) == (f"n{number}", b"x")
    assert _name_in.cache_info().currsize <= 64
    before = _name_in.cache_info()
    assert SSEFraming().single(b"x" * 1000) is None
    assert SSEFraming().single(b"event: " + b"n" * 300 + b"\ndata: x\n\n") is None
    assert _name_in.cache_info() == before


BOM_AT_START = b"\xef\xbb\xbfdata: a\n\n"
BOM_LATER = b"data: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n"


def test_first_event_is_single_unless_a_bom_stands_before_it() -> None:
    assert SSEFraming().single(b"data: a\n\n") == (None, b"a")
    assert SSEFraming().single(BOM_AT_START) is None
    framing = SSEFraming()
    framing.feed(BOM_AT_START[:1])
    assert framing.single(b"data: a\n\n") is None


@each_case("body", [BOM_AT_START, BOM_LATER])
@each_case("size", [1, 2, 9, 10, 100])
def test_only_a_bom_at_the_start_is_skipped(body: bytes, size: int) -> None:
    """Read as a parser does: an event at once where it can be."""
    framing = SSEFraming()
    found: list[bytes | None] = []
    for start in range(0, len(body), size):
        chunk = body[start : start + size]
        single = framing.single(chunk)
        if single is not None:
            found.append(single[1])
        else:
            found += [frame.data for frame in framing.feed(chunk)]
    assert found == ([b"a"] if body == BOM_AT_START else [b"a", None, b"c"])


@pytest.mark.parametrize("length", [1, 128, 129, 1000])
def test_sse_name_is_the_same_in_a_second_stream(length: int) -> None:
    """The first stream may leave its name for the second, unless it is longer than usual."""
    name = "n" * length
    for end in ("\n", "\r\n"):
        event = f"event: {name}{end}data: 1{end}{end}".encode()
        for _ in range(2):
            framing = SSEFraming()
            frames = [*framing.feed(event), *framing.feed(event), *framing.close()]
            assert [(frame.event, frame.data) for frame in frames] == [(name, b"1")] * 2
