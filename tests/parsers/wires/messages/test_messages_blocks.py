"""Anthropic Messages: each kind of content block, and its item."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import (
    AnnotationAdded,
    Compaction,
    FunctionCall,
    Message,
    Notice,
    Opaque,
    OutputItemAdded,
    Passthrough,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    TokenCount,
    accumulate,
    parser,
)
from tests.support.messages_frames import (
    TEXT,
    THINKING,
    TOOL,
    Json,
    block,
    delta,
    end,
    events_of,
    frame,
    response_of,
    start,
    text_deltas,
)

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


@pytest.mark.parametrize("kind", ["tool_use", "server_tool_use"])
def test_nameless_call_is_never_callable(kind: str) -> None:
    """A17: a call that cannot be dispatched ends incomplete, as on the other wires."""
    content = {"type": kind, "id": "toolu_1", "input": {}}
    events = events_of(start() + block(0, content) + end("tool_use"))
    response = accumulate(events)
    assert response.calls == []
    assert response.items[0].status == "incomplete"
    notices = [event for event in events if isinstance(event, Notice)]
    assert ("nameless_call", 0) in [(notice.code, notice.index) for notice in notices]


def test_calls_without_ids_get_ids_of_their_own() -> None:
    """A17: two calls must not share the id that their results name."""
    first, second = {**TOOL}, {**TOOL}
    del first["id"]
    second["id"] = None
    response = response_of(start() + block(0, first) + block(1, second) + end("tool_use"))
    assert [call.call_id for call in response.calls] == ["call_0", "call_1"]


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


def test_late_citation_is_a_notice_and_fails_nothing() -> None:
    """A24: a citation after its block's stop costs neither the text nor the response."""
    note = {"type": "char_location", "cited_text": "x", "document_index": 0}
    late = delta(0, "citations_delta", citation=note)
    events = events_of(start() + block(0, TEXT, *text_deltas("so")) + late + end())
    response = accumulate(events)
    assert (response.status, response.text) == ("completed", "so")
    assert [notice.code for notice in response.notices] == ["out_of_order"]
    (passed,) = [event for event in events if isinstance(event, Passthrough)]
    assert passed.data["delta"]["citation"] == note


@pytest.mark.parametrize(
    "blocks",
    [
        frame("content_block_stop", index=0) + block(0, TEXT, *text_deltas("so")),
        block(0, TEXT, *text_deltas("so")) + frame("content_block_stop", index=0),
        block(0, TEXT, *text_deltas("so")) + frame("content_block_stop", index=5) * 2,
        block(0, TEXT, *text_deltas("so")) + frame("content_block_stop", index=5.0),
    ],
    ids=["before", "second", "never begun", "float"],
)
def test_stop_of_a_block_that_is_not_open_passes_through(blocks: bytes) -> None:
    events = events_of(start() + blocks + end())
    response = accumulate(events)
    assert (response.status, response.text) == ("completed", "so")
    passed = [event for event in events if isinstance(event, Passthrough)]
    assert {event.event for event in passed} == {"content_block_stop"}
    assert [notice.code for notice in response.notices] == ["out_of_order"] * len(passed)


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


def omitted(tokens: int | None) -> Json:
    return {"kind": "thinking_delta", "thinking": "", "estimated_tokens": tokens}


def test_omitted_thinking_emits_its_estimated_tokens() -> None:
    """A11: without an event for each, the idle deadline would end a healthy stream."""
    signed = {"kind": "signature_delta", "signature": "sig"}
    deltas = [omitted(64), omitted(None), omitted(128), signed]
    events = events_of(start() + block(0, THINKING, *deltas) + end())
    counts = [
        event.usage.reasoning_output_tokens for event in events if isinstance(event, TokenCount)
    ]
    assert counts == [None, 64, 192, None]


def test_reported_thinking_tokens_replace_the_estimate() -> None:
    """A11: an estimate must not pass for a count."""
    details = {"output_tokens": 90, "output_tokens_details": {"thinking_tokens": 71}}
    stop = frame("message_delta", delta={"stop_reason": "end_turn"}, usage=details)
    response = response_of(start() + block(0, THINKING, omitted(64)) + stop + frame("message_stop"))
    assert response.usage is not None
    assert response.usage.reasoning_output_tokens == 71
    assert "estimated_tokens" not in response.usage.raw


def test_sparse_indexes_keep_the_order_of_their_starts() -> None:
    body = start() + block(7, TEXT, *text_deltas("a")) + block(3, TEXT, *text_deltas("b")) + end()
    assert [event.index for event in events_of(body) if isinstance(event, OutputItemAdded)] == [
        0,
        1,
    ]
    assert response_of(body).text == "ab"


@pytest.mark.parametrize("key", [b"i\xed\xa0\x80nput", b"\xffinput", b"in\xc3put"])
def test_key_of_a_call_that_is_no_utf_8_raises_nothing(key: bytes) -> None:
    """Found by the hostile inputs of lab.proof: the keys of a call's block are read twice."""
    call = b'{"type":"tool_use","id":"t","name":"f","%b":{}}' % key
    started = b'data: {"type":"content_block_start","index":0,"content_block":%b}\n\n' % call
    events = parser("messages")
    found = events.feed(started) + events.close()
    assert [type(event).__name__ for event in found][-1] == "Failed"
