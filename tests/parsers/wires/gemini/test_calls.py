"""Gemini generateContent: function calls, complete and streamed; signatures; nameless calls."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import (
    FunctionCallArgumentsDelta,
    Message,
    Passthrough,
    Reasoning,
    accumulate,
)
from streamlib_parsers.items import Text
from streamlib_parsers.wires.gemini.stop_reasons import FAILURE_REASONS
from tests.support.gemini_streams import (
    BOOK,
    BOOKED,
    JsonObject,
    call,
    chunk,
    failure,
    items_of,
    notice_codes,
    partial_part,
    read,
    run,
    sse,
    text,
)

# --- streams that other libraries misread ---


def test_complete_call_emits_its_arguments_as_a_delta() -> None:
    events = run(sse(chunk(call("f", {"a": 1}), finish="STOP")))
    assert [event.delta for event in events if isinstance(event, FunctionCallArgumentsDelta)] == [
        '{"a": 1}'
    ]


def test_repeated_call_changes_nothing() -> None:
    events = run(
        sse(
            chunk(call("f", {"a": 1}, id="c", thoughtSignature="sig")),
            chunk(call("f", {"a": 1}, id="c")),
            chunk(finish="STOP"),
        )
    )
    response = accumulate(events)
    assert [(item.call_id, item.arguments, item.signature) for item in response.calls] == [
        ("c", '{"a": 1}', "sig")
    ]
    assert notice_codes(events) == ["repeated_call"]


@pytest.mark.parametrize("further", [{}, {"safetyRatings": []}, {"avgLogprobs": -1.0}])
def test_text_beside_a_call_does_not_hide_it(further: JsonObject) -> None:
    """It did where the candidate had a rare key: the order of the keys decided."""
    part = {"text": "", "functionCall": {"name": "f", "args": {}}}
    body = chunk(part, finish="STOP")
    body["candidates"][0].update(further)
    assert [item.name for item in accumulate(run(sse(body))).calls] == ["f"]


def test_signature_of_a_repeated_call_is_kept() -> None:
    (only,) = items_of(
        call("f", {"a": 1}, id="c"), call("f", {"a": 1}, id="c", thoughtSignature="late")
    )
    assert only.signature == "late"


def test_equal_calls_without_an_id_are_two_calls() -> None:
    assert [item.call_id for item in items_of(call("roll", {}), call("roll", {}))] == [
        "call_0",
        "call_1",
    ]


@pytest.mark.parametrize("other", [call("f", {"a": 2}, id="c"), call("g", {"a": 1}, id="c")])
def test_different_call_with_a_used_id_is_another_call(other: JsonObject) -> None:
    events = run(sse(chunk(call("f", {"a": 1}, id="c")), chunk(other), chunk(finish="STOP")))
    first, second = accumulate(events).calls
    assert (first.call_id, second.call_id, second.id) == ("c", "call_0", "c")
    assert notice_codes(events) == ["duplicate_call_id"]


@pytest.mark.parametrize("signatures", [("s1", None, None), ("s1", "s2", "s3")])
def test_each_signature_stays_on_its_own_call(signatures: tuple[str | None, ...]) -> None:
    parts = [
        call("f", {"n": n}, **({"thoughtSignature": signature} if signature else {}))
        for n, signature in enumerate(signatures)
    ]
    response = read(chunk(*parts, finish="STOP"))
    assert tuple(item.signature for item in response.items) == signatures


def test_signature_stays_on_the_part_after_the_reasoning() -> None:
    reasoning, message = items_of(text("Hm", thought=True), text("Hi", thoughtSignature="s"))
    assert (reasoning, message) == (
        Reasoning(content="Hm"),
        Message("assistant", (Text("Hi"),), signature="s"),
    )


@pytest.mark.parametrize(
    ("reason", "notices"),
    [("NO_IMAGE", []), ("LANGUAGE", []), ("SOMETHING_NEW", ["unknown_finish_reason"])],
)
def test_finish_reason_without_content_is_an_end(reason: str, notices: list[str]) -> None:
    response = read({"candidates": [{"finishReason": reason, "finishMessage": "why", "index": 0}]})
    assert (response.status, response.stop_reason, response.native_stop_reason) == (
        "completed",
        "other",
        reason,
    )
    assert response.metadata == {"finishMessage": "why"}
    assert [notice.code for notice in response.notices] == notices


@pytest.mark.parametrize("reason", sorted(FAILURE_REASONS))
def test_failed_generation_fails_without_calls(reason: str) -> None:
    """A1: it completed with `other`, and its calls were callable."""
    response = read(chunk(text("Hi"), call("f", {"a": 1})), chunk(finish=reason))
    assert response.status == "failed"
    assert response.error is not None
    assert (response.error.kind, response.error.code) == ("generation_failed", reason)
    assert response.error.retryable
    assert (response.text, response.calls) == ("Hi", [])
    assert response.items[-1].status == "incomplete"


def test_stop_without_content_after_a_call_is_tool_calls() -> None:
    response = read(chunk(call("f", {"a": 1})), {"candidates": [{"finishReason": "STOP"}]})
    assert ([item.name for item in response.calls], response.stop_reason) == (["f"], "tool_calls")


@pytest.mark.parametrize("candidates", [None, []])
def test_chunks_without_candidates_only_add_usage(candidates: Any) -> None:
    response = read(
        chunk(text("Hi"), finish="STOP"),
        {"candidates": candidates, "usageMetadata": {"promptTokenCount": 7}},
    )
    assert (response.text, response.usage and response.usage.input_tokens) == ("Hi", 7)


# --- streamed arguments (Vertex) ---


def test_partial_arguments_are_emitted_as_they_arrive() -> None:
    events = run(sse(*BOOK, chunk(call()), chunk(finish="STOP")))
    deltas = [event.delta for event in events if isinstance(event, FunctionCallArgumentsDelta)]
    assert deltas[:4] == ['{"city":"Par', 'is \\"1\\"', '"', ',"days":[{"at":1.0']
    (only,) = accumulate(events).calls
    assert ("".join(deltas), only.arguments, only.signature, only.id) == (BOOKED, BOOKED, "s", None)


def test_missing_last_part_is_replaced_by_stop_or_the_next_call() -> None:
    assert [item.arguments for item in read(*BOOK, chunk(finish="STOP")).calls] == [BOOKED]
    response = read(*BOOK, chunk(call("g", {})), chunk(finish="MAX_TOKENS"))
    assert [(item.name, item.arguments) for item in response.calls] == [
        ("book", BOOKED),
        ("g", "{}"),
    ]


def test_streamed_calls_follow_one_another() -> None:
    stream = [
        chunk(call("f", willContinue=True)),
        chunk(call()),
        *BOOK,
        chunk(call()),
        chunk(call()),
        chunk(finish="STOP"),
    ]
    assert [(item.name, item.arguments) for item in read(*stream).calls] == [
        ("f", "{}"),
        ("book", BOOKED),
    ]


def test_part_with_the_streamed_id_continues_the_call() -> None:
    more = {
        "functionCall": {
            "id": "c",
            "name": "f",
            "partialArgs": [{"jsonPath": "$.a", "numberValue": 1}],
        }
    }
    (only,) = items_of(call("f", id="c", willContinue=True), more)
    assert (only.call_id, only.arguments) == ("c", '{"a":1}')


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"])
def test_streamed_call_truncated_by_provider_is_never_callable(reason: str) -> None:
    response = read(*BOOK, chunk(finish=reason))
    assert response.calls == []
    assert [item.status for item in response.items] == ["incomplete"]


def test_streamed_call_ending_inside_a_string_is_never_callable() -> None:
    response = read(*BOOK[:2], chunk(finish="STOP"))
    assert (response.calls, response.stop_reason) == ([], "stop")
    response = read(*BOOK[:2], chunk(call("g", {})), chunk(finish="STOP"))
    assert ([item.name for item in response.calls], response.stop_reason) == (["g"], "tool_calls")


def test_streamed_call_is_incomplete_when_the_stream_breaks() -> None:
    for count in range(1, len(BOOK) + 1):
        events = run(sse(*BOOK[:count]))
        assert failure(events) == "truncated"
        assert accumulate(events).calls == []


def test_arguments_out_of_order_are_replaced_at_the_end() -> None:
    partials = [
        partial_part("$.a.x", numberValue=1),
        partial_part("$.b", numberValue=2),
        partial_part("$.a.y", numberValue=3),
    ]
    events = run(
        sse(
            chunk(call("f", willContinue=True)),
            *map(chunk, partials),
            chunk(call()),
            chunk(finish="STOP"),
        )
    )
    assert [item.arguments for item in accumulate(events).calls] == ['{"a":{"x":1,"y":3},"b":2}']
    assert notice_codes(events) == ["text_replaced"]


def test_complete_arguments_replace_partial_ones() -> None:
    events = run(
        sse(
            chunk(call("f", willContinue=True)),
            chunk(partial_part("$.a", numberValue=1)),
            chunk(call(args={"b": 2})),
            chunk(finish="STOP"),
        )
    )
    assert [item.arguments for item in accumulate(events).calls] == ['{"b": 2}']
    assert notice_codes(events) == ["text_replaced"]


@pytest.mark.parametrize(
    "partial",
    [
        {"jsonPath": "$..a", "numberValue": 1},
        {"jsonPath": "$.a", "listValue": []},
        {"numberValue": 1},
    ],
)
def test_inapplicable_partial_argument_makes_call_incomplete(
    partial: JsonObject,
) -> None:
    broken = {"functionCall": {"partialArgs": [partial], "willContinue": True}}
    events = run(
        sse(chunk(call("f", willContinue=True)), chunk(broken), chunk(call()), chunk(finish="STOP"))
    )
    response = accumulate(events)
    assert (response.calls, response.stop_reason) == ([], "stop")
    assert [event.data for event in events if isinstance(event, Passthrough)] == [partial]
    assert notice_codes(events) == ["unknown_delta"]


@pytest.mark.parametrize(
    "nameless",
    [
        call(args={"a": 1}),
        call(id="c"),
        call(thoughtSignature="s"),
        partial_part("$.a", numberValue=1),
    ],
)
def test_nameless_call_is_kept_and_never_callable(nameless: JsonObject) -> None:
    events = run(sse(chunk(nameless), chunk(finish="STOP")))
    response = accumulate(events)
    assert (response.calls, [item.status for item in response.items], response.stop_reason) == (
        [],
        ["incomplete"],
        "stop",
    )
    assert notice_codes(events) == ["nameless_call"]
    assert response.items[0].arguments == ('{"a": 1}' if "args" in nameless["functionCall"] else "")  # type: ignore[union-attr]


def test_counts_stay_when_a_later_chunk_has_none() -> None:
    response = read(
        chunk(text("a"), usageMetadata={"promptTokenCount": 3}),
        chunk(text("b")),
        chunk(finish="STOP"),
    )
    assert (response.text, response.usage.input_tokens) == ("ab", 3)  # type: ignore[union-attr]


def test_empty_call_part_emits_nothing() -> None:
    assert items_of(text("a"), call(), call(willContinue=True)) == (
        Message("assistant", (Text("a"),)),
    )
