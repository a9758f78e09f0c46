"""Chat Completions, dialect by dialect: each deviation of a server is a row here, with the chunks that show it.

T rows are about tool calls, X rows about everything else; the numbers are those of the project's list of deviations. The chunks
are written for these tests.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib_parsers import CustomToolCall, FunctionCall, ResponseEvent, accumulate
from tests.support import wires
from tests.support.chat_streams import (
    ARGS,
    FINISH,
    HI,
    MORE,
    STOP,
    TOTAL,
    Json,
    call,
    calls,
    chunk,
    codes,
    said,
    sse,
    used,
)

MADE = "call_0"
"""The first id that the parser makes."""


def summary(events: list[ResponseEvent]) -> Json:
    """What a row may expect."""
    response = accumulate(events)
    every_call = [one for one in response.items if isinstance(one, (FunctionCall, CustomToolCall))]
    return {
        "text": response.text,
        "reasoning": response.reasoning,
        "refusal": response.refusal,
        "calls": [
            (one.call_id, one.name, one.arguments if isinstance(one, FunctionCall) else one.input)
            for one in every_call
        ],
        "whole": [one.call_id for one in response.calls],
        "stop": response.stop_reason,
        "native": response.native_stop_reason,
        "usage": (response.usage.input_tokens, response.usage.output_tokens)
        if response.usage
        else None,
        "error": response.error.kind if response.error else None,
        "notices": codes(events),
        "metadata": response.metadata,
        "id": response.response_id,
        "model": response.model,
    }


NOTHING = {
    "text": "",
    "reasoning": "",
    "refusal": "",
    "calls": [],
    "error": None,
    "notices": [],
    "metadata": {},
    "id": "c1",
    "model": "m",
}
"""What a row expects where it says nothing else."""


def row(name: str, *chunks: Any, done: str | None = "[DONE]", **expected: Any) -> Any:
    return pytest.param(sse(*chunks, done=done), expected, id=name)


TOOL_ROWS = [
    row(
        "T1-no-index-by-id",
        calls(call(None, "f", '{"a":', "x"), call(None, "g", '{"b":', "y")),
        calls(call(None, None, "1}", "x"), call(None, None, "2}", "y")),
        FINISH,
        calls=[("x", "f", '{"a":1}'), ("y", "g", '{"b":2}')],
    ),
    row(
        "T1-no-index-no-id-the-last-call-goes-on",
        calls(call(None, "f", '{"a":', "x")),
        calls(call(None, None, "1}")),
        FINISH,
        calls=[("x", "f", '{"a":1}')],
    ),
    row(
        "T1-no-index-no-id-a-name-begins-another",
        calls(call(None, "f", "{}"), call(None, "g", "{}")),
        FINISH,
        calls=[("call_0", "f", "{}"), ("call_1", "g", "{}")],
    ),
    row(
        "T2-index-null",
        calls({**call(0, "f", ARGS, "x"), "index": None}),
        FINISH,
        calls=[("x", "f", ARGS)],
    ),
    row(
        "T2-index-float",
        calls(call(0.0, "f", '{"a"', "x")),
        calls(call(0, None, ":1}")),
        FINISH,
        calls=[("x", "f", '{"a":1}')],
    ),
    row(
        "T3-id-empty-later",
        calls(call(0, "f", "", "x")),
        calls(call(0, None, ARGS, "")),
        FINISH,
        calls=[("x", "f", ARGS)],
    ),
    row(
        "T4-name-empty-later",
        calls(call(0, "f", "", "x")),
        calls(call(0, "", ARGS)),
        FINISH,
        calls=[("x", "f", ARGS)],
    ),
    row(
        "T5-name-sent-again-is-assigned",
        calls(call(0, "f", '{"a', "x")),
        calls(call(0, "f", '":')),
        calls(call(0, "f", "1}")),
        FINISH,
        calls=[("x", "f", '{"a":1}')],
    ),
    row(
        "T5-name-that-grows",
        calls(call(0, "get", None, "x")),
        calls(call(0, "get_time", ARGS)),
        FINISH,
        calls=[("x", "get_time", ARGS)],
        notices=["call_renamed"],
    ),
    row(
        "T5-name-in-two-pieces",
        calls(call(0, "get_", None, "x")),
        calls(call(0, "time", ARGS)),
        FINISH,
        calls=[("x", "get_time", ARGS)],
        notices=["call_renamed"],
    ),
    row(
        "T6-same-id-again",
        calls(call(0, "f", '{"a', "x")),
        calls(call(0, None, '":1}', "x")),
        FINISH,
        calls=[("x", "f", '{"a":1}')],
    ),
    row(
        "T7-one-index-two-ids",
        calls(call(0, "f", '{"a":1}', "x")),
        calls(call(0, "f", '{"a":2}', "y")),
        FINISH,
        calls=[("x", "f", '{"a":1}'), ("y", "f", '{"a":2}')],
    ),
    row(
        "T7-one-index-two-ids-two-names-while-the-first-is-cut",
        calls(call(0, "f", '{"a"', "x")),
        calls(call(0, "g", "{}", "y")),
        FINISH,
        calls=[("x", "f", '{"a"'), ("y", "g", "{}")],
        whole=["y"],
        notices=["invalid_arguments"],
    ),
    row(
        "T7-an-id-made-anew-for-each-chunk-is-no-new-call",
        calls(call(0, "f", '{"a":"', "x1")),
        calls(call(0, "f", "{b}", "x2")),
        calls(call(0, "f", '"}', "x3")),
        FINISH,
        calls=[("x1", "f", '{"a":"{b}"}')],
    ),
    row(
        "T7-fragments-without-an-id-count-too",
        calls(call(0, "f", '{"a":"', "x1")),
        calls(call(0, "f", "b", "x2")),
        calls(call(0, None, '"}')),
        calls(call(0, "f", '{"c":1}', "y")),
        FINISH,
        calls=[("x1", "f", '{"a":"b"}'), ("y", "f", '{"c":1}')],
    ),
    row(
        "T8-a-whole-call-in-one-chunk",
        calls(call(0, "f", ARGS, "x")),
        FINISH,
        calls=[("x", "f", ARGS)],
    ),
    row(
        "T9-arguments-as-object",
        calls(call(0, "f", {"a": 1.0}, "x")),
        FINISH,
        calls=[("x", "f", '{"a":1.0}')],
    ),
    row(
        "T9-nothing-is-added-to-an-object",
        calls(call(0, "f", {"a": 1}, "x")),
        calls(call(0, None, '{"a":1}')),
        FINISH,
        calls=[("x", "f", '{"a":1}')],
    ),
    row(
        "T10-no-arguments",
        calls(call(0, "f", "", "x")),
        FINISH,
        calls=[("x", "f", "")],
        whole=["x"],
    ),
    row(
        "T10-arguments-null",
        calls({"index": 0, "id": "x", "function": {"name": "f", "arguments": None}}),
        FINISH,
        calls=[("x", "f", "")],
    ),
    row(
        "T10-arguments-null-as-text",
        calls(call(0, "f", "null", "x")),
        FINISH,
        calls=[("x", "f", "")],
        whole=["x"],
    ),
    row(
        "T11-arguments-encoded-twice",
        calls(call(0, "f", json.dumps(ARGS)[:7], "x")),
        calls(call(0, None, json.dumps(ARGS)[7:])),
        FINISH,
        calls=[("x", "f", ARGS)],
        notices=["arguments_unquoted"],
    ),
    row(
        "T11-a-string-that-is-no-object-stays",
        calls(call(0, "f", '"Rome"', "x")),
        FINISH,
        calls=[("x", "f", '"Rome"')],
    ),
    row(
        "T12-a-prefix-may-be-whole-json",
        calls(call(0, "f", "{}", "x")),
        calls(call(0, None, '{"a":1}')),
        calls(call(0, None, "")),
        FINISH,
        calls=[("x", "f", '{"a":1}')],
    ),
    row(
        "T13-a-placeholder-before-the-arguments",
        calls(call(0, "f", "{}", "x")),
        calls(call(0, None, '{"a"')),
        calls(call(0, None, ":1}")),
        FINISH,
        calls=[("x", "f", '{"a":1}')],
    ),
    row(
        "T13-a-placeholder-and-the-name-again",
        calls(call(0, "f", "{}")),
        calls(call(0, "f", '{"a":1}')),
        FINISH,
        calls=[(MADE, "f", '{"a":1}')],
    ),
    row(
        "T13-no-placeholder-after-all",
        calls(call(0, "f", "{}", "x")),
        FINISH,
        calls=[("x", "f", "{}")],
    ),
    row(
        "T14-arguments-before-name-and-id",
        calls(call(0, None, '{"a"')),
        calls(call(0, None, ":1")),
        calls(call(0, "f", "}", "x")),
        FINISH,
        calls=[("x", "f", '{"a":1}')],
    ),
    row("T15-no-id", calls(call(0, "f", ARGS)), FINISH, calls=[(MADE, "f", ARGS)]),
    row(
        "T15-id-after-the-name",
        calls(call(0, "f")),
        calls(call(0, None, ARGS, "x")),
        FINISH,
        calls=[("x", "f", ARGS)],
    ),
    row(
        "T16-made-ids-avoid-those-of-the-wire",
        calls(call(0, "f", "{}", "call_0"), call(1, "g", "{}")),
        FINISH,
        calls=[("call_0", "f", "{}"), ("call_1", "g", "{}")],
    ),
    row(
        "T17-no-type",
        calls({"index": 0, "id": "x", "function": {"name": "f", "arguments": ARGS}}),
        FINISH,
        calls=[("x", "f", ARGS)],
    ),
    row(
        "T18-tool-calls-null-or-empty",
        said(content="a", tool_calls=None),
        said(content="b", tool_calls=[]),
        STOP,
        text="ab",
        stop="stop",
    ),
    row(
        "T19-empty-arguments-at-the-end",
        calls(call(0, "f", ARGS, "x")),
        calls(call(0, None, "", "")),
        FINISH,
        calls=[("x", "f", ARGS)],
    ),
    row(
        "T20-function-call",
        said(function_call={"name": "f", "arguments": '{"a"'}),
        said(function_call={"arguments": ":1}"}),
        chunk({}, "function_call"),
        calls=[(MADE, "f", '{"a":1}')],
        native="function_call",
    ),
    row(
        "T20-an-empty-function-call-is-none",
        said(content="a", function_call={"name": "", "arguments": ""}),
        STOP,
        text="a",
        stop="stop",
    ),
    row(
        "T22-stop-with-calls",
        calls(call(0, "f", ARGS, "x")),
        STOP,
        calls=[("x", "f", ARGS)],
        stop="tool_calls",
        native="stop",
    ),
    row(
        "T22-stop-with-a-cut-call-only",
        calls(call(0, "f", '{"a', "x")),
        STOP,
        calls=[("x", "f", '{"a')],
        whole=[],
        stop="stop",
        notices=["invalid_arguments"],
    ),
    row(
        "T23-tool-calls-without-a-call",
        said(content="a"),
        FINISH,
        text="a",
        stop="tool_calls",
        notices=["no_tool_call"],
    ),
    row(
        "T24-a-number-for-an-id",
        calls(call(0, "f", '{"a":', 3)),
        calls(call(0, None, "1}", 3)),
        FINISH,
        calls=[("3", "f", '{"a":1}')],
    ),
]
"""T21, calls inside text, is the dialects' part; T25 and the native side of calls stand below."""


@pytest.mark.parametrize(("sent", "expected"), TOOL_ROWS)
def test_tool_call(sent: bytes, expected: Json) -> None:
    told = summary(wires.events_of("chat", sent))
    assert {key: told[key] for key in (*NOTHING, *expected)} == {**NOTHING, **expected}
    assert told["stop"] == expected.get("stop", "tool_calls")


ENDED = {"text": "Hi", "stop": "stop"}

ROWS = [
    row(
        "X1-reasoning_content",
        said(reasoning_content="a"),
        said(reasoning_content="b"),
        HI,
        STOP,
        reasoning="ab",
        **ENDED,
    ),
    row(
        "X2-reasoning", said(reasoning="a"), said(reasoning="b"), HI, STOP, reasoning="ab", **ENDED
    ),
    row(
        "X2-two-names-for-one-thought",
        said(reasoning_content="a", reasoning="a"),
        HI,
        STOP,
        reasoning="a",
        **ENDED,
    ),
    row("X2-reasoning_text", said(reasoning_text="a"), HI, STOP, reasoning="a", **ENDED),
    row(
        "X3-details-beside-the-thought",
        said(
            reasoning="a", reasoning_details=[{"type": "reasoning.text", "text": "a", "index": 0}]
        ),
        HI,
        STOP,
        reasoning="a",
        **ENDED,
    ),
    row(
        "X3-details-alone",
        said(reasoning_details=[{"type": "reasoning.summary", "summary": "a"}]),
        HI,
        STOP,
        reasoning="a",
        **ENDED,
    ),
    row(
        "X4-content-parts",
        said(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]),
        said(content=[{"type": "thinking", "thinking": "b"}]),
        said(content=[{"type": "text", "text": "H"}, "i"]),
        STOP,
        reasoning="ab",
        **ENDED,
    ),
    row(
        "X4-content-changes-its-shape",
        said(content="H"),
        said(content=[{"type": "text", "text": "i"}]),
        STOP,
        **ENDED,
    ),
    row(
        "X5-content-null-empty-missing",
        said(content=None),
        said(content=""),
        said(),
        HI,
        STOP,
        **ENDED,
    ),
    row("X5-text-beside-the-delta", chunk({"content": "Hi"}, text="Hi"), STOP, **ENDED),
    row(
        "X6-role-everywhere",
        said(role=None, content="H"),
        said(role="", content="i"),
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
        "X10-finish-empty-only", chunk({"content": "Hi"}, ""), text="Hi", stop="other", native=None
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
        "X14-finish-again",
        HI,
        STOP,
        {**chunk({"content": ""}, "length"), "usage": TOTAL},
        usage=(5, 2),
        native="stop",
        **ENDED,
    ),
    row("X15-content-after-the-finish", said(content="H"), STOP, said(content="i"), **ENDED),
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
        {**used(**TOTAL), "timings": {"n": 1}},
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
        whole=[],
        error="truncated",
    ),
    row("X23-done-in-other-spellings", HI, done=" [done] ", text="Hi", stop="other"),
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
        "X28-message-so-far-beside-delta",
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
    row("X32-id-and-model-change", HI, {**STOP, "id": "c2", "model": "n"}, **ENDED),
    row(
        "X33-the-same-delta-twice-is-kept",
        said(content="a"),
        said(content="a"),
        STOP,
        text="aa",
        stop="stop",
    ),
    row(
        "X35-halves-of-an-emoji",
        '{"id":"c1","model":"m","choices":[{"delta":{"content":"\\ud83d"}}]}',
        '{"id":"c1","model":"m","choices":[{"delta":{"content":"\\ude00"},"finish_reason":"stop"}]}',
        text="\U0001f600",
        stop="stop",
    ),
    row(
        "X37-refusal",
        said(refusal="I "),
        said(refusal="won't"),
        STOP,
        refusal="I won't",
        stop="refusal",
    ),
    row("X37-refusal-after-text-is-a-stop", HI, said(refusal="no"), STOP, refusal="no", **ENDED),
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
"""X7, tags inside text, is the dialects' part. X25, X27: whole bodies below. X34, content told from the start again in each chunk, is
left out: telling it from a text that repeats itself needs a guess. X36 and the native side of thoughts stand below."""


@pytest.mark.parametrize(("sent", "expected"), ROWS)
def test_deviation(sent: bytes, expected: Json) -> None:
    told = summary(wires.events_of("chat", sent))
    assert {key: told[key] for key in (*NOTHING, *expected)} == {**NOTHING, **expected}
