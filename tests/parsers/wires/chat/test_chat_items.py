"""Chat Completions: order of items, reasoning and signatures, media, metadata."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import (
    AnnotationAdded,
    Audio,
    Completed,
    Created,
    CustomToolCall,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Image,
    MediaDelta,
    Message,
    Opaque,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    ReasoningContentDelta,
    Refusal,
    RefusalDelta,
    ResponseMetadata,
    ServerToolCall,
    ServerToolResult,
    Text,
    TokenCount,
    Usage,
    accumulate,
    parser,
)
from tests.support.chat_streams import (
    ARGS,
    FINISH,
    HI,
    STOP,
    TOTAL,
    Json,
    call,
    calls,
    chunk,
    delta_chunk,
    events_of,
    items_of,
    notice_codes,
    response_of,
    sse,
    usage_chunk,
)

# --- items ---


def shapes(*chunks: Any) -> list[str]:
    """Kind and text of each item."""
    return [
        type(item).__name__ + (item.name if isinstance(item, FunctionCall) else item.text)
        for item in items_of(*chunks)
    ]


def test_stream_becomes_events_in_order() -> None:
    events = events_of(
        delta_chunk(role="assistant", content=""),
        delta_chunk(reasoning_content="Hm"),
        delta_chunk(content="Hel"),
        delta_chunk(content="lo"),
        calls(call(0, "f", "", "x")),
        calls(call(0, None, ARGS)),
        FINISH,
        usage_chunk(**TOTAL),
    )
    origin = events[1].item.origin  # type: ignore[union-attr]
    counted = Usage(input_tokens=5, output_tokens=2, raw=TOTAL)
    assert events == [
        Created("c1", "m"),
        OutputItemAdded(0, Reasoning(status="incomplete", origin=origin)),
        ReasoningContentDelta(0, 0, "Hm"),
        OutputItemDone(0, Reasoning(content="Hm", origin=origin)),
        OutputItemAdded(1, Message("assistant", status="incomplete", origin=origin)),
        OutputTextDelta(1, 0, "Hel"),
        OutputTextDelta(1, 0, "lo"),
        OutputItemDone(1, Message("assistant", (Text("Hello"),), origin=origin)),
        OutputItemAdded(2, FunctionCall("x", "f", status="incomplete", origin=origin)),
        FunctionCallArgumentsDelta(2, ARGS),
        TokenCount(counted),
        OutputItemDone(2, FunctionCall("x", "f", ARGS, origin=origin)),
        Completed(
            "c1",
            "m",
            "tool_calls",
            "tool_calls",
            usage=counted,
            choices=((0, "tool_calls", "tool_calls"),),
        ),  # type: ignore[arg-type]
    ]


def test_x36_change_of_kind_starts_another_item() -> None:
    sent = [
        delta_chunk(reasoning="a"),
        delta_chunk(content="b"),
        delta_chunk(reasoning="c"),
        delta_chunk(content="d"),
        STOP,
    ]
    assert shapes(*sent) == ["Reasoninga", "Messageb", "Reasoningc", "Messaged"]


def test_text_after_a_call_is_an_item_while_calls_stay_open() -> None:
    sent = [
        delta_chunk(content="a"),
        calls(call(0, "f", "{", "x")),
        delta_chunk(content="b"),
        calls(call(0, None, "}")),
        FINISH,
    ]
    assert shapes(*sent) == ["Messagea", "FunctionCallf", "Messageb"]
    done = [event.index for event in events_of(*sent) if isinstance(event, OutputItemDone)]
    assert done == [0, 2, 1]


def test_items_of_one_chunk_have_a_fixed_order() -> None:
    everything = chunk(
        {"tool_calls": [call(0, "f", ARGS, "x")], "refusal": "c", "content": "b", "reasoning": "a"},
        "stop",
    )
    assert [type(item) for item in items_of(everything)] == [
        Reasoning,
        Message,
        Message,
        FunctionCall,
    ]


def test_call_is_opened_and_arguments_emitted_at_its_name() -> None:
    p = parser("chat")
    assert p.feed(sse(calls(call(0, None, '{"a":1}')), done=None))[1:] == []
    added, delta = p.feed(sse(calls(call(0, "f")), done=None))
    assert isinstance(added, OutputItemAdded)
    assert delta == FunctionCallArgumentsDelta(0, '{"a":1}')


def test_t15_late_id_replaces_the_generated_one() -> None:
    events = events_of(calls(call(0, "f", ARGS)), calls(call(0, None, None, "x")), FINISH)
    ids = [
        event.item.call_id
        for event in events
        if isinstance(event, (OutputItemAdded, OutputItemDone))
    ]  # type: ignore[union-attr]
    assert ids == ["call_0", "x"]


@pytest.mark.parametrize("end", [[FINISH], []], ids=["complete", "truncated"])
def test_nameless_call_is_emitted_and_never_callable(end: list[Json]) -> None:
    events = events_of(calls(call(0, None, ARGS, "x")), *end, done="[DONE]" if end else None)
    response = accumulate(events)
    (item,) = response.items
    assert isinstance(item, FunctionCall)
    assert (item.call_id, item.name, item.arguments, item.status) == ("x", "", ARGS, "incomplete")
    assert "nameless_call" in notice_codes(events)
    assert response.calls == []


def test_buffered_content_is_part_of_a_truncated_response() -> None:
    truncated = accumulate(events_of(calls(call(0, "f", "{}", "x")), done=None))
    assert [
        (item.arguments, item.status) for item in truncated.items if isinstance(item, FunctionCall)
    ] == [("{}", "incomplete")]
    encrypted = accumulate(
        events_of(
            delta_chunk(reasoning_details=[{"type": "reasoning.encrypted", "data": "E"}]), done=None
        )
    )
    assert encrypted.items[0].native == {
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "E"}]
    }


def test_t25_google_signature_stays_with_its_call() -> None:
    signed = {"google": {"thought_signature": "S"}}
    (item,) = items_of(calls(call(0, "f", ARGS, "x", extra_content=signed)), FINISH)
    assert (item.signature, item.native) == ("S", None)
    more = {"google": {"thought_signature": "S", "k": 1}, "other": 2}
    (item,) = items_of(calls(call(0, "f", ARGS, "x", extra_content=more, vendor=3)), FINISH)
    assert (item.signature, item.native) == (
        "S",
        {"vendor": 3, "extra_content": {"google": {"k": 1}, "other": 2}},
    )


def test_t25_signed_delta_is_an_item_of_its_own_even_if_empty() -> None:
    signed = {"google": {"thought_signature": "S"}}
    items = items_of(
        delta_chunk(content="a"),
        delta_chunk(content="b", extra_content=signed),
        delta_chunk(extra_content=signed),
        delta_chunk(content="c"),
        STOP,
    )
    assert [(item.text, item.signature) for item in items] == [
        ("a", None),
        ("b", "S"),
        ("", "S"),
        ("c", None),
    ]


def test_t25_google_reasoning_mark_counts_unless_signed() -> None:
    marked = {"google": {"thought": True}}
    signed = {"google": {"thought": True, "thought_signature": "S"}}
    items = items_of(
        delta_chunk(content="a", extra_content=marked),
        delta_chunk(content="b", extra_content=signed),
        STOP,
    )
    assert [(type(item), item.text, item.signature) for item in items] == [
        (Reasoning, "a", None),
        (Message, "b", "S"),
    ]


# --- reasoning and its native side ---


def detail(kind: str = "text", **values: Any) -> Json:
    return {"type": f"reasoning.{kind}", "index": 0, **values}


def details_of(*chunks: Json) -> Any:
    (item,) = items_of(*chunks, STOP)
    return item


def test_x3_detail_fragments_are_joined_and_sign_the_item() -> None:
    item = details_of(
        delta_chunk(
            reasoning="a", reasoning_details=[detail(text="a", format="f", signature=None)]
        ),
        delta_chunk(reasoning="b", reasoning_details=[detail(text="b")]),
        delta_chunk(content="", reasoning_details=[detail(signature="S")]),
    )
    assert item.native == {"reasoning_details": [detail(text="ab", format="f", signature="S")]}
    assert (item.content, item.signature) == ("ab", "S")


def test_x3_details_of_other_index_or_encrypted_stay_separate() -> None:
    sent = [
        detail(text="a"),
        detail(text="b", index=1),
        detail("encrypted", data="x"),
        detail("encrypted", data="y"),
        detail(text="c"),
    ]
    item = details_of(*(delta_chunk(reasoning_details=[element]) for element in sent))
    assert item.native == {"reasoning_details": sent}
    assert item.content == "abc"


def test_x3_details_of_one_complete_list_are_unchanged() -> None:
    unsigned = [detail(text="a"), detail(text="b")]
    assert details_of(delta_chunk(reasoning_details=unsigned)).native == {
        "reasoning_details": unsigned
    }
    sent = [detail(text="a", signature="S"), detail(text="b", signature="T")]
    item = details_of(delta_chunk(reasoning="ab", reasoning_details=sent))
    assert item.native == {"reasoning_details": sent}
    assert item.signature is None


def test_x3_text_after_a_signature_starts_another_detail() -> None:
    item = details_of(
        delta_chunk(reasoning_details=[detail(text="a", signature="S")]),
        delta_chunk(reasoning_details=[detail(text="b")]),
    )
    assert item.native == {"reasoning_details": [detail(text="a", signature="S"), detail(text="b")]}


def test_encrypted_reasoning_after_text_is_an_item_of_its_own() -> None:
    encrypted = detail("encrypted", data="E")
    items = items_of(
        delta_chunk(content="a"), delta_chunk(content="", reasoning_details=[encrypted]), STOP
    )
    assert [type(item) for item in items] == [Message, Reasoning]
    assert items[1].native == {"reasoning_details": [encrypted]}


def test_thinking_blocks_and_opaque_reasoning_are_native() -> None:
    item = details_of(
        delta_chunk(reasoning_content="a", thinking_blocks=[{"type": "thinking", "thinking": "a"}]),
        delta_chunk(
            reasoning_content="",
            thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "S"}],
        ),
    )
    assert item.native == {
        "thinking_blocks": [{"type": "thinking", "thinking": "a", "signature": "S"}]
    }
    assert details_of(
        delta_chunk(reasoning_text="a"), delta_chunk(reasoning_opaque="E")
    ).native == {"reasoning_opaque": "E"}


def test_x4_parts_of_mistral_and_databricks() -> None:
    items = items_of(
        delta_chunk(
            content=[
                {"type": "thinking", "thinking": "a", "closed": True},
                {"type": "text", "text": "b"},
            ]
        ),
        delta_chunk(
            content=[{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "c"}]
        ),
        delta_chunk(
            content=[
                {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "d", "signature": "S"}],
                }
            ]
        ),
        delta_chunk(content=[{"type": "new", "k": 1}]),
        STOP,
    )
    assert items == [
        Reasoning(content="a", native={"closed": True}),
        Message(
            "assistant", (Text("b", ({"type": "reference", "reference_ids": [1]},)), Text("c"))
        ),
        Reasoning(content="d", signature="S"),
        Opaque(kind="new", payload={"type": "new", "k": 1}),
    ]


def test_text_after_a_reference_stays_in_one_part() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}]
    (item,) = items_of(
        delta_chunk(content=parts), *(delta_chunk(content=text) for text in "bcde"), STOP
    )
    assert [part.text for part in item.content] == ["a", "bcde"]


# --- other keys of a delta ---


def test_annotations_refusals_and_logprobs() -> None:
    cited = {"type": "url_citation", "url_citation": {"url": "u"}}
    tokens = [{"token": "Hi", "logprob": -0.1, "bytes": [72, 105]}]
    events = events_of(
        chunk({"content": "Hi"}, logprobs={"content": tokens, "refusal": None}),
        chunk({"content": ""}, logprobs={"content": tokens}),
        delta_chunk(content="", annotations=[cited]),
        delta_chunk(refusal="no"),
        STOP,
    )
    emitted = [
        event
        for event in events
        if isinstance(event, (OutputTextDelta, AnnotationAdded, RefusalDelta))
    ]
    assert emitted == [
        OutputTextDelta(0, 0, "Hi", tokens),
        OutputTextDelta(0, 0, "", tokens),
        AnnotationAdded(0, 0, cited),
        RefusalDelta(1, 0, "no"),
    ]
    assert [item.content for item in accumulate(events).items if isinstance(item, Message)] == [
        (Text("Hi", (cited,)),),
        (Refusal("no"),),
    ]


def test_logprobs_of_a_refusal_are_kept() -> None:
    """A24: beside those of the content, which are another text's."""
    tokens = [{"token": "no", "logprob": -0.1}]
    events = events_of(
        chunk({"content": "Hi"}, logprobs={"content": tokens[:0], "refusal": tokens}),
        chunk({"refusal": "no"}, logprobs={"content": None, "refusal": tokens}),
        STOP,
    )
    refusals = [event for event in events if isinstance(event, RefusalDelta)]
    assert refusals == [RefusalDelta(1, 0, "no", tokens)]


def test_logprobs_without_content_belong_to_the_reasoning() -> None:
    tokens = [{"token": "a"}]
    events = events_of(chunk({"reasoning_content": "a"}, logprobs={"content": tokens}), STOP)
    assert ReasoningContentDelta(0, 0, "a", tokens) in events
    events = events_of(
        chunk({"reasoning_content": "a", "content": "b"}, logprobs={"content": tokens}), STOP
    )
    assert {ReasoningContentDelta: None, OutputTextDelta: tokens} == {
        type(e): e.logprobs for e in events if hasattr(e, "logprobs")
    }


def test_audio_fragments_are_joined_under_their_id() -> None:
    events = events_of(
        delta_chunk(audio={"id": "audio_1", "transcript": "Hel"}),
        delta_chunk(audio={"data": "QQ=="}),
        delta_chunk(audio={"data": "Qg==", "transcript": "lo"}),
        delta_chunk(audio={}),
        delta_chunk(audio={"id": None, "data": ""}),
        delta_chunk(audio={"expires_at": 9}),
        STOP,
    )
    assert [event for event in events if isinstance(event, MediaDelta)] == [
        MediaDelta(0, 0, transcript="Hel"),
        MediaDelta(0, 0, data="QQ=="),
        MediaDelta(0, 0, data="Qg==", transcript="lo"),
    ]
    (item,) = accumulate(events).items
    assert isinstance(item, Message)
    assert item.content == (Audio(data="QUI=", name="audio_1", transcript="Hello"),)
    assert item.native == {"audio": {"expires_at": 9}}


def test_stop_reason_is_refusal_only_without_other_output() -> None:
    refused = delta_chunk(refusal="no")
    executed = {"index": 0, "type": "search", "arguments": "{}", "output": "found"}
    tool = delta_chunk(executed_tools=[executed])
    for more, reason in (
        ((), "refusal"),
        ((tool,), "stop"),
        ((delta_chunk(reasoning_content="hm"),), "refusal"),
        ((delta_chunk(content="a"),), "stop"),
    ):
        assert accumulate(events_of(*more, refused, STOP)).stop_reason == reason


def test_extra_content_of_a_signed_delta_is_native() -> None:
    extra = {"vendor": {"k": 1}, "none": None}
    (item,) = items_of(delta_chunk(content="a", thought_signature="s", extra_content=extra), STOP)
    assert (item.signature, item.native) == ("s", {"extra_content": {"vendor": {"k": 1}}})  # type: ignore[union-attr]


def test_images_are_separate_messages() -> None:
    images = [
        {"type": "image_url", "image_url": {"url": "data:image/webp;base64,QUJD"}},
        {"image_url": {"url": "https://e.org/i.png"}},
    ]
    items = items_of(delta_chunk(content="a", images=images), STOP)
    assert [item.content for item in items] == [
        (Text("a"),),
        (Image(data="QUJD", media_type="image/webp"),),
        (Image(url="https://e.org/i.png"),),
    ]


def test_executed_tools_of_groq_are_server_tools() -> None:
    started = {"index": 0, "type": "search", "arguments": '{"query": "x"}'}
    call_, result = items_of(
        delta_chunk(executed_tools=[started]),
        delta_chunk(
            executed_tools=[{**started, "output": "found", "search_results": {"results": []}}]
        ),
        STOP,
    )
    assert call_ == ServerToolCall(
        call_id="call_0", name="search", arguments='{"query": "x"}', native={"type": "search"}
    )
    assert result == ServerToolResult(
        call_id="call_0",
        name="search",
        output="found",
        native={"type": "search", "search_results": {"results": []}},
    )


@pytest.mark.parametrize(
    ("kind", "item_class"),
    [("custom", CustomToolCall), ("function", FunctionCall), (None, FunctionCall)],
)
def test_call_of_both_kinds_is_decided_by_its_type(kind: str | None, item_class: type) -> None:
    both = {
        "index": 0,
        "id": "x",
        "type": kind,
        "function": {"name": "f", "arguments": "{}"},
        "custom": {"name": "f", "input": "{}"},
    }
    assert [type(item) for item in items_of(calls(both), FINISH)] == [item_class]


def test_custom_call_has_input_and_unknown_kind_is_opaque() -> None:
    custom = {
        "index": 0,
        "id": "x",
        "type": "custom",
        "custom": {"name": "sql", "input": "SELECT "},
    }
    more = {"index": 0, "type": "custom", "custom": {"input": "1"}}
    unknown = {"index": 1, "id": "y", "type": "oracle", "oracle": {"k": 1}}
    items = items_of(calls(custom), calls(more), calls(unknown), FINISH)
    assert items == [CustomToolCall("x", "sql", "SELECT 1"), Opaque(kind="oracle", payload=unknown)]


def test_unknown_delta_keys_are_metadata_without_noise() -> None:
    response = response_of(
        delta_chunk(content="a", channel="final", token_id=5, vendor={"k": 1}), STOP
    )
    assert response.metadata == {"vendor": {"k": 1}}


def test_metadata_is_emitted_when_new_or_changed() -> None:
    tiers = ["a", "a", None, "a", "b"]
    events = events_of(
        *({**HI, "service_tier": tier} for tier in tiers), {**STOP, "service_tier": "b"}
    )
    assert [event.values for event in events if isinstance(event, ResponseMetadata)] == [
        {"service_tier": "a"},
        {"service_tier": "b"},
    ]


@pytest.mark.parametrize(
    ("delta", "passed"),
    [
        ({"content": 5}, "delta.content"),
        ({"refusal": 5}, "delta.refusal"),
        ({"annotations": [5]}, "delta.annotations"),
        ({"tool_calls": [5]}, "delta.tool_calls"),
        ({"reasoning": {"k": 1}}, "delta.reasoning"),
        ({"audio": 5}, "delta.audio"),
    ],
)
def test_unreadable_delta_passes_through_and_item_is_incomplete(delta: Json, passed: str) -> None:
    events = events_of(HI, delta_chunk(**delta), STOP)
    assert [event.event for event in events if isinstance(event, Passthrough)] == [passed]
    assert accumulate(events).items[0].status == "incomplete"
    assert notice_codes(events) == ["unknown_delta"]
