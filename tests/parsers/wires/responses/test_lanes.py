"""Messages of several lanes are handed to the responses they belong to."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from lab.websocket.interleavings import differing_lanes
from streamlib_parsers import Completed, Failed, Notice, Passthrough, accumulate, parser
from streamlib_parsers.classification import classify
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import ResponseEvent
from streamlib_parsers.wires.responses.lanes import (
    CONNECTION_LIMIT,
    Lanes,
    Turn,
    create_message,
    steer_message,
)
from tests.support.websocket_scripts import error_frame, response_frames

LOST = ErrorInfo("truncated", "lost", retryable=True)


def send(lanes: Lanes, *frames: dict[str, Any]) -> None:
    for frame in frames:
        lanes.receive(msgspec.json.encode(frame))


def events(turn: Turn) -> list[ResponseEvent]:
    """The events of a response's messages, and of its end."""
    parse = parser("responses")
    found: list[ResponseEvent] = []
    while (message := turn.next_message()) is not None:
        found.extend(parse.feed_event(message))
    if turn.failure is not None:
        return [*found, *parse.abort(turn.failure)]
    return [*found, *parse.close()]


def test_interleaved_lanes_equal_each_alone() -> None:
    assert differing_lanes(60) == []


def test_responses_of_a_lane_follow_each_other() -> None:
    lanes = Lanes()
    first, second = lanes.expect("a"), lanes.expect("a")
    send(lanes, *response_frames("r1", "One", lane="a"), *response_frames("r2", "Two", lane="a"))
    assert accumulate(events(first)).text == "One"
    assert accumulate(events(second)).text == "Two"


def test_request_that_was_not_sent_gets_no_response() -> None:
    for position in (0, 1):
        lanes = Lanes()
        turns = [lanes.expect("a"), lanes.expect("a")]
        unsent = turns.pop(position)
        lanes.forget("a", unsent)
        send(lanes, *response_frames("r1", "One", lane="a"))
        assert accumulate(events(turns[0])).text == "One"
        assert unsent.next_message() is None
        assert lanes.running == []
        lanes.forget("a", turns[0])  # it has ended: nothing to remove


def test_what_nobody_reads_is_dropped_up_to_its_end() -> None:
    lanes = Lanes()
    left, following = lanes.expect(None), lanes.expect(None)
    frames = response_frames("r1", "One")
    send(lanes, *frames[:2])
    left.abandon()
    send(lanes, *frames[2:], *response_frames("r2", "Two"))
    assert left.next_message() is None
    assert accumulate(events(following)).text == "Two"


def test_two_lanes_in_one_parser_give_a_notice() -> None:
    """A13."""
    parse = parser("responses")
    found: list[ResponseEvent] = []
    planner = response_frames("r1", "Plan", lane="planner")
    research = response_frames("r2", "Risk", lane="research")
    for pair in zip(planner, research, strict=True):
        for frame in pair:
            found.extend(parse.feed_event(msgspec.json.encode(frame)))
    notices = [event for event in found if isinstance(event, Notice)]
    assert [(notice.code, "research" in notice.detail) for notice in notices][:1] == [
        ("second_response", True)
    ]


def test_an_error_of_a_lane_ends_only_its_response() -> None:
    lanes = Lanes()
    first, second = lanes.expect("a"), lanes.expect("b")
    send(lanes, error_frame("server_error", lane="a"), *response_frames("r2", "Two", lane="b"))
    assert (first.refused, first.ended) == (True, True)
    assert isinstance(events(first)[-1], Failed)
    assert isinstance(events(second)[-1], Completed)


def test_an_error_without_lane_ends_the_unnamed_lane() -> None:
    lanes = Lanes()
    named, unnamed = lanes.expect("a"), lanes.expect(None)
    send(lanes, error_frame("previous_response_not_found"))
    assert (named.ended, unnamed.ended) == (False, True)


def test_an_error_without_lane_ends_all_named_lanes() -> None:
    lanes = Lanes()
    turns = [lanes.expect("a"), lanes.expect("b"), lanes.expect("b")]
    send(lanes, error_frame("server_error"))
    assert [turn.ended for turn in turns] == [True, True, True]
    assert not lanes.retired


def test_the_limit_of_a_connection_ends_all_and_retires_it() -> None:
    lanes = Lanes()
    turns = [lanes.expect(None), lanes.expect("b")]
    send(lanes, error_frame(CONNECTION_LIMIT))
    assert [turn.refused for turn in turns] == [True, True]
    assert lanes.retired
    failed = events(turns[0])[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.code, failed.error.retryable) == (CONNECTION_LIMIT, True)


def test_connection_limit_is_retryable() -> None:
    failure = classify(400, error_frame(CONNECTION_LIMIT))
    assert (failure.kind, failure.retryable) == ("server_error", True)


def test_a_failure_sent_twice_ends_one_response() -> None:
    lanes = Lanes()
    first, second = lanes.expect(None), lanes.expect(None)
    failed = response_frames("r1", "x", end="failed")
    send(lanes, failed[0], error_frame("server_error"), failed[-1])
    send(lanes, *response_frames("r2", "Two"))
    assert first.ended
    assert accumulate(events(second)).text == "Two"


def test_equal_ids_of_two_responses_are_two_responses() -> None:
    lanes = Lanes()
    turns = [lanes.expect(None), lanes.expect(None)]
    send(lanes, *response_frames("same", "One"), *response_frames("same", "One"))
    assert [accumulate(events(turn)).text for turn in turns] == ["One", "One"]


def test_a_lost_connection_fails_every_response() -> None:
    lanes = Lanes()
    turns = [lanes.expect(None), lanes.expect("a"), lanes.expect("a")]
    send(lanes, *response_frames("r1", "Half")[:3])
    lanes.fail(LOST)
    ends = [events(turn)[-1] for turn in turns]
    assert [end.error for end in ends if isinstance(end, Failed)] == [LOST, LOST, LOST]


def test_message_that_is_not_an_event_fails_the_connection() -> None:
    for message in (b"{", b"[1]", b'{"type":1}', b'"x"', b"\xff\xfe", b""):
        lanes = Lanes()
        turn = lanes.expect(None)
        lanes.receive(message)
        assert turn.failure is not None
        assert turn.failure.kind == "malformed"


def test_unusual_fields_of_an_event_harm_no_lane() -> None:
    lanes = Lanes()
    turn = lanes.expect(None)
    frames = response_frames("r1", "One")
    send(lanes, {"type": "codex.notice", "reason": {"a": 1}, "steer": 3, "error": None}, *frames)
    assert accumulate(events(turn)).text == "One"


@pytest.mark.parametrize("named", [{}, {"type": "server.problem"}], ids=["bare", "named"])
def test_an_error_of_another_type_ends_its_response(named: dict[str, str]) -> None:
    lanes = Lanes()
    first, second = lanes.expect(None), lanes.expect(None)
    send(lanes, {**named, "error": {"code": "server_error", "message": "no"}, "status": 500})
    send(lanes, *response_frames("r2", "Two"))
    assert isinstance(events(first)[-1], Failed)
    assert accumulate(events(second)).text == "Two"


def test_half_an_emoji_does_not_hide_its_lane() -> None:
    lanes = Lanes()
    turn = lanes.expect("a")
    frames = response_frames("r1", "A", "B", lane="a")
    halves = [msgspec.json.encode(frame) for frame in frames]
    halves[2] = halves[2].replace(b'"A"', b'"\\ud83d"')
    halves[3] = halves[3].replace(b'"B"', b'"\\ude00"')
    for message in halves[:4]:
        lanes.receive(message)
    assert accumulate(events(turn)).text == "\N{GRINNING FACE}"


def test_what_a_slow_reader_leaves_has_a_limit() -> None:
    lanes = Lanes(buffered_bytes=500)
    slow, quick = lanes.expect("a"), lanes.expect("b")
    send(lanes, *response_frames("r1", *["word"] * 50, lane="a"))
    send(lanes, *response_frames("r2", lane="b")[:1])
    assert slow.failure is not None
    assert (slow.failure.kind, slow.failure.code) == ("limit_exceeded", "buffered_bytes")
    assert slow.size <= 1000
    assert quick.failure is None


def test_a_message_of_the_connection_is_shown_to_each_response() -> None:
    lanes = Lanes()
    turns = [lanes.expect("a"), lanes.expect("b"), lanes.expect("b")]
    send(lanes, {"type": "responsesapi.websocket_timing", "ms": 3})
    assert [len(turn.messages) for turn in turns] == [1, 1, 0]
    assert isinstance(events(turns[0])[0], Passthrough)


# --- steering ---


def steer(action: str, response_id: str, **fields: Any) -> dict[str, Any]:
    steering = {"id": "steer_1", "previous_response_id": response_id}
    return {"type": f"response.steer.{action}", "steer": steering, **fields}


def test_a_steered_response_has_a_successor() -> None:
    lanes = Lanes()
    turn = lanes.expect(None)
    later = lanes.expect(None)
    frames = response_frames("r1", "Long", end="incomplete")
    send(lanes, *frames[:3], steer("accepted", "r1"), *frames[3:], *response_frames("r2", "Short"))
    send(lanes, *response_frames("r3", "Later"))
    assert turn.successor is not None
    assert accumulate(events(turn.successor)).text == "Short"
    assert accumulate(events(later)).text == "Later"


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (steer("pending", "r1", reason="waiting_for_required_input"), "waiting_for_required_input"),
        (steer("failed", "r1", error=error_frame("invalid_input")["error"]), "invalid_input"),
    ],
    ids=["pending", "failed"],
)
def test_steering_without_effect_has_no_successor(frame: dict[str, Any], code: str) -> None:
    lanes = Lanes()
    turn, following = lanes.expect(None), lanes.expect(None)
    frames = response_frames("r1", "Call")
    send(lanes, frames[0], steer("accepted", "r1"), *frames[1:], frame)
    send(lanes, *response_frames("r2", "42."))
    assert turn.successor is not None
    assert turn.successor.failure is not None
    assert turn.successor.failure.code == code
    assert accumulate(events(following)).text == "42."


def test_one_of_two_messages_of_steering_may_fail() -> None:
    lanes = Lanes()
    turn = lanes.expect(None)
    frames = response_frames("r1", "Long", end="incomplete")
    second = steer("accepted", "r1")
    second["steer"] = {"id": "steer_2", "previous_response_id": "r1"}
    refused = steer("failed", "r1", error=error_frame("invalid_input")["error"])
    send(lanes, frames[0], steer("accepted", "r1"), second, refused, *frames[1:])
    send(lanes, *response_frames("r2", "Short"))
    assert turn.successor is not None
    assert accumulate(events(turn.successor)).text == "Short"


def test_reply_to_steering_is_matched_by_its_response() -> None:
    lanes = Lanes()
    lanes.expect("a")
    steering, unknown = lanes.steer("r1"), lanes.steer("gone")
    refused = steer("failed", "gone", error=error_frame("response_not_found")["error"])
    send(lanes, response_frames("r1", lane="a")[0], refused, steer("accepted", "r1", stream_id="a"))
    assert (steering.ready, steering.failure) == (True, None)
    assert unknown.failure is not None
    assert unknown.failure.code == "response_not_found"


def test_a_lost_connection_ends_steering_and_successors() -> None:
    lanes = Lanes()
    turn = lanes.expect(None)
    frames = response_frames("r1", "Long", end="incomplete")
    send(lanes, frames[0], steer("accepted", "r1"), *frames[1:])
    steering = lanes.steer("r1")
    lanes.fail(LOST)
    assert steering.failure == LOST
    assert turn.successor is not None
    assert turn.successor.failure == LOST


# --- messages to send ---


def test_create_message_has_no_fields_of_http() -> None:
    body = msgspec.json.encode({"model": "m", "input": "hi", "stream": True, "background": False})
    sent = msgspec.json.decode(create_message(body, "a"))
    assert sent == {"type": "response.create", "stream_id": "a", "model": "m", "input": "hi"}


def test_create_message_continues_a_response() -> None:
    body = msgspec.json.encode({"model": "m", "input": ["old", "new"]})
    sent = msgspec.json.decode(create_message(body, None, "resp_1", b'["new"]'))
    assert (sent["previous_response_id"], sent["input"]) == ("resp_1", ["new"])
    assert "stream_id" not in sent


def test_steer_message_has_the_input_alone() -> None:
    sent = msgspec.json.decode(steer_message("resp_1", b'{"model":"m","input":["x"]}'))
    expected = {"type": "response.steer", "previous_response_id": "resp_1", "input": ["x"]}
    assert sent == expected


def test_random_garbage_never_raises() -> None:
    drawn = random.Random(5)
    frames = [
        *response_frames("r1", "x", lane="a"),
        *response_frames("r2", "y"),
        error_frame("x"),
        error_frame(CONNECTION_LIMIT),
        steer("accepted", "r1"),
        steer("failed", "r2", error=3),
        steer("pending", "r1", reason=None),
        {"type": "response.completed", "response": None},
        {"type": "response.created", "response": "x", "stream_id": "a"},
    ]
    for _ in range(300):
        lanes = Lanes()
        turns = [lanes.expect(drawn.choice([None, "a", "b"])) for _ in range(3)]
        send(lanes, *drawn.choices(frames, k=12))
        lanes.fail(LOST)
        for turn in turns:
            ends = [event for event in events(turn) if isinstance(event, Completed | Failed)]
            assert len(ends) == 1
