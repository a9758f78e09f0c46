"""Bedrock Converse: unknown and malformed input, truncation, exceptions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib_parsers import (
    Failed,
    Limits,
    Message,
    Opaque,
    Passthrough,
    Text,
    accumulate,
)
from streamlib_parsers.framing.eventstream import encode_message
from tests.support import wires
from tests.support.cases import each_case
from tests.support.converse_frames import (
    HALVES,
    METADATA,
    START,
    TAIL,
    Json,
    begin,
    call,
    codes,
    delta,
    end,
    error_kind,
    event,
    events_of,
    exception,
    items_of,
    raw_event,
    stop,
    texts,
)

# --- unknown input ---


def test_unknown_block_is_kept_completely() -> None:
    video = {"format": "mp4", "source": {"bytes": "AAAA"}}
    assert items_of(begin(0, video=video), stop(0)) == [Opaque("video", {"video": video})]


def test_unknown_event_passes_through_in_order() -> None:
    events = events_of(
        START,
        delta(0, text="a"),
        event("contentBlockNews", x=1),
        raw_event("pulse", b"not json"),
        texts(0, "b"),
        TAIL,
    )
    kinds = [type(event).__name__ for event in events]
    assert kinds[2:6] == ["OutputTextDelta", "Passthrough", "Passthrough", "OutputTextDelta"]
    assert Passthrough("pulse", "not json") in events


@pytest.mark.parametrize(
    "member", [{"video": {}}, {"reasoningContent": {"novel": "x"}}, {"toolUse": {"input": "{}"}}]
)
def test_inapplicable_delta_marks_its_block_incomplete(member: Json) -> None:
    opener = (
        {"reasoningContent": {"text": "Hm"}} if "reasoningContent" in member else {"text": "Hi"}
    )
    events = events_of(START, delta(0, **opener), delta(0, **member), stop(0), TAIL)
    assert accumulate(events).items[0].status == "incomplete"
    assert codes(events) == ["unknown_delta"]
    assert [event.data["delta"] for event in events if isinstance(event, Passthrough)] == [member]


WRONG_BLOCKS = [
    (delta(0, reasoningContent={"text": "Hm"}), {"text": "Hi"}),
    (delta(0, reasoningContent={"text": "Hm"}), {"citation": {"title": "facts"}}),
    (begin(0, toolUse={"toolUseId": "t", "name": "f"}), {"text": "Hi"}),
    (begin(0, toolUse={"toolUseId": "t", "name": "f"}), {"reasoningContent": {"text": "Hm"}}),
    (delta(0, text="Hi"), {"toolUse": {"input": "{}"}}),
    (delta(0, text="Hi"), {"toolResult": [{"text": "a"}]}),
    (delta(0, text="Hi"), {"image": {"source": {"bytes": "AAAA"}}}),
]


@pytest.mark.parametrize(("opener", "member"), WRONG_BLOCKS)
def test_delta_for_another_kind_of_block_is_rejected(opener: bytes, member: Json) -> None:
    events = events_of(START, opener, delta(0, **member), stop(0), TAIL)
    assert accumulate(events).items[0].status == "incomplete"
    assert codes(events) == ["unknown_delta"]
    assert [event.data["delta"] for event in events if isinstance(event, Passthrough)] == [member]


def test_citation_with_text_in_an_open_block_keeps_both() -> None:
    cited = delta(0, text="Ruby", citation={"title": "facts"})
    (item,) = items_of(delta(0, text="A "), cited, stop(0))
    assert item.content == (Text("A Ruby", ({"title": "facts"},)),)


def test_unknown_delta_without_a_block_passes_through() -> None:
    events = events_of(START, delta(0, video={"x": 1}), stop(0), texts(1, "Hi"), TAIL)
    assert accumulate(events).text == "Hi"
    assert codes(events) == ["unknown_delta"]


def test_empty_delta_is_ignored() -> None:
    assert items_of(delta(0), delta(0, text="Hi"), delta(0), stop(0)) == [
        Message("assistant", (Text("Hi"),))
    ]


# --- malformed input ---


@each_case(
    "blocks",
    [
        begin(0, toolUse={"toolUseId": "a", "name": "f"}) * 2,
        delta(0, text="a") + begin(0, toolUse={"toolUseId": "a", "name": "f"}),
        begin(0) * 2,
        texts(0, "a") + delta(0, text="b"),
        texts(0, "a") + delta(0, video={}),
        delta(0, toolUse={"input": "{}"}),
        delta(0, toolResult=[{"text": "a"}]),
        event("contentBlockDelta", contentBlockIndex=0, delta={"text": 1}),
        event("contentBlockDelta", contentBlockIndex=0, delta=[]),
        event("contentBlockStart", contentBlockIndex=0, start={"toolUse": "x"}),
        event("contentBlockStart", contentBlockIndex=0, start=7),
        raw_event("contentBlockDelta", b"{"),
        raw_event("contentBlockStop", b"[]"),
    ],
)
def test_invalid_event_order_and_payloads_are_malformed(blocks: bytes) -> None:
    assert error_kind(START, blocks, TAIL) == "malformed"


@each_case("index", [-1, "0", 1.5, 10**7, None, True])
@each_case("name", ["contentBlockStart", "contentBlockDelta", "contentBlockStop"])
def test_invalid_index_is_malformed(name: str, index: Any) -> None:
    assert (
        error_kind(START, event(name, contentBlockIndex=index, delta={"text": "a"}, start={}), TAIL)
        == "malformed"
    )


def test_integral_float_index_is_accepted() -> None:
    deltas = (
        event("contentBlockDelta", contentBlockIndex=0.0, delta={"text": "Hi"}),
        event("contentBlockStop", contentBlockIndex=0.0),
    )
    assert [item.text for item in items_of(*deltas)] == ["Hi"]
    called = event(
        "contentBlockStart",
        contentBlockIndex=1.0,
        start={"toolUse": {"toolUseId": "t", "name": "f"}},
    )
    more = event(
        "contentBlockDelta", contentBlockIndex=1.0, delta={"toolUse": {"input": '{"a":1}'}}
    )
    (call,) = items_of(called, more, event("contentBlockStop", contentBlockIndex=1.0))
    assert (call.name, call.arguments, call.status) == ("f", '{"a":1}', "completed")


def test_events_after_message_stop_pass_through() -> None:
    events = events_of(START, texts(0, "Hi"), end(), delta(1, text="late"), START, METADATA)
    assert accumulate(events).text == "Hi"
    assert codes(events) == ["out_of_order", "out_of_order"]
    assert [event.event for event in events if isinstance(event, Passthrough)] == [
        "contentBlockDelta",
        "messageStart",
    ]


@pytest.mark.parametrize(
    "blocks", [stop(1) + texts(0, "Hi"), texts(0, "Hi") + stop(0), texts(0, "Hi") + stop(7) * 2]
)
def test_stop_of_a_block_that_is_not_open_passes_through(blocks: bytes) -> None:
    events = events_of(START, blocks, TAIL)
    response = accumulate(events)
    assert (response.status, response.text) == ("completed", "Hi")
    passed = [event.event for event in events if isinstance(event, Passthrough)]
    assert set(passed) == {"contentBlockStop"}
    assert codes(events) == ["out_of_order"] * len(passed)


def test_message_stop_closes_blocks_without_stop() -> None:
    open_call = begin(1, toolUse={"toolUseId": "t", "name": "f"}) + delta(
        1, toolUse={"input": "{}"}
    )
    events = events_of(START, delta(0, text="Hi"), open_call, end("tool_use"), METADATA)
    assert [item.status for item in accumulate(events).items] == ["completed", "completed"]
    assert codes(events) == ["unclosed_block", "unclosed_block"]


def test_block_without_stop_is_incomplete_at_the_limit() -> None:
    response = wires.response_of(
        "converse",
        START,
        begin(0, toolUse={"toolUseId": "t", "name": "f"}),
        end("max_tokens"),
        METADATA,
    )
    assert response.calls == []
    assert response.items[0].status == "incomplete"


# --- failures ---

EXCEPTIONS = {
    "internalServerException": "server_error",
    "modelStreamErrorException": "server_error",
    "validationException": "invalid_request",
    "throttlingException": "rate_limited",
    "serviceUnavailableException": "overloaded",
    "accessDeniedException": "permission",
}


@each_case("name, kind", EXCEPTIONS.items())
@each_case("before", [b"", START + delta(0, text="Hi")])
def test_exception_is_classified_by_name_and_keeps_text(
    name: str, kind: str, before: bytes
) -> None:
    events = events_of(before, exception(name, message="Too bad"))
    last = events[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, last.error.message) == (kind, "Too bad")
    assert accumulate(events).text == ("Hi" if before else "")


def test_exception_after_message_stop_is_a_failure() -> None:
    assert (
        error_kind(START, texts(0, "Hi"), end(), exception("internalServerException", message="x"))
        == "server_error"
    )


def test_upstream_error_is_classified_by_its_status() -> None:
    error = wires.error_of(
        "converse",
        START,
        exception("modelStreamErrorException", message="x", originalStatusCode=429),
    )
    assert error.status == 429
    assert error.retryable


def test_error_frame_without_payload_is_a_failure() -> None:
    frame = encode_message(
        {":message-type": "error", ":error-code": "503", ":error-message": "busy"}, b""
    )
    error = wires.error_of("converse", START, frame)
    assert (error.kind, error.message) == ("overloaded", "busy")


@pytest.mark.parametrize("code", ["²²²", "ServiceUnavailable", "5030"])
def test_error_code_that_is_not_a_http_status_is_kept(code: str) -> None:
    """`"²".isdigit()` is true, yet `int` raised ValueError out of the parser."""
    frame = encode_message(
        {":message-type": "error", ":error-code": code, ":error-message": "busy"}, b""
    )
    error = wires.error_of("converse", START, frame)
    assert (error.status, error.code) == (None, code)


def test_exception_recorded_as_a_line_is_a_failure() -> None:
    events = wires.events_of_lines(
        "converse", [json.dumps({"throttlingException": {"message": "slow down"}})]
    )
    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == "rate_limited"


@pytest.mark.parametrize(
    "body",
    [START, START + delta(0, text="Hi"), START + texts(0, "Hi")],
    ids=["before any block", "inside", "before the stop"],
)
def test_end_without_message_stop_is_truncated(body: bytes) -> None:
    assert error_kind(body) == "truncated"


def test_truncated_frame_after_message_stop_is_truncated() -> None:
    body = START + texts(0, "Hi") + TAIL
    for length in range(len(body) - len(METADATA) + 1, len(body)):
        assert error_kind(body[:length]) == "truncated"


def test_truncated_block_keeps_its_fragments() -> None:
    start = (
        begin(0, toolResult={"toolUseId": "t1"})
        + delta(0, toolResult=[{"text": "a"}])
        + delta(0, toolResult=[{"text": "b"}])
    )
    response = wires.response_of("converse", START, start)
    assert response.items[0].output == [{"text": "ab"}]  # type: ignore[union-attr]
    assert response.items[0].status == "incomplete"


def test_prefix_of_a_stream_never_completes_with_less() -> None:
    body = START + texts(0, "Hel", "lo") + call(1, '{"a":', "1}") + end("tool_use") + METADATA
    complete = wires.response_of("converse", body)
    for length in range(len(body)):
        response = wires.response_of("converse", body[:length])
        assert response.status == "failed" or response.items == complete.items


def test_arguments_over_the_limit_fail() -> None:
    events = events_of(START, call(0, "1" * 50, "2" * 51), TAIL, limits=Limits(argument_bytes=100))
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, events[-1].error.code) == ("limit_exceeded", "argument_bytes")


@pytest.mark.parametrize("depth", [200, 480, 960, 5000])
def test_deep_nesting_fails_without_an_exception(depth: int) -> None:
    for inner in ("1", HALVES[0]):
        nested = "[" * depth + inner + "]" * depth
        for payload in (
            f'{{"x":{nested}}}',
            f'{{"contentBlockStart":{{"contentBlockIndex":0,"start":{{"x":{nested}}}}}}}',
        ):
            assert isinstance(wires.events_of_lines("converse", [payload])[-1], Failed)
