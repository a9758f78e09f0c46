"""AWS event stream: whole messages or a typed failure, at any split; never a wrong message, never a silent end."""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.errors import ErrorInfo, ParseFailure
from streamlib_parsers.framing import Frame, Framing
from streamlib_parsers.framing.eventstream import (
    HEADER_BLOCK_BYTES,
    EventStreamFraming,
    Message,
    decode_message,
    encode_message,
    frame_of,
)
from streamlib_parsers.limits import LIMITS, Limits
from tests.support.framings import growth, read
from tests.support.metrics import figure
from tests.support.partitions import byte_by_byte, cut_at, cuts, every_single_cut, random_partitions
from tests.support.shared import Recording, each_recording, each_vector

EVENT = {
    ":event-type": "contentBlockDelta",
    ":content-type": "application/json",
    ":message-type": "event",
}


def messages_of(
    chunks: Iterable[bytes], limits: Limits = LIMITS
) -> tuple[list[Message], ErrorInfo | None]:
    """The messages of a body, and how it failed."""
    framing = EventStreamFraming(limits)
    found = [message for chunk in chunks for message in framing.messages(chunk)]
    framing.close()
    return found, framing.failure.info if framing.failure else None


def sealed(
    block: bytes, payload: bytes = b"", total: int | None = None, header_length: int | None = None
) -> bytes:
    """A message with right checksums around whatever header block and lengths are given."""
    size = len(block) if header_length is None else header_length
    lengths = struct.pack(">II", 16 + len(block) + len(payload) if total is None else total, size)
    message = lengths + struct.pack(">I", zlib.crc32(lengths)) + block + payload
    return message + struct.pack(">I", zlib.crc32(message))


def header(name: bytes, kind: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name + bytes([kind]) + value


def string(name: str, value: str) -> bytes:
    raw = value.encode()
    return header(name.encode(), 7, struct.pack(">H", len(raw)) + raw)


def events(count: int, payload: bytes = b'{"contentBlockIndex":0,"delta":{"text":"Hi"}}') -> bytes:
    return encode_message(EVENT, payload) * count


EVERY_TYPE = b"".join(
    (
        header(b"true", 0, b""),
        header(b"false", 1, b""),
        header(b"byte", 2, b"\xff"),
        header(b"short", 3, b"\x80\x00"),
        header(b"integer", 4, b"\x7f\xff\xff\xff"),
        header(b"long", 5, b"\xff" * 8),
        header(b"bytes", 6, b"\x00\x03\xff\x00\xfe"),
        header(b"string", 7, b"\x00\x05caf\xc3\xa9"),
        header(b"timestamp", 8, b"\x00\x00\x01\x93\x00\x00\x00\x01"),
        header(b"uuid", 9, bytes(range(16))),
    )
)


# --- published vectors and recorded streams ---


def plain(value: Any) -> Any:
    """The vectors write bytes as text."""
    return value.decode("ascii") if isinstance(value, bytes) else value


def wanted_kind(error: str) -> str:
    if "truncated" in error:
        return "truncated"
    return "limit_exceeded" if "over 24 MiB" in error else "malformed"


@each_vector("aws_eventstream_vectors")
def test_every_vector_reads_the_same_whole_at_every_split_and_byte_by_byte(
    vector: dict[str, Any],
) -> None:
    body = base64.b64decode(vector["raw_b64"])
    for chunks in ([body], byte_by_byte(body), *every_single_cut(body)):
        found, failure = messages_of(chunks)
        if "error" in vector:
            assert failure is not None
            assert failure.kind == wanted_kind(vector["error"])
            continue
        assert failure is None
        assert [{name: plain(value) for name, value in one.headers.items()} for one in found] == [
            m["headers"] for m in vector["messages"]
        ]
        assert [one.payload.decode() for one in found] == [m["payload"] for m in vector["messages"]]
    figure(f"vector/{vector['id']}")


@each_recording("aws-eventstream-vectors")
def test_every_published_test_file_is_read_or_refused_as_its_authors_say(
    recording: Recording,
) -> None:
    body, wanted = recording.body, recording.expected
    for chunks in ([body], byte_by_byte(body), *every_single_cut(body)):
        found, failure = messages_of(chunks)
        if not wanted["valid"]:
            assert failure is not None
            assert found == []
            continue
        assert failure is None
        headers = {
            n: base64.b64decode(v["bytes_b64"]) if isinstance(v, dict) else v
            for n, v in wanted["headers"].items()
        }
        assert found == [Message(headers, base64.b64decode(wanted["payload_b64"]))]


@each_recording("bedrock-converse", [".eventstream"])
def test_recorded_converse_streams_give_the_same_frames_at_any_split(recording: Recording) -> None:
    check_recording(recording)


@each_recording("bedrock-invoke", [".eventstream"])
def test_recorded_invoke_streams_give_the_same_frames_at_any_split(recording: Recording) -> None:
    check_recording(recording)


def check_recording(recording: Recording) -> None:
    body = recording.body
    whole = read(EventStreamFraming(), [body])
    assert whole.failure is None
    assert Counter(frame.event for frame in whole.frames) == recording.expected["framing"]["types"]
    assert all(json.loads(frame.data or b"") for frame in whole.frames)
    for chunks in (
        byte_by_byte(body),
        *random_partitions(body, 5),
        *every_single_cut(body, at_most=40),
    ):
        assert read(EventStreamFraming(), chunks) == whole


@each_recording("bedrock-converse", [".eventstream"])
def test_a_recorded_stream_cut_anywhere_inside_a_message_is_truncated(recording: Recording) -> None:
    body = recording.body
    sizes = [len(encode_message(dict(m.headers), m.payload)) for m in messages_of([body])[0]]  # type: ignore[arg-type]
    boundaries = {sum(sizes[:n]) for n in range(len(sizes) + 1)}
    for place in {*range(0, len(body) + 1, max(1, len(body) // 300)), *boundaries}:
        assert read(EventStreamFraming(), [body[:place]]).kind == (
            None if place in boundaries else "truncated"
        )


@each_recording("bedrock-converse", [".eventstream"])
def test_good_messages_read_as_botocore_reads_them(recording: Recording) -> None:
    agree_with_botocore(recording.body)


def test_messages_with_every_header_type_read_as_botocore_reads_them() -> None:
    agree_with_botocore(sealed(EVERY_TYPE, b"payload") + sealed(b"") + events(3))


def agree_with_botocore(body: bytes) -> None:
    oracle = pytest.importorskip(
        "botocore.eventstream", reason="botocore is not installed: nothing to compare with"
    ).EventStreamBuffer()
    oracle.add_data(body)
    found, failure = messages_of([body])
    assert failure is None
    assert found == [Message(theirs.headers, theirs.payload) for theirs in oracle]


# --- damage ---


def damaged(body: bytes, bits: Iterable[int]) -> bytes:
    changed = bytearray(body)
    for bit in bits:
        changed[bit >> 3] ^= 1 << (bit & 7)
    return bytes(changed)


def good_bodies() -> list[bytes]:
    """Some 7 KB of good messages of all sizes: no headers, no payload, every header type, and a stream of several."""
    payloads = [
        b'{"delta":{"text":"%s"},"p":"%s"}' % (b"x" * n, b"abcdefgh" * (n % 5))
        for n in range(0, 300, 25)
    ]
    return [
        sealed(b""),
        sealed(b"", b"{'foo':'bar'}"),
        sealed(EVERY_TYPE, b"payload"),
        sealed(EVERY_TYPE),
        encode_message(
            {":message-type": "error", ":error-code": "500", ":error-message": "busy"}, b""
        ),
        encode_message(
            {":message-type": "exception", ":exception-type": "throttlingException"},
            b'{"message":"slow down"}',
        ),
        events(3),
        *(encode_message(EVENT, payload) for payload in payloads),
        encode_message(EVENT, b'{"long":"%s"}' % (b"QUJD" * 800)),
    ]


def test_no_flipped_bit_ever_gives_a_wrong_message() -> None:
    flips = 0
    for body in good_bodies():
        good = messages_of([body])[0]
        for bit in range(len(body) * 8):
            found, failure = messages_of([damaged(body, [bit])])
            flips += 1
            assert failure is not None
            assert found == good[: len(found)]
            assert len(found) < len(good)
    figure("flips", flips)
    assert flips >= 50_000


@each_vector("aws_eventstream_vectors")
def test_no_flipped_bit_of_a_vector_ever_gives_a_wrong_message(vector: dict[str, Any]) -> None:
    body = base64.b64decode(vector["raw_b64"])
    good, failure = messages_of([body])
    for bit in range(len(body) * 8) if failure is None else ():
        found, failure = messages_of([damaged(body, [bit])])
        assert failure is not None
        assert found == good[: len(found)]


def test_no_two_flipped_bits_ever_give_a_wrong_message() -> None:
    rng = random.Random(14)
    for body in good_bodies():
        good = messages_of([body])[0]
        for _ in range(200):
            found, failure = messages_of([damaged(body, rng.sample(range(len(body) * 8), 2))])
            assert failure is not None
            assert found == good[: len(found)]


@given(st.data())
def test_damage_reads_the_same_at_any_split(data: st.DataObject) -> None:
    body = sealed(EVERY_TYPE, b"payload") + events(2)
    places = st.integers(0, len(body) * 8 - 1)
    broken = damaged(body, data.draw(st.lists(places, max_size=3))) + data.draw(
        st.binary(max_size=30)
    )
    assert read(EventStreamFraming(), data.draw(cuts(broken))) == read(
        EventStreamFraming(), [broken]
    )


@given(st.binary(max_size=400), st.data())
def test_any_bytes_end_in_our_failure_at_any_split(body: bytes, data: st.DataObject) -> None:
    whole = read(EventStreamFraming(), [body])
    assert whole.frames == []
    assert (whole.kind is None) == (body == b"")
    assert read(EventStreamFraming(), data.draw(cuts(body))) == whole


@given(st.binary(max_size=120), st.data())
def test_any_header_block_is_read_or_refused_at_any_split(
    block: bytes, data: st.DataObject
) -> None:
    body = sealed(block, b"{}")
    found, failure = messages_of([body])
    assert (failure is None) == (len(found) == 1)
    assert failure is None or failure.kind == "malformed"
    assert messages_of(data.draw(cuts(body))) == (found, failure)


# --- rules ---


def test_every_header_type_has_its_value() -> None:
    message = decode_message(sealed(EVERY_TYPE, b"payload"))
    assert message.payload == b"payload"
    assert message.headers == {
        "true": True,
        "false": False,
        "byte": -1,
        "short": -(1 << 15),
        "integer": (1 << 31) - 1,
        "long": -1,
        "bytes": b"\xff\x00\xfe",
        "string": "café",
        "timestamp": (0x193 << 32) + 1,
        "uuid": bytes(range(16)),
    }
    assert [type(value) for value in message.headers.values()] == [
        bool,
        bool,
        int,
        int,
        int,
        int,
        bytes,
        str,
        int,
        bytes,
    ]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(header(b"", 7, b"\x00\x01x"), id="no name"),
        pytest.param(header(b"a", 10, b""), id="unknown type"),
        pytest.param(string("a", "1") + string("a", "1"), id="twice"),
        pytest.param(header(b"\xff", 0, b""), id="name is not UTF-8"),
        pytest.param(header(b"a", 7, b"\x00\x01\xff"), id="value is not UTF-8"),
        pytest.param(header(b"a", 7, b"\x00"), id="cut in a length"),
        pytest.param(header(b"a", 7, b"\x00\x02x"), id="cut in a string"),
        pytest.param(header(b"a", 9, bytes(15)), id="cut in a UUID"),
        pytest.param(b"\x02a", id="cut in a name"),
        pytest.param(b"\x01a", id="cut before a type"),
    ],
)
def test_a_broken_header_block_under_right_checksums_is_malformed(block: bytes) -> None:
    good = string("ok", "1")
    assert read(EventStreamFraming(), [sealed(block, b"{}")]).kind == "malformed"
    assert read(EventStreamFraming(), [sealed(good + block, b"{}")]).kind == "malformed"


@pytest.mark.parametrize("total", [0, 1, 12, 15])
def test_a_length_that_holds_no_message_fails_at_once_and_never_loops(total: int) -> None:
    framing = EventStreamFraming()
    assert framing.feed(sealed(b"", total=total)[:12]) == []
    assert framing.failure is not None
    assert framing.failure.info.kind == "malformed"


def test_headers_longer_than_their_message_are_malformed() -> None:
    assert (
        read(EventStreamFraming(), [sealed(b"", total=20, header_length=5)[:12]]).kind
        == "malformed"
    )
    assert read(EventStreamFraming(), [sealed(string("abc", "1"))]).failure is None


def test_a_failure_is_for_good_and_what_came_before_it_is_given() -> None:
    body = events(2) + damaged(events(1), [200]) + events(1)
    framing = EventStreamFraming()
    assert len(framing.feed(body)) == 2
    failure = framing.failure
    assert failure is not None
    assert failure.info.kind == "malformed"
    assert framing.feed(events(1)) == []
    assert framing.close() == []
    assert framing.failure is failure
    for chunks in (byte_by_byte(body), *every_single_cut(body)):
        assert read(EventStreamFraming(), chunks) == read(EventStreamFraming(), [body])


def test_a_damaged_prelude_in_mid_stream_fails_without_waiting_for_more() -> None:
    framing = EventStreamFraming()
    assert len(framing.feed(events(1))) == 1
    framing.feed(damaged(events(1), [0])[:12])
    assert framing.failure is not None
    assert framing.failure.info.kind == "malformed"


@pytest.mark.parametrize("place", range(1, len(events(1))))
def test_a_message_cut_by_the_end_of_input_is_truncated(place: int) -> None:
    reading = read(EventStreamFraming(), [events(2)[: len(events(1)) + place]])
    assert len(reading.frames) == 1
    assert reading.kind == "truncated"
    assert reading.failure is not None
    assert reading.failure.retryable


def test_an_empty_body_is_blank_and_no_failure() -> None:
    assert read(EventStreamFraming(), [b"", b""]) == ([], None, True)
    assert read(EventStreamFraming(), [events(1)]).blank is False
    assert read(EventStreamFraming(), [b"\n"]).blank is False


@pytest.mark.parametrize(
    "body",
    [b'{"message":"The security token is expired"}', b"<html>\xc3\xa9" * 100, b"Bad Gateway 502"],
)
def test_a_body_of_another_kind_is_malformed_and_shown_the_same_at_any_split(body: bytes) -> None:
    whole = read(EventStreamFraming(), [body])
    assert whole.kind == "malformed"
    assert whole.failure is not None
    assert whole.failure.detail == body[:200].decode("utf-8", "replace")
    for chunks in (byte_by_byte(body), *every_single_cut(body, at_most=250)):
        assert read(EventStreamFraming(), chunks) == whole


def test_a_body_of_another_kind_fails_before_its_end() -> None:
    framing = EventStreamFraming()
    framing.feed(b"x" * 199)
    assert framing.failure is None
    framing.feed(b"x")
    assert framing.failure is not None


# --- ceilings ---


def announced(total: int, header_length: int = 0) -> bytes:
    return sealed(b"", total=total, header_length=header_length)[:12]


@pytest.mark.parametrize("limits", [LIMITS, Limits(event_bytes=1000)])
def test_a_message_over_the_ceiling_fails_at_its_prelude(limits: Limits) -> None:
    framing = EventStreamFraming(limits)
    framing.feed(announced(limits.event_bytes))
    assert framing.failure is None
    framing = EventStreamFraming(limits)
    framing.feed(announced(limits.event_bytes + 1))
    assert framing.failure is not None
    assert (framing.failure.info.kind, framing.failure.info.code) == (
        "limit_exceeded",
        "event_bytes",
    )


def test_a_header_block_over_the_ceiling_fails_at_its_prelude() -> None:
    framing = EventStreamFraming()
    framing.feed(announced(1 << 20, HEADER_BLOCK_BYTES))
    assert framing.failure is None
    framing = EventStreamFraming()
    framing.feed(announced(1 << 20, HEADER_BLOCK_BYTES + 1))
    assert framing.failure is not None
    assert (framing.failure.info.kind, framing.failure.info.code) == (
        "limit_exceeded",
        "header_bytes",
    )


def test_more_headers_than_the_ceiling_fail() -> None:
    body = sealed(b"".join(string(f"h{n}", "x") for n in range(1024)))
    assert len(decode_message(body).headers) == 1024
    reading = read(
        EventStreamFraming(), [sealed(b"".join(string(f"h{n}", "x") for n in range(1025)))]
    )
    assert reading.failure is not None
    assert (reading.kind, reading.failure.code) == ("limit_exceeded", "header_count")
    assert read(EventStreamFraming(Limits(header_count=1023)), [body]).kind == "limit_exceeded"


def test_ten_thousand_different_header_blocks_are_read_and_not_all_kept() -> None:
    framing = EventStreamFraming()
    body = b"".join(
        encode_message({":event-type": f"kind-{n}", ":message-type": "event"}, b"{}")
        for n in range(10_000)
    )
    assert [frame.event for frame in framing.feed(body)] == [f"kind-{n}" for n in range(10_000)]
    assert len(framing._known) <= 64
    framing = EventStreamFraming()
    framing.feed(encode_message({"long": "x" * 2000}, b""))
    assert framing._known == {}


# --- frames ---


def test_an_event_is_named_by_its_event_type() -> None:
    assert frame_of(Message(EVENT, b"{}")) == Frame("contentBlockDelta", b"{}")


@pytest.mark.parametrize(
    ("headers", "payload", "frame"),
    [
        (
            {":message-type": "exception", ":exception-type": "tooMany"},
            b'{"m":1}',
            Frame("exception:tooMany", b'{"m":1}'),
        ),
        ({":message-type": "exception"}, b"{}", Frame("exception:", b"{}")),
        (
            {":message-type": "error", ":error-code": "500", ":error-message": 'a "b"'},
            b"",
            Frame("error:500", b'{"message":"a \\"b\\""}'),
        ),
        (
            {":message-type": "error", ":error-code": "500"},
            b"",
            Frame("error:500", b'{"message":""}'),
        ),
        (
            {":message-type": "error"},
            b'{"message":"in the payload"}',
            Frame("error:", b'{"message":"in the payload"}'),
        ),
        (
            {":message-type": "error", ":error-code": 7, ":error-message": 7},
            b"",
            Frame("error:", b'{"message":""}'),
        ),
        ({":message-type": "event"}, b"{}", Frame(None, b"{}")),
        ({":message-type": "event", ":event-type": 1}, b"{}", Frame(None, b"{}")),
        (
            {":message-type": "new", ":event-type": "messageStop"},
            b"{}",
            Frame("new:messageStop", b"{}"),
        ),
        ({":message-type": True, ":event-type": "messageStop"}, b"{}", Frame(None, b"{}")),
        ({":event-type": "messageStop"}, b"{}", Frame(None, b"{}")),
        ({}, b"", Frame(None, b"")),
    ],
)
def test_a_message_of_any_other_type_never_passes_for_an_event(
    headers: Mapping[str, Any], payload: bytes, frame: Frame
) -> None:
    assert frame_of(Message(headers, payload)) == frame


def test_feed_gives_the_frames_of_the_messages() -> None:
    body = events(2) + encode_message(
        {":message-type": "error", ":error-code": "1", ":error-message": "m"}, b""
    )
    assert EventStreamFraming().feed(body) == [
        frame_of(message) for message in EventStreamFraming().messages(body)
    ]
    framing: Framing = EventStreamFraming()
    assert len(framing.feed(body)) == 3


# --- decode and encode ---


@given(
    st.dictionaries(st.text(min_size=1, max_size=60), st.text(max_size=200), max_size=8),
    st.binary(max_size=300),
)
def test_what_is_encoded_is_decoded(headers: dict[str, str], payload: bytes) -> None:
    body = encode_message(headers, payload)
    assert decode_message(body) == Message(headers, payload)
    assert body == sealed(b"".join(string(name, value) for name, value in headers.items()), payload)


@pytest.mark.parametrize(
    "headers", [{"": "x"}, {"n" * 256: "x"}, {"n": "v" * (1 << 16)}, {"n": "\ud83d"}]
)
def test_a_header_that_cannot_be_written_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"cannot be written|surrogates"):
        encode_message(headers, b"")


def test_the_longest_header_that_can_be_written_is_read_back() -> None:
    headers = {"n" * 255: "v" * ((1 << 16) - 1)}
    assert decode_message(encode_message(headers, b"")).headers == headers


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "malformed"),
        (events(1)[:-1], "truncated"),
        (events(1) + b"x", "truncated"),
        (events(2), "malformed"),
        (damaged(events(1), [300]), "malformed"),
    ],
)
def test_decoding_anything_but_one_message_raises(body: bytes, kind: str) -> None:
    with pytest.raises(ParseFailure) as raised:
        decode_message(body)
    assert raised.value.info.kind == kind


# --- splits and growth ---


@given(st.lists(st.binary(max_size=60), max_size=6), st.data())
def test_good_messages_read_the_same_at_any_split(
    payloads: list[bytes], data: st.DataObject
) -> None:
    body = b"".join(encode_message(EVENT, payload) for payload in payloads)
    reading = read(EventStreamFraming(), data.draw(cuts(body)))
    assert reading.data == payloads
    assert reading.failure is None


def test_every_double_split_of_a_short_stream_reads_the_same() -> None:
    body = sealed(b"") + sealed(string("a", "1"), b"{}") + sealed(b"", b"x")
    whole = read(EventStreamFraming(), [body])
    assert len(whole.frames) == 3
    for a in range(len(body) + 1):
        for b in range(a, len(body) + 1):
            assert read(EventStreamFraming(), cut_at(body, [a, b])) == whole


def test_twice_the_message_takes_at_most_twice_the_time() -> None:
    assert growth(EventStreamFraming, lambda size: events(1, b"x" * size), 1 << 19) <= 2.3


def test_twice_the_messages_take_at_most_twice_the_time() -> None:
    assert growth(EventStreamFraming, lambda size: events(size // 150), 1 << 19) <= 2.3


def test_more_lengths_than_are_remembered_are_read_all_the_same() -> None:
    payloads = [b"x" * size for size in range(1_100)]
    body = b"".join(encode_message(EVENT, payload) for payload in payloads) * 2
    assert read(EventStreamFraming(), [body]).data == payloads * 2
