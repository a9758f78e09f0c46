"""Small promises of the vocabulary: outputs of calls, arguments as objects, OpenTelemetry's names, streams that are aborted."""

from __future__ import annotations

import pytest

from streamlib_parsers import (
    LIMITS,
    CustomToolCall,
    ErrorInfo,
    Failed,
    FunctionCall,
    InvalidArguments,
    Origin,
    RateLimits,
    ServerToolCall,
    ToolSpec,
    Usage,
    accumulate,
    parser,
)
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.items import Message, Reasoning, Text, user, with_origin
from streamlib_parsers.limits import Limits

CHAT = b'data: {"id":"c","choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'


def test_a_call_makes_the_item_that_answers_it() -> None:
    assert FunctionCall("c", "f").output("1", is_error=True).is_error
    assert CustomToolCall("c", "f").output([Text("1")]).output == (Text("1"),)


@pytest.mark.parametrize("arguments", ["[1]", "5", '{"a"', '"x"'])
def test_arguments_that_are_no_object_are_an_error_of_ours(arguments: str) -> None:
    with pytest.raises(InvalidArguments):
        FunctionCall("c", "f", arguments).parsed()


def test_no_arguments_are_an_empty_object() -> None:
    assert FunctionCall("c", "f").parsed() == ServerToolCall("c", "f").parsed() == {}


def test_a_turn_of_the_user_is_text_and_parts_and_may_be_stamped() -> None:
    assert user("a").content == (Text("a"),)
    assert user().content == ()
    assert with_origin(user("a"), Origin("chat")).origin == Origin("chat")


def test_usage_has_the_names_of_opentelemetry_without_what_is_unknown() -> None:
    counts = Usage(input_tokens=3, output_tokens=2).as_otel()
    assert set(counts.values()) == {3, 2}


def test_an_unknown_wire_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown wire API 'smoke'"):
        parser("smoke")  # type: ignore[arg-type]


def test_a_stream_that_is_aborted_keeps_what_came() -> None:
    one = parser("chat")
    events = [*one.feed(CHAT), *one.abort(ErrorInfo("connection", "gone"))]
    assert accumulate(events).text == "Hi"
    assert isinstance(events[-1], Failed)
    assert one.abort(ErrorInfo("connection", "gone")) == []


def test_what_arrived_is_seen_before_a_dialect_holds_it_back() -> None:
    body = b'data: {"choices":[{"delta":{"content":"<tool_call>"}}]}\n\n'
    one = parser("chat", dialects=["hermes"], tools=[ToolSpec("f")])
    assert one.feed(body)[1:] == []
    assert one.unfiltered_events
    assert parser("chat").unfiltered_events is None


def test_messages_that_are_framed_already_are_counted_too() -> None:
    one = parser("chat", limits=Limits(response_bytes=10))
    (last,) = one.feed_event('{"choices": []}')
    assert isinstance(last, Failed)
    assert last.error.code == "response_bytes"


def test_rate_limits_and_an_unfinished_turn_are_in_the_response() -> None:
    one = parser("chat", headers={"retry-after": "1"})
    response = accumulate([*one.feed(CHAT), *one.close()])
    assert isinstance(response.rate_limits, RateLimits)
    assert not response.unfinished


def test_halves_of_emoji_are_joined_in_thoughts_and_refusals() -> None:
    body = b"".join(
        b'data: {"choices":[{"delta":{"%s":"%s"}}]}\n\n' % (key, half)
        for key in (b"reasoning_content", b"refusal")
        for half in (b"\\ud83d", b"\\ude00")
    )
    one = parser("chat")
    response = accumulate([*one.feed(body), *one.close()])
    assert (response.reasoning, response.refusal) == ("\U0001f600", "\U0001f600")


def test_an_item_that_is_settled_as_another_kind_is_the_final_one() -> None:
    assembly = EventAssembler(LIMITS, Origin("responses"))
    item = assembly.open(Message("assistant"))
    assembly.text(item, "a")
    assembly.finish_with(item, Reasoning("b"))
    assert item.item.text == "b"  # type: ignore[union-attr]
