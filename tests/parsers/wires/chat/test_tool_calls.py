"""Tool calls of Chat Completions: each deviation of a server is a row here, with its chunks.

The numbers are those of the table "Deviations" in docs/wires/chat.md. The chunks are written for
these tests.
"""

from __future__ import annotations

import json

import pytest

from tests.support import wires
from tests.support.chat_rows import GENERATED_ID, NOTHING, row, summary
from tests.support.chat_streams import (
    ARGS,
    FINISH,
    STOP,
    Json,
    call,
    calls,
    chunk,
    delta_chunk,
)

TOOL_ROWS = [
    row(
        "T1-no-index-by-id",
        calls(call(None, "f", '{"a":', "x"), call(None, "g", '{"b":', "y")),
        calls(call(None, None, "1}", "x"), call(None, None, "2}", "y")),
        FINISH,
        calls=[("x", "f", '{"a":1}'), ("y", "g", '{"b":2}')],
    ),
    row(
        "T1-no-index-no-id-continues-the-last-call",
        calls(call(None, "f", '{"a":', "x")),
        calls(call(None, None, "1}")),
        FINISH,
        calls=[("x", "f", '{"a":1}')],
    ),
    row(
        "T1-no-index-no-id-a-name-starts-another",
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
        "T5-repeated-name-is-assigned",
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
        "T5-name-in-two-fragments",
        calls(call(0, "get_", None, "x")),
        calls(call(0, "time", ARGS)),
        FINISH,
        calls=[("x", "get_time", ARGS)],
        notices=["call_renamed"],
    ),
    row(
        "T6-repeated-id",
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
        "T7-one-index-two-ids-two-names-while-the-first-is-incomplete",
        calls(call(0, "f", '{"a"', "x")),
        calls(call(0, "g", "{}", "y")),
        FINISH,
        calls=[("x", "f", '{"a"'), ("y", "g", "{}")],
        callable_ids=["y"],
        notices=["invalid_arguments"],
    ),
    row(
        "T7-another-id-in-each-chunk-is-no-new-call",
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
        "T8-complete-call-in-one-chunk",
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
        callable_ids=["x"],
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
        callable_ids=["x"],
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
        "T12-a-prefix-may-be-complete-json",
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
        "T13-a-placeholder-and-the-repeated-name",
        calls(call(0, "f", "{}")),
        calls(call(0, "f", '{"a":1}')),
        FINISH,
        calls=[(GENERATED_ID, "f", '{"a":1}')],
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
    row("T15-no-id", calls(call(0, "f", ARGS)), FINISH, calls=[(GENERATED_ID, "f", ARGS)]),
    row(
        "T15-id-after-the-name",
        calls(call(0, "f")),
        calls(call(0, None, ARGS, "x")),
        FINISH,
        calls=[("x", "f", ARGS)],
    ),
    row(
        "T16-generated-ids-avoid-those-of-the-wire",
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
        delta_chunk(content="a", tool_calls=None),
        delta_chunk(content="b", tool_calls=[]),
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
        delta_chunk(function_call={"name": "f", "arguments": '{"a"'}),
        delta_chunk(function_call={"arguments": ":1}"}),
        chunk({}, "function_call"),
        calls=[(GENERATED_ID, "f", '{"a":1}')],
        native="function_call",
    ),
    row(
        "T20-an-empty-function-call-is-none",
        delta_chunk(content="a", function_call={"name": "", "arguments": ""}),
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
        "T22-stop-with-an-incomplete-call-only",
        calls(call(0, "f", '{"a', "x")),
        STOP,
        calls=[("x", "f", '{"a')],
        callable_ids=[],
        stop="stop",
        notices=["invalid_arguments"],
    ),
    row(
        "T23-tool-calls-without-a-call",
        delta_chunk(content="a"),
        FINISH,
        text="a",
        stop="stop",  # A20
        native="tool_calls",
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
"""T21, calls inside text, is tested with the dialects; T25 in test_chat_items.py."""


@pytest.mark.parametrize(("sent", "expected"), TOOL_ROWS)
def test_tool_call(sent: bytes, expected: Json) -> None:
    actual = summary(wires.events_of("chat", sent))
    assert {key: actual[key] for key in (*NOTHING, *expected)} == {**NOTHING, **expected}
    assert actual["stop"] == expected.get("stop", "tool_calls")
