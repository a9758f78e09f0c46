"""JSON lines: every line once, whole and in order, at any split; the unfinished last line is not lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.framing import Frame, Framing
from streamlib_parsers.framing.ndjson import NdjsonFraming
from streamlib_parsers.limits import Limits
from tests.support.framings import Reading, growth, read
from tests.support.partitions import byte_by_byte, cuts, every_single_cut, random_partitions
from tests.support.shared import Recording, each_recording

BOM = b"\xef\xbb\xbf"
MIXED = BOM + '\n{"a":1}\r\n\r\n  \t\n{"b":"é\\n"}\n[2]\r\n"x\ry"\n{"last":true}'.encode()


def lines(body: bytes) -> Reading:
    return read(NdjsonFraming(), [body])


@each_recording("ollama-native", [".ndjson"])
def test_recorded_streams_give_one_frame_a_line_at_any_split(recording: Recording) -> None:
    body = recording.body
    whole = lines(body)
    assert whole.failure is None
    assert whole.data == [line for line in body.split(b"\n") if line]
    assert all(isinstance(json.loads(data or b""), dict) for data in whole.data)
    for chunks in (
        byte_by_byte(body),
        *random_partitions(body, 10),
        *every_single_cut(body, at_most=100),
    ):
        assert read(NdjsonFraming(), chunks) == whole


def test_blank_lines_line_ends_and_a_byte_order_mark_are_no_part_of_the_data() -> None:
    whole = lines(MIXED)
    assert whole.frames == [
        Frame(None, data)
        for data in (b'{"a":1}', '{"b":"é\\n"}'.encode(), b"[2]", b'"x\ry"', b'{"last":true}')
    ]
    assert whole.failure is None
    for chunks in (byte_by_byte(MIXED), *every_single_cut(MIXED)):
        assert read(NdjsonFraming(), chunks) == whole


def test_a_line_is_given_when_its_end_arrives_and_not_later() -> None:
    framing: Framing = NdjsonFraming()
    assert framing.feed(b'{"a":') == []
    assert framing.feed(b"1}") == []
    assert framing.feed(b'\n{"b"') == [Frame(None, b'{"a":1}')]
    assert framing.close() == [Frame(None, b'{"b"')]
    assert framing.close() == []


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\r", b"\n\n"])
def test_the_last_line_is_given_with_or_without_its_end(end: bytes) -> None:
    assert lines(b'{"a":1}\n{"b":2}' + end).data == [b'{"a":1}', b'{"b":2}']


def test_only_the_first_byte_order_mark_is_one() -> None:
    assert lines(BOM + b"1\n" + BOM + b"2\n").data == [b"1", BOM + b"2"]
    assert lines(b"1\n" + BOM + b"2\n").data == [b"1", BOM + b"2"]
    assert lines(BOM + BOM + b"1\n").data == [BOM + b"1"]


@pytest.mark.parametrize("body", [b"", b"\n", b"\r\n \t\n", BOM, BOM + b"\n", b" "])
def test_a_body_of_nothing_is_blank(body: bytes) -> None:
    assert lines(body) == ([], None, True)
    assert read(NdjsonFraming(), byte_by_byte(body)) == ([], None, True)


@pytest.mark.parametrize("body", [b"1", b"\n\n1\n", BOM + b"x", b"<"])
def test_a_body_of_anything_is_not_blank(body: bytes) -> None:
    assert not lines(body).blank
    assert not read(NdjsonFraming(), byte_by_byte(body)).blank


@pytest.mark.parametrize(
    "body", [b"<html>Bad Gateway</html>", b"  upstream error", '{"a":1}\n— no'.encode()]
)
def test_a_last_line_that_cannot_begin_json_is_malformed_and_shown(body: bytes) -> None:
    whole = lines(body)
    assert whole.failure is not None
    assert whole.failure.kind == "malformed"
    assert whole.failure.detail == body.split(b"\n")[-1].decode()
    for chunks in (byte_by_byte(body), *every_single_cut(body)):
        assert read(NdjsonFraming(), chunks) == whole


@pytest.mark.parametrize(
    "line", [b'{"', b"[", b'"', b"-", b"0", b"9", b"tru", b"fals", b"nul", b" {"]
)
def test_a_last_line_that_can_begin_json_is_left_to_the_decoder(line: bytes) -> None:
    assert lines(line) == ([Frame(None, line)], None, False)


def test_a_line_over_the_ceiling_ends_the_stream_after_the_lines_before_it() -> None:
    limits = Limits(event_bytes=8)
    body = b"12345678\n123456\r\n\n1234567\r\n12345678\r\n1\n"
    whole = read(NdjsonFraming(limits), [body])
    assert whole.data == [b"12345678", b"123456", b"1234567"]
    assert whole.failure is not None
    assert (whole.kind, whole.failure.code) == ("limit_exceeded", "event_bytes")
    for chunks in (byte_by_byte(body), *every_single_cut(body)):
        assert read(NdjsonFraming(limits), chunks) == whole


def test_an_endless_line_fails_before_its_end_and_is_not_kept() -> None:
    framing = NdjsonFraming(Limits(event_bytes=8))
    assert framing.feed(b"12345678") == []
    assert framing.failure is None
    assert framing.feed(b"9") == []
    assert framing.failure is not None
    assert framing.feed(b"\n1\n") == []
    assert framing.close() == []
    assert not framing._buffered


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(VALUES, max_size=6),
    st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \r\n\t\n"]),
    st.booleans(),
    st.data(),
)
def test_any_json_values_come_back_at_any_split(
    values: list[Any], end: bytes, escape: bool, data: st.DataObject
) -> None:
    body = end.join(
        json.dumps(value, ensure_ascii=escape).encode("utf-8", "surrogatepass") for value in values
    )
    reading = read(NdjsonFraming(), data.draw(cuts(body)))
    assert reading.failure is None
    assert [json.loads(one or b"") for one in reading.data] == values


@given(
    st.lists(
        st.sampled_from([b"\n", b"\r", b" ", b"{", b"}", b"x", b'"', BOM, b"\xef", b"12345"]),
        max_size=30,
    ),
    st.data(),
)
def test_any_bytes_read_the_same_at_any_split(pieces: list[bytes], data: st.DataObject) -> None:
    body, limits = b"".join(pieces), Limits(event_bytes=12)
    assert read(NdjsonFraming(limits), data.draw(cuts(body))) == read(NdjsonFraming(limits), [body])


def test_twice_the_line_takes_at_most_twice_the_time() -> None:
    assert growth(NdjsonFraming, lambda size: b'{"a":"' + b"x" * size + b'"}\n', 1 << 19) <= 2.3


def test_twice_the_lines_take_at_most_twice_the_time() -> None:
    assert (
        growth(
            NdjsonFraming,
            lambda size: b'{"message":{"content":"Hi"},"done":false}\n' * (size // 42),
            1 << 19,
        )
        <= 2.3
    )
