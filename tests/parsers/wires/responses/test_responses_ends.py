"""OpenAI Responses: errors, truncation, replay order and complete bodies.

A case number in a docstring is that of the project's list of cases that broke other libraries.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib_parsers import (
    Compaction,
    Completed,
    Created,
    Failed,
    Message,
    Notice,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ResponseMetadata,
    TokenCount,
    accumulate,
    parser,
)
from streamlib_parsers.wires.responses.wire_items import wire_item
from tests.support.cases import each_case
from tests.support.responses_frames import (
    NESTED,
    Json,
    added,
    body,
    body_of,
    call,
    completed,
    created,
    done,
    events_of,
    failure,
    finals,
    frame,
    message,
    of,
    reasoning,
    response_of,
    same,
    text,
)

# --- errors and truncation ---

FLAT = {"code": "insufficient_quota", "message": "no credits", "param": None}


@each_case("error", [NESTED, FLAT, {**NESTED, "status": 429}])
@each_case("before", [b"", created() + added(message()) + text("Hel")])
@each_case("followed", [True, False])
def test_error_in_the_stream_emits_one_failed(error: Json, before: bytes, followed: bool) -> None:
    """Case 31."""
    failed = frame(
        "response.failed",
        response={
            "status": "failed",
            "error": {"code": "insufficient_quota", "message": "no credits"},
        },
    )
    events = events_of(before, frame("error", **error), failed if followed else b"")
    assert (failure(events).kind, failure(events).code) == ("quota_exhausted", "insufficient_quota")
    assert accumulate(events).text == ("Hel" if before else "")


def test_error_is_emitted_before_the_end_of_input() -> None:
    assert isinstance(parser("responses").feed(frame("error", **FLAT))[-1], Failed)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("rate_limit_exceeded", "rate_limited"),
        ("server_error", "server_error"),
        ("context_length_exceeded", "context_window_exceeded"),
        ("server_is_overloaded", "overloaded"),
        ("something_new", "server_error"),
    ],
)
def test_failed_response_is_classified_by_its_code(code: str, kind: str) -> None:
    events = events_of(
        created(),
        completed(kind="failed", error={"code": code, "message": "m"}, usage={"input_tokens": 1}),
    )
    assert (failure(events).kind, failure(events).code) == (kind, code)
    assert len(of(TokenCount, events)) == 1


def test_failed_response_without_a_reason_still_fails() -> None:
    assert failure(events_of(completed(kind="failed", error=None))).kind == "server_error"
    assert (
        failure(events_of(frame("response.completed", response={"status": "failed"}))).kind
        == "server_error"
    )


def test_error_object_without_a_type_ends_the_stream() -> None:
    assert (
        failure(
            events_of(created(), b'data: {"error":{"code":429,"message":"slow down"}}\n\n')
        ).kind
        == "rate_limited"
    )


USED = {"input_tokens": 3, "output_tokens": 2}


@pytest.mark.parametrize("status", ["completed", "in_progress", None])
def test_response_done_completes_the_response(status: str | None) -> None:
    """A19: xAI and some Codex back ends end with it, and only there is the usage."""
    response = response_of(
        created(), done(message("Hi")), completed(kind="done", status=status, usage=USED)
    )
    assert (response.status, response.stop_reason, response.text) == ("completed", "stop", "Hi")
    assert response.usage is not None
    assert response.usage.output_tokens == 2


@pytest.mark.parametrize(
    ("status", "kind"), [("failed", "server_error"), ("cancelled", "truncated")]
)
def test_response_done_fails_by_its_status(status: str, kind: str) -> None:
    """A19."""
    error = failure(events_of(created(), completed(kind="done", status=status)))
    assert error.kind == kind


def test_response_done_may_be_incomplete() -> None:
    """A19."""
    end = completed(
        kind="done", status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    )
    response = response_of(created(), done(message("Hi")), end)
    assert (response.status, response.stop_reason) == ("incomplete", "length")


def test_second_response_in_one_stream_is_a_notice() -> None:
    """A13: two lanes of a WebSocket in one parser must not become one text without a word."""
    lanes = [{"stream_id": "a"}, {"stream_id": "b"}]
    first, second = (
        frame("response.created", response={"id": f"resp_{n}", "status": "in_progress"}, **lane)
        for n, lane in enumerate(lanes)
    )
    events = events_of(first, second, done(message("Hi")), completed())
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.code == "second_response"
    assert "stream_id b" in notice.detail


@pytest.mark.parametrize("tail", [b"", b"data: [DONE]\n\n"], ids=["eof", "done-marker"])
def test_end_before_the_last_event_is_truncated(tail: bytes) -> None:
    """Case 29."""
    error = failure(events_of(created(), added(message()), text("Hi"), done(message("Hi")), tail))
    assert (error.kind, error.retryable, error.detail) == (
        "truncated",
        True,
        {"status": "in_progress"},
    )


def test_every_prefix_before_the_last_event_is_truncated() -> None:
    """Case 29."""
    body = created() + added(message()) + text("Hi") + done(message("Hi"))
    last = completed(message("Hi"))
    expected = finals(events_of(body + last))
    for length in range(len(body + last)):
        events = events_of((body + last)[:length])
        if isinstance(events[-1], Completed):
            assert finals(events) == expected
        else:
            assert failure(events).kind == ("malformed" if length == 0 else "truncated")


def test_last_event_without_its_blank_line_is_complete() -> None:
    """Case 30."""
    events = events_of((created() + completed(message("Hi"))).rstrip(b"\n"))
    assert isinstance(events[-1], Completed)


def test_reasoning_and_its_call_stay_in_order() -> None:
    """Case 21."""
    output = [
        reasoning("plan", item_id="rs_1", encrypted_content="gAA"),
        call("{}", item_id="fc_1"),
    ]
    stream = [part for n, item in enumerate(output) for part in (added(item, n), done(item, n))]
    items = response_of(created(), *stream, completed(*output)).items
    assert [wire_item(item) for item in items] == [same(item) for item in output]


def test_empty_summary_is_sent_back_empty() -> None:
    """Case 22."""
    (final,) = finals(
        events_of(added(reasoning()), done(reasoning(encrypted_content="gAA")), completed())
    )
    assert wire_item(final) == reasoning(encrypted_content="gAA")


def test_phase_is_preserved_on_every_message() -> None:
    """Case 26."""
    stream = [added(message(phase="commentary")), done(message("a", phase="commentary"))]
    stream += [
        added(message(item_id="m"), 1),
        done(message("b", item_id="m", phase="final_answer"), 1),
    ]
    assert [item.phase for item in finals(events_of(*stream, completed()))] == [
        "commentary",
        "final_answer",
    ]


def test_ids_of_any_form_are_accepted() -> None:
    """Case 35."""
    sent = message("Hi", item_id="42:äö")
    assert (
        finals(events_of(added(message(item_id="42:äö")), done(sent), completed()))[0].id == "42:äö"
    )


# --- bodies ---


def test_body_emits_each_item_with_one_delta() -> None:
    kinds = [
        type(event)
        for event in body_of(
            body(service_tier="default", usage={"input_tokens": 1, "output_tokens": 2})
        )
    ]
    assert kinds == [
        Created,
        ResponseMetadata,
        TokenCount,
        OutputItemAdded,
        OutputTextDelta,
        OutputItemDone,
        Completed,
    ]


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled"])
def test_body_with_unfinished_status_is_truncated(status: str) -> None:
    events = body_of(body(status=status))
    assert (failure(events).kind, failure(events).detail) == ("truncated", {"status": status})
    assert accumulate(events).response_id == "resp_1"


@pytest.mark.parametrize(("status", "native"), [("complete", "complete"), (None, None), ("", None)])
def test_body_with_unknown_status_is_complete(status: str | None, native: str | None) -> None:
    response = accumulate(body_of(body(status=status)))
    assert (response.status, response.stop_reason, response.native_stop_reason) == (
        "completed",
        "other",
        native,
    )


def test_compaction_body_keeps_user_turns_out_of_the_text() -> None:
    turn = {
        "type": "message",
        "id": "m",
        "role": "user",
        "content": [{"type": "input_text", "text": "Q"}],
    }
    summary = {"type": "compaction", "id": "cmp", "encrypted_content": "gAA"}
    response = accumulate(
        body_of({"id": "r", "object": "response.compaction", "output": [turn, summary]})
    )
    assert ([type(item) for item in response.items], response.text) == ([Message, Compaction], "")


def test_incomplete_call_of_a_body_is_not_callable() -> None:
    response = accumulate(
        body_of(body(status="incomplete", output=[call("{}", status="in_progress")]))
    )
    assert response.calls == []


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (
            {
                "error": {
                    "message": "no such model",
                    "type": "invalid_request_error",
                    "code": "model_not_found",
                }
            },
            "not_found",
        ),
        (
            {"status": "failed", "error": {"code": "server_error", "message": "m"}, "output": []},
            "server_error",
        ),
        ({"error": {"code": "server_error", "message": "m"}, "output": []}, "server_error"),
        ({"type": "error", **NESTED}, "quota_exhausted"),
        ({"hello": 1}, "malformed"),
        ([], "malformed"),
    ],
)
def test_body_that_is_not_a_response_fails(sent: Any, kind: str) -> None:
    assert failure(body_of(json.dumps(sent).encode())).kind == kind


def test_body_in_place_of_a_stream_is_read() -> None:
    assert accumulate(events_of(json.dumps(body()).encode())).text == "Hi"


ARGUMENTS = frame(
    "response.function_call_arguments.delta", output_index=0, item_id="fc_1", delta='{"a":1}'
)


@pytest.mark.parametrize(
    "stream",
    [added(call()) + ARGUMENTS, added(call()), added(message()) + text("Hel")],
    ids=["arguments", "no arguments", "text"],
)
def test_item_that_no_event_ended_is_a_notice(stream: bytes) -> None:
    response = response_of(created() + stream + completed())
    assert response.status == "completed"
    assert [item.status for item in response.items] == ["incomplete"]
    assert response.calls == []
    assert [(notice.code, notice.index) for notice in response.notices] == [("unclosed_item", 0)]


def test_item_that_was_cut_off_by_the_limit_is_no_notice() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    end = frame("response.incomplete", response={"id": "r", "output": [], **cut})
    response = response_of(created() + added(message()) + text("Hel") + end)
    assert [item.status for item in response.items] == ["incomplete"]
    assert response.notices == ()


def test_items_that_cannot_be_read_are_an_error() -> None:
    """The last of two equal keys counts; its items were left out without a word."""
    item = '{"type":"message","id":"m","role":"assistant","content":[],"status":"completed"}'
    end = f'{{"type":"response.completed","response":{{"id":"r","output":5,"output":[{item}]}}}}'
    response = response_of(created() + f"data: {end}\n\n".encode())
    assert response.error is not None
    assert response.error.kind == "malformed"
