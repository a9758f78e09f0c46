"""Bedrock ConverseStream, frame by frame: order, usage, metadata, any partition of the bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import (
    Completed,
    Created,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    Message,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    ReasoningContentDelta,
    ResponseEvent,
    ResponseMetadata,
    Text,
    TokenCount,
    Usage,
    accumulate,
    parser,
)
from streamlib_parsers.wires.converse import (
    BLOCKS,
    JOINS,
    OPENERS,
    STOP_REASONS,
    TRANSITIONS,
    Delta,
    State,
    usage,
)
from streamlib_parsers.wires.converse.machine import DELTAS, HANDLERS
from tests.support import wires
from tests.support.cases import each_case
from tests.support.converse_frames import (
    HALVES,
    METADATA,
    START,
    TAIL,
    USAGE,
    begin,
    call,
    codes,
    delta,
    end,
    event,
    events_of,
    items_of,
    raw_event,
    stop,
    texts,
)
from tests.support.partitions import byte_by_byte, every_single_split, partitions
from tests.support.shared import BODIES, PAYLOADS, STREAMS, Recording, each_recording

# --- tables ---


def test_transition_table_and_handlers_name_the_same_events() -> None:
    assert {name for row in TRANSITIONS.values() for name in row} == set(HANDLERS)
    assert (
        set(TRANSITIONS)
        == set(State)
        >= {state for row in TRANSITIONS.values() for state in row.values()}
    )


def test_every_member_of_a_delta_has_a_handler() -> None:
    assert set(Delta.__struct_fields__) == set(DELTAS) >= set(OPENERS)


@each_case(
    "native, stop_reason",
    [*STOP_REASONS.items(), ("new_reason", "other")],
)
def test_stop_reason_is_normalized_and_kept(native: str, stop_reason: str) -> None:
    # Without a call the reason would be repaired.
    content = texts(0, "Hi")
    if stop_reason == "tool_calls":
        content = call(0, "{}")
    response = wires.response_of("converse", START, content, end(native), METADATA)
    assert (response.stop_reason, response.native_stop_reason) == (stop_reason, native)
    unknown = [notice.code for notice in response.notices]
    assert unknown == ([] if native in STOP_REASONS else ["unknown_finish_reason"])


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_failed_generation_fails_without_calls(reason: str) -> None:
    """The block of the call was closed before the reason came (A1)."""
    body = START + call(0, '{"a": 1}') + end(reason) + METADATA
    response = wires.response_of("converse", body)
    assert response.status == "failed"
    assert response.error is not None
    assert (response.error.kind, response.error.code) == ("generation_failed", reason)
    assert response.error.retryable
    assert response.calls == []


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


@given(partitions(MIXED))
def test_events_are_independent_of_partition(chunks: list[bytes]) -> None:
    assert events_of(*chunks) == events_of(MIXED)


def test_events_are_independent_of_every_single_split() -> None:
    expected = events_of(MIXED)
    assert events_of(*byte_by_byte(MIXED)) == expected
    assert all(events_of(*chunks) == expected for chunks in every_single_split(MIXED, at_most=200))


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
        st.tuples(st.sampled_from([*HANDLERS, "news", "exception:x"]), SHAPED | PAYLOAD),
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

    assert set(wires.documented("converse", "Events")) == set(HANDLERS)
    assert set(wires.documented("converse", "Blocks")) == set(BLOCKS)
    assert set(wires.documented("converse", "Deltas")) == {camel(name) for name in DELTAS}
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
