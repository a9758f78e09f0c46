"""Anthropic Messages, event by event: what each becomes, and what happens to unknown ones."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamlib.testing.invariants import join_deltas
from streamlib_parsers import (
    AnnotationAdded,
    Compaction,
    Completed,
    Created,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Limits,
    Message,
    Opaque,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    ReasoningContentDelta,
    Response,
    ResponseEvent,
    ResponseMetadata,
    ServerToolCall,
    ServerToolResult,
    Text,
    TokenCount,
    Usage,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.errors import ParseFailure
from streamlib_parsers.json_text import SurrogateJoiner, decode_any, mark_surrogates
from streamlib_parsers.wires import messages
from streamlib_parsers.wires.messages import BLOCKS, DELTAS, KINDS, STOP_REASONS, TRANSITIONS, State
from tests.support.partitions import byte_by_byte, cuts, every_single_cut
from tests.support.shared import BODIES, Recording, each_recording, each_vector

Json = dict[str, Any]


def frame(kind: str, **values: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (
        kind.encode(),
        json.dumps({"type": kind, **values}).encode(),
    )


def start(**message: Any) -> bytes:
    usage = {"input_tokens": 25, "output_tokens": 1}
    return frame(
        "message_start",
        message={
            "id": "msg_1",
            "type": "message",
            "model": "claude-x",
            "content": [],
            "usage": usage,
            **message,
        },
    )


def block(index: int, content: Json, *deltas: Json) -> bytes:
    return (
        frame("content_block_start", index=index, content_block=content)
        + b"".join(delta(index, **values) for values in deltas)
        + frame("content_block_stop", index=index)
    )


def delta(index: int, kind: str, **values: Any) -> bytes:
    return frame("content_block_delta", index=index, delta={"type": kind, **values})


def end(reason: str | None = "end_turn", **values: Any) -> bytes:
    return (
        frame(
            "message_delta",
            delta={"stop_reason": reason, "stop_sequence": None},
            usage={"output_tokens": 9},
            **values,
        )
        + STOP
    )


STOP = frame("message_stop")
TEXT = {"type": "text", "text": ""}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}
TOOL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}


def text_deltas(*texts: str) -> list[Json]:
    return [{"kind": "text_delta", "text": text} for text in texts]


def events_of(*chunks: bytes, **options: Any) -> list[ResponseEvent]:
    p = parser("messages", **options)
    return [*(event for chunk in chunks for event in p.feed(chunk)), *p.close()]


def response_of(*chunks: bytes) -> Response:
    return accumulate(events_of(*chunks))


def error_of(*chunks: bytes) -> str:
    last = events_of(*chunks)[-1]
    assert isinstance(last, Failed)
    return last.error.kind


# --- tables ---


def test_transition_table_names_every_event() -> None:
    assert {kind for row in TRANSITIONS.values() for kind in row} == KINDS
    assert set(TRANSITIONS) == set(State)


def test_transitions_lead_to_known_states() -> None:
    assert {state for row in TRANSITIONS.values() for state in row.values()} <= set(TRANSITIONS)


def test_every_delta_is_accepted_by_an_item() -> None:
    applied = {kind for row in messages.ACCEPTED_DELTAS.values() for kind in row}
    assert applied == set(DELTAS)


# --- a usual stream ---


def test_text_response_emits_events_in_order() -> None:
    events = events_of(start() + block(0, TEXT, *text_deltas("Hel", "lo")) + end())
    kinds = [type(event) for event in events]
    deltas = [OutputTextDelta, OutputTextDelta]
    assert kinds == [
        Created,
        TokenCount,
        OutputItemAdded,
        *deltas,
        OutputItemDone,
        TokenCount,
        Completed,
    ]
    assert [event.seq for event in events] == list(range(len(events)))
    assert accumulate(events).text == "Hello"


def test_thinking_keeps_signature_and_precedes_its_call() -> None:
    thinking = block(
        0,
        THINKING,
        {"kind": "thinking_delta", "thinking": "hm"},
        {"kind": "signature_delta", "signature": "EqQB"},
    )
    call = block(
        1,
        TOOL,
        {"kind": "input_json_delta", "partial_json": '{"city":'},
        {"kind": "input_json_delta", "partial_json": ' "Paris"}'},
    )
    items = response_of(start() + thinking + call + end("tool_use")).items
    assert [type(item) for item in items] == [Reasoning, FunctionCall]
    assert (items[0].signature, items[0].text) == ("EqQB", "hm")  # type: ignore[union-attr]
    assert items[1].arguments == '{"city": "Paris"}'  # type: ignore[union-attr]


def test_thinking_without_text_keeps_its_signature() -> None:
    """CASES 16: `display: omitted` sends a signature only."""
    item = response_of(
        start() + block(0, THINKING, {"kind": "signature_delta", "signature": "sig"}) + end()
    ).items[0]
    assert isinstance(item, Reasoning)
    assert (item.content, item.signature) == ("", "sig")


def test_signature_is_read_from_the_start_of_thinking() -> None:
    item = response_of(start() + block(0, {**THINKING, "signature": "sig"}) + end()).items[0]
    assert isinstance(item, Reasoning)
    assert (item.signature, item.native) == ("sig", None)


@pytest.mark.parametrize(
    ("native", "normal"), [*STOP_REASONS.items(), ("brand_new_reason", "other")]
)
def test_stop_reason_is_normalized(native: str, normal: str) -> None:
    response = response_of(start() + block(0, TEXT, *text_deltas("x")) + end(native))
    assert (response.stop_reason, response.native_stop_reason) == (normal, native)


def test_last_stop_reason_that_is_not_null_wins() -> None:
    again = frame("message_delta", delta={"stop_reason": None}, usage={"output_tokens": 9})
    assert (
        response_of(start() + end("max_tokens").removesuffix(STOP) + again + STOP).stop_reason
        == "length"
    )


def test_stop_sequence_is_reported() -> None:
    stop = frame(
        "message_delta",
        delta={"stop_reason": "stop_sequence", "stop_sequence": "END"},
        usage={"output_tokens": 1},
    )
    assert response_of(start() + stop + STOP).stop_sequence == "END"


# --- blocks ---

COMPLETE_BLOCKS: list[tuple[Json, Any]] = [
    (
        {"type": "redacted_thinking", "data": "Emw"},
        Reasoning(redacted=True, encrypted_content="Emw"),
    ),
    (
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srv_1",
            "content": [{"type": "web_search_result", "url": "u"}],
        },
        ServerToolResult(
            "srv_1",
            "web_search",
            [{"type": "web_search_result", "url": "u"}],
            native={"type": "web_search_tool_result"},
        ),
    ),
    (
        {
            "type": "mcp_tool_result",
            "tool_use_id": "mcp_1",
            "is_error": False,
            "content": [{"type": "text", "text": "hi"}],
        },
        ServerToolResult(
            "mcp_1",
            "mcp",
            [{"type": "text", "text": "hi"}],
            native={"type": "mcp_tool_result", "is_error": False},
        ),
    ),
    (
        {"type": "container_upload", "file_id": "f"},
        Opaque("container_upload", {"type": "container_upload", "file_id": "f"}),
    ),
    (
        {"type": "from_the_future", "x": [1.0, {"y": None}]},
        Opaque("from_the_future", {"type": "from_the_future", "x": [1.0, {"y": None}]}),
    ),
]


@pytest.mark.parametrize(
    ("content", "expected"),
    COMPLETE_BLOCKS,
    ids=[content["type"] for content, _ in COMPLETE_BLOCKS],
)
def test_complete_blocks_become_items(content: Json, expected: Any) -> None:
    parsed = response_of(start() + block(0, content) + end()).items[0]
    assert type(parsed) is type(expected)
    fields = (
        "encrypted_content",
        "redacted",
        "call_id",
        "name",
        "output",
        "kind",
        "payload",
        "native",
    )
    assert all(getattr(parsed, name, None) == getattr(expected, name, None) for name in fields)


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_server_tool_call_streams_arguments_and_keeps_kind(kind: str) -> None:
    """CASES 9, 26: a server tool is named from its start, and never to be answered."""
    content = {"type": kind, "id": "srv_1", "name": "web_search", "input": {}, "server_name": "s"}
    response = response_of(
        start() + block(0, content, {"kind": "input_json_delta", "partial_json": '{"q":1}'}) + end()
    )
    item = response.items[0]
    assert isinstance(item, ServerToolCall)
    assert (item.name, item.arguments, item.native) == (
        "web_search",
        '{"q":1}',
        {"type": kind, "server_name": "s"},
    )
    assert response.calls == []


def test_call_without_arguments_parses_as_empty_object() -> None:
    call = response_of(start() + block(0, TOOL) + end("tool_use")).calls[0]
    assert isinstance(call, FunctionCall)
    assert call.parsed() == {}


def test_arguments_in_the_start_keep_their_bytes() -> None:
    raw = b'{"z": 1.0, "a":[1e5 , "x"]}'
    block_start = (
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
        b'"content_block":{"type":"tool_use","id":"t","name":"f","input":%s}}\n\n'
    )
    call = response_of(
        start() + block_start % raw + frame("content_block_stop", index=0) + end("tool_use")
    ).calls[0]
    assert isinstance(call, FunctionCall)
    assert call.arguments.encode() == raw


def test_keys_without_a_field_stay_in_native() -> None:
    call = response_of(
        start() + block(0, {**TOOL, "caller": {"type": "direct"}}) + end("tool_use")
    ).items[0]
    assert call.native == {"caller": {"type": "direct"}}


def test_citations_are_annotations_of_their_text() -> None:
    note = {"type": "char_location", "cited_text": "x", "document_index": 0}
    events = events_of(
        start()
        + block(0, TEXT, {"kind": "citations_delta", "citation": note}, *text_deltas("so"))
        + end()
    )
    assert [event.annotation for event in events if isinstance(event, AnnotationAdded)] == [note]
    item = accumulate(events).items[0]
    assert isinstance(item, Message)
    assert item.content[0].annotations == (note,)  # type: ignore[union-attr]


@pytest.mark.parametrize("encrypted", [None, "EpwB"])
def test_compaction_is_complete_in_its_done_item(encrypted: str | None) -> None:
    values = {"content": "Summary."}
    if encrypted:
        values["encrypted_content"] = encrypted
    response = response_of(
        start()
        + block(0, {"type": "compaction", "content": None}, {"kind": "compaction_delta", **values})
        + end("compaction")
    )
    assert isinstance(response.items[0], Compaction)
    assert (
        response.items[0].content,
        response.items[0].encrypted_content,
        response.stop_reason,
    ) == (
        "Summary.",
        encrypted,
        "pause",
    )


def test_compaction_keeps_content_of_start_when_delta_has_none() -> None:
    content = {"type": "compaction", "content": "Summary."}
    body = start() + block(0, content, {"kind": "compaction_delta"}) + end("compaction")
    (item,) = response_of(body).items
    assert isinstance(item, Compaction)
    assert (item.content, item.encrypted_content) == ("Summary.", None)


def test_fallback_block_renames_the_model() -> None:
    content = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}
    response = response_of(start() + block(0, content) + end())
    assert (response.model, type(response.items[0])) == ("b", Opaque)


def test_overlapping_blocks_keep_their_own_signatures() -> None:
    """llama.cpp sends block 0's signature and stop after block 1's deltas."""
    body = (
        start()
        + frame("content_block_start", index=0, content_block=THINKING)
        + delta(0, "thinking_delta", thinking="think")
        + frame("content_block_start", index=1, content_block=TEXT)
        + delta(1, "text_delta", text="text")
        + delta(0, "signature_delta", signature="late")
        + frame("content_block_stop", index=0)
        + frame("content_block_stop", index=1)
        + end()
    )
    reasoning, message = response_of(body).items
    assert isinstance(reasoning, Reasoning)
    assert isinstance(message, Message)
    assert (reasoning.signature, reasoning.text, message.text) == ("late", "think", "text")


def test_sparse_indexes_keep_the_order_of_their_starts() -> None:
    body = start() + block(7, TEXT, *text_deltas("a")) + block(3, TEXT, *text_deltas("b")) + end()
    assert [event.index for event in events_of(body) if isinstance(event, OutputItemAdded)] == [
        0,
        1,
    ]
    assert response_of(body).text == "ab"


# --- the envelope ---


def test_usage_replaces_and_never_adds() -> None:
    """The example of the wire reference, and CASES 43."""
    first = {
        "input_tokens": 25,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 5,
        "output_tokens": 1,
    }
    split = {"cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 0}}
    last = {
        "input_tokens": 40,
        "cache_creation_input_tokens": 12,
        "cache_read_input_tokens": 7,
        "output_tokens": 8,
    }
    details = {"output_tokens_details": {"thinking_tokens": 3}}
    done = frame("message_delta", delta={"stop_reason": "end_turn"}, usage={**last, **details})
    usage = response_of(start(usage={**first, **split}) + done + STOP).usage
    assert usage is not None
    expected = Usage(59, 8, 7, 12, 3, cache_write_5m_input_tokens=12, cache_write_1h_input_tokens=0)
    assert usage.same_numbers(expected)


def test_usage_is_none_when_not_reported() -> None:
    response = response_of(
        start(usage={}) + frame("message_delta", delta={"stop_reason": "end_turn"}) + STOP
    )
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.cache_read_input_tokens) == (None, None)


def test_usage_of_an_unknown_event_is_not_counted() -> None:
    response = response_of(start() + frame("future_event", usage={"output_tokens": 999}) + end())
    assert response.usage is not None
    assert response.usage.output_tokens == 9


def test_envelope_keys_are_metadata_when_new_or_changed() -> None:
    details = {"stop_details": {"type": "refusal", "category": "cyber"}}
    edits = {"applied_edits": []}
    done = frame(
        "message_delta", delta={"stop_reason": "refusal", **details}, context_management=edits
    )
    events = events_of(start(container={"id": "c"}) + done + done + STOP)
    assert [event.values for event in events if isinstance(event, ResponseMetadata)] == [
        {"container": {"id": "c"}},
        details,
        {"context_management": edits},
    ]


# --- unknown and repeated events ---


def test_unknown_events_pass_through_in_order() -> None:
    """CASES 35."""
    body = (
        frame("future_event", x=1)
        + start()
        + frame("another", y=2)
        + block(0, TEXT, *text_deltas("x"))
        + end()
    )
    events = events_of(body)
    assert [(event.event, event.data) for event in events if isinstance(event, Passthrough)] == [
        ("future_event", {"type": "future_event", "x": 1}),
        ("another", {"type": "another", "y": 2}),
    ]
    assert isinstance(events[-1], Completed)


def test_unknown_delta_marks_its_item_incomplete() -> None:
    body = (
        start()
        + block(0, TEXT, *text_deltas("x"), {"kind": "hologram_delta", "hologram": 1})
        + end()
    )
    response = response_of(body)
    assert response.items[0].status == "incomplete"
    assert [(notice.code, notice.index) for notice in response.notices] == [("unknown_delta", 0)]
    passed = [
        event.data["delta"]["hologram"]
        for event in events_of(body)
        if isinstance(event, Passthrough)
    ]
    assert passed == [1]


def test_delta_for_another_kind_of_block_is_not_applied() -> None:
    response = response_of(
        start() + block(0, TEXT, {"kind": "input_json_delta", "partial_json": "{}"}) + end()
    )
    assert (response.text, response.items[0].status) == ("", "incomplete")


def test_second_message_start_continues_the_response() -> None:
    first = start() + block(0, TEXT, *text_deltas("a")) + end()
    response = response_of(
        first + start(id="msg_2") + block(0, TEXT, *text_deltas("b")) + end("max_tokens")
    )
    assert (response.text, response.response_id, response.stop_reason) == ("ab", "msg_1", "length")
    assert "second_message_start" in [notice.code for notice in response.notices]


def test_text_block_without_text_is_an_empty_text() -> None:
    (item,) = response_of(start() + block(0, TEXT) + end()).items
    assert item.content == (Text(""),)  # type: ignore[union-attr]


def test_second_message_start_forgets_open_blocks() -> None:
    opened = start() + frame(
        "content_block_start", index=0, content_block={"type": "text", "text": ""}
    )
    late = frame("content_block_delta", index=0, delta={"type": "text_delta", "text": "a"})
    response = response_of(opened + start(id="msg_2") + late)
    assert (response.text, response.error.kind) == ("", "malformed")


def test_events_after_message_stop_are_not_applied() -> None:
    response = response_of(
        start()
        + block(0, TEXT, *text_deltas("Hello"))
        + end()
        + frame("content_block_stop", index=0)
        + STOP
    )
    assert (response.text, response.status) == ("Hello", "completed")
    assert [notice.code for notice in response.notices] == ["out_of_order"] * 2


@pytest.mark.parametrize(
    "tail",
    [
        b"data: [DONE]\n\n",
        b"data:[done] \n\n",
        b": ping\n\n",
        b"event: ping\ndata: {}\n\n",
        b"data:\n\n",
    ],
)
def test_sentinels_pings_and_blanks_change_nothing(tail: bytes) -> None:
    stream = start() + block(0, TEXT, *text_deltas("x")) + end()
    assert events_of(stream + tail) == events_of(stream)


def test_events_without_event_line_are_read_by_type() -> None:
    body = start() + block(0, TEXT, *text_deltas("x")) + end()
    bare = b"\n".join(line for line in body.split(b"\n") if not line.startswith(b"event:"))
    assert events_of(bare) == events_of(body)


def test_events_with_type_only_in_event_line_are_read() -> None:
    body = start() + block(0, TEXT, *text_deltas("x")) + end()
    untyped = b"".join(_without_type(line) for line in body.splitlines(keepends=True))
    assert events_of(untyped) == events_of(body)


def _without_type(line: bytes) -> bytes:
    if not line.startswith(b"data: "):
        return line
    values = json.loads(line[6:])
    del values["type"]
    return b"data: " + json.dumps(values).encode() + b"\n"


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


@pytest.mark.parametrize(
    "body",
    [
        start() + block(0, TEXT) + block(0, TEXT),
        start() + delta(0, "text_delta", text="x"),
        start() + block(0, TEXT) + delta(0, "text_delta", text="x"),
        start() + frame("content_block_stop", index=0),
        start() + b"data: {broken\n\n",
        start() + b"data: 1\n\n",
        start() + b"data: null\n\n",
        start() + b"data: []\n\n",
        b"<html>no</html>",
        b"",
        b": ping\n\n: ping\n\n",
    ],
    ids=[
        "dup-start",
        "delta-no-start",
        "delta-after-stop",
        "stop-no-start",
        "bad-json",
        "number",
        "null",
        "list",
        "html",
        "empty",
        "comments",
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


# --- text ---


@each_vector("surrogate_vectors")
def test_surrogate_halves_are_joined_across_deltas(vector: Json) -> None:
    if "partial_json" in vector:
        call = block(
            0,
            TOOL,
            *(
                {"kind": "input_json_delta", "partial_json": part}
                for part in vector["partial_json"]
            ),
        )
        call_item = response_of(start() + call + end("tool_use")).calls[0]
        assert isinstance(call_item, FunctionCall)
        assert call_item.parsed() == vector["arguments"]
        return
    blocks, texts = vector.get("blocks", [vector.get("deltas")]), vector["text"]
    texts_by_block = texts if "blocks" in vector else [texts]
    stops = vector.get("at_stop", [""] * len(blocks))
    stops = stops if isinstance(stops, list) else [stops]
    for n, deltas in enumerate(blocks):
        raw = b"".join(_raw_delta(literal) for literal in deltas)
        body = (
            start()
            + frame("content_block_start", index=0, content_block=TEXT)
            + raw
            + frame("content_block_stop", index=0)
            + end()
        )
        expected = [
            text for text in [*texts_by_block[n], stops[n] if n < len(stops) else ""] if text
        ]
        for chunks in (*every_single_cut(body, 200), [body], byte_by_byte(body)):
            emitted = [
                event.delta for event in events_of(*chunks) if isinstance(event, OutputTextDelta)
            ]
            assert emitted == expected
            assert all(text.encode() for text in emitted)


def _raw_delta(literal: str) -> bytes:
    """A text delta whose text is this JSON literal, unchanged."""
    return (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":%s}}\n\n'
    ) % literal.encode("utf-8", "surrogatepass")


@given(st.text(min_size=1, max_size=30), st.integers(0, 60))
@example("private \U0010f800, noncharacter \ufdd0", 9)
def test_escaped_text_split_at_any_code_unit_is_joined(text: str, split: int) -> None:
    """Invariant 7: a gateway may split JSON escapes between the halves of a pair."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    units = [encoded[index : index + 2] for index in range(0, len(encoded), 2)]
    body = start() + frame("content_block_start", index=0, content_block=TEXT)
    for part in (units[:split], units[split:]):
        escaped = "".join(f"\\u{unit.hex()}" for unit in part)
        body += _raw_delta(f'"{escaped}"')
    body += frame("content_block_stop", index=0) + end()
    assert response_of(body).text == text


JSON_ERRORS = {
    *(
        "nul-raw",
        "tab-raw",
        "nan",
        "inf",
        "neginf",
        "1e999",
        "trailing",
        "two-docs",
        "single-quote",
        "comment",
        "deep-5000",
        "deep-100k",
    ),
    *("deep-open-1M",),
}
INDEX_ERRORS = {
    *(
        "int-2e53",
        "int-2e63",
        "int-2e64",
        "int-400digits",
        "int-5000digits",
        "neg-index",
        "str-index",
        "float-index-1.5",
        "null-index",
        "bool-index",
    ),
}
TEXTS = {
    "lone-high-escape": ["a", "\ufffd"],
    "lone-low-escape": ["\ufffdb"],
    "pair-escape": ["\U0001f600"],
    "reversed-pair": ["\ufffd", "\ufffd"],
    "high-then-text": ["\ufffdx"],
    "high-high-low": ["\ufffd\U0001f600"],
    "nul-escape": ["a\x00b"],
    "dup-key": ["b"],
    "extra": ["a"],
}


GENERATED = {
    "int-5000digits": b'{"index":' + b"9" * 5000 + b"}",
    "deep-5000": b'{"zzz":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "deep-100k": b'{"zzz":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep-open-1M": b"[" * 1_000_000,
    "bigstr-8MB": b'{"delta":{"text":"' + b"x" * (8 << 20) + b'"}}',
}
"""Vectors that are too long for the file of vectors."""


def raw_json(vector: Json) -> bytes:
    return base64.b64decode(vector["raw_b64"]) if "raw_b64" in vector else GENERATED[vector["id"]]


@each_vector("json_vectors")
def test_hostile_json_has_its_documented_meaning(vector: Json) -> None:
    raw, name = raw_json(vector), vector["id"]
    if name in TEXTS:
        text = decode_any(mark_surrogates(raw) or raw)["delta"]["text"]
        joiner = SurrogateJoiner()
        assert [
            part
            for part in (joiner.join((0, "text", 0), text), joiner.rest((0, "text", 0)))
            if part
        ] == TEXTS[name]
    elif name in JSON_ERRORS:
        with pytest.raises(ParseFailure):
            decode_any(raw)
    elif name in INDEX_ERRORS:
        assert (
            error_of(
                start()
                + block(0, TEXT)
                + b'data: {"type":"content_block_stop",'
                + raw[1:]
                + b"\n\n"
            )
            == "malformed"
        )
    elif name.startswith("toplevel"):
        assert error_of(start() + b"data: " + raw + b"\n\n") == "malformed"
    elif name == "bigstr-8MB":
        assert (
            events_of(start() + b"data: " + raw + b"\n\n", limits=Limits(event_bytes=1 << 20))[
                -1
            ].error.code
            == "event_bytes"
        )  # type: ignore[union-attr]
    elif name in ("empty", "ws"):
        assert response_of(start() + b"data: " + raw + b"\n\n" + end()).status == "completed"
    elif name == "float-index":
        assert (
            response_of(
                start()
                + frame("content_block_start", index=0, content_block=TEXT)
                + b'data: {"type":"content_block_stop",'
                + raw[1:]
                + b"\n\n"
                + end()
            )
            .items[0]
            .status
            == "completed"
        )
    else:
        assert decode_any(raw) is not None


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
    cuts(
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
