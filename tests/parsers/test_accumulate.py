"""Events to a response: what an accumulator refuses, and what a response shows of itself."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from streamlib_parsers import (
    AnnotationAdded,
    Completed,
    ContentPart,
    CustomToolCall,
    ErrorInfo,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    MediaDelta,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ReasoningContentDelta,
    ReasoningSummaryDelta,
    Refusal,
    RefusalDelta,
    Response,
    ResponseEvent,
    ResponseMetadata,
    Text,
    Usage,
    accumulate,
)
from streamlib_parsers.accumulate import Accumulator
from tests.support.cases import each_case

LATE_EVENTS = [
    OutputTextDelta(3, 0, "a"),
    ReasoningContentDelta(3, 0, "a"),
    ReasoningSummaryDelta(3, 0, "a"),
    RefusalDelta(3, 0, "a"),
    FunctionCallArgumentsDelta(3, "{"),
    MediaDelta(3, 0, "image/png", "AAAA"),
    AnnotationAdded(3, 0, {}),
]


@each_case("event", LATE_EVENTS, ids=lambda event: type(event).__name__)
@each_case("done", [False, True])
def test_delta_without_its_open_item_is_a_clear_error(event: Any, done: bool) -> None:
    """A16: an accumulator that was started in the middle of a stream."""
    accumulator = Accumulator()
    if done:
        accumulator.feed(OutputItemDone(3, Message("assistant", (Text("a"),))))
    before = accumulator.response
    with pytest.raises(ValueError, match=f"{type(event).__name__} for item 3, which is not open"):
        accumulator.feed(event)
    assert accumulator.response == before


# --- what a response shows of itself ---


def response_of(*texts: str, usage: Usage | None = None) -> Response:
    """A complete response with one message for each text."""
    items = [
        OutputItemDone(index, Message("assistant", (Text(text),)))
        for index, text in enumerate(texts)
    ]
    end = Completed("r-1", "m-1", "stop", usage=usage)
    return accumulate([*items, ResponseMetadata({"note": "sk-canary-0123456789"}), end])


def test_repr_of_a_response_is_one_short_line() -> None:
    """D5: it was 1,487 characters for 107 of text."""
    response = response_of("You said: hello", usage=Usage(input_tokens=1, output_tokens=20))
    assert repr(response) == (
        "Response(completed, stop, 'You said: hello', [Message], 1→20, 'm-1')"
    )


def test_repr_of_a_response_prints_no_text_twice() -> None:
    """D5: once in `items`, once in `choices`; and the envelope may hold anything."""
    shown = repr(response_of("unrepeatable"))
    assert shown.count("unrepeatable") == 1
    assert "canary" not in shown
    assert str(response_of("unrepeatable").__rich_repr__()).count("unrepeatable") == 1


def test_repr_of_a_long_response_stays_short() -> None:
    shown = repr(response_of("word\n" * 1000, *["more"] * 20))
    assert len(shown) < 250
    assert "…" in shown
    assert "\n" not in shown


def test_repr_of_a_failed_response_names_the_failure() -> None:
    response = accumulate([Failed(ErrorInfo("overloaded", "busy"))])
    assert repr(response) == "Response(failed, overloaded, '', [])"
    response = accumulate([Failed(ErrorInfo("cancelled", "by you"))])
    assert repr(response) == "Response(cancelled, '', [])"
    assert repr(accumulate([])) == "Response(incomplete, '', [])"


def test_repr_of_unknown_tokens_shows_a_question_mark() -> None:
    assert "?→3" in repr(response_of("x", usage=Usage(output_tokens=3)))


def test_function_calls_are_the_calls_with_json_arguments() -> None:
    """D3: `calls` mixes the kinds, so `call.parsed()` did not type-check."""
    call = FunctionCall("c1", "f", "{}")
    cut = FunctionCall("c3", "f", '{"a', status="incomplete")
    calls = [call, CustomToolCall("c2", "g", "text"), cut]
    events = [OutputItemDone(index, item) for index, item in enumerate(calls)]
    assert accumulate([*events, Completed()]).function_calls == (call,)
    failed = Failed(ErrorInfo("generation_failed", "no"))
    assert accumulate([*events, failed]).function_calls == ()


# --- snapshots ---


def test_snapshot_keeps_its_metadata_when_more_arrives() -> None:
    accumulator = Accumulator()
    accumulator.feed(ResponseMetadata({"a": 1}))
    first = accumulator.response
    accumulator.feed(ResponseMetadata({"b": 2}))
    accumulator.feed(ResponseMetadata({"a": 3}))
    assert first.metadata == {"a": 1}
    assert accumulator.response.metadata == {"a": 3, "b": 2}


def test_snapshot_has_open_and_closed_items_in_their_order() -> None:
    accumulator = Accumulator()
    skeleton = Message("assistant", status="incomplete")
    # Items may overlap, and a filter may number them with gaps.
    for index in (4, 0, 2):
        accumulator.feed(OutputItemAdded(index, skeleton))
        accumulator.feed(OutputTextDelta(index, 0, f"text {index}"))
    accumulator.feed(OutputItemDone(2, Message("assistant", (Text("done"),))))
    assert [item.text for item in accumulator.response.items if isinstance(item, Message)] == [
        "text 0",
        "done",
        "text 4",
    ]
    for index, text in ((0, "text 0"), (2, "done"), (4, "text 4")):
        item = accumulator.item(index)
        assert isinstance(item, Message)
        assert item.text == text
    for index in (1, 5):
        with pytest.raises(KeyError):
            accumulator.item(index)


def open_calls(count: int) -> Accumulator:
    """An accumulator with so many calls that are open."""
    accumulator = Accumulator()
    for index in range(count):
        call = FunctionCall(f"call_{index}", "f", status="incomplete")
        accumulator.feed(OutputItemAdded(index, call))
    return accumulator


def test_snapshot_makes_only_the_items_that_changed() -> None:
    """A response may have thousands of calls that are open until its end."""
    accumulator = open_calls(3)
    before = accumulator.response.items
    accumulator.feed(FunctionCallArgumentsDelta(1, "{}"))
    after = accumulator.response.items
    assert after[0] is before[0]
    assert after[2] is before[2]
    assert after[1] == FunctionCall("call_1", "f", "{}", status="incomplete")
    assert before[1] == FunctionCall("call_1", "f", status="incomplete")


def test_snapshot_makes_only_the_parts_that_changed() -> None:
    """An item may have thousands of parts, too."""
    accumulator = Accumulator()
    accumulator.feed(OutputItemAdded(0, Message("assistant", status="incomplete")))
    for part in (4, 0, 2):
        accumulator.feed(OutputTextDelta(0, part, f"text {part}"))
    before = content_of(accumulator)
    accumulator.feed(RefusalDelta(0, 2, "no"))
    after = content_of(accumulator)
    assert after == (Text("text 0"), Text("text 2"), Refusal("no"), Text("text 4"))
    assert after[0] is before[0]
    assert after[3] is before[2]
    assert before == (Text("text 0"), Text("text 2"), Text("text 4"))


def content_of(accumulator: Accumulator) -> Sequence[ContentPart]:
    """The content of the message that a snapshot begins with."""
    [message] = accumulator.response.items
    assert isinstance(message, Message)
    return message.content


def event_of_a_part(draw: random.Random) -> ResponseEvent:
    """An event about one of four parts of an item, in any order."""
    part = draw.randrange(4)
    delta = draw.choice(["", "a", "é 漢", "x" * 2_000])
    events: list[ResponseEvent] = [
        OutputTextDelta(0, part, delta),
        RefusalDelta(0, part, delta),
        MediaDelta(0, part, draw.choice([None, "image/png"]), delta, delta),
        AnnotationAdded(0, part, {"url": delta}),
        ReasoningContentDelta(1, part, delta),
        ReasoningSummaryDelta(1, part, delta),
    ]
    return draw.choice(events)


@each_case("seed", range(40))
def test_snapshot_of_parts_is_right_whenever_one_is_taken(seed: int) -> None:
    draw = random.Random(seed)
    events: list[ResponseEvent] = [
        OutputItemAdded(0, Message("assistant", status="incomplete")),
        OutputItemAdded(1, Reasoning(status="incomplete")),
    ]
    looked_at = Accumulator()
    for event in events:
        looked_at.feed(event)
    kept: list[tuple[Response, Response]] = []
    for _ in range(60):
        event = event_of_a_part(draw)
        looked_at.feed(event)
        events.append(event)
        if draw.random() < 0.6:
            kept.append((looked_at.response, accumulate(events)))
    # Compared at the end: no snapshot may have changed since it was taken.
    assert all(snapshot == expected for snapshot, expected in kept)


def test_snapshot_keeps_its_items_while_none_changes() -> None:
    accumulator = open_calls(3)
    before = accumulator.response.items
    accumulator.feed(ResponseMetadata({"a": 1}))
    assert accumulator.response.items is before


def test_snapshot_has_the_items_of_each_choice() -> None:
    accumulator = Accumulator()
    for index in range(4):
        item = Message("assistant", choice=index % 2, status="incomplete")
        accumulator.feed(OutputItemAdded(index, item))
    before = accumulator.response
    accumulator.feed(OutputTextDelta(3, 0, "b"))
    first, second = accumulator.response.choices
    assert first.items is before.choices[0].items
    assert [item.text for item in second.items if isinstance(item, Message)] == ["", "b"]
    assert accumulator.response.items == first.items


def test_item_that_ends_in_another_choice_moves_there() -> None:
    accumulator = Accumulator()
    accumulator.feed(OutputItemAdded(0, Message("assistant", status="incomplete")))
    accumulator.feed(OutputItemDone(0, Message("assistant", (Text("a"),), choice=2)))
    [choice] = accumulator.response.choices
    assert choice.index == 2
    assert accumulator.response.items == ()
