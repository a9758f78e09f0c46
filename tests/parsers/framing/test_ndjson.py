"""JSON lines framing: every line once, complete and in order, in any partition.

The unfinished last line is not lost.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.framing import Frame, Framing
from streamlib_parsers.framing.ndjson import NdjsonFraming
from streamlib_parsers.limits import Limits
from tests.support.cases import each_case
from tests.support.framings import Reading, growth, read
from tests.support.partitions import byte_by_byte, every_single_split, partitions, random_partitions
from tests.support.shared import Recording, each_recording

BOM = b"\xef\xbb\xbf"
MIXED = BOM + '\n{"a":1}\r\n\r\n  \t\n{"b":"é\\n"}\n[2]\r\n"x\ry"\n{"last":true}'.encode()


def lines(body: bytes) -> Reading:
    return read(NdjsonFraming(), [body])


@each_recording("ollama-native", [".ndjson"])
def test_recorded_lines_do_not_depend_on_partition(recording: Recording) -> None:
    body = recording.body
    expected = lines(body)
    assert expected.failure is None
    assert expected.data == [line for line in body.split(b"\n") if line]
    assert all(isinstance(json.loads(data or b""), dict) for data in expected.data)
    for chunks in (
        byte_by_byte(body),
        *random_partitions(body, 10),
        *every_single_split(body, at_most=100),
    ):
        assert read(NdjsonFraming(), chunks) == expected


def test_blank_lines_line_ends_and_bom_are_not_data() -> None:
    expected = lines(MIXED)
    assert expected.frames == [
        Frame(None, data)
        for data in (b'{"a":1}', '{"b":"é\\n"}'.encode(), b"[2]", b'"x\ry"', b'{"last":true}')
    ]
    assert expected.failure is None
    for chunks in (byte_by_byte(MIXED), *every_single_split(MIXED)):
        assert read(NdjsonFraming(), chunks) == expected


def test_line_is_emitted_as_soon_as_its_end_arrives() -> None:
    framing: Framing = NdjsonFraming()
    assert framing.feed(b'{"a":') == []
    assert framing.feed(b"1}") == []
    assert framing.feed(b'\n{"b"') == [Frame(None, b'{"a":1}')]
    assert framing.close() == [Frame(None, b'{"b"')]
    assert framing.close() == []


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\r", b"\n\n"])
def test_last_line_is_emitted_with_or_without_its_end(end: bytes) -> None:
    assert lines(b'{"a":1}\n{"b":2}' + end).data == [b'{"a":1}', b'{"b":2}']


def test_only_the_first_byte_order_mark_is_removed() -> None:
    assert lines(BOM + b"1\n" + BOM + b"2\n").data == [b"1", BOM + b"2"]
    assert lines(b"1\n" + BOM + b"2\n").data == [b"1", BOM + b"2"]
    assert lines(BOM + BOM + b"1\n").data == [BOM + b"1"]


@pytest.mark.parametrize("body", [b"", b"\n", b"\r\n \t\n", BOM, BOM + b"\n", b" "])
def test_body_of_white_space_is_blank(body: bytes) -> None:
    assert lines(body) == ([], None, True)
    assert read(NdjsonFraming(), byte_by_byte(body)) == ([], None, True)


@pytest.mark.parametrize("body", [b"1", b"\n\n1\n", BOM + b"x", b"<"])
def test_body_with_any_other_byte_is_not_blank(body: bytes) -> None:
    assert not lines(body).blank
    assert not read(NdjsonFraming(), byte_by_byte(body)).blank


@pytest.mark.parametrize(
    "body", [b"<html>Bad Gateway</html>", b"  upstream error", '{"a":1}\n— no'.encode()]
)
def test_last_line_that_cannot_begin_json_is_malformed(body: bytes) -> None:
    expected = lines(body)
    assert expected.failure is not None
    assert expected.failure.kind == "malformed"
    assert expected.failure.detail == body.split(b"\n")[-1].decode()
    for chunks in (byte_by_byte(body), *every_single_split(body)):
        assert read(NdjsonFraming(), chunks) == expected


@each_case("line", [b'{"', b"[", b'"', b"-", b"0", b"9", b"tru", b"fals", b"nul", b" {"])
def test_last_line_that_can_begin_json_is_left_to_the_decoder(line: bytes) -> None:
    assert lines(line) == ([Frame(None, line)], None, False)


def test_line_over_the_limit_fails_after_earlier_lines() -> None:
    limits = Limits(event_bytes=8)
    body = b"12345678\n123456\r\n\n1234567\r\n12345678\r\n1\n"
    expected = read(NdjsonFraming(limits), [body])
    assert expected.data == [b"12345678", b"123456", b"1234567"]
    assert expected.failure is not None
    assert (expected.kind, expected.failure.code) == ("limit_exceeded", "event_bytes")
    for chunks in (byte_by_byte(body), *every_single_split(body)):
        assert read(NdjsonFraming(limits), chunks) == expected


def test_endless_line_fails_early_and_is_not_buffered() -> None:
    framing = NdjsonFraming(Limits(event_bytes=8))
    assert framing.feed(b"12345678") == []
    assert framing.failure is None
    assert framing.feed(b"9") == []
    assert framing.failure is not None
    assert framing.feed(b"\n1\n") == []
    assert framing.close() == []
    assert not framing._buffered


@each_case(
    "chunk, expected",
    [
        (b"{}\n", b"{}"),
        (b'{"a":12}\n', b'{"a":12}'),
        (b'{"a":123}\n', None),
        (b"{}", None),
        (b"{}\r\n", None),
        (BOM + b"{}\n", None),
        (b"{}\n{}\n", None),
        (b"[1]\n", None),
        (b"{1\n", None),
        (b"1}\n", None),
        (b"\n", None),
    ],
)
def test_single_line_is_what_feed_returns(chunk: bytes, expected: bytes | None) -> None:
    limits = Limits(event_bytes=8)
    framing = NdjsonFraming(limits)
    if expected is None:
        assert framing.single(chunk) is None
        assert framing.blank
        return
    assert framing.single(chunk) == (None, expected)
    assert not framing.blank
    assert NdjsonFraming(limits).feed(chunk) == [Frame(None, expected)]


def test_no_line_is_single_inside_of_another() -> None:
    framing = NdjsonFraming()
    framing.feed(b'{"a":')
    assert framing.single(b"{}\n") is None
    assert framing.feed(b"{}}\n") == [Frame(None, b'{"a":{}}')]


def test_byte_order_mark_after_a_single_line_is_data() -> None:
    framing = NdjsonFraming()
    assert framing.single(b"{}\n") == (None, b"{}")
    assert framing.feed(BOM + b"{}\n") == [Frame(None, BOM + b"{}")]


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
def test_any_json_values_are_read_back_in_any_partition(
    values: list[Any], end: bytes, escape: bool, data: st.DataObject
) -> None:
    body = end.join(
        json.dumps(value, ensure_ascii=escape).encode("utf-8", "surrogatepass") for value in values
    )
    reading = read(NdjsonFraming(), data.draw(partitions(body)))
    assert reading.failure is None
    assert [json.loads(line or b"") for line in reading.data] == values


@given(
    st.lists(
        st.sampled_from([b"\n", b"\r", b" ", b"{", b"}", b"x", b'"', BOM, b"\xef", b"12345"]),
        max_size=30,
    ),
    st.data(),
)
def test_any_bytes_read_the_same_in_any_partition(
    fragments: list[bytes], data: st.DataObject
) -> None:
    body, limits = b"".join(fragments), Limits(event_bytes=12)
    assert read(NdjsonFraming(limits), data.draw(partitions(body))) == read(
        NdjsonFraming(limits), [body]
    )


@pytest.mark.timing
def test_line_of_twice_the_size_takes_twice_the_time() -> None:
    assert growth(NdjsonFraming, lambda size: b'{"a":"' + b"x" * size + b'"}\n', 1 << 19) <= 2.3


@pytest.mark.timing
def test_twice_as_many_lines_take_twice_the_time() -> None:
    assert (
        growth(
            NdjsonFraming,
            lambda size: b'{"message":{"content":"Hi"},"done":false}\n' * (size // 42),
            1 << 19,
        )
        <= 2.3
    )
