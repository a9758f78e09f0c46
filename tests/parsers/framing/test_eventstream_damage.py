"""AWS event stream framing: damaged and random bytes never become a wrong message."""

from __future__ import annotations

import base64
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers.framing.eventstream import (
    EventStreamFraming,
    encode_message,
)
from tests.support.eventstream_messages import (
    EVENT,
    EVERY_TYPE,
    damaged,
    events,
    messages_of,
    raw_message,
)
from tests.support.framings import read
from tests.support.metrics import figure
from tests.support.partitions import partitions
from tests.support.shared import each_vector

# --- damage ---


def valid_bodies() -> list[bytes]:
    """Some 7 KB of valid messages of all sizes.

    Without headers, without payload, with every header type, and several in one stream.
    """
    payloads = [
        b'{"delta":{"text":"%s"},"p":"%s"}' % (b"x" * n, b"abcdefgh" * (n % 5))
        for n in range(0, 300, 25)
    ]
    return [
        raw_message(b""),
        raw_message(b"", b"{'foo':'bar'}"),
        raw_message(EVERY_TYPE, b"payload"),
        raw_message(EVERY_TYPE),
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


def test_flipped_bit_never_emits_a_wrong_message() -> None:
    flips = 0
    for body in valid_bodies():
        valid = messages_of([body])[0]
        for bit in range(len(body) * 8):
            messages, failure = messages_of([damaged(body, [bit])])
            flips += 1
            assert failure is not None
            assert messages == valid[: len(messages)]
            assert len(messages) < len(valid)
    figure("bit flips", flips)
    assert flips >= 50_000


@each_vector("aws_eventstream_vectors")
def test_flipped_bit_of_a_vector_never_emits_a_wrong_message(vector: dict[str, Any]) -> None:
    body = base64.b64decode(vector["raw_b64"])
    valid, failure = messages_of([body])
    for bit in range(len(body) * 8) if failure is None else ():
        messages, failure = messages_of([damaged(body, [bit])])
        assert failure is not None
        assert messages == valid[: len(messages)]


def test_two_flipped_bits_never_emit_a_wrong_message() -> None:
    rng = random.Random(14)
    for body in valid_bodies():
        valid = messages_of([body])[0]
        for _ in range(200):
            messages, failure = messages_of([damaged(body, rng.sample(range(len(body) * 8), 2))])
            assert failure is not None
            assert messages == valid[: len(messages)]


@given(st.data())
def test_damaged_stream_reads_the_same_in_any_partition(data: st.DataObject) -> None:
    body = raw_message(EVERY_TYPE, b"payload") + events(2)
    bits = st.integers(0, len(body) * 8 - 1)
    broken = damaged(body, data.draw(st.lists(bits, max_size=3))) + data.draw(
        st.binary(max_size=30)
    )
    assert read(EventStreamFraming(), data.draw(partitions(broken))) == read(
        EventStreamFraming(), [broken]
    )


@given(st.binary(max_size=400), st.data())
def test_any_bytes_end_in_our_failure_in_any_partition(body: bytes, data: st.DataObject) -> None:
    expected = read(EventStreamFraming(), [body])
    assert expected.frames == []
    assert (expected.kind is None) == (body == b"")
    assert read(EventStreamFraming(), data.draw(partitions(body))) == expected


@given(st.binary(max_size=120), st.data())
def test_any_header_block_is_read_or_malformed_in_any_partition(
    block: bytes, data: st.DataObject
) -> None:
    body = raw_message(block, b"{}")
    messages, failure = messages_of([body])
    assert (failure is None) == (len(messages) == 1)
    assert failure is None or failure.kind == "malformed"
    assert messages_of(data.draw(partitions(body))) == (messages, failure)
