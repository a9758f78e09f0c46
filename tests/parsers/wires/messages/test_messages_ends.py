"""Anthropic Messages: complete, truncated and failed streams, and complete bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from streamlib.testing.invariants import join_deltas
from streamlib_parsers import (
    Completed,
    Failed,
    FunctionCallArgumentsDelta,
    Limits,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningContentDelta,
    TokenCount,
    Usage,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.wires.messages import BLOCKS
from tests.support.cases import each_case
from tests.support.messages_frames import (
    STOP,
    TEXT,
    THINKING,
    TOOL,
    block,
    delta,
    end,
    error_of,
    events_of,
    frame,
    response_of,
    start,
    text_deltas,
)
from tests.support.partitions import byte_by_byte, partitions
from tests.support.shared import BODIES, Recording, each_recording

# --- ends and failures ---


@pytest.mark.parametrize("reason", ["end_turn", None])
def test_stream_without_message_stop_is_truncated(reason: str | None) -> None:
    body = start() + block(0, TEXT, *text_deltas("Hello")) + end(reason).removesuffix(STOP)
    response = response_of(body)
    assert (response.status, response.text) == ("failed", "Hello")
    assert response.error is not None
    assert (response.error.kind, response.error.retryable) == ("truncated", True)


def test_truncated_message_stop_keeps_the_partial_response() -> None:
    """The frame's JSON is incomplete: truncated, with everything before it."""
    response = response_of((start() + block(0, TEXT, *text_deltas("Hello")) + end())[:-5])
    assert response.error is not None
    assert (response.error.kind, response.text, response.usage) == (
        "truncated",
        "Hello",
        Usage(25, 9, raw={"input_tokens": 25, "output_tokens": 9}),
    )


@pytest.mark.parametrize("missing", [1, 2])
def test_missing_last_blank_line_completes_with_a_notice(missing: int) -> None:
    response = response_of((start() + block(0, TEXT, *text_deltas("x")) + end())[:-missing])
    assert response.status == "completed"
    assert [notice.code for notice in response.notices] == ["end_inferred"]


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "tool_use", None])
def test_complete_call_makes_the_stop_reason_tool_calls(reason: str | None) -> None:
    """A20: an agent loop that goes by the stop reason must answer the call."""
    response = response_of(start() + block(0, TOOL) + end(reason))
    assert (response.stop_reason, response.native_stop_reason) == ("tool_calls", reason)
    assert (response.unfinished, len(response.calls), response.notices) == (True, 1, ())


@pytest.mark.parametrize(("has_result", "expected"), [(True, "stop"), (False, "tool_calls")])
def test_call_made_by_finished_code_does_not_wait(has_result: bool, expected: str) -> None:
    """A20: code that the provider ran called the tool, got its result and ended."""
    code = {"type": "server_tool_use", "id": "srv_1", "name": "code_execution", "input": {}}
    called = {**TOOL, "caller": {"type": "code_execution_20250825", "tool_id": "srv_1"}}
    result = {"type": "code_execution_tool_result", "tool_use_id": "srv_1", "content": {}}
    body = start() + block(0, code) + block(1, called)
    if has_result:
        body += block(2, result)
    assert response_of(body + end("end_turn")).stop_reason == expected


@pytest.mark.parametrize(
    ("reason", "expected"), [("max_tokens", "length"), ("refusal", "refusal"), ("new", "other")]
)
def test_other_stop_reasons_stay_beside_a_call(reason: str, expected: str) -> None:
    """A20: only a usual end is repaired."""
    assert response_of(start() + block(0, TOOL) + end(reason)).stop_reason == expected


def test_announced_call_that_never_came_is_a_stop_with_a_notice() -> None:
    """A20: an agent loop would otherwise send the same request again."""
    response = response_of(start() + block(0, TEXT, *text_deltas("Hi")) + end("tool_use"))
    assert (response.stop_reason, response.native_stop_reason) == ("stop", "tool_use")
    assert [notice.code for notice in response.notices] == ["no_tool_call"]
    assert not response.unfinished


def test_incomplete_call_does_not_turn_a_stop_into_tool_calls() -> None:
    """A20: a call that nobody can run is no reason to go on."""
    unfinished = block(0, TOOL, {"kind": "input_json_delta", "partial_json": '{"a'})
    response = response_of(start() + unfinished + end("end_turn"))
    assert (response.stop_reason, response.calls) == ("stop", [])


def test_call_truncated_by_max_tokens_is_never_callable() -> None:
    unfinished = frame("content_block_start", index=0, content_block=TOOL) + delta(
        0, "input_json_delta", partial_json='{"city": "Par'
    )
    response = response_of(start() + unfinished + end("max_tokens"))
    assert (response.stop_reason, response.calls) == ("length", [])
    assert (response.items[0].status, response.items[0].arguments) == (
        "incomplete",
        '{"city": "Par',
    )  # type: ignore[union-attr]


def test_closed_call_with_invalid_json_is_never_callable() -> None:
    response = response_of(
        start()
        + block(0, TOOL, {"kind": "input_json_delta", "partial_json": '{"unit": celsius}'})
        + end("tool_use")
    )
    assert response.calls == []
    assert [notice.code for notice in response.notices] == ["invalid_arguments"]


def test_error_event_is_classified_and_keeps_partial_text() -> None:
    failed = frame("error", error={"type": "overloaded_error", "message": "Overloaded"})
    for body, text in (
        (start() + failed, ""),
        (start() + block(0, TEXT, *text_deltas("Hel")) + failed, "Hel"),
    ):
        response = response_of(body)
        assert response.error is not None
        assert (response.error.kind, response.error.retryable, response.text) == (
            "overloaded",
            True,
            text,
        )


def test_usage_is_reported_with_the_first_event() -> None:
    p = parser("messages")
    assert any(isinstance(event, TokenCount) for event in p.feed(start()))


@each_case(
    "body",
    [
        start() + block(0, TEXT) + block(0, TEXT),
        start() + delta(0, "text_delta", text="x"),
        start() + block(0, TEXT) + delta(0, "text_delta", text="x"),
        start() + b"data: {broken\n\n",
        start() + b"data: 1\n\n",
        start() + b"data: null\n\n",
        start() + b"data: []\n\n",
        b"<html>no</html>",
        b"",
        b": ping\n\n: ping\n\n",
    ],
)
def test_input_of_another_format_is_malformed(body: bytes) -> None:
    assert error_of(body) == "malformed"


@pytest.mark.parametrize("index", [-1, 2**53 + 1, 2**64, "0", None, True, 1.5])
def test_invalid_index_is_malformed(index: Any) -> None:
    assert (
        error_of(start() + frame("content_block_start", index=index, content_block=TEXT))
        == "malformed"
    )


def test_fractional_index_is_malformed_when_type_is_missing() -> None:
    untyped = b'event: content_block_start\ndata: {"index":1.5,"content_block":{"type":"text"}}\n\n'
    assert error_of(start() + untyped) == "malformed"


def test_integral_float_index_is_accepted() -> None:
    body = (
        start() + block(0, TEXT, *text_deltas("x")).replace(b'"index": 0', b'"index": 0.0') + end()
    )
    assert response_of(body).text == "x"


def test_exceeded_limits_end_the_stream_with_their_name() -> None:
    call = frame("content_block_start", index=0, content_block=TOOL) + delta(
        0, "input_json_delta", partial_json="x" * 50
    )
    many = b"".join(block(n, TEXT) for n in range(5))
    for limits, body, code in (
        (Limits(argument_bytes=40), start() + call, "argument_bytes"),
        (Limits(items=3), start() + many, "items"),
        (Limits(response_bytes=200), start() + many, "response_bytes"),
        (Limits(event_bytes=100), start() + many, "event_bytes"),
    ):
        events = events_of(body, limits=limits)
        assert isinstance(events[-1], Failed)
        assert (events[-1].error.kind, events[-1].error.code) == ("limit_exceeded", code)
        assert events_of(*byte_by_byte(body), limits=limits) == events


# --- complete bodies ---


def test_body_emits_added_one_delta_and_done_per_item() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Hello"},
        {**TOOL, "input": {"a": 1.0}},
    ]
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "tool_use",
    }
    events = parse_body(
        "messages", json.dumps({**body, "usage": {"input_tokens": 1, "output_tokens": 2}}).encode()
    )
    deltas = [
        event
        for event in events
        if isinstance(event, (OutputTextDelta, ReasoningContentDelta, FunctionCallArgumentsDelta))
    ]
    assert [event.delta for event in deltas] == ["hm", "Hello", '{"a": 1.0}']
    assert isinstance(events[-1], Completed)


def test_body_and_stream_emit_the_same_events() -> None:
    stream = events_of(start(content=[]) + block(0, TEXT, *text_deltas("Hel", "lo")) + end())
    body = {
        "id": "msg_1",
        "type": "message",
        "model": "claude-x",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
    }
    complete = parse_body(
        "messages", json.dumps({**body, "usage": {"input_tokens": 25, "output_tokens": 9}}).encode()
    )
    compared = (OutputItemAdded, OutputTextDelta, OutputItemDone)
    assert [event for event in join_deltas(stream) if isinstance(event, compared)] == [
        event for event in complete if isinstance(event, compared)
    ]


def test_body_without_stop_reason_is_complete() -> None:
    response = accumulate(parse_body("messages", b'{"type":"message","content":[]}'))
    assert (response.status, response.stop_reason) == ("completed", "other")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            401,
            b'{"type":"error","error":{"type":"authentication_error","message":"no"}}',
            "authentication",
        ),
        (
            529,
            b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}',
            "overloaded",
        ),
        (502, b"<html>bad gateway</html>", "server_error"),
        (
            None,
            b'{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}',
            "rate_limited",
        ),
        (200, b'{"something":"else"}', "malformed"),
    ],
)
def test_error_bodies_fail_with_their_kind(status: int | None, body: bytes, kind: str) -> None:
    response = accumulate(parse_body("messages", body, status=status))
    assert response.error is not None
    assert (response.error.kind, response.error.status or status) == (kind, status)


@each_recording("anthropic-messages", BODIES)
def test_recorded_bodies_end_in_a_terminal_event(recording: Recording) -> None:
    events = parse_body("messages", recording.body, status=recording.meta.get("status"))
    assert isinstance(events[-1], (Completed, Failed))
    assert isinstance(events[-1], Failed) == (recording.meta.get("status", 200) >= 400)


@given(
    partitions(
        start()
        + block(0, THINKING, {"kind": "thinking_delta", "thinking": "é😀"})
        + block(1, TEXT, *text_deltas("a\u2028b"))
        + end()
    )
)
def test_events_are_independent_of_partition(chunks: list[bytes]) -> None:
    assert events_of(*chunks) == events_of(b"".join(chunks))


def test_machine_is_complete_before_the_terminal_event() -> None:
    p = parser("messages")
    p.feed(start() + end())
    assert (p.complete, p.ended) == (True, False)
    assert isinstance(p.close()[-1], Completed)
    assert (p.ended, p.close(), p.feed(start())) == (True, [], [])


def test_every_block_kind_has_a_test() -> None:
    """A new block kind needs its test above."""
    assert set(BLOCKS) == {
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "compaction",
    }
