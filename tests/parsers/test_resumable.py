"""`ResumableParser`: positions, and another connection in the middle of a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Completed, Failed, ResponseEvent
from streamlib_parsers.items import WireApi
from streamlib_parsers.limits import Limits
from streamlib_parsers.protocol import parser
from streamlib_parsers.resumable import Position, ResumableParser
from tests.support.cases import each_case

RESPONSE = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "m"}
ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
DONE = {**ITEM, "status": "completed", "content": [{"type": "output_text", "text": "one two"}]}


def sse(*events: dict[str, Any], line_end: str = "\n") -> list[bytes]:
    """One frame an event."""
    frames: list[bytes] = []
    for event in events:
        kind = event.get("type") or event["event_type"]
        frames.append(f"event: {kind}\ndata: {json.dumps(event)}\n\n".encode())
    return [frame.replace(b"\n", line_end.encode()) for frame in frames]


def responses_frames(line_end: str = "\n") -> list[bytes]:
    """A background stream of Responses: seven frames, numbered."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**RESPONSE, "status": "queued"}},
        {"type": "response.queued", "response": {**RESPONSE, "status": "queued"}},
        {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "one "},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "two"},
        {"type": "response.output_item.done", "output_index": 0, "item": DONE},
        {
            "type": "response.completed",
            "response": {**RESPONSE, "status": "completed", "output": [DONE]},
        },
    ]
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return sse(*numbered, line_end=line_end)


def interactions_frames() -> list[bytes]:
    """A background stream of Interactions: six frames with ids."""
    interaction = {"id": "v1_a", "model": "m", "status": "in_progress"}
    events: list[dict[str, Any]] = [
        {"event_type": "interaction.created", "interaction": interaction},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "one "}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "two"}},
        {"event_type": "step.stop", "index": 0},
        {
            "event_type": "interaction.completed",
            "interaction": {**interaction, "status": "completed"},
        },
    ]
    return sse(*({**event, "event_id": f"e-{n}"} for n, event in enumerate(events)))


FRAMES: dict[WireApi, list[bytes]] = {
    "responses": responses_frames(),
    "interactions": interactions_frames(),
}


def resumable(wire_api: WireApi = "responses", after: Position | None = None) -> ResumableParser:
    """A new parser."""
    return ResumableParser(parser(wire_api), after=after)


def unbroken(wire_api: WireApi, frames: list[bytes]) -> list[ResponseEvent]:
    """The events of the stream in one piece."""
    whole = parser(wire_api)
    return whole.feed(b"".join(frames)) + whole.close()


def behind(frames: list[bytes], wire_api: WireApi, position: Position | None) -> int:
    """Index of the frame behind a position."""
    if isinstance(position, str):
        position = int(position.removeprefix("e-"))
    return 0 if position is None else position + 1


@pytest.mark.parametrize("wire_api", ["responses", "interactions"])
@pytest.mark.parametrize("repeated", [0, 2])
def test_events_are_those_of_the_unbroken_stream(wire_api: WireApi, repeated: int) -> None:
    """A break at every byte; a server that begins exactly behind the position, or earlier."""
    frames = FRAMES[wire_api]
    body = b"".join(frames)
    expected = unbroken(wire_api, frames)
    for cut in range(len(frames[0]), len(body)):
        parse = resumable(wire_api)
        events = parse.feed(body[:cut])
        parse.reconnect()
        first = behind(frames, wire_api, parse.position)
        events += parse.feed(b"".join(frames[max(0, first - repeated) :]))
        events += parse.close()
        assert events == expected, cut
        assert [event.seq for event in events] == list(range(len(events)))


def test_nothing_follows_a_position_that_never_came() -> None:
    """The failure was not delivered yet, so the caller is where it was before."""
    parse = resumable(after=99)
    assert [type(event) for event in parse.feed(b"".join(FRAMES["responses"]))] == [Failed]
    assert [parse.position_before(undelivered) for undelivered in (1, 0)] == [99, 99]
    again = [frame.replace(b'_number": ', b'_number": 9') for frame in FRAMES["responses"]]
    assert parse.feed(b"".join(again)) == []


@each_case("line_end", ["\n", "\r\n", "\r"])
@each_case("size", [1, 7, 4096])
def test_chunks_and_line_ends_change_nothing(line_end: str, size: int) -> None:
    body = b"".join(responses_frames(line_end))
    parse = resumable()
    events: list[ResponseEvent] = []
    for start in range(0, len(body), size):
        events += parse.feed(body[start : start + size])
    assert events + parse.close() == unbroken("responses", responses_frames())
    assert (parse.position, parse.response_id) == (6, "resp_1")


def test_second_connection_may_begin_with_a_byte_order_mark() -> None:
    frames = FRAMES["responses"]
    parse = resumable()
    events = parse.feed(b"\xef\xbb\xbf" + b"".join(frames[:4]))
    parse.reconnect()
    events += parse.feed(b"\xef\xbb\xbf" + b"".join(frames[4:]))
    assert events == unbroken("responses", frames)


def test_server_that_numbers_every_event_0_loses_nothing() -> None:
    """Only what a second connection repeats is dropped."""
    frames = [frame.replace(b'"sequence_number": ', b'"n": ') for frame in FRAMES["responses"]]
    frames = [frame.replace(b'{"type"', b'{"sequence_number":0,"type"') for frame in frames]
    parse = resumable()
    events = parse.feed(b"".join(frames))
    assert isinstance(events[-1], Completed)


def test_position_is_of_what_was_delivered() -> None:
    parse = resumable()
    events = parse.feed(b"".join(FRAMES["responses"][:4]))
    assert parse.position == 3
    positions = [parse.position_before(len(events) - n) for n in range(len(events) + 1)]
    assert positions[0] is None
    assert positions[-1] == 3
    known = [position for position in positions if isinstance(position, int)]
    assert known == sorted(known)
    # The next call begins with everything delivered.
    parse.feed(FRAMES["responses"][4][:20])
    assert parse.position_before(0) == 3
    assert len(parse._marks) == 1  # no memory of what was delivered


@pytest.mark.parametrize("wire_api", ["responses", "interactions"])
def test_stream_from_its_start_yields_what_follows_a_position(wire_api: WireApi) -> None:
    frames = FRAMES[wire_api]
    expected = unbroken(wire_api, frames)
    for number in range(len(frames)):
        position: Position = number if wire_api == "responses" else f"e-{number}"
        parse = resumable(wire_api, after=position)
        events = parse.feed(b"".join(frames)) + parse.close()
        assert parse.replayed + events == expected
        # The terminal event is always delivered: who waits for the end must get it.
        assert isinstance(events[-1], Completed)
        before = parser(wire_api).feed(b"".join(frames[: number + 1]))
        assert len(parse.replayed) == len(before) - (number == len(frames) - 1)


def test_position_stays_while_old_events_are_replayed() -> None:
    parse = resumable(after=3)
    parse.feed(b"".join(FRAMES["responses"][:2]))
    assert parse.position_before(0) == 3


@pytest.mark.parametrize(("wire_api", "after"), [("responses", 99), ("interactions", "e-99")])
def test_position_that_never_comes_fails(wire_api: WireApi, after: Position) -> None:
    """All events were taken for old ones: nobody may think that there was nothing new."""
    parse = resumable(wire_api, after=after)
    events = parse.feed(b"".join(FRAMES[wire_api]))
    assert len(events) == 1
    assert isinstance(events[0], Failed)
    assert (events[0].error.kind, events[0].error.code) == ("invalid_request", "cursor")


def test_wire_without_positions_is_refused() -> None:
    with pytest.raises(ValueError, match="messages have no positions"):
        ResumableParser(parser("messages"))


def test_unfinished_event_at_the_end_is_read_as_by_a_parser() -> None:
    frames = FRAMES["responses"]
    for end in range(len(frames[3])):
        body = b"".join(frames[:3]) + frames[3][:end]
        plain, parse = parser("responses"), resumable()
        expected = plain.feed(body) + plain.close()
        assert parse.feed(body) + parse.close() == expected


@pytest.mark.parametrize("wire_api", ["responses", "interactions"])
@pytest.mark.parametrize("missing", [1, 2])
def test_event_without_its_blank_line_has_a_position(wire_api: WireApi, missing: int) -> None:
    """The first event names the response: complete but for its end, it can be taken up."""
    frames = FRAMES[wire_api]
    for number in range(len(frames)):
        parse = resumable(wire_api)
        events = parse.feed(b"".join(frames[: number + 1])[:-missing])
        events += parse.finish_event()
        assert behind(frames, wire_api, parse.position) == number + 1
        assert parse.response_id is not None
        assert parse.position_before(0) == parse.position
        parse.reconnect()
        events += parse.feed(b"".join(frames[number + 1 :]))
        assert events == unbroken(wire_api, frames)


def test_closed_stream_has_the_position_of_its_last_event() -> None:
    parse = resumable()
    events = parse.feed(FRAMES["responses"][0][:-1]) + parse.close()
    assert isinstance(events[-1], Failed)
    assert (parse.position_before(0), parse.response_id) == (0, "resp_1")


def test_event_over_the_limit_ends_the_stream() -> None:
    limits = Limits(event_bytes=64)
    parse = ResumableParser(parser("responses", limits=limits), limits=limits)
    events: list[ResponseEvent] = []
    for _ in range(20):
        events += parse.feed(b"data: " + b"x" * 10)
    assert isinstance(events[-1], Failed)
    assert events[-1].error.code == "event_bytes"


def test_aborted_stream_ends_with_the_error() -> None:
    parse = resumable()
    parse.feed(FRAMES["responses"][0])
    events = parse.abort(ErrorInfo("cancelled", "stopped"))
    assert [type(event) for event in events] == [Failed]
    assert parse.position_before(0) == 0
