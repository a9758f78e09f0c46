"""Gemini Interactions: steps and deltas to items, ends, usage, and what no SDK type says."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import (
    AnnotationAdded,
    Audio,
    Document,
    Failed,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    OutputTextDelta,
    Reasoning,
    ReasoningSummaryDelta,
    Response,
    ServerToolCall,
    ServerToolResult,
    Text,
    parse_body,
    parser,
)
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.wires.interactions import STOP_REASONS
from streamlib_parsers.wires.interactions.events import read_position
from tests.support.cases import each_case
from tests.support.interactions_frames import (
    completed,
    created,
    events_of,
    frame,
    read,
    read_body,
    step,
    text,
)

THOUGHT = step(0, {"type": "thought"}, {"type": "thought_signature", "signature": "c2ln"})
CALL = {"type": "function_call", "id": "c1", "name": "f", "arguments": {}}


def summary(words: str) -> dict[str, Any]:
    return {"type": "thought_summary", "content": text(words)}


def test_steps_become_items_in_their_order() -> None:
    response = read(
        created(),
        THOUGHT,
        step(1, {"type": "model_output"}, text("Hel"), text("lo")),
        step(2, CALL, {"type": "arguments_delta", "arguments": '{"k":'})[:-2],
        b"\n\n",
        completed("requires_action"),
    )
    thought, message, call = response.items
    assert thought.signature == "c2ln"
    assert isinstance(message, Message)
    assert message.text == "Hello"
    # The arguments are no JSON: such a call is never callable.
    assert call.status == "incomplete"
    assert response.calls == []


def test_arguments_are_the_joined_fragments() -> None:
    deltas = [{"type": "arguments_delta", "arguments": part} for part in ('{"a": ', "1.0}")]
    (call,) = read(created(), step(0, CALL, *deltas), completed()).calls
    assert isinstance(call, FunctionCall)
    assert (call.call_id, call.arguments) == ("c1", '{"a": 1.0}')


def test_complete_call_makes_the_stop_reason_tool_calls() -> None:
    """Servers say `completed` beside a call that waits for its result (vercel/ai)."""
    response = read(created(), step(0, CALL), completed("completed"))
    assert (response.stop_reason, response.native_stop_reason) == ("tool_calls", "completed")


def test_last_signature_that_is_not_empty_counts() -> None:
    """With summaries, an empty signature follows each of them."""
    signatures = [{"type": "thought_signature", "signature": value} for value in ("", "c2ln", "")]
    events = events_of(
        created(),
        step(
            0, {"type": "thought"}, summary("**A**"), signatures[0], summary("**B**"), *signatures
        ),
        completed(),
    )
    deltas = [event for event in events if isinstance(event, ReasoningSummaryDelta)]
    assert [(delta.summary_index, delta.delta) for delta in deltas] == [(0, "**A**"), (1, "**B**")]
    (thought,) = read(created(), step(0, {"type": "thought"}, summary("x"), *signatures)).items
    assert thought.signature == "c2ln"


def test_server_tools_keep_type_arguments_and_signature() -> None:
    call = {
        "type": "google_search_call",
        "arguments": {"queries": ["a", 1.0]},
        "signature": "c2ln",
    }
    result = {"type": "google_search_result", "result": [{"search_suggestions": "<b>"}]}
    tool_call, tool_result = read(
        created(),
        step(0, {"type": "google_search_call", "id": "s", "signature": ""}, call),
        step(1, {"type": "google_search_result", "call_id": "s"}, {**result, "is_error": False}),
        completed(),
    ).items
    assert isinstance(tool_call, ServerToolCall)
    assert (tool_call.name, tool_call.signature) == ("google_search", "c2ln")
    assert tool_call.parsed() == {"queries": ["a", 1.0]}
    assert isinstance(tool_result, ServerToolResult)
    assert tool_result.output == result["result"]
    assert tool_result.native == {"type": "google_search_result", "is_error": False}


def test_tool_of_an_mcp_server_has_its_own_name() -> None:
    start = {"type": "mcp_server_tool_call", "id": "m", "name": "echo", "server_name": "srv"}
    (item,) = read(created(), step(0, {**start, "arguments": {"a": 1}}), completed()).items
    assert isinstance(item, ServerToolCall)
    assert (item.name, item.parsed()) == ("echo", {"a": 1})
    assert item.native == {"type": "mcp_server_tool_call", "server_name": "srv"}


@pytest.mark.parametrize("is_early", [False, True])
def test_byte_offsets_become_offsets_of_characters(is_early: bool) -> None:
    """Checked with a recorded text that holds a dash of three bytes."""
    words = "é 2\u20131 🙂!"
    start = words.encode().index(b"2")
    annotation = {"type": "url_citation", "start_index": start, "end_index": len(words.encode())}
    citing = {"type": "text_annotation_delta", "annotations": [annotation]}
    deltas = [citing, text(words)] if is_early else [text(words), citing]
    events = events_of(created(), step(0, {"type": "model_output"}, *deltas), completed())
    (added,) = [event for event in events if isinstance(event, AnnotationAdded)]
    begin, end = added.annotation["start_index"], added.annotation["end_index"]
    assert words[begin:end] == "2\u20131 🙂!"


def test_many_annotations_of_a_long_text_take_linear_time() -> None:
    words = "naïve 世 " * 4000
    size = len(words.encode())
    annotations = [{"type": "u", "start_index": n, "end_index": n} for n in range(0, size, 16)]
    citing = {"type": "text_annotation_delta", "annotations": annotations}
    response = read(created(), step(0, {"type": "model_output"}, text(words), citing), completed())
    (item,) = response.items
    assert isinstance(item, Message)
    (part,) = item.content
    assert isinstance(part, Text)
    last = part.annotations[-1]["end_index"]
    assert len(words[:last].encode()) == annotations[-1]["end_index"]


def test_texts_and_media_are_parts_in_their_order() -> None:
    response = read(
        created(),
        step(
            0,
            {"type": "model_output"},
            text("a"),
            {"type": "image", "data": "QUJD", "mime_type": "image/png", "resolution": "low"},
            text("b"),
            {"type": "audio", "data": "QQ==", "mime_type": "audio/l16", "rate": 24000},
            {"type": "audio", "data": "Qg=="},
            {"type": "video", "uri": "https://x/v", "mime_type": "video/mp4"},
        ),
        completed(),
    )
    (item,) = response.items
    assert isinstance(item, Message)
    assert item.content == (
        Text("a"),
        Image("QUJD", media_type="image/png", native={"resolution": "low"}),
        Text("b"),
        Audio("QUI=", media_type="audio/l16", native={"rate": 24000}),
        Document(url="https://x/v", media_type="video/mp4"),
    )
    assert response.text == "ab"


def test_unknown_delta_is_passed_through_and_marks_its_item() -> None:
    response = read(
        created(), step(0, {"type": "model_output"}, {"type": "smell", "x": 1}), completed()
    )
    assert response.items[0].status == "incomplete"
    assert [notice.code for notice in response.notices] == ["unknown_delta"]


@pytest.mark.parametrize(("status", "stop_reason"), STOP_REASONS.items())
def test_status_gives_the_stop_reason(status: str, stop_reason: str) -> None:
    call = step(0, CALL) if status == "requires_action" else b""
    response = read(created(), call, completed(status))
    assert (response.stop_reason, response.native_stop_reason) == (stop_reason, status)


def test_continuation_token_pauses_and_stays_in_metadata() -> None:
    update = frame("interaction.status_update", interaction_id="v1_a", continuation_token="t1")
    paused = read(created(), update, completed("requires_continuation", continuation_token="t2"))
    assert paused.stop_reason == "pause"
    assert paused.metadata["continuation_token"] == "t2"
    # The last event is the authority: without a token, earlier ones are void.
    ended = read(created(), update, completed())
    assert ended.metadata["continuation_token"] is None


def test_event_id_comes_after_the_events_of_its_frame() -> None:
    body = frame("step.start", index=0, step={"type": "model_output"}, event_id="e1")
    body += frame("step.delta", index=0, delta=text("Hi"), event_id="e2")
    events = events_of(created(), body)
    kinds = [type(event).__name__ for event in events]
    assert kinds[1:5] == [
        "OutputItemAdded",
        "ResponseMetadata",
        "OutputTextDelta",
        "ResponseMetadata",
    ]
    assert read(created(), body).metadata["event_id"] == "e2"


def test_stream_that_begins_inside_a_step_is_read() -> None:
    """A connection that was resumed behind an `event_id`."""
    body = frame("step.delta", index=3, delta=text("rest"))
    response = read(body, frame("step.stop", index=3), completed())
    assert (response.text, response.status) == ("rest", "completed")


def failure(*chunks: bytes) -> Any:
    last = events_of(*chunks)[-1]
    assert isinstance(last, Failed)
    return last.error


@pytest.mark.parametrize("event", ["interaction.start", "content.start", "content.delta"])
def test_removed_schema_is_refused_by_name(event: str) -> None:
    error = failure(frame(event, index=0, content={"type": "text"}))
    assert (error.kind, error.code) == ("malformed", "legacy_schema")
    assert "June 2026" in error.message


def test_body_of_the_removed_schema_is_refused_by_name() -> None:
    response = read_body(outputs=[text("Hi")])
    assert response.error is not None
    assert response.error.code == "legacy_schema"


@each_case(
    "code, kind",
    [
        ("invalid_request", "invalid_request"),
        ("failed_precondition", "invalid_request"),
        ("parameter_unknown", "invalid_request"),
        ("out_of_range", "invalid_request"),
        ("authentication", "authentication"),
        ("payment_required", "quota_exhausted"),
        ("permission_denied", "permission"),
        ("not_found", "not_found"),
        ("model_not_found", "not_found"),
        ("rate_limit_exceeded", "rate_limited"),
        ("quota_exceeded", "quota_exhausted"),
        ("cancelled", "cancelled"),
        ("gateway_timeout", "server_error"),
        ("something_new", "server_error"),
    ],
)
def test_error_code_gives_the_kind(code: str, kind: str) -> None:
    error = failure(created(), frame("error", error={"code": code, "message": "no"}))
    assert (error.kind, error.code) == (kind, code)


def test_failed_interaction_has_its_reason() -> None:
    plain = failure(created(), completed("failed"))
    assert (plain.kind, plain.retryable) == ("generation_failed", True)
    start = {"type": "model_output", "error": {"code": 8, "message": "Quota"}}
    told = failure(created(), step(0, start), completed("failed"))
    assert (told.kind, told.message) == ("rate_limited", "Quota")
    listed = failure(created(), completed("failed", errors=[{"code": "not_found"}]))
    assert listed.kind == "not_found"
    assert failure(created(), completed("cancelled")).kind == "cancelled"


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_interaction_that_continues_is_truncated(status: str) -> None:
    response = read_body(status=status)
    assert response.error is not None
    assert (response.error.kind, response.error.detail) == ("truncated", {"status": status})


def test_terminator_alone_completes_nothing() -> None:
    error = failure(created(), b"event: done\ndata: [DONE]\n\n")
    assert (error.kind, error.detail) == ("truncated", {"status": "in_progress"})


def test_usage_adds_tools_to_input_and_reasoning_to_output() -> None:
    usage = {
        "total_tokens": 1983,
        "total_input_tokens": 22,
        "input_tokens_by_modality": [{"modality": "text", "tokens": 22}],
        "total_cached_tokens": 4,
        "total_output_tokens": 590,
        "total_tool_use_tokens": 198,
        "tool_use_tokens_by_modality": [{"modality": "TEXT", "tokens": 198}],
        "total_thought_tokens": 1173,
        "raw_prompt_token": 9,
    }
    counts = read(created(), completed(usage=usage)).usage
    assert counts is not None
    assert (counts.input_tokens, counts.output_tokens) == (220, 1763)
    assert (counts.reasoning_output_tokens, counts.cache_read_input_tokens) == (1173, 4)
    assert counts.input_modalities == {"text": 220}
    assert counts.raw == usage


def test_usage_beside_steps_and_deltas_is_counted() -> None:
    body = frame("step.start", index=0, step={"type": "model_output"})
    body += frame(
        "step.delta", index=0, delta=text("a"), metadata={"usage": {"total_input_tokens": 3}}
    )
    body += frame("step.stop", index=0, usage={"total_input_tokens": 4}, step_usage={"a": 1})
    partial = read(created(), body)
    assert partial.usage is not None
    assert partial.usage.input_tokens == 4
    assert partial.metadata["step_usage"] == {"a": 1}


def test_id_of_an_interaction_that_is_not_stored_is_none() -> None:
    assert read(created(id=""), completed(id="")).response_id is None


def test_agent_is_the_model() -> None:
    body = frame("interaction.created", interaction={"id": "v", "agent": "deep-research-x"})
    assert read(body).model == "deep-research-x"


def test_body_has_the_items_of_its_stream() -> None:
    thought = {"type": "thought", "signature": "c2ln", "summary": [text("A"), text("B")]}
    image = {"type": "image", "data": "QUJD", "mime_type": "image/png"}
    steps = [
        {"type": "user_input", "content": [text("Hi")]},
        thought,
        {"type": "model_output", "content": [text("Hello"), image, {"type": "odd", "x": 1}]},
        {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1.0}},
        {"type": "function_result", "call_id": "c", "result": {"b": 1}, "is_error": True},
    ]
    response = read_body(steps=steps, status="requires_action")
    question, reasoning, message, call, result = response.items
    assert isinstance(question, Message)
    assert (question.role, question.text) == ("user", "Hi")
    assert isinstance(reasoning, Reasoning)
    assert reasoning.summary == ("A", "B")
    assert isinstance(message, Message)
    assert message.native == {"content": {"2": {"type": "odd", "x": 1}}}
    assert isinstance(call, FunctionCall)
    assert call.arguments == '{"a": 1.0}'
    assert isinstance(result, FunctionCallOutput)
    assert (result.output, result.is_error) == ('{"b":1}', True)


def test_steps_that_only_the_last_event_has_are_read() -> None:
    steps = [{"type": "model_output", "content": [text("Hi")]}]
    assert read(created(), completed(steps=steps)).text == "Hi"
    streamed = step(0, {"type": "model_output"}, text("Hi"))
    assert read(created(), streamed, completed(steps=steps)).text == "Hi"


def test_second_interaction_in_one_stream_is_not_mixed_in() -> None:
    response = read(created(), created(id="v1_b"), completed())
    assert response.response_id == "v1_a"
    assert [notice.code for notice in response.notices] == ["second_response"]


def test_every_truncation_of_a_stream_fails() -> None:
    """Truncation at every byte: nothing completes before `interaction.completed`."""
    body = created() + THOUGHT + step(1, {"type": "model_output"}, text("Grüße 🙂"))
    body += step(2, CALL, {"type": "arguments_delta", "arguments": '{"a": "é"}'})
    whole = body + completed("requires_action").partition(b"event: done")[0]
    expected = read(whole)
    for offset in range(len(whole) + 1):
        response: Response = read(whole[:offset])
        if response.status != "failed":
            assert response.items == expected.items
            assert response.calls == expected.calls
        else:
            assert offset < len(whole) - 1
        assert read(whole[:offset], whole[offset:]) == expected


def test_text_deltas_are_emitted_as_they_come() -> None:
    events = events_of(created(), step(0, {"type": "model_output"}, text("a"), text(""), text("b")))
    deltas = [event.delta for event in events if isinstance(event, OutputTextDelta)]
    assert deltas == ["a", "b"]


# --- usage, ends, and keys that any event may have ---


@pytest.mark.parametrize("key", ["total_usage", "usage"])
def test_usage_in_the_metadata_of_an_event_is_counted(key: str) -> None:
    metadata = {key: {"total_input_tokens": 7, "total_output_tokens": 3}, "region": "eu"}
    last = frame("step.stop", index=0, metadata=metadata)
    start = frame("step.start", index=0, step={"type": "model_output"})
    response = read(created(), start, last, completed())
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (7, 3)
    assert response.metadata["metadata"] == {"region": "eu"}


@pytest.mark.parametrize("keys", [{}, {"event_id": "e-1"}])
def test_metadata_beside_a_text_is_read(keys: dict[str, str]) -> None:
    """Most events are texts, and have a way of their own."""
    start = frame("step.start", index=0, step={"type": "model_output"})
    metadata = {"total_usage": {"total_input_tokens": 7}}
    delta = frame("step.delta", index=0, delta=text("Hi"), metadata=metadata, **keys)
    response = read(created(), start, delta, frame("step.stop", index=0), completed())
    assert response.usage is not None
    assert (response.text, response.usage.input_tokens) == ("Hi", 7)


@each_case(
    "code, kind",
    [
        (1, "cancelled"),
        (3, "invalid_request"),
        (4, "server_error"),
        (5, "not_found"),
        (7, "permission"),
        (8, "rate_limited"),
        (9, "invalid_request"),
        (11, "invalid_request"),
        (13, "server_error"),
        (14, "overloaded"),
        (16, "authentication"),
    ],
)
def test_code_of_a_failed_step_has_its_kind(code: int, kind: str) -> None:
    """`google.rpc.Status` has numbers alone."""
    failed = {"type": "model_output", "error": {"code": code, "message": "no"}}
    error = read(created(), step(0, failed), completed("failed")).error
    assert error is not None
    assert error.kind == kind


def test_content_of_another_shape_is_kept() -> None:
    contents = [{"type": "text", "text": "Hi"}, {"type": "text", "text": 3}, {"text": "?"}]
    (item,) = read_body(steps=[{"type": "model_output", "content": contents}]).items
    assert isinstance(item, Message)
    assert item.text == "Hi"
    assert item.native == {"content": {"1": {"type": "text", "text": 3}, "2": {"text": "?"}}}


def test_total_usage_counts_where_usage_is_beside_it() -> None:
    metadata = {"total_usage": {"total_input_tokens": 7}, "usage": {"total_input_tokens": 1}}
    response = read(created(), frame("interaction.status_update", metadata=metadata), completed())
    assert response.usage is not None
    assert response.usage.input_tokens == 7


def test_usage_and_id_of_an_error_are_read() -> None:
    last = frame(
        "error",
        error={"code": "internal", "message": "no"},
        metadata={"total_usage": {"total_input_tokens": 7}},
        event_id="e9",
    )
    response = read(created(), last)
    assert response.status == "failed"
    assert response.usage is not None
    assert response.usage.input_tokens == 7
    assert response.metadata["event_id"] == "e9"


@pytest.mark.parametrize("created_status", [None, "in_progress", "queued"])
def test_completed_event_without_a_status_is_truncated(created_status: str | None) -> None:
    """Nothing says that the interaction ended."""
    last = frame("interaction.completed", interaction={"id": "v1_a", "model": "m"})
    begin = created(status=created_status)
    response = read(begin, step(0, {"type": "model_output"}, text("Hi")), last)
    assert response.error is not None
    assert response.error.kind == "truncated"


@pytest.mark.parametrize("status", [None, 5, "", "in_progress", "queued"])
def test_body_without_a_status_is_truncated(status: Any) -> None:
    response = read_body(status=status, steps=[{"type": "model_output", "content": [text("Hi")]}])
    assert response.error is not None
    assert response.error.kind == "truncated"


def test_body_that_lacks_a_status_is_truncated() -> None:
    body = b'{"id":"i","steps":[{"type":"model_output","content":[{"type":"text","text":"Hi"}]}]}'
    response = accumulate(parse_body("interactions", body))
    assert response.error is not None
    assert (response.error.kind, response.text) == ("truncated", "Hi")


def test_parser_is_complete_at_the_completed_event_alone() -> None:
    stream = parser("interactions")
    stream.feed(created() + step(0, {"type": "model_output"}, text("Hi")))
    assert not stream.complete
    stream.feed(completed())
    assert stream.complete


@pytest.mark.parametrize("mark", ["[DONE]", " [done] ", "[DONE]."])
def test_end_mark_is_no_event(mark: str) -> None:
    response = read(created(), f"data: {mark}\n\n".encode(), completed())
    assert (response.status, response.notices) == ("completed", ())


def test_step_that_starts_twice_is_malformed() -> None:
    again = step(0, {"type": "model_output"}, text("b"))
    response = read(created(), step(0, {"type": "model_output"}, text("a")), again, completed())
    assert response.error is not None
    assert response.error.kind == "malformed"


# --- deltas of tools ---


def test_keys_of_a_tool_delta_are_native() -> None:
    start = {"type": "google_search_call", "id": "s1", "region": "eu"}
    delta = {"type": "google_search_call", "arguments": {"queries": ["a"]}, "rank": 2, "x": None}
    (call,) = read(created(), step(0, start, delta), completed()).items
    assert isinstance(call, ServerToolCall)
    assert call.native == {"type": "google_search_call", "region": "eu", "rank": 2}
    assert call.arguments == '{"queries": ["a"]}'


def test_second_arguments_of_a_tool_are_passed_through() -> None:
    start = {"type": "google_search_call", "id": "s1"}
    deltas = [{**start, "arguments": {"a": number}} for number in (1, 1, 2)]
    response = read(created(), step(0, start, *deltas), completed())
    (call,) = response.items
    assert isinstance(call, ServerToolCall)
    assert (call.arguments, call.status) == ('{"a": 1}', "incomplete")
    assert [notice.code for notice in response.notices] == ["unknown_delta"]


@pytest.mark.parametrize(
    ("result", "output", "note"),
    [
        ("text", "text", {}),
        ({"a": 1}, '{"a":1}', {"result": "json"}),
        (None, "", {}),
        ([text("b")], (Text("b"),), {}),
        ([], "[]", {"result": "json"}),
    ],
)
def test_result_of_a_function_comes_in_a_delta(result: Any, output: Any, note: Any) -> None:
    start = {"type": "function_result", "call_id": "c1", "region": "eu"}
    delta = {"type": "function_result", "result": result, "is_error": True, "rank": 2}
    (item,) = read(created(), step(0, start, delta), completed()).items
    assert isinstance(item, FunctionCallOutput)
    assert (item.call_id, item.output, item.is_error) == ("c1", output, True)
    assert item.native == {"region": "eu", "rank": 2, **note}


def test_delta_that_fits_its_step_is_no_notice() -> None:
    thought = step(
        0,
        {"type": "thought"},
        summary("a"),
        {"type": "thought_signature", "signature": ""},
        summary("b"),
        {"type": "thought_signature", "signature": "c2ln"},
    )
    picture = {"type": "image", "mime_type": "image/png", "data": "aWNv"}
    message = step(1, {"type": "model_output"}, text("Hi"), picture, text("there"))
    response = read(created(), thought, message, completed())
    assert response.notices == ()
    assert {item.status for item in response.items} == {"completed"}
    assert response.items[0].summary == ("a", "b")  # type: ignore[union-attr]


def test_media_of_a_result_keep_their_keys() -> None:
    picture = {"type": "image", "mime_type": "image/png", "data": "aWNv", "resolution": "high"}
    document = {"type": "document", "mime_type": "application/pdf", "uri": "files/a"}
    start = {"type": "function_result", "call_id": "c1", "result": [picture, document]}
    (item,) = read_body(steps=[start]).items
    assert isinstance(item, FunctionCallOutput)
    image, file = item.output
    assert isinstance(image, Image)
    assert isinstance(file, Document)
    assert (image.data, image.media_type) == ("aWNv", "image/png")
    assert image.native == {"resolution": "high"}
    assert (file.url or file.file_id, file.media_type) == ("files/a", "application/pdf")


# --- annotations, positions ---


@pytest.mark.parametrize("offset", [-1, True, "2", None, 1.5])
def test_offset_that_is_none_is_left_as_it_is(offset: Any) -> None:
    note = {"type": "url_citation", "start_index": 0, "end_index": offset}
    content = {**text("é!"), "annotations": [note]}
    (message,) = read_body(steps=[{"type": "model_output", "content": [content]}]).items
    assert isinstance(message, Message)
    (part,) = message.content
    assert isinstance(part, Text)
    assert part.annotations == (note,)


def test_annotation_waits_for_its_text_in_bytes() -> None:
    """Three characters are six bytes: a range that ends at four ends inside the text so far."""
    note = {"type": "url_citation", "start_index": 0, "end_index": 4}
    cited = {"type": "text_annotation_delta", "annotations": [note]}
    deltas = [text("ééé"), cited, text("!!!")]
    events = events_of(created(), step(0, {"type": "model_output"}, *deltas), completed())
    kinds = [event for event in events if isinstance(event, (AnnotationAdded, OutputTextDelta))]
    assert [type(event) for event in kinds] == [OutputTextDelta, AnnotationAdded, OutputTextDelta]
    (added,) = [event for event in events if isinstance(event, AnnotationAdded)]
    assert added.annotation["end_index"] == 2


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b'{"event_id":"e1"}', "e1"),
        (b'{"event_id":""}', None),
        (b'{"event_id":null}', None),
        (b"{}", None),
        (b"nonsense", None),
    ],
)
def test_position_is_the_id_of_an_event(data: bytes, position: str | None) -> None:
    assert read_position(data) == position


def test_usage_and_id_of_the_last_event_are_read() -> None:
    interaction = {"id": "v1_a", "status": "completed", "model": "m"}
    metadata = {"total_usage": {"total_input_tokens": 7}}
    last = frame("interaction.completed", interaction=interaction, metadata=metadata, event_id="e9")
    response = read(created(), last)
    assert response.usage is not None
    assert response.usage.input_tokens == 7
    assert response.metadata["event_id"] == "e9"
