"""What no encoder may do, on every wire."""

from __future__ import annotations

import pytest

from streamlib import (
    Created,
    CustomToolCall,
    ErrorInfo,
    FunctionCall,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningSummaryDelta,
    Response,
    ResponseEvent,
    Text,
    encoder,
)
from streamlib.wires import openai_errors
from streamlib.wires.encoders import encode_body
from streamlib.wires.frame_offsets import frame_offsets
from streamlib.wires.reasoning_text import SummaryGaps
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.items import WireApi
from streamlib_parsers.protocol import WIRE_APIS
from tests.support.cases import each_case


@each_case(
    "call",
    [
        FunctionCall("c", "find_it", '{"a', status="incomplete"),
        CustomToolCall("c", "find_it", "x", status="incomplete"),
    ],
)
@each_case("wire", WIRE_APIS)
def test_incomplete_call_is_never_in_a_body(
    wire: WireApi, call: FunctionCall | CustomToolCall
) -> None:
    response = Response("r", "m", "incomplete", (call,), stop_reason="length")
    assert b"find_it" not in encode_body(wire, response)


@each_case("wire", [wire for wire in WIRE_APIS if wire != "invoke"])
def test_item_without_deltas_waits_for_the_text_before_it(wire: WireApi) -> None:
    """And no longer: it does not wait for the end of that text."""
    encode = encoder(wire)
    events: list[ResponseEvent] = [
        Created("r", "m"),
        OutputItemAdded(0, Message("assistant")),
        OutputItemAdded(1, Message("assistant")),
        OutputItemDone(1, Message("assistant", (Text("second"),))),
        OutputTextDelta(0, 0, "first"),
    ]
    *before, last = [encode.feed(event) for event in events]
    assert b"second" not in b"".join(before)
    assert last.index(b"first") < last.index(b"second")


@pytest.mark.parametrize("wire", [wire for wire in WIRE_APIS if wire not in ("chat", "gemini")])
def test_further_choice_is_reported_where_a_wire_has_one(wire: WireApi) -> None:
    encode = encoder(wire)
    for event in (
        Created("r", "m"),
        OutputItemAdded(0, Message("assistant")),
        OutputItemAdded(1, Message("assistant", choice=1)),
    ):
        encode.feed(event)
    assert [change.action for change in encode.report if change.path == "/choices"] == ["dropped"]


def test_blank_line_is_between_paragraphs_alone() -> None:
    gaps = SummaryGaps()
    deltas = [(0, "a"), (0, "b"), (1, "c"), (1, "d"), (2, "e")]
    texts = [gaps.with_gap(ReasoningSummaryDelta(0, number, text)) for number, text in deltas]
    assert "".join(texts) == "ab\n\ncd\n\ne"


def test_remainder_of_aws_messages_is_one_range() -> None:
    message = encode_message({":event-type": "chunk"}, b"{}")
    size = len(message)
    for rest in range(1, 5):
        body = message * 2 + message[:rest]
        ranges = [(0, size), (size, 2 * size), (2 * size, 2 * size + rest)]
        assert [*frame_offsets("converse", body)] == ranges


def test_delay_is_in_an_error_where_it_is_known() -> None:
    error = ErrorInfo("rate_limited", "no")
    assert "retry_after" not in openai_errors.error_object(error)
    error = ErrorInfo("rate_limited", "no", retry_after=2.5)
    assert openai_errors.error_object(error)["retry_after"] == 2.5
