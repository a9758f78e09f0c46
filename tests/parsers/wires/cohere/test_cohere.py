"""Cohere v2 chat: events to items, citations, ends, counts, and what no SDK type says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import (
    AnnotationAdded,
    Failed,
    FunctionCall,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    Text,
    parse_body,
    parser,
)
from streamlib_parsers.wires.cohere import FAILURES, STOP_REASONS
from tests.support.cases import each_case
from tests.support.cohere_frames import (
    DONE,
    call,
    citation,
    ended,
    event,
    events_of,
    frame,
    plan,
    read,
    read_body,
    started,
    text,
    thinking,
)


def codes(*chunks: bytes) -> list[str]:
    return [notice.code for notice in read(*chunks).notices]


def test_contents_plan_and_calls_are_items_in_their_order() -> None:
    response = read(
        started(),
        thinking(0, "Let ", "me see."),
        plan("I will ", "look."),
        call(0, '{"a"', ": 1.0}"),
        call(1),
        ended("TOOL_CALL"),
    )
    reasoning, commentary, first, second = response.items
    assert isinstance(reasoning, Reasoning)
    assert reasoning.content == "Let me see."
    assert isinstance(commentary, Message)
    assert (commentary.phase, commentary.text) == ("commentary", "I will look.")
    assert isinstance(first, FunctionCall)
    assert (first.call_id, first.arguments) == ("f_0", '{"a": 1.0}')
    # Nothing between start and end: a call without arguments.
    assert isinstance(second, FunctionCall)
    assert second.parsed() == {}
    assert {item.status for item in response.items} == {"completed"}
    assert (response.stop_reason, response.response_id) == ("tool_calls", "r1")
    assert len(response.calls) == 2


def test_each_content_is_an_item_of_its_own() -> None:
    response = read(started(), text(0, "a"), text(1, "b"), text(2), ended())
    assert [item.text for item in response.items if isinstance(item, Message)] == ["a", "b", ""]
    assert response.text == "ab"


def test_events_without_a_name_are_read() -> None:
    """vLLM serves the wire without `event:` lines."""
    body = started() + text(0, "Hi") + ended()
    lines = [line for line in body.splitlines(keepends=True) if not line.startswith(b"event")]
    assert read(b"".join(lines)) == read(body)


def test_type_only_in_the_event_line_is_enough() -> None:
    body = started() + text(0, "Hi") + ended()
    for kind in ("message-start", "content-start", "content-delta", "content-end", "message-end"):
        body = body.replace(f'"type": "{kind}", '.encode(), b"")
    assert read(body).text == "Hi"


def test_citation_is_in_the_text_it_counts_characters_of() -> None:
    """Checked with a recorded `15°C`: bytes would end one later."""
    words = "It is 15°C."
    response = read(
        started(),
        text(0, words[:8], words[8:], end=False),
        citation(6, 10, "15°C"),
        frame("content-end", index=0),
        ended(),
    )
    (item,) = response.items
    assert isinstance(item, Message)
    (part,) = item.content
    assert isinstance(part, Text)
    (annotation,) = part.annotations
    assert part.text[annotation["start"] : annotation["end"]] == annotation["text"] == "15°C"


def test_citation_after_the_end_of_its_content_is_kept() -> None:
    events = events_of(started(), text(0, "Hi"), citation(0, 2, "Hi"), ended())
    kinds = [type(event) for event in events]
    assert kinds.index(AnnotationAdded) < kinds.index(OutputItemDone)
    assert codes(started(), text(0, "Hi"), citation(0, 2, "Hi"), ended()) == []


def test_citation_of_a_content_by_its_index() -> None:
    cited = citation(0, 1, "b", content_index=1)
    response = read(started(), thinking(0, "a"), text(1, "b"), cited, ended())
    _, message = response.items
    assert isinstance(message, Message)
    assert [len(part.annotations) for part in message.content if isinstance(part, Text)] == [1]


def test_citation_that_comes_too_late_is_passed_through() -> None:
    cited = citation(0, 1, "a", content_index=0)
    response = read(started(), text(0, "a"), text(1, "b"), cited, ended())
    assert [notice.code for notice in response.notices] == ["out_of_order"]
    assert response.status == "completed"


def test_citations_of_plan_and_thinking_are_with_them() -> None:
    response = read(
        started(),
        thinking(0, "a"),
        citation(0, 1, "a", type="THINKING_CONTENT"),
        plan("b"),
        citation(0, 1, "b", type="PLAN"),
        call(0, "{}"),
        ended("TOOL_CALL"),
    )
    reasoning, commentary, _ = response.items
    assert [cited["text"] for cited in (reasoning.native or {})["citations"]] == ["a"]
    assert isinstance(commentary, Message)
    (part,) = commentary.content
    assert isinstance(part, Text)
    assert [cited["text"] for cited in part.annotations] == ["b"]


def test_ended_content_is_complete_when_the_stream_breaks() -> None:
    """Its end was read, though it is closed with the next event alone."""
    done = [
        event.item
        for event in events_of(started(), text(0, "Hi"), text(1, "Yo", end=False))
        if isinstance(event, OutputItemDone)
    ]
    assert [item.status for item in done] == ["completed", "incomplete"]
    (item,) = read(started(), text(0, "Hi")).items
    assert item.status == "completed"


@pytest.mark.parametrize(("reason", "stop_reason"), STOP_REASONS.items())
def test_finish_reason_gives_the_stop_reason(reason: str, stop_reason: str) -> None:
    body = call(0, "{}") if reason == "TOOL_CALL" else text(0, "Hi")
    response = read(started(), body, ended(reason))
    assert (response.stop_reason, response.native_stop_reason) == (stop_reason, reason)
    assert response.notices == ()


@pytest.mark.parametrize("reason", sorted(FAILURES))
def test_failed_generation_has_no_callable_call(reason: str) -> None:
    response = read(started(), call(0, "{}"), ended(reason))
    assert response.error is not None
    assert (response.error.kind, response.error.code) == ("generation_failed", reason)
    assert response.error.retryable
    assert response.calls == []


def failure(*chunks: bytes) -> Any:
    last = events_of(*chunks)[-1]
    assert isinstance(last, Failed)
    return last.error


def test_error_of_the_end_gives_the_kind() -> None:
    error = failure(started(), ended("ERROR", error="the worker is gone"))
    assert (error.kind, error.code) == ("generation_failed", "ERROR")
    assert error.message == "the worker is gone"
    long = failure(started(), ended("ERROR", error="too many tokens: size limit exceeded"))
    assert long.kind == "context_window_exceeded"
    named = failure(started(), ended("ERROR", error="no", error_type="TOO_MANY_TOKENS"))
    assert named.kind == "context_window_exceeded"
    assert failure(started(), ended("COMPLETE", error="rate limit")).kind == "rate_limited"


def test_unknown_finish_reason_is_other_with_a_notice() -> None:
    response = read(started(), text(0, "Hi"), ended("TIRED"))
    assert response.stop_reason == "other"
    assert [notice.code for notice in response.notices] == ["unknown_finish_reason"]


def test_terminator_alone_completes_nothing() -> None:
    assert failure(started(), text(0, "Hi"), DONE).kind == "truncated"
    assert failure(started(), text(0, "Hi")).kind == "truncated"


def test_complete_call_makes_the_stop_reason_tool_calls() -> None:
    assert read(started(), call(0, "{}"), ended("COMPLETE")).stop_reason == "tool_calls"


def test_announced_call_that_never_came_is_a_stop() -> None:
    response = read(started(), text(0, "Hi"), ended("TOOL_CALL"))
    assert response.stop_reason == "stop"
    assert [notice.code for notice in response.notices] == ["no_tool_call"]


def test_call_whose_end_was_not_read_is_never_callable() -> None:
    response = read(started(), call(0, "{}", end=False), ended("TOOL_CALL"))
    (item,) = response.items
    assert item.status == "incomplete"
    assert response.calls == []


def test_call_without_a_name_is_never_callable() -> None:
    response = read(started(), call(0, "{}", function={"arguments": ""}), ended("TOOL_CALL"))
    assert response.calls == []
    assert [notice.code for notice in response.notices] == ["nameless_call"]


def test_call_without_an_id_gets_one() -> None:
    calls = read(started(), call(0, "{}", id=""), call(1, "{}", id=None), ended("TOOL_CALL")).calls
    assert [item.call_id for item in calls if isinstance(item, FunctionCall)] == [
        "call_0",
        "call_1",
    ]


def test_arguments_as_an_object_are_read() -> None:
    function = {"name": "f", "arguments": {"a": 1}}
    (item,) = read(started(), call(0, function=function), ended("TOOL_CALL")).calls
    assert isinstance(item, FunctionCall)
    assert item.parsed() == {"a": 1}


def test_reasoning_never_gets_into_a_text() -> None:
    wrong = event("content-delta", 0, content={"thinking": "secret"})
    response = read(started(), text(0, "Hi", end=False), wrong, ended())
    assert response.text == "Hi"
    assert [notice.code for notice in response.notices] == ["unknown_delta"]
    assert response.items[0].status == "incomplete"


def test_text_in_reasoning_is_passed_through() -> None:
    wrong = event("content-delta", 0, content={"text": "Hi"})
    chunks = started(), thinking(0, "Hm", end=False), wrong, ended()
    assert (read(*chunks).reasoning, read(*chunks).text) == ("Hm", "")
    assert codes(*chunks) == ["unknown_delta"]
    assert not any(isinstance(event, OutputTextDelta) for event in events_of(*chunks))


def test_content_without_its_start_is_opened_by_its_delta() -> None:
    delta = event("content-delta", 3, content={"thinking": "Hm"})
    response = read(started(), delta, frame("content-end", index=3), ended())
    assert (response.reasoning, response.text) == ("Hm", "")


@pytest.mark.parametrize(
    "late",
    [
        event("content-delta", 0, content={"text": "x"}),
        frame("content-end", index=0),
        event("tool-call-delta", 0, tool_calls={"function": {"arguments": "x"}}),
        frame("tool-call-end", index=0),
    ],
)
def test_event_of_what_has_ended_is_passed_through(late: bytes) -> None:
    events = events_of(started(), text(0, "Hi"), call(0, "{}"), late, ended())
    assert [type(event) for event in events].count(Passthrough) == 1
    assert read(started(), text(0, "Hi"), call(0, "{}"), late, ended()).text == "Hi"


def test_content_that_starts_twice_is_malformed() -> None:
    assert failure(started(), text(0, "a"), text(0, "b"), ended()).kind == "malformed"


def test_second_start_is_not_mixed_in() -> None:
    response = read(started(), started(id="r2"), text(0, "Hi"), ended())
    assert response.response_id == "r1"
    assert [notice.code for notice in response.notices] == ["second_response"]


def test_log_probabilities_are_with_their_text() -> None:
    token = {"text": "Hi", "token_ids": [7], "logprobs": [-0.5]}
    start = event("content-start", 0, content={"type": "text", "text": ""})
    delta = frame(
        "content-delta", index=0, delta={"message": {"content": {"text": "Hi"}}}, logprobs=token
    )
    deltas = [
        event
        for event in events_of(started(), start, delta, ended())
        if isinstance(event, OutputTextDelta)
    ]
    assert [(delta.delta, delta.logprobs) for delta in deltas] == [("Hi", [token])]


def test_usage_leaves_billed_units_to_raw() -> None:
    raw = {
        "billed_units": {"input_tokens": 65, "output_tokens": 63},
        "tokens": {"input_tokens": 508, "output_tokens": 86, "reasoning_tokens": 28},
        "cached_tokens": 144,
    }
    usage = read(started(), text(0, "Hi"), ended(usage=raw)).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (508, 86)
    assert (usage.cache_read_input_tokens, usage.reasoning_output_tokens) == (144, 28)
    assert usage.raw == raw
    # Billed units are another measure.
    billed = read(started(), ended(usage={"billed_units": {"input_tokens": 3}})).usage
    assert billed is not None
    assert billed.input_tokens is None


def test_v1_stream_is_refused_by_name() -> None:
    body = b'data: {"is_finished":false,"event_type":"stream-start","generation_id":"g"}\n\n'
    error = failure(body)
    assert (error.kind, error.code) == ("malformed", "legacy_schema")
    v1 = read_body(text="Hi", generation_id="g", finish_reason="COMPLETE")
    assert v1.error is not None
    assert v1.error.code == "legacy_schema"


def test_body_is_read_as_its_stream() -> None:
    cited = {"start": 0, "end": 2, "text": "Hi", "sources": [], "content_index": 1}
    response = read_body(
        id="r1",
        finish_reason="TOOL_CALL",
        message={
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}],
            "tool_plan": "I will look.",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
            "citations": [cited],
        },
        usage={"tokens": {"input_tokens": 3, "output_tokens": 5}},
        logprobs=[{"text": "Hi", "token_ids": [7]}],
    )
    kinds = [type(item) for item in response.items]
    assert kinds == [Reasoning, Message, Message, FunctionCall]
    message = response.items[1]
    assert isinstance(message, Message)
    assert message.content == (Text("Hi", [cited]),)
    assert (response.response_id, response.stop_reason) == ("r1", "tool_calls")
    assert response.usage is not None
    assert response.usage.output_tokens == 5


def test_body_of_an_error_is_one_at_any_status() -> None:
    error = read_body(401, message="Incorrect API key provided: ***").error
    assert error is not None
    assert error.kind == "authentication"
    unasked = read_body(message="too many tokens", error_type="TOO_MANY_TOKENS").error
    assert unasked is not None
    assert unasked.kind == "context_window_exceeded"


def test_any_truncation_gives_the_same_events_or_a_failure() -> None:
    """Each byte of a stream with everything: whole events, or an honest end."""
    body = started() + thinking(0, "Hm") + text(1, "15°C", end=False) + citation(0, 4, "15°C")
    body += frame("content-end", index=1) + plan("So:") + call(0, '{"a":', "1}")
    body += ended("TOOL_CALL", usage={"tokens": {"input_tokens": 3}})
    whole = events_of(body)
    complete = body.index(DONE)
    for cut in range(len(body)):
        assert events_of(body[:cut], body[cut:]) == whole
        last = events_of(body[:cut])[-1]
        # The blank line behind the last event may be missing.
        assert isinstance(last, Failed) == (cut < complete - 2)


def test_no_key_of_a_body_changes_how_it_is_read() -> None:
    """`kind` and `delta` raised TypeError, and `type` replaced the event's: truncated."""
    message = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}
    for key in ("kind", "delta", "type", "index", "values", "event_type"):
        body: dict[str, Any] = {"message": message, "finish_reason": "COMPLETE", key: {"a": 1}}
        response = read_body(**body)
        assert (response.status, response.text) == ("completed", "hi"), key
        assert response.metadata == {key: {"a": 1}}


def test_a_citation_beside_citations_that_are_not_a_list() -> None:
    """A content may have a key of that name already, of any type: it raised TypeError."""
    response = read(
        started(),
        event("content-start", 0, content={"type": "thinking", "thinking": "t", "citations": 1}),
        citation(0, 1, "t", type="THINKING_CONTENT"),
        frame("content-end", index=0),
        ended("COMPLETE"),
    )
    (reasoning,) = response.items
    assert reasoning.native is not None
    assert [cited["text"] for cited in reasoning.native["citations"]] == ["t"]


# --- small differences of servers, and what the report of them says ---


def test_end_without_a_reason_is_other_without_a_notice() -> None:
    response = read(started(), text(0, "Hi"), ended(None))
    assert (response.stop_reason, response.native_stop_reason) == ("other", None)
    assert response.notices == ()


def test_parser_is_complete_at_message_end_alone() -> None:
    stream = parser("cohere")
    stream.feed(started() + text(0, "Hi"))
    assert not stream.complete
    stream.feed(ended())
    assert stream.complete


def test_content_is_done_before_the_next_one_begins() -> None:
    events = events_of(started(), text(0, "a"), text(1, "b"), call(0, "{}"), ended("TOOL_CALL"))
    order = [
        (type(event).__name__, event.index)
        for event in events
        if isinstance(event, (OutputItemAdded, OutputItemDone))
    ]
    assert order == [
        ("OutputItemAdded", 0),
        ("OutputItemDone", 0),
        ("OutputItemAdded", 1),
        ("OutputItemDone", 1),
        ("OutputItemAdded", 2),
        ("OutputItemDone", 2),
    ]


def test_event_of_an_unknown_kind_is_passed_through_by_its_name() -> None:
    events = events_of(started(), frame("debug", message="hello"), text(0, "Hi"), ended())
    (passed,) = [event for event in events if isinstance(event, Passthrough)]
    assert (passed.event, passed.data["message"]) == ("debug", "hello")
    assert read(started(), frame("debug", message="hello"), ended()).error is None
    bare = b'data: {"message": "too many requests"}\n\n'
    assert failure(started(), bare).message == "too many requests"


def test_keys_of_the_first_message_are_metadata() -> None:
    delta = {"message": {"role": "assistant", "content": [], "gateway": "eu"}}
    response = read(started(delta=delta), text(0, "Hi"), ended())
    assert response.metadata == {"gateway": "eu"}


@pytest.mark.parametrize("index", [0.0, 0])
def test_integral_float_is_an_index(index: Any) -> None:
    response = read(
        started(),
        text(index, "Hi"),
        call(index, '{"a":', "1}"),
        ended("TOOL_CALL"),
    )
    message, called = response.items
    assert isinstance(message, Message)
    assert isinstance(called, FunctionCall)
    assert (message.text, called.arguments) == ("Hi", '{"a":1}')
    assert {item.status for item in response.items} == {"completed"}
    assert response.notices == ()


@each_case("index", [True, False, "0", -1, 0.5, 1_000_001, None, [0]])
def test_index_that_is_none_is_malformed(index: Any) -> None:
    body = frame("content-start", index=index, delta={"message": {"content": {"type": "text"}}})
    assert failure(started(), body).kind == "malformed"


def test_fragment_of_arguments_may_be_empty_but_not_missing() -> None:
    empty = event("tool-call-delta", 0, tool_calls={"function": {"arguments": "", "x": 1}})
    (called,) = read(started(), call(0, "{}", end=False), empty, ended("TOOL_CALL")).items[:1]
    assert isinstance(called, FunctionCall)
    assert called.arguments == "{}"
    missing = event("tool-call-delta", 0, tool_calls={"function": {"x": 1}})
    response = read(started(), call(0, "{}", end=False), missing, ended("TOOL_CALL"))
    assert [item.status for item in response.items] == ["incomplete"]
    assert "unknown_delta" in [notice.code for notice in response.notices]
    as_object = event("tool-call-delta", 0, tool_calls={"function": {"arguments": {"a": 1}}})
    response = read(started(), call(0, end=False), as_object, frame("tool-call-end", index=0))
    assert [item.arguments for item in response.items] == ['{"a":1}']  # type: ignore[union-attr]


@pytest.mark.parametrize("index", [True, "0", None, 0.0])
def test_citation_without_an_index_is_of_the_newest_text(index: Any) -> None:
    cited = citation(0, 2, "Hi", content_index=index)
    response = read(started(), thinking(0, "a"), text(1, "Hi", end=False), cited, ended())
    (message,) = [item for item in response.items if isinstance(item, Message)]
    assert [len(part.annotations) for part in message.content if isinstance(part, Text)] == [1]
    assert response.notices == ()


CONTENTS = [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({}, "text"),
        ({"type": "TEXT_CONTENT"}, "text"),
        ({"type": "THINKING_CONTENT"}, "thinking"),
        ({"content_index": 0}, "thinking"),
        ({"content_index": 1}, "text"),
        ({"content_index": 1, "type": "THINKING_CONTENT"}, "text"),
    ],
)
def test_citation_of_a_body_is_in_its_content(fields: dict[str, Any], place: str) -> None:
    cited = {"start": 0, "end": 1, "text": "x", **fields}
    message = {"role": "assistant", "content": CONTENTS, "citations": [cited]}
    response = read_body(id="r", finish_reason="COMPLETE", message=message)
    reasoning, answer = response.items
    assert isinstance(answer, Message)
    (part,) = answer.content
    assert isinstance(part, Text)
    places = {
        "thinking": (reasoning.native or {}).get("citations", []),
        "text": list(part.annotations),
    }
    assert [cited] == places.pop(place)
    assert list(places.values()) == [[]]


def test_log_probabilities_of_a_body_are_of_its_first_text() -> None:
    tokens = [{"text": "b", "token_ids": [1], "logprobs": [-0.5]}]
    message = {"role": "assistant", "content": [*CONTENTS, {"type": "text", "text": "c"}]}
    body = {"id": "r", "finish_reason": "COMPLETE", "message": message, "logprobs": tokens}
    events = parse_body("cohere", json.dumps(body).encode())
    found = [
        (event.index, event.logprobs)
        for event in events
        if isinstance(event, OutputTextDelta) and event.logprobs
    ]
    assert found == [(1, tokens)]


@pytest.mark.parametrize("index", [2, -1])
def test_citation_of_no_content_of_a_body_is_reported(index: int) -> None:
    cited = {"start": 0, "end": 1, "text": "x", "content_index": index}
    message = {"role": "assistant", "content": CONTENTS, "citations": [cited]}
    response = read_body(id="r", finish_reason="COMPLETE", message=message)
    assert [notice.code for notice in response.notices] == ["out_of_order"]
    assert response.status == "completed"
