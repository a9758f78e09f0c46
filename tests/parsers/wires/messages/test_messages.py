"""Anthropic Messages, event by event: what each becomes, and what happens to unknown ones."""

from __future__ import annotations

import base64
import json
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamlib_parsers import (
    Completed,
    Created,
    FunctionCall,
    Limits,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    ResponseMetadata,
    Text,
    TokenCount,
    Usage,
    accumulate,
)
from streamlib_parsers.errors import ParseFailure
from streamlib_parsers.json_text import SurrogateJoiner, decode_any, mark_surrogates
from streamlib_parsers.wires import messages
from streamlib_parsers.wires.messages import DELTAS, KINDS, STOP_REASONS, TRANSITIONS, State
from tests.support.cases import each_case
from tests.support.messages_frames import (
    STOP,
    TEXT,
    THINKING,
    TOOL,
    Json,
    block,
    end,
    error_of,
    events_of,
    frame,
    response_of,
    start,
    text_deltas,
)
from tests.support.partitions import byte_by_byte, every_single_split
from tests.support.shared import each_vector

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


@each_case("native, normal", [*STOP_REASONS.items(), ("brand_new_reason", "other")])
def test_stop_reason_is_normalized(native: str, normal: str) -> None:
    # Without a call the reason would be repaired.
    content = block(0, TEXT, *text_deltas("x"))
    if normal == "tool_calls":
        content = block(0, TOOL)
    response = response_of(start() + content + end(native))
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


def test_tokens_of_a_compaction_are_added_to_the_usage() -> None:
    """A21: the counts of a recorded response; its own fields leave the compaction out."""
    compaction = {
        "type": "compaction",
        "input_tokens": 100,
        "output_tokens": 83,
        "cache_read_input_tokens": 55096,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
    }
    message = {"type": "message", "input_tokens": 181, "output_tokens": 8}
    own = {
        "input_tokens": 181,
        "output_tokens": 8,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    }
    raw = {**own, "iterations": [compaction, message]}
    assert messages.usage(raw) == Usage(
        input_tokens=55_407,
        output_tokens=91,
        cache_read_input_tokens=55_096,
        cache_write_input_tokens=30,
        cache_write_5m_input_tokens=10,
        cache_write_1h_input_tokens=20,
        raw=raw,
    )


@pytest.mark.parametrize("kind", ["message", "advisor_message", "fallback_message"])
def test_tokens_of_other_iterations_are_not_added(kind: str) -> None:
    """A21: they are counted already, or are those of an advisor, another model."""
    iteration = {"type": kind, "input_tokens": 5, "output_tokens": 6}
    usage = messages.usage({"input_tokens": 1, "output_tokens": 2, "iterations": [iteration]})
    assert (usage.input_tokens, usage.output_tokens) == (1, 2)


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
    """Of the same id, or before `message_stop`."""
    stopped = start() + block(0, TEXT, *text_deltas("a")) + end()
    unfinished = start() + block(0, TEXT, *text_deltas("a"))
    for first in (stopped + start(), stopped + start(id=None), unfinished + start(id="msg_2")):
        response = response_of(first + block(0, TEXT, *text_deltas("b")) + end("max_tokens"))
        assert response.text == "ab"
        assert (response.response_id, response.stop_reason) == ("msg_1", "length")
        assert "second_message_start" in [notice.code for notice in response.notices]


def test_another_response_in_one_stream_is_not_read() -> None:
    first = start() + block(0, TEXT, *text_deltas("a")) + end()
    second = start(id="msg_2") + block(0, TEXT, *text_deltas("b")) + end("max_tokens")
    for tail in (second, second + second, second[:-20], start(id="msg_2")):
        response = response_of(first + tail)
        assert (response.status, response.text, response.stop_reason) == ("completed", "a", "stop")
        assert response.response_id == "msg_1"
        assert [notice.code for notice in response.notices] == ["second_response"]


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
        for chunks in (*every_single_split(body, 200), [body], byte_by_byte(body)):
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
    elif name == "deep-5000" and sys.version_info >= (3, 13):
        # The stack of the interpreter is the limit, and 3.13 has a deeper one.
        assert decode_any(raw)
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
