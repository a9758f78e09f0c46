"""Bedrock InvokeModel: which machine reads a payload, and what each family's payloads become."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib_parsers import (
    Completed,
    Failed,
    FunctionCall,
    Message,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    Usage,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.bedrock import at_path
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.protocol import WIRE_APIS
from streamlib_parsers.wires import chat, converse, messages
from streamlib_parsers.wires.invoke import BY_NAME, COUNTS, FAMILIES, METRICS, STOP_REASONS, usage
from tests.support import wires
from tests.support.cases import each_case
from tests.support.invoke_payloads import (
    BODY,
    MEASURED,
    STREAMED,
    chunk,
    claude_payloads,
    codes,
    events_of,
    exception,
    mistral,
    raw_chunk,
    stream,
    titan,
)
from tests.support.partitions import byte_by_byte, every_single_split, partitions
from tests.support.shared import BODIES, STREAMS, Recording, each_recording

every_family = pytest.mark.parametrize("name", [family.name for family in FAMILIES])


# --- families ---


def test_every_family_has_a_stream_and_a_body() -> None:
    assert set(STREAMED) == set(BODY) == set(BY_NAME)


@pytest.mark.parametrize(("path", "found"), [("a.0", 7), ("a.1", None), ("a.b", None), ("a", [7])])
def test_path_beyond_a_value_finds_nothing(path: str, found: Any) -> None:
    assert at_path({"a": [7]}, path) == found


def test_family_has_a_wire_or_its_own_paths() -> None:
    for family in FAMILIES:
        assert family.wire in WIRE_APIS if family.wire else (family.text and family.stop)


@every_family
def test_stream_of_the_family_is_read(name: str) -> None:
    events = events_of(stream(STREAMED[name]))
    response = accumulate(events)
    assert (response.text, response.stop_reason, response.error) == ("Hello", "stop", None)
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (
        (45 if name == "claude" else 7),
        3,
    )
    assert response.metadata[METRICS] == MEASURED[METRICS]
    assert codes(events) == []
    assert [event.delta for event in events if isinstance(event, OutputTextDelta)] == ["Hel", "lo"]


@every_family
def test_body_of_the_family_is_read(name: str) -> None:
    events = parse_body("invoke", json.dumps(BODY[name]).encode())
    response = accumulate(events)
    assert (response.text, response.stop_reason, response.error) == ("Hello", "stop", None)
    assert [event.delta for event in events if isinstance(event, OutputTextDelta)] == ["Hello"]
    assert codes(events) == []


@every_family
def test_prefix_of_a_stream_is_truncated_or_has_all_text(name: str) -> None:
    body = stream(STREAMED[name])
    for length in range(len(body)):
        response = wires.response_of("invoke", body[:length])
        assert response.status == "failed" or response.text == "Hello"


@every_family
def test_end_before_the_terminal_event_is_truncated(name: str) -> None:
    frames = 1 if name in SHORT else 2
    assert wires.error_of("invoke", stream(STREAMED[name][:frames])).kind == "truncated"


@every_family
def test_payload_in_place_of_a_body_is_not_complete(name: str) -> None:
    last = parse_body("invoke", json.dumps(STREAMED[name][0]).encode())[-1]
    assert isinstance(last, Failed)


SHORT = {"claude-2", "completions", "titan", "llama", "mistral"}


@every_family
def test_events_are_independent_of_every_single_split(name: str) -> None:
    body = stream(STREAMED[name])
    expected = events_of(body)
    assert events_of(*byte_by_byte(body)) == expected
    assert all(events_of(*chunks) == expected for chunks in every_single_split(body, at_most=80))


LONG = stream(
    [
        *STREAMED["cohere"][:1],
        {"event_type": "search-results", "documents": [1]},
        *STREAMED["cohere"][1:],
    ]
)


@given(partitions(LONG))
def test_events_are_independent_of_partition(chunks: list[bytes]) -> None:
    assert events_of(*chunks) == events_of(LONG)


@every_family
def test_recorded_payloads_give_the_events_of_frames(name: str) -> None:
    framed = events_of(stream(STREAMED[name]))
    assert "abcdef" not in repr(framed)
    lines = [json.dumps(payload) for payload in STREAMED[name]]
    assert wires.events_of_lines("invoke", lines) == framed
    encoded = [base64.b64encode(line.encode()).decode() for line in lines]
    assert (
        wires.events_of_lines("invoke", [json.dumps({"bytes": payload}) for payload in encoded])
        == framed
    )
    assert (
        wires.events_of_lines(
            "invoke", [json.dumps({"chunk": {"bytes": payload}}) for payload in encoded]
        )
        == framed
    )


def test_completed_waits_for_the_end_of_input() -> None:
    for name in set(BY_NAME) - {"nova"}:
        p = parser("invoke")
        assert not any(isinstance(event, Completed) for event in p.feed(stream(STREAMED[name])))
        assert p.complete
        assert isinstance(p.close()[-1], Completed)


def test_inner_wire_maps_its_own_stop_reasons() -> None:
    for name, reason, table in (
        ("nova", "guardrail_intervened", converse),
        ("claude", "refusal", messages),
        ("chat", "length", chat),
    ):
        payloads = json.loads(
            json.dumps(STREAMED[name])
            .replace('"end_turn"', f'"{reason}"')
            .replace('"stop"', f'"{reason}"')
        )
        assert (
            wires.response_of("invoke", stream(payloads)).stop_reason == table.STOP_REASONS[reason]
        )


def test_claude_reasoning_and_calls_are_read() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
        {"type": "tool_use", "id": "toolu_bdrk_1", "name": "f", "input": {"a": 1.0}},
    ]
    starts = [
        {"type": "content_block_start", "index": n, "content_block": block}
        for n, block in enumerate(blocks)
    ]
    stops = [{"type": "content_block_stop", "index": n} for n in range(2)]
    payloads = [claude_payloads()[0], *starts, *stops, *claude_payloads()[-2:]]
    response = wires.response_of("invoke", stream(payloads))
    assert [type(item) for item in response.items] == [Reasoning, FunctionCall]
    assert response.calls[0].arguments == '{"a": 1.0}'  # type: ignore[union-attr]
    assert response.response_id == "msg_bdrk_1"


def test_complete_call_makes_the_stop_reason_tool_calls() -> None:
    """A20: by the inner wire's rule, Claude's and Nova's."""
    start, *_, end, stop = claude_payloads()
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    claude = [
        start,
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_stop", "index": 0},
        end,
        stop,
    ]
    use = {"toolUse": {"toolUseId": "t", "name": "f"}}
    nova = [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": use}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    for payloads in (claude, nova):
        response = accumulate(events_of(stream(payloads)))
        assert (response.stop_reason, len(response.calls)) == ("tool_calls", 1)


def test_mistral_large_stop_reason_is_its_finish_reason() -> None:
    payloads = [
        {
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "Hel"},
                    "stop_reason": None,
                }
            ]
        },
        {
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "lo"},
                    "stop_reason": "length",
                }
            ],
            **MEASURED,
        },
    ]
    response = wires.response_of("invoke", stream(payloads))
    assert (response.text, response.stop_reason, response.status) == (
        "Hello",
        "length",
        "incomplete",
    )
    body = {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello"},
                "stop_reason": "length",
            }
        ]
    }
    assert accumulate(parse_body("invoke", json.dumps(body).encode())).stop_reason == "length"


@pytest.mark.parametrize("other", [7, "<|im_end|>"])
def test_stop_reason_beside_a_finish_reason_is_no_reason(other: Any) -> None:
    """Jamba has the last token there."""
    message = {"role": "assistant", "content": "Hi"}
    choice = {"index": 0, "message": message, "finish_reason": "length", "stop_reason": other}
    response = accumulate(parse_body("invoke", json.dumps({"choices": [choice]}).encode()))
    assert (response.stop_reason, response.native_stop_reason) == ("length", "length")


# --- text families ---


@each_case("native, stop_reason", [*STOP_REASONS.items(), ("ERROR", "other")])
def test_stop_reason_is_normalized_and_kept(native: str, stop_reason: str) -> None:
    response = wires.response_of("invoke", chunk(mistral("Hi", native)))
    assert (response.stop_reason, response.native_stop_reason) == (stop_reason, native)


def test_completions_form_reports_id_and_model() -> None:
    """A14: of a body and of a stream."""
    payload = {**BODY["completions"], "id": "cmpl-1", "model": "deepseek.r1-v1:0"}
    body = parse_body("invoke", json.dumps(payload).encode())
    for events in (body, events_of(stream([payload]))):
        response = accumulate(events)
        assert (response.model, response.response_id) == ("deepseek.r1-v1:0", "cmpl-1")
        assert (response.text, response.metadata) == ("Hello", {})


def test_stop_sequence_of_claude_2_is_kept() -> None:
    assert wires.response_of("invoke", stream(STREAMED["claude-2"])).stop_sequence == "\n\nHuman:"


def test_response_without_text_has_no_items() -> None:
    response = wires.response_of("invoke", chunk(titan("", "FINISH", 0)))
    assert (response.items, response.status) == ((), "completed")


def test_text_after_the_stop_reason_is_kept() -> None:
    assert (
        wires.response_of("invoke", stream([mistral("Hel", "stop"), mistral("lo", None)])).text
        == "Hello"
    )


def test_guardrail_that_replaced_the_response_is_a_filter() -> None:
    blocked = {
        "outputText": "Input blocked",
        "index": 0.0,
        "amazon-bedrock-guardrailAction": "INTERVENED",
        "amazon-bedrock-trace": {"a": 1},
    }
    response = wires.response_of("invoke", chunk(blocked))
    assert (response.stop_reason, response.native_stop_reason, response.text) == (
        "content_filter",
        "INTERVENED",
        "Input blocked",
    )
    assert response.metadata == {
        "amazon-bedrock-guardrailAction": "INTERVENED",
        "amazon-bedrock-trace": {"a": 1},
    }


def test_guardrail_that_only_masked_keeps_the_stop_reason() -> None:
    masked = {"amazon-bedrock-guardrailAction": "INTERVENED"}
    assert (
        wires.response_of("invoke", chunk({**mistral("Hi", "stop"), **masked})).stop_reason
        == "stop"
    )
    assert (
        wires.error_of(
            "invoke", chunk({**mistral("Hi", None), **masked}), chunk(mistral("more", None))
        ).kind
        == "truncated"
    )


def test_own_counts_take_precedence_over_metrics() -> None:
    counted = usage(
        {
            "prompt_token_count": 5,
            "generation_token_count": 6,
            "inputTokenCount": 7,
            "outputTokenCount": 8,
        }
    )
    assert (counted.input_tokens, counted.output_tokens) == (5, 6)
    assert usage({}) == Usage()


def test_metrics_count_cached_input_apart() -> None:
    counted = usage(
        {
            "inputTokenCount": 1,
            "cacheReadInputTokenCount": 2,
            "cacheWriteInputTokenCount": 4,
            "outputTokenCount": 8,
        }
    )
    assert (
        counted.input_tokens,
        counted.cache_read_input_tokens,
        counted.cache_write_input_tokens,
    ) == (7, 2, 4)


def test_cohere_events_without_text_pass_through_in_order() -> None:
    events = events_of(LONG)
    kinds = [type(event).__name__ for event in events]
    assert kinds.index("Passthrough") < kinds.index("OutputTextDelta", 3)
    assert accumulate(events).text == "Hello"
    assert accumulate(events).response_id == "r1"


def test_only_unknown_keys_of_a_text_payload_are_metadata() -> None:
    metadata = wires.response_of(
        "invoke", chunk({**titan("Hi", "FINISH", 1), "novel": {"a": 1}})
    ).metadata
    assert metadata == {"novel": {"a": 1}}
    assert not COUNTS & wires.response_of("invoke", stream(STREAMED["llama"])).metadata.keys()
    assert "chat_history" not in str(
        wires.response_of("invoke", stream(STREAMED["cohere"])).metadata
    )


def test_split_surrogate_pair_is_joined() -> None:
    payloads = [
        b'{"generation":"\\ud83d","stop_reason":null}',
        b'{"generation":"\\ude00","stop_reason":"stop"}',
    ]
    body = b"".join(
        raw_chunk(json.dumps({"bytes": base64.b64encode(payload).decode()}).encode())
        for payload in payloads
    )
    assert wires.response_of("invoke", body).text == "😀"


def test_recorded_payload_may_have_a_key_named_bytes() -> None:
    line = '{"generation":"Hi","bytes":5,"stop_reason":"stop"}'
    assert accumulate(wires.events_of_lines("invoke", [line])).text == "Hi"
    last = wires.events_of_lines("invoke", ['["bytes"]'])[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == "malformed"


@pytest.mark.parametrize(
    "choices", [[5], [{"message": {"content": "Hi"}, "stop_reason": "stop"}, 5], {"0": 5}]
)
def test_invalid_choices_with_a_stop_reason_are_malformed(choices: Any) -> None:
    sent = chunk({"choices": choices, "stop_reason": "stop"})
    assert wires.error_of("invoke", sent).kind == "malformed"


def test_empty_key_is_metadata_and_ends_nothing() -> None:
    """Families without a `finished` key read the key "" for it: true there ended the response."""
    sent = chunk({"generation": "Hi", "": True})
    assert wires.error_of("invoke", sent).kind == "truncated"
    ended = wires.response_of("invoke", sent, chunk({"generation": "", "stop_reason": "stop"}))
    assert ended.metadata == {"": True}


# --- unknown input ---


def test_unknown_family_passes_through_to_the_last_frame() -> None:
    events = events_of(stream([{"tokens": [1]}, {"tokens": [2]}]))
    assert [event.data for event in events if isinstance(event, Passthrough)] == [
        {"tokens": [1]},
        {"tokens": [2]},
    ]
    assert isinstance(events[-1], Completed)
    assert events[-1].stop_reason == "other"
    assert codes(events) == ["unknown_family", "end_inferred"]


def test_truncated_frame_of_unknown_family_is_truncated() -> None:
    body = stream([{"tokens": [1]}, {"tokens": [2]}])
    assert wires.error_of("invoke", body[:-1]).kind == "truncated"


def test_metrics_alone_are_not_a_response() -> None:
    assert wires.error_of("invoke", chunk(MEASURED)).kind == "truncated"


def test_unknown_frames_pass_through() -> None:
    news = encode_message({":event-type": "news", ":message-type": "event"}, b"plain")
    events = events_of(chunk(mistral("Hi", None)), news, chunk(mistral("", "stop")))
    assert Passthrough("news", "plain") in events


# --- failures ---


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("internalServerException", "server_error"),
        ("modelStreamErrorException", "server_error"),
        ("validationException", "invalid_request"),
        ("throttlingException", "rate_limited"),
        ("modelTimeoutException", "server_error"),
        ("serviceUnavailableException", "overloaded"),
    ],
)
def test_exception_is_classified_by_name_and_keeps_text(name: str, kind: str) -> None:
    events = events_of(chunk(mistral("Hi", None)), exception(name, message="Too bad"))
    last = events[-1]
    assert isinstance(last, Failed)
    assert (last.error.kind, last.error.message) == (kind, "Too bad")
    assert accumulate(events).text == "Hi"


def test_error_inside_a_chunk_is_read_by_its_family() -> None:
    sent = stream(
        [
            *claude_payloads()[:3],
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ]
    )
    assert wires.error_of("invoke", sent).kind == "overloaded"


@pytest.mark.parametrize(
    "payload",
    [
        b'{"bytes":"not base64!"}',
        b'{"p":"abc"}',
        b'{"bytes":7}',
        b"[]",
        b"{",
        b'{"bytes":"W10="}',
        b'{"bytes":"e30"}',
    ],
)
def test_chunk_without_an_object_inside_is_malformed(payload: bytes) -> None:
    assert wires.error_of("invoke", raw_chunk(payload)).kind == "malformed"


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b'{"message":"The provided model identifier is invalid."}', "not_found"),
        (b"{}", "malformed"),
        (b"7", "malformed"),
        (b'{"images":["AAAA"]}', "malformed"),
        (
            b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
            "overloaded",
        ),
    ],
)
def test_body_that_is_not_a_response_fails(sent: bytes, kind: str) -> None:
    last = parse_body("invoke", sent)[-1]
    assert isinstance(last, Failed)
    assert last.error.kind == kind


def test_body_without_stop_reason_is_complete() -> None:
    response = accumulate(parse_body("invoke", b'{"text":"Hi","chat_history":[]}'))
    assert (response.status, response.stop_reason, response.text) == ("completed", "other", "Hi")


def test_text_is_one_message() -> None:
    (item,) = wires.response_of("invoke", stream(STREAMED["llama"])).items
    assert isinstance(item, Message)
    assert item.status == "completed"


@pytest.mark.parametrize("kind", [[], {}, ["stream-end"], 5])
def test_event_type_that_is_not_a_string_passes_through(kind: Any) -> None:
    """It was looked up in a set: a list there raised TypeError out of the parser."""
    events = events_of(
        stream([STREAMED["cohere"][0], {"event_type": kind, "text": "a"}, *STREAMED["cohere"][1:]])
    )
    assert [event.event for event in events if isinstance(event, Passthrough)] == [str(kind)]
    assert accumulate(events).text == "Hello"


PAYLOAD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                sorted(
                    {
                        mark.partition(".")[0]
                        for family in FAMILIES
                        for mark in (*family.marks, *family.text, *family.stop)
                    }
                )
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@given(st.lists(PAYLOAD, max_size=6))
def test_hostile_payloads_end_in_one_terminal_event(payloads: list[Any]) -> None:
    events = events_of(b"".join(chunk(payload) for payload in payloads))
    terminals = [event for event in events if isinstance(event, (Completed, Failed))]
    assert terminals == events[-1:]
    accumulate(events)


# --- documentation ---


def test_documentation_page_matches_the_tables() -> None:
    page = wires.documented("invoke", "Families")
    assert list(page) == [family.name for family in FAMILIES]
    for family in FAMILIES:
        marks, read_by, text, complete = page[family.name]
        assert marks == list(family.marks)
        assert read_by == ([family.wire] if family.wire else [])
        assert text == list(family.text)
        if not family.wire:
            finished = [family.finished] if family.finished else []
            assert complete == [*family.stop, *finished]
    assert {
        reason: row[0][0]
        for reason, row in wires.documented(
            "invoke", "Stop reasons of the table's families"
        ).items()
    } == STOP_REASONS


# --- recordings ---


@each_recording("bedrock-invoke", (*STREAMS, *BODIES))
def test_recordings_agree_with_their_facts(recording: Recording) -> None:
    stops = {**messages.STOP_REASONS, **converse.STOP_REASONS, **STOP_REASONS}
    assert wires.disagreements(recording, stops) == []
