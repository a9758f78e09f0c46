"""Chat Completions, item by item: their order, thoughts and signatures, media, several choices, cases of other libraries."""

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
from streamlib_parsers.wires.chat.calls import JsonDepth
from tests.support.chat_streams import (
    ARGS,
    FINISH,
    HI,
    STOP,
    TOTAL,
    Json,
    call,
    calls,
    choice,
    chunk,
    codes,
    events_of,
    items_of,
    many,
    response_of,
    said,
    sse,
    used,
)

# --- items ---


def shapes(*chunks: Any) -> list[str]:
    """Kind and text of each item."""
    return [
        type(item).__name__ + (item.name if isinstance(item, FunctionCall) else item.text)
        for item in items_of(*chunks)
    ]


def test_a_stream_becomes_events_in_its_order() -> None:
    events = events_of(
        said(role="assistant", content=""),
        said(reasoning_content="Hm"),
        said(content="Hel"),
        said(content="lo"),
        calls(call(0, "f", "", "x")),
        calls(call(0, None, ARGS)),
        FINISH,
        used(**TOTAL),
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


def test_x36_a_change_of_kind_begins_another_item() -> None:
    sent = [said(reasoning="a"), said(content="b"), said(reasoning="c"), said(content="d"), STOP]
    assert shapes(*sent) == ["Reasoninga", "Messageb", "Reasoningc", "Messaged"]


def test_text_after_a_call_is_an_item_of_its_own_and_calls_stay_open_to_the_end() -> None:
    sent = [
        said(content="a"),
        calls(call(0, "f", "{", "x")),
        said(content="b"),
        calls(call(0, None, "}")),
        FINISH,
    ]
    assert shapes(*sent) == ["Messagea", "FunctionCallf", "Messageb"]
    done = [event.index for event in events_of(*sent) if isinstance(event, OutputItemDone)]
    assert done == [0, 2, 1]


def test_in_one_chunk_the_thought_comes_first_then_text_refusal_and_calls() -> None:
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


def test_a_call_is_added_when_its_name_is_known_and_its_arguments_wait_for_it() -> None:
    p = parser("chat")
    assert p.feed(sse(calls(call(0, None, '{"a":1}')), done=None))[1:] == []
    added, delta = p.feed(sse(calls(call(0, "f")), done=None))
    assert isinstance(added, OutputItemAdded)
    assert delta == FunctionCallArgumentsDelta(0, '{"a":1}')


def test_t15_an_id_that_comes_late_is_that_of_the_finished_call() -> None:
    events = events_of(calls(call(0, "f", ARGS)), calls(call(0, None, None, "x")), FINISH)
    ids = [
        event.item.call_id
        for event in events
        if isinstance(event, (OutputItemAdded, OutputItemDone))
    ]  # type: ignore[union-attr]
    assert ids == ["call_0", "x"]


@pytest.mark.parametrize("end", [[FINISH], []], ids=["whole", "cut"])
def test_a_call_without_a_name_is_shown_and_never_callable(end: list[Json]) -> None:
    events = events_of(calls(call(0, None, ARGS, "x")), *end, done="[DONE]" if end else None)
    response = accumulate(events)
    (item,) = response.items
    assert isinstance(item, FunctionCall)
    assert (item.call_id, item.name, item.arguments, item.status) == ("x", "", ARGS, "incomplete")
    assert "nameless_call" in codes(events)
    assert response.calls == []


def test_what_is_held_back_is_part_of_a_cut_answer() -> None:
    cut = accumulate(events_of(calls(call(0, "f", "{}", "x")), done=None))
    assert [
        (item.arguments, item.status) for item in cut.items if isinstance(item, FunctionCall)
    ] == [("{}", "incomplete")]
    sealed = accumulate(
        events_of(said(reasoning_details=[{"type": "reasoning.encrypted", "data": "E"}]), done=None)
    )
    assert sealed.items[0].native == {
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "E"}]
    }


def test_t25_a_signature_of_google_stays_with_its_call() -> None:
    signed = {"google": {"thought_signature": "S"}}
    (item,) = items_of(calls(call(0, "f", ARGS, "x", extra_content=signed)), FINISH)
    assert (item.signature, item.native) == ("S", None)
    more = {"google": {"thought_signature": "S", "k": 1}, "other": 2}
    (item,) = items_of(calls(call(0, "f", ARGS, "x", extra_content=more, vendor=3)), FINISH)
    assert (item.signature, item.native) == (
        "S",
        {"vendor": 3, "extra_content": {"google": {"k": 1}, "other": 2}},
    )


def test_t25_a_signed_delta_is_an_item_of_its_own_an_empty_one_too() -> None:
    signed = {"google": {"thought_signature": "S"}}
    found = items_of(
        said(content="a"),
        said(content="b", extra_content=signed),
        said(extra_content=signed),
        said(content="c"),
        STOP,
    )
    assert [(item.text, item.signature) for item in found] == [
        ("a", None),
        ("b", "S"),
        ("", "S"),
        ("c", None),
    ]


def test_t25_a_delta_that_google_calls_a_thought_is_one_unless_it_is_signed() -> None:
    thought, answer = (
        {"google": {"thought": True}},
        {"google": {"thought": True, "thought_signature": "S"}},
    )
    found = items_of(
        said(content="a", extra_content=thought), said(content="b", extra_content=answer), STOP
    )
    assert [(type(item), item.text, item.signature) for item in found] == [
        (Reasoning, "a", None),
        (Message, "b", "S"),
    ]


# --- thoughts and their native side ---


def detail(kind: str = "text", **values: Any) -> Json:
    return {"type": f"reasoning.{kind}", "index": 0, **values}


def details_of(*chunks: Json) -> Any:
    (item,) = items_of(*chunks, STOP)
    return item


def test_x3_fragments_of_a_detail_are_joined_and_its_signature_is_set_on_the_whole() -> None:
    item = details_of(
        said(reasoning="a", reasoning_details=[detail(text="a", format="f", signature=None)]),
        said(reasoning="b", reasoning_details=[detail(text="b")]),
        said(content="", reasoning_details=[detail(signature="S")]),
    )
    assert item.native == {"reasoning_details": [detail(text="ab", format="f", signature="S")]}
    assert (item.content, item.signature) == ("ab", "S")


def test_x3_details_of_another_index_and_encrypted_ones_are_never_joined() -> None:
    sent = [
        detail(text="a"),
        detail(text="b", index=1),
        detail("encrypted", data="x"),
        detail("encrypted", data="y"),
        detail(text="c"),
    ]
    item = details_of(*(said(reasoning_details=[one]) for one in sent))
    assert item.native == {"reasoning_details": sent}
    assert item.content == "abc"


def test_x3_details_of_a_whole_list_are_kept_as_they_are() -> None:
    unsigned = [detail(text="a"), detail(text="b")]
    assert details_of(said(reasoning_details=unsigned)).native == {"reasoning_details": unsigned}
    sent = [detail(text="a", signature="S"), detail(text="b", signature="T")]
    item = details_of(said(reasoning="ab", reasoning_details=sent))
    assert item.native == {"reasoning_details": sent}
    assert item.signature is None


def test_x3_after_a_signature_another_detail_begins() -> None:
    item = details_of(
        said(reasoning_details=[detail(text="a", signature="S")]),
        said(reasoning_details=[detail(text="b")]),
    )
    assert item.native == {"reasoning_details": [detail(text="a", signature="S"), detail(text="b")]}


def test_a_sealed_thought_after_the_answer_is_an_item_of_its_own() -> None:
    sealed = detail("encrypted", data="E")
    found = items_of(said(content="a"), said(content="", reasoning_details=[sealed]), STOP)
    assert [type(item) for item in found] == [Message, Reasoning]
    assert found[1].native == {"reasoning_details": [sealed]}


def test_thinking_blocks_of_litellm_and_the_opaque_thought_of_copilot_are_native() -> None:
    item = details_of(
        said(reasoning_content="a", thinking_blocks=[{"type": "thinking", "thinking": "a"}]),
        said(
            reasoning_content="",
            thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "S"}],
        ),
    )
    assert item.native == {
        "thinking_blocks": [{"type": "thinking", "thinking": "a", "signature": "S"}]
    }
    assert details_of(said(reasoning_text="a"), said(reasoning_opaque="E")).native == {
        "reasoning_opaque": "E"
    }


def test_x4_parts_of_mistral_and_databricks() -> None:
    found = items_of(
        said(
            content=[
                {"type": "thinking", "thinking": "a", "closed": True},
                {"type": "text", "text": "b"},
            ]
        ),
        said(content=[{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "c"}]),
        said(
            content=[
                {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "d", "signature": "S"}],
                }
            ]
        ),
        said(content=[{"type": "new", "k": 1}]),
        STOP,
    )
    assert found == [
        Reasoning(content="a", native={"closed": True}),
        Message(
            "assistant", (Text("b", ({"type": "reference", "reference_ids": [1]},)), Text("c"))
        ),
        Reasoning(content="d", signature="S"),
        Opaque(kind="new", payload={"type": "new", "k": 1}),
    ]


def test_text_after_a_reference_stays_in_its_part_however_much_comes() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}]
    (item,) = items_of(said(content=parts), *(said(content=text) for text in "bcde"), STOP)
    assert [part.text for part in item.content] == ["a", "bcde"]


# --- what else a delta may hold ---


def test_annotations_refusals_and_logprobs() -> None:
    cited = {"type": "url_citation", "url_citation": {"url": "u"}}
    tokens = [{"token": "Hi", "logprob": -0.1, "bytes": [72, 105]}]
    events = events_of(
        chunk({"content": "Hi"}, logprobs={"content": tokens, "refusal": None}),
        chunk({"content": ""}, logprobs={"content": tokens}),
        said(content="", annotations=[cited]),
        said(refusal="no"),
        STOP,
    )
    told = [
        event
        for event in events
        if isinstance(event, (OutputTextDelta, AnnotationAdded, RefusalDelta))
    ]
    assert told == [
        OutputTextDelta(0, 0, "Hi", tokens),
        OutputTextDelta(0, 0, "", tokens),
        AnnotationAdded(0, 0, cited),
        RefusalDelta(1, 0, "no"),
    ]
    assert [item.content for item in accumulate(events).items if isinstance(item, Message)] == [
        (Text("Hi", (cited,)),),
        (Refusal("no"),),
    ]


def test_logprobs_of_a_thought_go_with_it() -> None:
    tokens = [{"token": "a"}]
    events = events_of(chunk({"reasoning_content": "a"}, logprobs={"content": tokens}), STOP)
    assert ReasoningContentDelta(0, 0, "a", tokens) in events
    events = events_of(
        chunk({"reasoning_content": "a", "content": "b"}, logprobs={"content": tokens}), STOP
    )
    assert {ReasoningContentDelta: None, OutputTextDelta: tokens} == {
        type(e): e.logprobs for e in events if hasattr(e, "logprobs")
    }


def test_audio_comes_in_pieces_under_an_id() -> None:
    events = events_of(
        said(audio={"id": "audio_1", "transcript": "Hel"}),
        said(audio={"data": "QQ=="}),
        said(audio={"data": "Qg==", "transcript": "lo"}),
        said(audio={}),
        said(audio={"id": None, "data": ""}),
        said(audio={"expires_at": 9}),
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


def test_an_answer_is_refused_only_if_it_is_nothing_but_a_refusal() -> None:
    refused, tool = (
        said(refusal="no"),
        said(executed_tools=[{"index": 0, "type": "search", "arguments": "{}", "output": "found"}]),
    )
    for more, reason in (
        ((), "refusal"),
        ((tool,), "stop"),
        ((said(reasoning_content="hm"),), "refusal"),
        ((said(content="a"),), "stop"),
    ):
        assert accumulate(events_of(*more, refused, STOP)).stop_reason == reason


def test_what_a_server_adds_to_a_signed_delta_is_kept_for_the_next_turn() -> None:
    extra = {"vendor": {"k": 1}, "none": None}
    (item,) = items_of(said(content="a", thought_signature="s", extra_content=extra), STOP)
    assert (item.signature, item.native) == ("s", {"extra_content": {"vendor": {"k": 1}}})  # type: ignore[union-attr]


def test_images_are_messages_of_their_own() -> None:
    images = [
        {"type": "image_url", "image_url": {"url": "data:image/webp;base64,QUJD"}},
        {"image_url": {"url": "https://e.org/i.png"}},
    ]
    found = items_of(said(content="a", images=images), STOP)
    assert [item.content for item in found] == [
        (Text("a"),),
        (Image(data="QUJD", media_type="image/webp"),),
        (Image(url="https://e.org/i.png"),),
    ]


def test_tools_that_groq_ran_are_server_tools() -> None:
    begun = {"index": 0, "type": "search", "arguments": '{"query": "x"}'}
    call_, result = items_of(
        said(executed_tools=[begun]),
        said(executed_tools=[{**begun, "output": "found", "search_results": {"results": []}}]),
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
    ("kind", "made"), [("custom", CustomToolCall), ("function", FunctionCall), (None, FunctionCall)]
)
def test_a_call_that_is_dressed_as_both_kinds_is_what_its_type_says(
    kind: str | None, made: type
) -> None:
    both = {
        "index": 0,
        "id": "x",
        "type": kind,
        "function": {"name": "f", "arguments": "{}"},
        "custom": {"name": "f", "input": "{}"},
    }
    assert [type(item) for item in items_of(calls(both), FINISH)] == [made]


def test_a_custom_call_has_input_and_an_unknown_kind_of_call_is_kept_whole() -> None:
    custom = {
        "index": 0,
        "id": "x",
        "type": "custom",
        "custom": {"name": "sql", "input": "SELECT "},
    }
    more = {"index": 0, "type": "custom", "custom": {"input": "1"}}
    unknown = {"index": 1, "id": "y", "type": "oracle", "oracle": {"k": 1}}
    found = items_of(calls(custom), calls(more), calls(unknown), FINISH)
    assert found == [CustomToolCall("x", "sql", "SELECT 1"), Opaque(kind="oracle", payload=unknown)]


def test_unknown_keys_of_a_delta_are_metadata_and_noise_is_not() -> None:
    response = response_of(said(content="a", channel="final", token_id=5, vendor={"k": 1}), STOP)
    assert response.metadata == {"vendor": {"k": 1}}


def test_metadata_is_told_when_it_is_new_or_changed() -> None:
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
def test_a_delta_that_cannot_be_applied_passes_through_and_spoils_the_open_item(
    delta: Json, passed: str
) -> None:
    events = events_of(HI, said(**delta), STOP)
    assert [event.event for event in events if isinstance(event, Passthrough)] == [passed]
    assert accumulate(events).items[0].status == "incomplete"
    assert codes(events) == ["unknown_delta"]


# --- several choices ---


def test_each_choice_has_its_own_items_calls_and_end() -> None:
    response = response_of(
        many(choice(1, {"content": "B"}), choice(0, {"content": "A"})),
        many(
            choice(0, {"content": "a"}, "stop"),
            choice(1, {"tool_calls": [call(0, "f", ARGS, "x")]}, "tool_calls"),
        ),
    )
    assert response.text == "Aa"
    assert [(one.index, one.stop_reason, len(one.items)) for one in response.choices] == [
        (0, "stop", 1),
        (1, "tool_calls", 2),
    ]
    assert response.stop_reason == "stop"


def test_x29_choices_stay_as_the_wire_numbers_them() -> None:
    response = response_of(
        many(choice(0, {"content": "A"}, "stop")),
        many(choice(1, {"tool_calls": [call(0, "f", ARGS, "x")]}, "tool_calls")),
    )
    assert [item.choice for one in response.choices for item in one.items] == [0, 1]


def test_every_choice_seen_must_have_finished() -> None:
    sent = [many(choice(0, {"content": "A"}, "stop")), many(choice(1, {"content": "B"}))]
    assert response_of(*sent, done=None).error.kind == "truncated"  # type: ignore[union-attr]
    completed = events_of(*sent)[-1]
    assert isinstance(completed, Completed)
    assert [tuple(one) for one in completed.choices] == [(0, "stop", "stop"), (1, "other", None)]


def test_keys_of_a_further_choice_say_which() -> None:
    response = response_of(
        many(
            choice(0, {"content": "A"}, "stop", seed=1), choice(1, {"content": "B"}, "stop", seed=2)
        )
    )
    assert response.metadata == {"seed": 1, "choices[1].seed": 2}


# --- cases of other libraries, by their numbers ---


def test_case_2_two_calls_in_one_chunk_without_an_index() -> None:
    assert len(items_of(calls(call(None, "f", "{}"), call(None, "g", "{}")), FINISH)) == 2


def test_case_3_one_index_with_another_id_is_another_call() -> None:
    found = items_of(calls(call(0, "f", "{}", "a")), calls(call(0, "f", "{}", "b")), FINISH)
    assert [item.call_id for item in found] == ["a", "b"]


def test_case_4_one_index_no_ids_a_whole_call_then_another_name() -> None:
    found = items_of(
        calls(call(0, "f", '{"a":1}')),
        calls(call(0, "g", '{"b":2}')),
        calls(call(0, "g", '{"b":3}')),
        FINISH,
    )
    assert [(item.name, item.arguments) for item in found] == [
        ("f", '{"a":1}'),
        ("g", '{"b":2}'),
        ("g", '{"b":3}'),
    ]


def test_case_5_fragments_of_two_calls_in_turns() -> None:
    begun = calls(call(0, "f", "", "a"), call(1, "g", "", "b"))
    found = items_of(
        begun,
        *(calls(call(n % 2, None, text)) for n, text in enumerate(["{", "[", "}", "]"])),
        FINISH,
    )
    assert [item.arguments for item in found] == ["{}", "[]"]


def test_case_6_a_call_without_arguments_is_callable_and_stays_empty() -> None:
    (found,) = response_of(calls(call(0, "f", None, "a")), FINISH).calls
    assert isinstance(found, FunctionCall)
    assert (found.arguments, found.parsed()) == ("", {})


def test_case_10_cut_arguments_are_not_taken_for_none() -> None:
    response = response_of(calls(call(0, "f", '{"path": "/etc', "a")))
    assert response.calls == []
    assert (response.stop_reason, response.items[0].status) == ("other", "incomplete")


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": []},
        {"choices": [{"index": 0, "delta": None}]},
        {},
        {"usage": TOTAL},
    ],
)
def test_case_34_chunks_without_a_delta(odd: Json) -> None:
    response = response_of(odd, HI, odd, STOP, odd)
    assert (response.text, response.stop_reason, response.notices) == ("Hi", "stop", ())


@pytest.mark.parametrize("text", ['{"a": "}\\"]"}', "[1, [2], {}]", '""', "{}", '{"\\\\": "{"}'])
def test_nesting_knows_the_end_of_json_at_any_cut(text: str) -> None:
    for at in range(len(text)):
        nesting = JsonDepth()
        nesting.feed(text[:at])
        assert not nesting.is_complete
        nesting.feed(text[at:])
        assert nesting.is_complete
