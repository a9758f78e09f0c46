"""The first byte that is not blank decides between an event stream and JSON, in any partition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.framing import Frame
from streamlib_parsers.framing.json_array import JsonArrayFraming
from streamlib_parsers.framing.sse import SSEFraming
from streamlib_parsers.framing.sse_or_json import SSEOrJsonFraming
from streamlib_parsers.limits import Limits
from tests.support.cases import each_case
from tests.support.framings import growth, read
from tests.support.partitions import byte_by_byte, every_single_split, partitions

BOM = b"\xef\xbb\xbf"
EVENTS = b'data: {"a":1}\r\n\r\nevent: x\ndata: {"b":2}\n\n{"error":{"code":503}}\n\n'
ARRAY = b'[{"a":1}\n,\n{"b":[{}]}\n]'


@each_case("blank", [b"", b"\n", b"\r\n\r\n ", BOM, BOM + b"\n\t"])
@each_case(
    "body, framing",
    [
        (EVENTS, SSEFraming),
        (b": ping\n\n" + EVENTS, SSEFraming),
        (ARRAY, JsonArrayFraming),
        (b'{"error":{}}', JsonArrayFraming),
    ],
)
def test_first_byte_chooses_the_framing_in_any_partition(
    blank: bytes, body: bytes, framing: type[SSEFraming | JsonArrayFraming]
) -> None:
    body = blank + body
    expected = read(framing(), [body])
    assert expected.frames
    for chunks in (
        [body],
        byte_by_byte(body),
        [b"", *byte_by_byte(body, 3), b""],
        *every_single_split(body),
    ):
        assert read(SSEOrJsonFraming(), chunks) == expected


@pytest.mark.parametrize("body", [b"", b"\n\n", b" \r\n\t", BOM])
def test_blank_body_stays_blank(body: bytes) -> None:
    for chunks in ([body], byte_by_byte(body)):
        reading = read(SSEOrJsonFraming(), chunks)
        assert reading == ([], None, True)


def test_blank_bytes_are_buffered_up_to_the_limit() -> None:
    limits = Limits(event_bytes=64)
    for body in (b"\n" * 65, b"\n" * 65 + ARRAY, b" " * 100):
        for chunks in ([body], byte_by_byte(body), byte_by_byte(body, 7)):
            reading = read(SSEOrJsonFraming(limits), chunks)
            assert (reading.frames, reading.kind) == ([], "limit_exceeded")
    assert read(SSEOrJsonFraming(limits), byte_by_byte(b"\n" * 64 + ARRAY)).failure is None


def test_buffered_blank_bytes_are_dropped_at_the_limit() -> None:
    framing = SSEOrJsonFraming(Limits(event_bytes=8))
    framing.feed(b"\n" * 8)
    assert framing.feed(b"\n") == []
    assert framing.failure is not None
    assert not framing._buffered


def test_first_event_may_be_single_and_chooses_the_framing() -> None:
    framing = SSEOrJsonFraming()
    assert framing.single(b"data: a\n\n") == (None, b"a")
    assert not framing.blank
    assert framing.single(b"event: x\ndata: b\n\n") == ("x", b"b")
    assert framing.feed(b"data: [\n\n") == [Frame(None, b"[")]


@pytest.mark.parametrize("chunk", [b'{"a":1}', b'[{"a":1}', b"\n", BOM])
def test_nothing_but_an_event_is_single(chunk: bytes) -> None:
    framing = SSEOrJsonFraming()
    assert framing.single(chunk) is None
    assert framing.feed(chunk) == JsonArrayFraming().feed(chunk)
    assert framing.single(b"data: a\n\n") is None


def test_blank_until_an_event_is_complete() -> None:
    framing = SSEOrJsonFraming()
    assert framing.single(b"data: a") is None
    assert framing.blank


@given(st.data(), st.sampled_from([b"", b"[", b"{", b"data: ", BOM, b"\n"]), st.binary(max_size=40))
def test_any_bytes_read_the_same_in_any_partition(
    data: st.DataObject, start: bytes, rest: bytes
) -> None:
    body = start + rest
    assert read(SSEOrJsonFraming(), data.draw(partitions(body))) == read(SSEOrJsonFraming(), [body])


@pytest.mark.timing
@pytest.mark.parametrize("byte", [b"\n", b" "])
def test_blank_bytes_cost_linear_time(byte: bytes) -> None:
    assert growth(SSEOrJsonFraming, lambda size: byte * size, 1 << 17) < 3.0
