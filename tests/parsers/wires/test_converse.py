"""Bedrock ConverseStream, frame by frame: what each member becomes, and how a stream may end."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import (
    AnnotationAdded,
    Completed,
    Created,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Image,
    Limits,
    MediaDelta,
    Message,
    Opaque,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    ReasoningContentDelta,
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
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.wires.converse import (
    BLOCKS,
    JOINS,
    OPENERS,
    STOP_REASONS,
    TRANSITIONS,
    Delta,
    Machine,
    State,
    usage,
)
from tests.support import wires
from tests.support.partitions import byte_by_byte, cuts, every_single_cut
from tests.support.shared import BODIES, PAYLOADS, STREAMS, Recording, each_recording

Json = dict[str, Any]

HALVES = '"\\ud83d"', '"\\ude00"'
"""An emoji as JSON text, split between its UTF-16 halves."""


def event(name: str, /, **payload: Any) -> bytes:
    return raw_event(name, json.dumps({**payload, "p": "abcdefg"}).encode())


def raw_event(name: str, payload: bytes) -> bytes:
    return encode_message(
        {":event-type": name, ":content-type": "application/json", ":message-type": "event"},
        payload,
    )


def exception(name: str, **payload: Any) -> bytes:
    headers = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_message(headers, json.dumps(payload).encode())


def begin(index: int, /, **start: Any) -> bytes:
    return event("contentBlockStart", contentBlockIndex=index, start=start)


def delta(index: int, /, **member: Any) -> bytes:
    return event("contentBlockDelta", contentBlockIndex=index, delta=member)


def stop(index: int) -> bytes:
    return event("contentBlockStop", contentBlockIndex=index)


def texts(index: int, *fragments: str) -> bytes:
    return b"".join(delta(index, text=fragment) for fragment in fragments) + stop(index)


def call(index: int, *fragments: str, **start: Any) -> bytes:
    use = {"toolUseId": "tooluse_1", "name": "get_weather", **start}
    return (
        begin(index, toolUse=use)
        + b"".join(delta(index, toolUse={"input": fragment}) for fragment in fragments)
        + stop(index)
    )


def end(reason: str = "end_turn", **values: Any) -> bytes:
    return event("messageStop", stopReason=reason, **values)


START = event("messageStart", role="assistant")
USAGE = {"inputTokens": 371, "outputTokens": 77, "totalTokens": 448}
METADATA = event("metadata", usage=USAGE, metrics={"latencyMs": 1251})
TAIL = end() + METADATA


def events_of(*chunks: bytes, **options: Any) -> list[ResponseEvent]:
    return wires.events_of("converse", *chunks, **options)


def items_of(*chunks: bytes) -> list[Any]:
    response = wires.response_of("converse", START, *chunks, TAIL)
    assert response.error is None
    return [msgspec.structs.replace(item, origin=None) for item in response.items]


def codes(events: list[ResponseEvent]) -> list[str]:
    return [event.code for event in events if hasattr(event, "code")]


def error_kind(*chunks: bytes) -> str:
    return wires.error_of("converse", *chunks).kind


# --- tables ---


def test_transition_table_and_handlers_name_the_same_events() -> None:
    assert {name for row in TRANSITIONS.values() for name in row} == set(Machine.HANDLERS)
    assert (
        set(TRANSITIONS)
        == set(State)
        >= {state for row in TRANSITIONS.values() for state in row.values()}
    )


def test_every_member_of_a_delta_has_a_handler() -> None:
    assert set(Delta.__struct_fields__) == set(Machine.DELTAS) >= set(OPENERS)


@pytest.mark.parametrize(
    ("native", "stop_reason"),
    [*STOP_REASONS.items(), ("malformed_tool_use", "other"), ("new_reason", "other")],
)
def test_stop_reason_is_normalized_and_kept(native: str, stop_reason: str) -> None:
    response = wires.response_of("converse", START, texts(0, "Hi"), end(native), METADATA)
    assert (response.stop_reason, response.native_stop_reason) == (stop_reason, native)


# --- a usual stream ---


def test_stream_emits_events_in_order() -> None:
    thinking = (
        delta(0, reasoningContent={"text": "Hm"})
        + delta(0, reasoningContent={"signature": "c2ln"})
        + stop(0)
    )
    events = events_of(
        START,
        thinking,
        texts(1, "Hel", "lo"),
        call(2, '{"city":', '"Paris"}'),
        end("tool_use"),
        METADATA,
    )
    origin = events[1].item.origin  # type: ignore[union-attr]
    reasoning, message = (
        Reasoning(content="Hm", signature="c2ln", origin=origin),
        Message("assistant", (Text("Hello"),), origin=origin),
    )
    tool = FunctionCall("tooluse_1", "get_weather", '{"city":"Paris"}', origin=origin)
    counted = Usage(input_tokens=371, output_tokens=77, raw=USAGE)
    assert events == [
        Created(),
        OutputItemAdded(0, Reasoning(status="incomplete", origin=origin)),
        ReasoningContentDelta(0, 0, "Hm"),
        OutputItemDone(0, reasoning),
        OutputItemAdded(1, Message("assistant", status="incomplete", origin=origin)),
        OutputTextDelta(1, 0, "Hel"),
        OutputTextDelta(1, 0, "lo"),
        OutputItemDone(1, message),
        OutputItemAdded(
            2, FunctionCall("tooluse_1", "get_weather", status="incomplete", origin=origin)
        ),
        FunctionCallArgumentsDelta(2, '{"city":'),
        FunctionCallArgumentsDelta(2, '"Paris"}'),
        OutputItemDone(2, tool),
        TokenCount(counted),
        ResponseMetadata({"metrics": {"latencyMs": 1251}}),
        Completed(
            stop_reason="tool_calls",
            native_stop_reason="tool_use",
            usage=counted,
            choices=((0, "tool_calls", "tool_use"),),
        ),
    ]


def test_padding_is_never_emitted() -> None:
    events = events_of(START, texts(0, "Hi"), event("news", a=1), TAIL)
    assert not any(
        "abcdefg" in repr(event) for event in events if not isinstance(event, Passthrough)
    )


def test_completed_waits_for_usage() -> None:
    p = parser("converse")
    p.feed(START + texts(0, "Hi"))
    assert not p.complete
    assert all(not isinstance(event, Completed) for event in p.feed(end()))
    assert p.complete
    assert not p.ended
    assert isinstance(p.feed(METADATA)[-1], Completed)
    assert p.close() == []


def test_end_of_input_completes_with_notice_when_no_metadata() -> None:
    events = events_of(START, texts(0, "Hi"), end())
    assert isinstance(events[-1], Completed)
    assert codes(events) == ["end_inferred"]


def test_message_start_may_be_missing() -> None:
    assert wires.response_of("converse", texts(0, "Hi"), TAIL).text == "Hi"


def test_metadata_may_precede_message_stop() -> None:
    events = events_of(START, texts(0, "Hi"), METADATA, end())
    assert isinstance(events[-1], Completed)
    assert codes(events) == []


# --- blocks ---


def test_interleaved_blocks_are_tracked_by_index() -> None:
    mixed = (
        delta(0, text="a")
        + delta(1, reasoningContent={"text": "x"})
        + delta(0, text="b")
        + stop(1)
        + stop(0)
    )
    assert [item.text for item in items_of(mixed)] == ["ab", "x"]


@pytest.mark.parametrize(
    "shape",
    [{"text": "Hm", "signature": "c2ln"}, {"reasoningText": {"text": "Hm", "signature": "c2ln"}}],
)
def test_reasoning_may_be_flat_or_nested(shape: Json) -> None:
    expected = [Reasoning(content="Hm", signature="c2ln")]
    assert items_of(delta(0, reasoningContent=shape), stop(0)) == expected
    assert items_of(begin(0, reasoningContent=shape), stop(0)) == expected


def test_signature_without_reasoning_text_is_kept() -> None:
    assert items_of(delta(0, reasoningContent={"signature": "c2ln"}), stop(0)) == [
        Reasoning(signature="c2ln")
    ]


def test_signature_fragments_are_joined() -> None:
    fragments = [delta(0, reasoningContent={"signature": text}) for text in ("ab", "cd", "ef")]
    assert items_of(*fragments, stop(0)) == [Reasoning(signature="abcdef")]


@pytest.mark.parametrize("name", ["redactedContent", "data"])
def test_encrypted_reasoning_is_kept_unchanged(name: str) -> None:
    added = events_of(START, delta(0, reasoningContent={name: "c2VhbGVk"}), stop(0), TAIL)[1]
    assert isinstance(added, OutputItemAdded)
    assert isinstance(added.item, Reasoning)
    assert added.item.redacted
    assert items_of(delta(0, reasoningContent={name: "c2VhbGVk"}), stop(0)) == [
        Reasoning(encrypted_content="c2VhbGVk", redacted=True)
    ]


def test_encrypted_fragments_are_joined_as_bytes() -> None:
    fragments = [base64.b64encode(data).decode() for data in (b"a", b"bc", b"def")]
    (item,) = items_of(
        *(delta(0, reasoningContent={"redactedContent": data}) for data in fragments), stop(0)
    )
    assert base64.b64decode(item.encrypted_content, validate=True) == b"abcdef"


def test_encrypted_fragments_join_as_text_when_not_base64() -> None:
    (item,) = items_of(
        *(delta(0, reasoningContent={"redactedContent": text}) for text in ("é", "?")), stop(0)
    )
    assert item.encrypted_content == "é?"


@pytest.mark.parametrize("fragments", [(), ("",), ("{}",)])
def test_empty_arguments_are_an_empty_object(fragments: tuple[str, ...]) -> None:
    (item,) = items_of(call(0, *fragments))
    assert item.arguments == "".join(fragments)
    assert (item.status, item.parsed()) == ("completed", {})


def test_invalid_arguments_make_the_call_incomplete() -> None:
    (item,) = items_of(call(0, '{"city":"Par'))
    assert item.status == "incomplete"


def test_server_tool_call_is_never_callable() -> None:
    response = wires.response_of(
        "converse", START, call(0, '{"snippet":"1"}', type="server_tool_use"), TAIL
    )
    assert response.calls == []
    assert isinstance(response.items[0], ServerToolCall)
    assert response.items[0].native == {"type": "server_tool_use"}


def test_unknown_keys_of_a_call_are_native() -> None:
    assert items_of(call(0, type="tool_use"))[0].native is None
    assert items_of(call(0, type="other_use", extra=1))[0].native == {
        "type": "other_use",
        "extra": 1,
    }


def test_call_without_id_gets_a_generated_id() -> None:
    events = events_of(
        START, call(0, toolUseId=None), call(1, toolUseId=""), TAIL, call_id=lambda n: f"own_{n}"
    )
    assert [item.call_id for item in accumulate(events).calls] == ["own_0", "own_1"]


def test_nameless_call_is_never_callable() -> None:
    events = events_of(START, call(0, "{}", name=None), TAIL)
    assert accumulate(events).calls == []
    assert "nameless_call" in codes(events)


def test_tool_result_text_is_joined_across_deltas() -> None:
    deltas = [
        [{"text": "a"}],
        [{"text": "b"}, {"text": "c"}],
        [{"json": {"x": 1}}],
        [{"text": "d"}],
    ]
    start = begin(
        0,
        toolResult={"toolUseId": "t1", "type": "nova_code_interpreter_result", "status": "success"},
    )
    (item,) = items_of(start, *(delta(0, toolResult=content) for content in deltas), stop(0))
    assert item == ServerToolResult(
        "t1",
        "nova_code_interpreter",
        [{"text": "ab"}, {"text": "c"}, {"json": {"x": 1}}, {"text": "d"}],
        native={"type": "nova_code_interpreter_result", "status": "success"},
    )


def test_citation_may_accompany_its_text() -> None:
    events = events_of(START, delta(0, text="Ruby", citation={"title": "facts"}), TAIL)
    (item,) = accumulate(events).items
    assert isinstance(item, Message)
    assert item.content == (Text("Ruby", ({"title": "facts"},)),)


def test_citation_may_precede_its_text() -> None:
    citation = {
        "title": "facts",
        "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 73}},
    }
    events = events_of(START, delta(0, citation=citation), texts(0, "Ruby"), TAIL)
    assert AnnotationAdded(0, 0, citation) in events
    (item,) = accumulate(events).items
    assert isinstance(item, Message)
    assert item.content == (Text("Ruby", (citation,)),)


def test_image_fragments_are_joined() -> None:
    fragments = [base64.b64encode(data).decode() for data in (b"\x89", b"PNG")]
    blocks = [
        begin(0, image={"format": "png"}),
        *(delta(0, image={"source": {"bytes": data}}) for data in fragments),
        stop(0),
    ]
    events = events_of(START, *blocks, TAIL)
    assert [event.data for event in events if isinstance(event, MediaDelta)] == fragments
    assert items_of(*blocks)[0].content == (
        Image(data=base64.b64encode(b"\x89PNG").decode(), media_type="image/png"),
    )


def test_image_in_a_bucket_has_a_url() -> None:
    source = {"s3Location": {"uri": "s3://bucket/a.png", "bucketOwner": "1"}}
    (item,) = items_of(
        begin(0, image={"format": "jpeg"}), delta(0, image={"source": source}), stop(0)
    )
    assert item.content == (Image(url="s3://bucket/a.png", media_type="image/jpeg"),)


def test_failed_image_is_incomplete_and_passes_its_error() -> None:
    events = events_of(
        START,
        begin(0, image={"format": "png"}),
        delta(0, image={"error": {"message": "no"}}),
        stop(0),
        TAIL,
    )
    assert accumulate(events).items[0].status == "incomplete"
    assert "no" in str([event.data for event in events if isinstance(event, Passthrough)])


def test_first_delta_opens_the_block_after_an_empty_start() -> None:
    assert [item.text for item in items_of(begin(0), texts(0, "Hi"))] == ["Hi"]
    assert items_of(begin(0), stop(0)) == []


def test_null_members_are_ignored() -> None:
    assert items_of(
        begin(0, toolUse=None, text=None), delta(0, text="Hi", toolUse=None), stop(0)
    ) == [Message("assistant", (Text("Hi"),))]


# --- unknown input ---


def test_unknown_block_is_kept_completely() -> None:
    video = {"format": "mp4", "source": {"bytes": "AAAA"}}
    assert items_of(begin(0, video=video), stop(0)) == [Opaque("video", {"video": video})]


def test_unknown_event_passes_through_in_order() -> None:
    events = events_of(
        START,
        delta(0, text="a"),
        event("contentBlockNews", x=1),
        raw_event("pulse", b"not json"),
        texts(0, "b"),
        TAIL,
    )
    kinds = [type(event).__name__ for event in events]
    assert kinds[2:6] == ["OutputTextDelta", "Passthrough", "Passthrough", "OutputTextDelta"]
    assert Passthrough("pulse", "not json") in events


@pytest.mark.parametrize(
    "member", [{"video": {}}, {"reasoningContent": {"novel": "x"}}, {"toolUse": {"input": "{}"}}]
)
def test_inapplicable_delta_marks_its_block_incomplete(member: Json) -> None:
    opener = (
        {"reasoningContent": {"text": "Hm"}} if "reasoningContent" in member else {"text": "Hi"}
    )
    events = events_of(START, delta(0, **opener), delta(0, **member), stop(0), TAIL)
    assert accumulate(events).items[0].status == "incomplete"
    assert codes(events) == ["unknown_delta"]
    assert [event.data["delta"] for event in events if isinstance(event, Passthrough)] == [member]


WRONG_BLOCKS = [
    (delta(0, reasoningContent={"text": "Hm"}), {"text": "Hi"}),
    (delta(0, reasoningContent={"text": "Hm"}), {"citation": {"title": "facts"}}),
    (begin(0, toolUse={"toolUseId": "t", "name": "f"}), {"text": "Hi"}),
    (begin(0, toolUse={"toolUseId": "t", "name": "f"}), {"reasoningContent": {"text": "Hm"}}),
    (delta(0, text="Hi"), {"toolUse": {"input": "{}"}}),
    (delta(0, text="Hi"), {"toolResult": [{"text": "a"}]}),
    (delta(0, text="Hi"), {"image": {"source": {"bytes": "AAAA"}}}),
]


@pytest.mark.parametrize(("opener", "member"), WRONG_BLOCKS)
def test_delta_for_another_kind_of_block_is_rejected(opener: bytes, member: Json) -> None:
    events = events_of(START, opener, delta(0, **member), stop(0), TAIL)
    assert accumulate(events).items[0].status == "incomplete"
    assert codes(events) == ["unknown_delta"]
    assert [event.data["delta"] for event in events if isinstance(event, Passthrough)] == [member]


def test_citation_with_text_in_an_open_block_keeps_both() -> None:
    cited = delta(0, text="Ruby", citation={"title": "facts"})
    (item,) = items_of(delta(0, text="A "), cited, stop(0))
    assert item.content == (Text("A Ruby", ({"title": "facts"},)),)


def test_unknown_delta_without_a_block_passes_through() -> None:
    events = events_of(START, delta(0, video={"x": 1}), stop(0), texts(1, "Hi"), TAIL)
    assert accumulate(events).text == "Hi"
    assert codes(events) == ["unknown_delta"]


def test_empty_delta_is_ignored() -> None:
    assert items_of(delta(0), delta(0, text="Hi"), delta(0), stop(0)) == [
        Message("assistant", (Text("Hi"),))
    ]


# --- malformed input ---


@pytest.mark.parametrize(
    "blocks",
    [
        begin(0, toolUse={"toolUseId": "a", "name": "f"}) * 2,
        delta(0, text="a") + begin(0, toolUse={"toolUseId": "a", "name": "f"}),
        begin(0) * 2,
        texts(0, "a") + delta(0, text="b"),
        texts(0, "a") + delta(0, video={}),
        stop(0),
        texts(0, "a") + stop(0),
        delta(0, toolUse={"input": "{}"}),
        delta(0, toolResult=[{"text": "a"}]),
        event("contentBlockDelta", contentBlockIndex=0, delta={"text": 1}),
        event("contentBlockDelta", contentBlockIndex=0, delta=[]),
        event("contentBlockStart", contentBlockIndex=0, start={"toolUse": "x"}),
        event("contentBlockStart", contentBlockIndex=0, start=7),
        raw_event("contentBlockDelta", b"{"),
        raw_event("contentBlockStop", b"[]"),
    ],
    ids=range(15),
)
def test_invalid_event_order_and_payloads_are_malformed(blocks: bytes) -> None:
    assert error_kind(START, blocks, TAIL) == "malformed"


@pytest.mark.parametrize("index", [-1, "0", 1.5, 10**7, None, True])
@pytest.mark.parametrize("name", ["contentBlockStart", "contentBlockDelta", "contentBlockStop"])
def test_invalid_index_is_malformed(name: str, index: Any) -> None:
    assert (
        error_kind(START, event(name, contentBlockIndex=index, delta={"text": "a"}, start={}), TAIL)
        == "malformed"
    )


def test_integral_float_index_is_accepted() -> None:
    deltas = (
        event("contentBlockDelta", contentBlockIndex=0.0, delta={"text": "Hi"}),
        event("contentBlockStop", contentBlockIndex=0.0),
    )
    assert [item.text for item in items_of(*deltas)] == ["Hi"]
    called = event(
        "contentBlockStart",
        contentBlockIndex=1.0,
        start={"toolUse": {"toolUseId": "t", "name": "f"}},
    )
    more = event(
        "contentBlockDelta", contentBlockIndex=1.0, delta={"toolUse": {"input": '{"a":1}'}}
    )
    (call,) = items_of(called, more, event("contentBlockStop", contentBlockIndex=1.0))
    assert (call.name, call.arguments, call.status) == ("f", '{"a":1}', "completed")


def test_events_after_message_stop_pass_through() -> None:
    events = events_of(START, texts(0, "Hi"), end(), delta(1, text="late"), START, METADATA)
    assert accumulate(events).text == "Hi"
    assert codes(events) == ["out_of_order", "out_of_order"]
    assert [event.event for event in events if isinstance(event, Passthrough)] == [
        "contentBlockDelta",
        "messageStart",
    ]


def test_message_stop_closes_blocks_without_stop() -> None:
    open_call = begin(1, toolUse={"toolUseId": "t", "name": "f"}) + delta(
        1, toolUse={"input": "{}"}
    )
    events = events_of(START, delta(0, text="Hi"), open_call, end("tool_use"), METADATA)
    assert [item.status for item in accumulate(events).items] == ["completed", "completed"]
    assert codes(events) == ["unclosed_block", "unclosed_block"]


def test_block_without_stop_is_incomplete_at_the_limit() -> None:
    response = wires.response_of(
        "converse",
        START,
        begin(0, toolUse={"toolUseId": "t", "name": "f"}),
        end("max_tokens"),
        METADATA,
    )
    assert response.calls == []
    assert response.items[0].status == "incomplete"


# --- usage and metadata ---


def test_cached_input_counts_once_in_either_spelling() -> None:
    both = {
        "cacheReadInputTokens": 5,
        "cacheReadInputTokenCount": 5,
        "cacheWriteInputTokens": 7,
        "cacheWriteInputTokenCount": 7,
    }
    for raw in (
        {"inputTokens": 3, **both},
        {"inputTokens": 3, "cacheReadInputTokenCount": 5, "cacheWriteInputTokenCount": 7},
    ):
        counted = usage(raw)
        assert (
            counted.input_tokens,
            counted.cache_read_input_tokens,
            counted.cache_write_input_tokens,
        ) == (15, 5, 7)


def test_cache_writes_are_split_by_lifetime() -> None:
    counted = usage(
        {
            "inputTokens": 1,
            "cacheWriteInputTokens": 9,
            "cacheDetails": [{"ttl": "1h", "inputTokens": 4}, {"ttl": "5m", "inputTokens": 5}],
        }
    )
    assert (
        counted.cache_write_5m_input_tokens,
        counted.cache_write_1h_input_tokens,
        counted.cache_write_24h_input_tokens,
    ) == (5, 4, None)


def test_usage_is_none_when_not_reported() -> None:
    assert usage({}) == Usage()
    assert usage({"outputTokens": 1, "cacheDetails": "x"}) == Usage(
        output_tokens=1, raw={"outputTokens": 1, "cacheDetails": "x"}
    )


def test_metadata_without_usage_erases_nothing() -> None:
    before = wires.response_of(
        "converse", START, texts(0, "Hi"), METADATA, event("metadata", trace={"a": 1}), end()
    )
    after = wires.response_of(
        "converse", START, texts(0, "Hi"), end(), event("metadata", trace={"a": 1}), METADATA
    )
    for response in (before, after):
        assert response.usage is not None
        assert response.usage.input_tokens == 371
        assert response.metadata == {"trace": {"a": 1}, "metrics": {"latencyMs": 1251}}


def test_metadata_without_usage_completes_without_notice() -> None:
    events = events_of(START, texts(0, "Hi"), end(), event("metadata", metrics={"latencyMs": 1}))
    assert isinstance(events[-1], Completed)
    assert codes(events) == []


def test_additional_model_response_fields_are_read() -> None:
    fields = {
        "delta": {"stop_sequence": "END"},
        "usage": {"output_tokens_details": {"thinking_tokens": 12}},
    }
    response = wires.response_of(
        "converse",
        START,
        texts(0, "Hi"),
        end("stop_sequence", additionalModelResponseFields=fields),
        METADATA,
    )
    assert response.stop_sequence == "END"
    assert response.usage is not None
    assert response.usage.reasoning_output_tokens == 12
    assert response.metadata["additionalModelResponseFields"] == fields
    flat = end("stop_sequence", additionalModelResponseFields={"stop_sequence": "\n"})
    assert wires.response_of("converse", START, flat, METADATA).stop_sequence == "\n"


def test_prompt_router_names_the_model() -> None:
    trace = {"promptRouter": {"invokedModelId": "arn:model"}}
    assert (
        wires.response_of(
            "converse", START, texts(0, "Hi"), end(), event("metadata", usage=USAGE, trace=trace)
        ).model
        == "arn:model"
    )


# --- failures ---

EXCEPTIONS = {
    "internalServerException": "server_error",
    "modelStreamErrorException": "server_error",
    "validationException": "invalid_request",
    "throttlingException": "rate_limited",
    "serviceUnavailableException": "overloaded",
    "accessDeniedException": "permission",
}


@pytest.mark.parametrize(("name", "kind"), EXCEPTIONS.items())
@pytest.mark.parametrize("before", [b"", START + delta(0, text="Hi")], ids=["first", "later"])
def test_exception_is_classified_by_name_and_keeps_text(
    name: str, kind: str, before: bytes
) -> None:
    events = events_of(before, exception(name, message="Too bad"))
    last = events[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, last.error.message) == (kind, "Too bad")
    assert accumulate(events).text == ("Hi" if before else "")


def test_exception_after_message_stop_is_a_failure() -> None:
    assert (
        error_kind(START, texts(0, "Hi"), end(), exception("internalServerException", message="x"))
        == "server_error"
    )


def test_upstream_error_is_classified_by_its_status() -> None:
    error = wires.error_of(
        "converse",
        START,
        exception("modelStreamErrorException", message="x", originalStatusCode=429),
    )
    assert error.status == 429
    assert error.retryable


def test_error_frame_without_payload_is_a_failure() -> None:
    frame = encode_message(
        {":message-type": "error", ":error-code": "503", ":error-message": "busy"}, b""
    )
    error = wires.error_of("converse", START, frame)
    assert (error.kind, error.message) == ("overloaded", "busy")


@pytest.mark.parametrize("code", ["²²²", "ServiceUnavailable", "5030"])
def test_error_code_that_is_no_http_status_is_kept(code: str) -> None:
    """`"²".isdigit()` is true, yet `int` raised ValueError out of the parser."""
    frame = encode_message(
        {":message-type": "error", ":error-code": code, ":error-message": "busy"}, b""
    )
    error = wires.error_of("converse", START, frame)
    assert (error.status, error.code) == (None, code)


def test_exception_recorded_as_a_line_is_a_failure() -> None:
    events = wires.events_of_lines(
        "converse", [json.dumps({"throttlingException": {"message": "slow down"}})]
    )
    assert isinstance(events[-1], Failed)
    assert events[-1].error.kind == "rate_limited"


@pytest.mark.parametrize(
    "body",
    [START, START + delta(0, text="Hi"), START + texts(0, "Hi")],
    ids=["before any block", "inside", "before the stop"],
)
def test_end_without_message_stop_is_truncated(body: bytes) -> None:
    assert error_kind(body) == "truncated"


def test_truncated_frame_after_message_stop_is_truncated() -> None:
    body = START + texts(0, "Hi") + TAIL
    for length in range(len(body) - len(METADATA) + 1, len(body)):
        assert error_kind(body[:length]) == "truncated"


def test_truncated_block_keeps_its_fragments() -> None:
    start = (
        begin(0, toolResult={"toolUseId": "t1"})
        + delta(0, toolResult=[{"text": "a"}])
        + delta(0, toolResult=[{"text": "b"}])
    )
    response = wires.response_of("converse", START, start)
    assert response.items[0].output == [{"text": "ab"}]  # type: ignore[union-attr]
    assert response.items[0].status == "incomplete"


def test_prefix_of_a_stream_never_completes_with_less() -> None:
    body = START + texts(0, "Hel", "lo") + call(1, '{"a":', "1}") + end("tool_use") + METADATA
    complete = wires.response_of("converse", body)
    for length in range(len(body)):
        response = wires.response_of("converse", body[:length])
        assert response.status == "failed" or response.items == complete.items


def test_arguments_over_the_limit_fail() -> None:
    events = events_of(START, call(0, "1" * 50, "2" * 51), TAIL, limits=Limits(argument_bytes=100))
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.kind, events[-1].error.code) == ("limit_exceeded", "argument_bytes")


@pytest.mark.parametrize("depth", [200, 480, 960, 5000])
def test_deep_nesting_fails_without_an_exception(depth: int) -> None:
    for inner in ("1", HALVES[0]):
        nested = "[" * depth + inner + "]" * depth
        for payload in (
            f'{{"x":{nested}}}',
            f'{{"contentBlockStart":{{"contentBlockIndex":0,"start":{{"x":{nested}}}}}}}',
        ):
            assert isinstance(wires.events_of_lines("converse", [payload])[-1], Failed)


# --- text ---


def test_split_surrogate_pair_is_joined() -> None:
    payloads = [b'{"contentBlockIndex":0,"delta":{"text":%s}}' % half.encode() for half in HALVES]
    assert [
        item.text
        for item in items_of(
            *(raw_event("contentBlockDelta", payload) for payload in payloads), stop(0)
        )
    ] == ["😀"]


def test_lone_surrogate_becomes_valid_text() -> None:
    lone = raw_event(
        "contentBlockDelta", b'{"contentBlockIndex":0,"delta":{"text":%s}}' % HALVES[0].encode()
    )
    assert [item.text for item in items_of(lone, stop(0))] == ["\ufffd"]


# --- lines and bodies ---

MEMBERS = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hi"}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("messageStop", {"stopReason": "end_turn"}),
    ("metadata", {"usage": USAGE}),
]


def test_recorded_lines_may_wrap_payload_in_its_name() -> None:
    framed = events_of(*(event(name, **payload) for name, payload in MEMBERS))
    assert (
        wires.events_of_lines(
            "converse", [json.dumps({name: payload}) for name, payload in MEMBERS]
        )
        == framed
    )
    p = parser("converse")
    named = [
        event
        for name, payload in MEMBERS
        for event in p.feed_event(json.dumps({name: payload}), name)
    ]
    assert [*named, *p.close()] == framed


def body(*content: Json, **values: Any) -> bytes:
    response = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "end_turn",
        "usage": USAGE,
        **values,
    }
    return json.dumps(response).encode()


def body_items(*content: Json) -> list[Any]:
    response = accumulate(parse_body("converse", body(*content)))
    assert response.error is None
    return [msgspec.structs.replace(item, origin=None) for item in response.items]


def test_body_emits_one_delta_per_part() -> None:
    events = parse_body(
        "converse", body({"text": "Hi"}, {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}})
    )
    kinds = [type(event).__name__ for event in events]
    assert kinds == [
        *("Created", "OutputItemAdded", "OutputTextDelta", "OutputItemDone"),
        *(
            "OutputItemAdded",
            "FunctionCallArgumentsDelta",
            "OutputItemDone",
            "TokenCount",
            "Completed",
        ),
    ]


def test_body_keeps_the_bytes_of_arguments() -> None:
    raw_body = (
        b'{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t","name":"f",'
        b'"input":{"b": 1.0, "a":1e2}}}]}},"stopReason":"tool_use"}'
    )
    (call_item,) = accumulate(parse_body("converse", raw_body)).calls
    assert isinstance(call_item, FunctionCall)
    assert call_item.arguments == '{"b": 1.0, "a":1e2}'


def test_every_block_of_a_body_becomes_an_item() -> None:
    citation = {"title": "t", "sourceContent": [{"text": "s"}]}
    assert body_items(
        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "c2Vh"}},
        {"reasoningContent": {}},
        {"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": [citation]}},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": None, "type": "server_tool_use"}},
        {
            "toolResult": {
                "toolUseId": "t",
                "content": [{"text": "a"}, {"text": "b"}],
                "status": "success",
                "type": "f_result",
            }
        },
        {"image": {"format": "webp", "source": {"bytes": "UklG"}}},
        {"audio": {"format": "mp3", "source": {"bytes": "AAAA"}}},
        {"text": "", "type": "text"},
    ) == [
        Reasoning(content="Hm", signature="c2ln"),
        Reasoning(encrypted_content="c2Vh", redacted=True),
        Reasoning(),
        Message("assistant", (Text("ab", (citation,)),)),
        ServerToolCall("t", "f", native={"type": "server_tool_use"}),
        ServerToolResult(
            "t",
            "f",
            [{"text": "a"}, {"text": "b"}],
            native={"status": "success", "type": "f_result"},
        ),
        Message("assistant", (Image(data="UklG", media_type="image/webp"),)),
        Opaque("audio", {"audio": {"format": "mp3", "source": {"bytes": "AAAA"}}}),
        Message("assistant", (Text(""),), native={"type": "text"}),
    ]


def test_body_without_stop_reason_or_usage_is_complete() -> None:
    response = accumulate(
        parse_body("converse", b'{"output":{"message":{"content":[{"text":"Hi"}]}}}')
    )
    assert (response.status, response.stop_reason, response.notices) == ("completed", "other", ())


def test_body_with_surrogates_has_valid_text() -> None:
    raw_body = (
        b'{"output":{"message":{"content":[{"text":"a\\ud83d"},{"text":"\\ude00b"}]}},'
        b'"stopReason":"end_turn"}'
    )
    assert accumulate(parse_body("converse", raw_body)).text == "a\ufffd\ufffdb"


@pytest.mark.parametrize(
    ("raw_body", "kind"),
    [
        (b'{"message":"Too many requests, please wait"}', "rate_limited"),
        (b'{"message":"no"}', None),
        (b'{"Message":"no"}', None),
        (b"{}", "malformed"),
        (b"[]", "malformed"),
        (b"<html>", "malformed"),
        (b'{"output":3}', "malformed"),
        (b'{"output":{"message":{"content":3}}}', "malformed"),
    ],
)
def test_body_that_is_no_response_fails(raw_body: bytes, kind: str | None) -> None:
    last = parse_body("converse", raw_body)[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == kind or (kind is None and last.error.message == "no")


# --- partitions and hostile input ---

MIXED = (
    START
    + delta(0, reasoningContent={"text": "Hm"})
    + delta(0, reasoningContent={"signature": "c2ln"})
    + stop(0)
    + delta(1, citation={"title": "t"})
    + texts(1, "Hel", "lo ☕")
    + call(2, '{"a":', "1}")
    + begin(3, video={})
    + stop(3)
    + event("news", x=1)
    + end("tool_use", additionalModelResponseFields={"stop_sequence": None})
    + METADATA
)


@given(cuts(MIXED))
def test_events_are_independent_of_partition(chunks: list[bytes]) -> None:
    assert events_of(*chunks) == events_of(MIXED)


def test_events_are_independent_of_every_single_split() -> None:
    expected = events_of(MIXED)
    assert events_of(*byte_by_byte(MIXED)) == expected
    assert all(events_of(*chunks) == expected for chunks in every_single_cut(MIXED, at_most=200))


PAYLOAD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from([*BLOCKS, *JOINS, "contentBlockIndex", "delta", "start", "input"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
SHAPED = st.fixed_dictionaries(
    {
        "contentBlockIndex": st.integers(0, 2),
        "delta": PAYLOAD,
        "start": PAYLOAD,
        "usage": PAYLOAD,
        "stopReason": PAYLOAD,
    }
)


@given(
    st.lists(
        st.tuples(st.sampled_from([*Machine.HANDLERS, "news", "exception:x"]), SHAPED | PAYLOAD),
        max_size=8,
    )
)
def test_hostile_payloads_end_in_one_terminal_event(frames: list[tuple[str, Any]]) -> None:
    p = parser("converse")
    events: list[ResponseEvent] = []
    for name, payload in frames:
        events += p.feed_event(json.dumps(payload), name)
    events += p.close()
    terminals = [event for event in events if isinstance(event, (Completed, Failed))]
    assert terminals == events[-1:]
    accumulate(events)


# --- documentation ---


def test_documentation_page_matches_the_tables() -> None:
    def camel(name: str) -> str:
        first, *rest = name.split("_")
        return first + "".join(part.title() for part in rest)

    assert set(wires.documented("converse", "Events")) == set(Machine.HANDLERS)
    assert set(wires.documented("converse", "Blocks")) == set(BLOCKS)
    assert set(wires.documented("converse", "Deltas")) == {camel(name) for name in Machine.DELTAS}
    assert {
        reason: row[0][0] for reason, row in wires.documented("converse", "Stop reasons").items()
    } == STOP_REASONS


# --- recordings ---


@each_recording("bedrock-converse", (*STREAMS, *BODIES, *PAYLOADS))
def test_recordings_agree_with_their_facts(recording: Recording) -> None:
    differences = wires.disagreements(recording, STOP_REASONS)
    if "citationsContent" in ((recording.expected.get("facts") or {}).get("blocks") or ()):
        differences = [
            difference for difference in differences if not difference.startswith("text:")
        ]  # the facts lack the text of cited blocks
    assert differences == []
