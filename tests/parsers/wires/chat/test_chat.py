"""Chat Completions: each deviation of a server is a row here, with chunks that show it.

Those about tool calls are in test_tool_calls.py. The numbers are those of the table "Deviations" in
docs/wires/chat.md. The chunks are written for these tests.
"""

from __future__ import annotations

import pytest

from tests.support import wires
from tests.support.chat_rows import NOTHING, row, summary
from tests.support.chat_streams import (
    ARGS,
    HI,
    MORE,
    STOP,
    TOTAL,
    Json,
    call,
    calls,
    chunk,
    delta_chunk,
    usage_chunk,
)

ENDED = {"text": "Hi", "stop": "stop"}

ROWS = [
    row(
        "X1-reasoning_content",
        delta_chunk(reasoning_content="a"),
        delta_chunk(reasoning_content="b"),
        HI,
        STOP,
        reasoning="ab",
        **ENDED,
    ),
    row(
        "X2-reasoning",
        delta_chunk(reasoning="a"),
        delta_chunk(reasoning="b"),
        HI,
        STOP,
        reasoning="ab",
        **ENDED,
    ),
    row(
        "X2-two-names-for-one-text",
        delta_chunk(reasoning_content="a", reasoning="a"),
        HI,
        STOP,
        reasoning="a",
        **ENDED,
    ),
    row("X2-reasoning_text", delta_chunk(reasoning_text="a"), HI, STOP, reasoning="a", **ENDED),
    row(
        "X3-details-beside-the-reasoning",
        delta_chunk(
            reasoning="a", reasoning_details=[{"type": "reasoning.text", "text": "a", "index": 0}]
        ),
        HI,
        STOP,
        reasoning="a",
        **ENDED,
    ),
    row(
        "X3-details-alone",
        delta_chunk(reasoning_details=[{"type": "reasoning.summary", "summary": "a"}]),
        HI,
        STOP,
        reasoning="a",
        **ENDED,
    ),
    row(
        "X4-content-parts",
        delta_chunk(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]),
        delta_chunk(content=[{"type": "thinking", "thinking": "b"}]),
        delta_chunk(content=[{"type": "text", "text": "H"}, "i"]),
        STOP,
        reasoning="ab",
        **ENDED,
    ),
    row(
        "X4-content-changes-its-shape",
        delta_chunk(content="H"),
        delta_chunk(content=[{"type": "text", "text": "i"}]),
        STOP,
        **ENDED,
    ),
    row(
        "X5-content-null-empty-missing",
        delta_chunk(content=None),
        delta_chunk(content=""),
        delta_chunk(),
        HI,
        STOP,
        **ENDED,
    ),
    row("X5-text-beside-the-delta", chunk({"content": "Hi"}, text="Hi"), STOP, **ENDED),
    row(
        "X6-role-everywhere",
        delta_chunk(role=None, content="H"),
        delta_chunk(role="", content="i"),
        chunk({"role": "assistant"}, "stop"),
        **ENDED,
    ),
    row(
        "X8-an-empty-first-chunk",
        {
            "id": "",
            "model": "",
            "created": 0,
            "object": "",
            "choices": [],
            "prompt_filter_results": [{"prompt_index": 0}],
        },
        HI,
        STOP,
        metadata={"prompt_filter_results": [{"prompt_index": 0}]},
        **ENDED,
    ),
    row(
        "X9-filter-results-in-the-choice",
        chunk({"content": "Hi"}, content_filter_results={"hate": {"filtered": False}}),
        chunk({}, "content_filter", content_filter_results={"hate": {"filtered": True}}),
        text="Hi",
        stop="content_filter",
        metadata={"content_filter_results": {"hate": {"filtered": True}}},
    ),
    row("X10-finish-empty", chunk({"content": "Hi"}, ""), STOP, **ENDED),
    row(
        "X10-finish-empty-only",
        chunk({"content": "Hi"}, ""),
        text="Hi",
        stop="other",
        native=None,
        notices=["end_inferred"],
    ),
    row(
        "X11-no-finish-key",
        {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hi"}}]},
        STOP,
        **ENDED,
    ),
    row("X13-finish-beside-content", chunk({"content": "Hi"}, "stop"), **ENDED),
    row(
        "X13-finish-beside-a-call",
        chunk({"tool_calls": [call(0, "f", ARGS, "x")]}, "stop"),
        calls=[("x", "f", ARGS)],
        stop="tool_calls",
    ),
    row(
        "X14-repeated-finish",
        HI,
        STOP,
        {**chunk({"content": ""}, "length"), "usage": TOTAL},
        usage=(5, 2),
        native="stop",
        **ENDED,
    ),
    row(
        "X15-content-after-the-finish",
        delta_chunk(content="H"),
        STOP,
        delta_chunk(content="i"),
        **ENDED,
    ),
    row("X16-usage-beside-the-finish", HI, {**STOP, "usage": TOTAL}, usage=(5, 2), **ENDED),
    row(
        "X17-usage-each-time-is-never-summed",
        {**HI, "usage": TOTAL},
        {**STOP, "usage": MORE},
        usage=(5, 9),
        **ENDED,
    ),
    row("X18-usage-in-the-choice", HI, chunk({}, "stop", usage=TOTAL), usage=(5, 2), **ENDED),
    row(
        "X18-usage-of-the-chunk-outranks-it",
        HI,
        {**chunk({}, "stop", usage=TOTAL), "usage": MORE},
        usage=(5, 9),
        **ENDED,
    ),
    row(
        "X19-usage-with-a-choice",
        HI,
        STOP,
        {**chunk({"role": "assistant", "content": ""}), "usage": TOTAL},
        usage=(5, 2),
        **ENDED,
    ),
    row(
        "X19-usage-and-timings-alone",
        HI,
        STOP,
        {**usage_chunk(**TOTAL), "timings": {"n": 1}},
        usage=(5, 2),
        metadata={"timings": {"n": 1}},
        **ENDED,
    ),
    row("X20-no-usage", HI, STOP, usage=None, **ENDED),
    row("X21-no-done", HI, STOP, done=None, notices=["end_inferred"], **ENDED),
    row(
        "X22-neither",
        HI,
        calls(call(0, "f", ARGS, "x")),
        done=None,
        text="Hi",
        calls=[("x", "f", ARGS)],
        callable_ids=[],
        error="truncated",
    ),
    row(
        "X23-done-in-other-spellings",
        HI,
        done=" [done] ",
        text="Hi",
        stop="other",
        notices=["end_inferred"],
    ),
    row("X24-empty-data", HI, "", STOP, **ENDED),
    row(
        "X26-error-in-the-stream",
        HI,
        {"error": {"message": "busy", "type": "overloaded_error"}},
        text="Hi",
        error="overloaded",
    ),
    row(
        "X28-message-for-delta",
        {
            "id": "c1",
            "model": "m",
            "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],
        },
        **ENDED,
    ),
    row(
        "X28-partial-message-beside-delta",
        chunk({"content": "H"}, message={"content": "H"}),
        chunk({"content": "i"}, "stop"),
        **ENDED,
    ),
    row("X28-message-beside-an-empty-delta", chunk({}, "stop", message={"content": "Hi"}), **ENDED),
    row(
        "X28-a-last-message-beside-an-empty-delta",
        HI,
        chunk({}, "stop", message={"content": "Hi"}),
        **ENDED,
    ),
    row(
        "X29-no-choice-index",
        {
            "id": "c1",
            "model": "m",
            "choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}],
        },
        **ENDED,
    ),
    row(
        "X29-choice-index-null",
        {"id": "c1", "model": "m", "choices": [{"index": None, "delta": {"content": "Hi"}}]},
        STOP,
        **ENDED,
    ),
    row("X30-wrapper", {"data": HI, "success": True}, {"data": STOP, "success": True}, **ENDED),
    row(
        "X31-further-keys",
        {
            **HI,
            "system_fingerprint": "fp",
            "service_tier": "flex",
            "provider": "P",
            "obfuscation": "x7",
            "p": "abc",
        },
        {
            **HI,
            "system_fingerprint": "fp",
            "service_tier": "flex",
            "provider": "P",
            "citations": ["u"],
        },
        {
            **chunk({}, "stop", matched_stop=7, native_finish_reason="end"),
            "x_groq": {"id": "r", "usage": TOTAL},
            "service_tier": "default",
        },
        text="HiHi",
        stop="stop",
        usage=(5, 2),
        metadata={
            "system_fingerprint": "fp",
            "service_tier": "default",
            "provider": "P",
            "citations": ["u"],
            "x_groq": {"id": "r"},
            "matched_stop": 7,
            "native_finish_reason": "end",
        },
    ),
    row(
        "X31-a-key-changes-and-changes-back",
        {**HI, "service_tier": "flex"},
        {**HI, "service_tier": "default", "citations": ["u"]},
        {**STOP, "service_tier": "flex"},
        text="HiHi",
        stop="stop",
        metadata={"service_tier": "flex", "citations": ["u"]},
    ),
    row("X32-id-and-model-change", HI, {**STOP, "id": "c2", "model": "n"}, **ENDED),
    row(
        "X33-the-same-delta-twice-is-kept",
        delta_chunk(content="a"),
        delta_chunk(content="a"),
        STOP,
        text="aa",
        stop="stop",
    ),
    row(
        "X35-surrogate-halves",
        '{"id":"c1","model":"m","choices":[{"delta":{"content":"\\ud83d"}}]}',
        '{"id":"c1","model":"m","choices":[{"delta":{"content":"\\ude00"},"finish_reason":"stop"}]}',
        text="\U0001f600",
        stop="stop",
    ),
    row(
        "X37-refusal",
        delta_chunk(refusal="I "),
        delta_chunk(refusal="won't"),
        STOP,
        refusal="I won't",
        stop="refusal",
    ),
    row(
        "X37-refusal-after-text-is-a-stop",
        HI,
        delta_chunk(refusal="no"),
        STOP,
        refusal="no",
        **ENDED,
    ),
    row(
        "X38-delta-null",
        HI,
        {
            "id": "c1",
            "model": "m",
            "choices": [{"index": 0, "delta": None, "finish_reason": "stop"}],
        },
        **ENDED,
    ),
    row(
        "X38-delta-missing",
        HI,
        {"id": "c1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop"}]},
        **ENDED,
    ),
]
"""X7, tags inside text, is tested with the dialects; X25 and X27, complete bodies, in
test_chat_ends.py; X36 and the native side of reasoning in test_chat_items.py. X34, the content so
far
in each chunk, is not handled: it cannot be told from a text that repeats itself."""


@pytest.mark.parametrize(("sent", "expected"), ROWS)
def test_deviation(sent: bytes, expected: Json) -> None:
    actual = summary(wires.events_of("chat", sent))
    assert {key: actual[key] for key in (*NOTHING, *expected)} == {**NOTHING, **expected}
