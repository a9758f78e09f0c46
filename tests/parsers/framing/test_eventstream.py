"""AWS event stream framing: complete messages or a typed failure, in any partition.

Never a wrong message, never a silent end.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.framing import Frame, Framing
from streamlib_parsers.framing.eventstream import (
    HEADER_BLOCK_BYTES,
    AwsMessage,
    EventStreamFraming,
    _name_in,
    encode_headers,
    encode_message,
    frame_of,
)
from streamlib_parsers.limits import LIMITS, Limits
from tests.support.cases import each_case
from tests.support.eventstream_messages import (
    EVENT,
    EVERY_TYPE,
    damaged,
    events,
    header,
    messages_of,
    raw_message,
    string,
)
from tests.support.framings import growth, read
from tests.support.metrics import figure
from tests.support.partitions import (
    byte_by_byte,
    every_single_split,
    partitions,
    random_partitions,
    split_at,
)
from tests.support.shared import Recording, each_recording, each_vector

# --- published vectors and recorded streams ---


def plain(value: Any) -> Any:
    """Returns bytes as text, as the vectors have them."""
    return value.decode("ascii") if isinstance(value, bytes) else value


def expected_kind(error: str) -> str:
    if "truncated" in error:
        return "truncated"
    return "limit_exceeded" if "over 24 MiB" in error else "malformed"


@each_vector("aws_eventstream_vectors")
def test_vectors_read_the_same_in_every_partition(
    vector: dict[str, Any],
) -> None:
    body = base64.b64decode(vector["raw_b64"])
    for chunks in ([body], byte_by_byte(body), *every_single_split(body)):
        messages, failure = messages_of(chunks)
        if "error" in vector:
            assert failure is not None
            assert failure.kind == expected_kind(vector["error"])
            continue
        assert failure is None
        assert len(messages) == len(vector["messages"])
        for message, expected in zip(messages, vector["messages"], strict=True):
            headers = {name: plain(value) for name, value in message.headers.items()}
            assert headers == expected["headers"]
            assert message.payload.decode() == expected["payload"]
    figure(f"vector/{vector['id']}")


@each_recording("aws-eventstream-vectors")
def test_published_files_are_read_or_refused_as_specified(
    recording: Recording,
) -> None:
    body, expected = recording.body, recording.expected
    for chunks in ([body], byte_by_byte(body), *every_single_split(body)):
        messages, failure = messages_of(chunks)
        if not expected["valid"]:
            assert failure is not None
            assert messages == []
            continue
        assert failure is None
        headers = {
            n: base64.b64decode(v["bytes_b64"]) if isinstance(v, dict) else v
            for n, v in expected["headers"].items()
        }
        assert messages == [AwsMessage(headers, base64.b64decode(expected["payload_b64"]))]


@each_recording("bedrock-converse", [".eventstream"])
def test_recorded_converse_frames_do_not_depend_on_partition(recording: Recording) -> None:
    check_recording(recording)


@each_recording("bedrock-invoke", [".eventstream"])
def test_recorded_invoke_frames_do_not_depend_on_partition(recording: Recording) -> None:
    check_recording(recording)


def check_recording(recording: Recording) -> None:
    body = recording.body
    expected = read(EventStreamFraming(), [body])
    assert expected.failure is None
    assert (
        Counter(frame.event for frame in expected.frames) == recording.expected["framing"]["types"]
    )
    assert all(json.loads(frame.data or b"") for frame in expected.frames)
    for chunks in (
        byte_by_byte(body),
        *random_partitions(body, 5),
        *every_single_split(body, at_most=40),
    ):
        assert read(EventStreamFraming(), chunks) == expected


@each_recording("bedrock-converse", [".eventstream"])
def test_recorded_stream_ending_inside_a_message_is_truncated(recording: Recording) -> None:
    body = recording.body
    messages, _ = messages_of([body])
    boundaries = {0}
    end = 0
    for message in messages:
        end += len(encode_message(dict(message.headers), message.payload))  # type: ignore[arg-type]
        boundaries.add(end)
    for offset in {*range(0, len(body) + 1, max(1, len(body) // 300)), *boundaries}:
        expected = None if offset in boundaries else "truncated"
        assert read(EventStreamFraming(), [body[:offset]]).kind == expected


@each_recording("bedrock-converse", [".eventstream"])
def test_valid_messages_read_as_in_botocore(recording: Recording) -> None:
    agree_with_botocore(recording.body)


def test_every_header_type_reads_as_in_botocore() -> None:
    agree_with_botocore(raw_message(EVERY_TYPE, b"payload") + raw_message(b"") + events(3))


def agree_with_botocore(body: bytes) -> None:
    oracle = pytest.importorskip(
        "botocore.eventstream", reason="botocore is not installed: nothing to compare with"
    ).EventStreamBuffer()
    oracle.add_data(body)
    messages, failure = messages_of([body])
    assert failure is None
    assert messages == [AwsMessage(theirs.headers, theirs.payload) for theirs in oracle]


# --- rules ---


def test_every_header_type_has_its_value() -> None:
    message = messages_of([raw_message(EVERY_TYPE, b"payload")])[0][0]
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
        pytest.param(header(b"a", 7, b"\x00"), id="truncated in a length"),
        pytest.param(header(b"a", 7, b"\x00\x02x"), id="truncated in a string"),
        pytest.param(header(b"a", 9, bytes(15)), id="truncated in a UUID"),
        pytest.param(b"\x02a", id="truncated in a name"),
        pytest.param(b"\x01a", id="truncated before a type"),
    ],
)
def test_broken_headers_with_valid_checksums_are_malformed(block: bytes) -> None:
    valid = string("ok", "1")
    assert read(EventStreamFraming(), [raw_message(block, b"{}")]).kind == "malformed"
    assert read(EventStreamFraming(), [raw_message(valid + block, b"{}")]).kind == "malformed"


@pytest.mark.parametrize("total", [0, 1, 12, 15])
def test_impossible_length_fails_at_once(total: int) -> None:
    framing = EventStreamFraming()
    assert framing.feed(raw_message(b"", total=total)[:12]) == []
    assert framing.failure is not None
    assert framing.failure.info.kind == "malformed"


def test_headers_longer_than_their_message_are_malformed() -> None:
    assert (
        read(EventStreamFraming(), [raw_message(b"", total=20, header_length=5)[:12]]).kind
        == "malformed"
    )
    assert read(EventStreamFraming(), [raw_message(string("abc", "1"))]).failure is None


def test_failure_is_final_and_keeps_the_frames_before_it() -> None:
    body = events(2) + damaged(events(1), [200]) + events(1)
    framing = EventStreamFraming()
    assert len(framing.feed(body)) == 2
    failure = framing.failure
    assert failure is not None
    assert failure.info.kind == "malformed"
    assert framing.feed(events(1)) == []
    assert framing.close() == []
    assert framing.failure is failure
    for chunks in (byte_by_byte(body), *every_single_split(body)):
        assert read(EventStreamFraming(), chunks) == read(EventStreamFraming(), [body])


def test_damaged_prelude_in_mid_stream_fails_at_once() -> None:
    framing = EventStreamFraming()
    assert len(framing.feed(events(1))) == 1
    framing.feed(damaged(events(1), [0])[:12])
    assert framing.failure is not None
    assert framing.failure.info.kind == "malformed"


@each_case("offset", range(1, len(events(1))))
def test_input_ending_inside_a_message_is_truncated(offset: int) -> None:
    reading = read(EventStreamFraming(), [events(2)[: len(events(1)) + offset]])
    assert len(reading.frames) == 1
    assert reading.kind == "truncated"
    assert reading.failure is not None
    assert reading.failure.retryable


def test_unfinished_message_is_joined_once_and_then_dropped() -> None:
    """A message of megabytes arrives in thousands of chunks."""
    message = events(1)
    framing = EventStreamFraming()
    framing.feed(message[:12])
    for byte in byte_by_byte(message[12:-1]):
        framing.feed(byte)
        assert framing._bytes_needed == len(message)
    framing.close()
    assert not framing._buffered


def test_empty_body_is_blank_without_failure() -> None:
    assert read(EventStreamFraming(), [b"", b""]) == ([], None, True)
    assert read(EventStreamFraming(), [events(1)]).blank is False
    assert read(EventStreamFraming(), [b"\n"]).blank is False


@pytest.mark.parametrize(
    "body",
    [b'{"message":"The security token is expired"}', b"<html>\xc3\xa9" * 100, b"Bad Gateway 502"],
)
def test_foreign_body_is_malformed_with_the_same_excerpt(body: bytes) -> None:
    expected = read(EventStreamFraming(), [body])
    assert expected.kind == "malformed"
    assert expected.failure is not None
    assert expected.failure.detail == body[:200].decode("utf-8", "replace")
    for chunks in (byte_by_byte(body), *every_single_split(body, at_most=250)):
        assert read(EventStreamFraming(), chunks) == expected


def test_foreign_body_fails_before_its_end() -> None:
    framing = EventStreamFraming()
    framing.feed(b"x" * 199)
    assert framing.failure is None
    framing.feed(b"x")
    assert framing.failure is not None


# --- limits ---


def announced(total: int, header_length: int = 0) -> bytes:
    return raw_message(b"", total=total, header_length=header_length)[:12]


@pytest.mark.parametrize("limits", [LIMITS, Limits(event_bytes=1000)])
def test_message_over_the_limit_fails_at_its_prelude(limits: Limits) -> None:
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


def test_header_block_over_the_limit_fails_at_its_prelude() -> None:
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


def test_more_headers_than_the_limit_fail() -> None:
    body = raw_message(b"".join(string(f"h{n}", "x") for n in range(1024)))
    assert len(messages_of([body])[0][0].headers) == 1024
    reading = read(
        EventStreamFraming(), [raw_message(b"".join(string(f"h{n}", "x") for n in range(1025)))]
    )
    assert reading.failure is not None
    assert (reading.kind, reading.failure.code) == ("limit_exceeded", "header_count")
    assert read(EventStreamFraming(Limits(header_count=1023)), [body]).kind == "limit_exceeded"


def test_header_block_caches_are_bounded() -> None:
    framing = EventStreamFraming()
    body = b"".join(
        encode_message({":event-type": f"kind-{n}", ":message-type": "event"}, b"{}")
        for n in range(10_000)
    )
    assert [frame.event for frame in framing.feed(body)] == [f"kind-{n}" for n in range(10_000)]
    assert len(framing._names) <= 64
    assert _name_in.cache_info().currsize <= 64
    framing = EventStreamFraming()
    [frame] = framing.feed(encode_message({**EVENT, "long": "x" * 2000}, b""))
    assert (frame.event, framing._names) == ("contentBlockDelta", {})


def test_header_limit_of_one_stream_is_not_that_of_another() -> None:
    body = encode_message(EVENT, b"{}")
    assert EventStreamFraming().single(body) is not None
    strict = EventStreamFraming(Limits(header_count=2))
    assert strict.single(body) is None
    assert read(strict, [body]).kind == "limit_exceeded"


# --- frames ---


def test_event_is_named_by_its_event_type() -> None:
    assert frame_of(AwsMessage(EVENT, b"{}")) == Frame("contentBlockDelta", b"{}")


@each_case(
    "headers, payload, frame",
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
def test_message_of_another_type_is_never_named_as_an_event(
    headers: Mapping[str, Any], payload: bytes, frame: Frame
) -> None:
    assert frame_of(AwsMessage(headers, payload)) == frame


def test_feed_returns_the_frames_of_the_messages() -> None:
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
def test_encoded_message_is_decoded_unchanged(headers: dict[str, str], payload: bytes) -> None:
    body = encode_message(headers, payload)
    assert messages_of([body]) == ([AwsMessage(headers, payload)], None)
    assert body == raw_message(
        b"".join(string(name, value) for name, value in headers.items()), payload
    )


@pytest.mark.parametrize(
    "headers", [{"": "x"}, {"n" * 256: "x"}, {"n": "v" * (1 << 16)}, {"n": "\ud83d"}]
)
def test_encode_rejects_invalid_headers(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"a header (name|value) has|surrogates"):
        encode_message(headers, b"")


def test_longest_valid_header_round_trips() -> None:
    headers = {"n" * 255: "v" * ((1 << 16) - 1)}
    assert messages_of([encode_message(headers, b"")])[0][0].headers == headers


# --- splits and growth ---


@given(st.lists(st.binary(max_size=60), max_size=6), st.data())
def test_valid_messages_read_the_same_in_any_partition(
    payloads: list[bytes], data: st.DataObject
) -> None:
    body = b"".join(encode_message(EVENT, payload) for payload in payloads)
    reading = read(EventStreamFraming(), data.draw(partitions(body)))
    assert reading.data == payloads
    assert reading.failure is None


def test_every_double_split_of_a_stream_reads_the_same() -> None:
    body = raw_message(b"") + raw_message(string("a", "1"), b"{}") + raw_message(b"", b"x")
    expected = read(EventStreamFraming(), [body])
    assert len(expected.frames) == 3
    for a in range(len(body) + 1):
        for b in range(a, len(body) + 1):
            assert read(EventStreamFraming(), split_at(body, [a, b])) == expected


@pytest.mark.timing
def test_message_of_twice_the_size_takes_twice_the_time() -> None:
    assert growth(EventStreamFraming, lambda size: events(1, b"x" * size), 1 << 19) <= 2.3


@pytest.mark.timing
def test_twice_as_many_messages_take_twice_the_time() -> None:
    assert growth(EventStreamFraming, lambda size: events(size // 150), 1 << 19) <= 2.3


def test_more_lengths_than_the_cache_holds_are_read() -> None:
    payloads = [b"x" * size for size in range(1_100)]
    body = b"".join(encode_message(EVENT, payload) for payload in payloads) * 2
    assert read(EventStreamFraming(), [body]).data == payloads * 2


# --- a chunk that is one message ---


def test_event_of_any_length_and_name_is_single() -> None:
    framing = EventStreamFraming()
    for size in range(3000):
        name = f"kind {size % 100}"
        payload = b"x" * size
        message = encode_message({**EVENT, ":event-type": name}, payload)
        assert framing.single(message) == (name, payload)


def test_stream_that_ends_behind_a_single_event_is_truncated() -> None:
    framing = EventStreamFraming()
    assert framing.single(encode_message(EVENT, b"{}")) is not None
    assert not framing.blank
    assert read(framing, [b"<html> and more"]).kind == "malformed"
    framing = EventStreamFraming()
    framing.single(encode_message(EVENT, b"{}"))
    assert read(framing, [GOOD[:20]]).kind == "truncated"


def damaged_prelude(message: bytes) -> bytes:
    """The message with a wrong checksum of its prelude, and a valid one of all its bytes."""
    message = message[:8] + b"\0\0\0\0" + message[12:-4]
    return message + struct.pack(">I", zlib.crc32(message))


BLOCK: Final = encode_headers(EVENT)
GOOD: Final = encode_message(EVENT, b"{}")


@each_case(
    "chunk",
    [
        b"",
        GOOD[:11],
        GOOD[:-1],
        GOOD + b"\0",
        GOOD + GOOD,
        GOOD[:-1] + bytes([GOOD[-1] ^ 1]),
        GOOD[:11] + bytes([GOOD[11] ^ 1]) + GOOD[12:],
        damaged_prelude(GOOD),
        encode_message({":message-type": "event"}, b"{}"),
        encode_message({**EVENT, "long": "x" * 2000}, b"{}"),
        encode_message({**EVENT, ":message-type": "exception"}, b"{}"),
        raw_message(BLOCK, b"{}", header_length=len(BLOCK) + 3),
        raw_message(BLOCK, b"{}", header_length=0xFFFFFFFF),
        raw_message(BLOCK, b"{}", header_length=len(BLOCK) - 1),
        encode_message(EVENT, b"x" * 4000),
    ],
)
def test_other_chunk_is_not_single(chunk: bytes) -> None:
    framing = EventStreamFraming(Limits(event_bytes=3000))
    assert framing.single(chunk) is None


def test_message_after_a_damaged_one_is_not_single() -> None:
    framing = EventStreamFraming()
    assert framing.single(GOOD) is not None
    framing.feed(GOOD[:5])
    assert framing.single(GOOD) is None
    framing.feed(b"\xff" * 40)
    assert framing.failure is not None
    assert framing.single(GOOD) is None
