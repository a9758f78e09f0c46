"""Gemini generateContent: parts to items, ends, counts; every split alike; what the recordings say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import msgspec
import pytest

from streamlib_parsers import (
    Completed,
    Failed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    MediaDelta,
    Message,
    Notice,
    Opaque,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Passthrough,
    Reasoning,
    ResponseEvent,
    ResponseMetadata,
    ServerToolCall,
    ServerToolResult,
    TokenCount,
    accumulate,
    parse_body,
    parser,
)
from streamlib_parsers.items import Audio, Document, Image, ResponseItem, Text
from streamlib_parsers.limits import Limits
from streamlib_parsers.wires.gemini import (
    BLOCK_NUMBERS,
    FINISH_NUMBERS,
    FINISH_NUMBERS_VERTEX,
    STOP_REASONS,
    usage,
)
from streamlib_parsers.wires.gemini.candidate import Candidate
from tests.support.gemini_streams import JsonObject, array, call, chunk, piece, read, run, sse, text
from tests.support.partitions import byte_by_byte
from tests.support.shared import ROOT


def items(*parts: JsonObject, **options: Any) -> tuple[ResponseItem, ...]:
    """The items of these parts, each in a chunk of its own, without what every item has."""
    response = read(*(chunk(part) for part in parts), chunk(finish="STOP"), **options)
    return tuple(
        msgspec.structs.replace(item, origin=None, response_id=None) for item in response.items
    )


def codes(events: Iterable[ResponseEvent]) -> list[str]:
    return [event.code for event in events if isinstance(event, Notice)]


def failure(events: list[ResponseEvent]) -> str:
    assert isinstance(events[-1], Failed)
    return events[-1].error.kind


# ---------------------------------------------------------------- rules of the wire


def test_rule_1_text_and_thoughts_run_on_until_the_kind_changes() -> None:
    parts = [
        text("I ", thought=True),
        text("think", thought=True),
        text("Hel"),
        text("lo"),
        text("Hm", thought=True),
    ]
    assert items(*parts) == (
        Reasoning(content="I think"),
        Message("assistant", (Text("Hello"),)),
        Reasoning(content="Hm"),
    )


def test_rule_2_calls_come_whole_and_keep_their_own_bytes() -> None:
    part = b'{"functionCall":{"id":"c1","name":"f","args":{"z": 1.0, "a":[1e5,"\\u00e9"]}}}'
    events = run(
        b'data: {"candidates":[{"content":{"parts":[' + part + b']},"finishReason":"STOP"}]}\n\n'
    )
    response = accumulate(events)
    assert response.calls[0].arguments == '{"z": 1.0, "a":[1e5,"\\u00e9"]}'
    assert [event.delta for event in events if isinstance(event, FunctionCallArgumentsDelta)] == [
        response.calls[0].arguments
    ]


def test_rule_3_an_id_is_minted_where_the_provider_gave_none_and_says_so() -> None:
    with_id, without, empty = items(
        call("f", {}, id="c1"), call("g", {}), call("h", {}, id=""), call_id=lambda n: f"mine_{n}"
    )
    assert (with_id.call_id, with_id.id) == ("c1", "c1")
    assert [(one.call_id, one.id) for one in (without, empty)] == [
        ("mine_0", None),
        ("mine_1", None),
    ]


@pytest.mark.parametrize(
    "last",
    [
        {"candidates": [{"finishReason": "STOP"}]},
        {"candidates": [{"content": {}, "finishReason": "STOP"}]},
        {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]},
        {"candidates": [{"content": None, "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": None}, "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": []}, "finishReason": "STOP", "index": 0}]},
        {"candidates": [{"content": {"parts": [{}]}, "finishReason": "STOP", "index": 0.0}]},
    ],
)
def test_rule_4_a_candidate_may_lack_content_or_parts(last: JsonObject) -> None:
    response = read(chunk(text("Hi")), last)
    assert (response.text, response.status, response.stop_reason, len(response.items)) == (
        "Hi",
        "completed",
        "stop",
        1,
    )


def test_rule_5_empty_text_says_nothing_but_keeps_its_signature() -> None:
    assert items(text("Hi"), text(""), text("!"), text("", thoughtSignature="sig")) == (
        Message("assistant", (Text("Hi!"),)),
        Message("assistant", (Text(""),), signature="sig"),
    )


@pytest.mark.parametrize("reason", ["STOP", "FUNCTION_CALL"])
def test_rule_6_stop_with_a_call_is_tool_calls(reason: str) -> None:
    response = read(chunk(call("f", {})), chunk(finish=reason))
    assert (response.stop_reason, response.native_stop_reason) == ("tool_calls", reason)
    assert read(*BOOK, chunk(finish=reason)).calls


def test_rule_7_the_last_finish_reason_counts_and_counts_may_follow_it() -> None:
    response = read(
        chunk(text("a"), finish="STOP"),
        chunk(text("b"), finish="MAX_TOKENS"),
        {"usageMetadata": {"promptTokenCount": 3}},
    )
    assert (
        response.text,
        response.stop_reason,
        response.usage and response.usage.input_tokens,
    ) == ("ab", "length", 3)


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", "JAILBREAK", "SOMETHING_NEW"])
def test_rule_8_a_blocked_prompt_is_a_complete_answer_without_items(reason: str) -> None:
    feedback = {"blockReason": reason, "blockReasonMessage": "no"}
    body = {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 9}, "responseId": "r"}
    for events in (
        run(sse(body)),
        run(array(body)),
        parse_body("gemini", json.dumps(body).encode()),
    ):
        response = accumulate(events)
        assert (response.status, response.stop_reason, response.native_stop_reason) == (
            "incomplete",
            "content_filter",
            reason,
        )
        assert response.items == ()
        assert response.metadata["promptFeedback"] == feedback
        assert isinstance(events[-1], Completed)


OVERLOADED = {
    "error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
}


@pytest.mark.parametrize(
    "body",
    [
        sse(chunk(text("Hi")), OVERLOADED),
        sse(chunk(text("Hi"))) + b"data: [" + json.dumps(OVERLOADED).encode() + b"]\n\n",
        sse(chunk(text("Hi"))) + json.dumps(OVERLOADED, indent=2).encode() + b"\n\n",
        array(chunk(text("Hi")), OVERLOADED),
    ],
    ids=["data", "list", "stray lines", "array"],
)
def test_rule_9_an_error_in_the_stream_fails_it_by_its_kind(body: bytes) -> None:
    events = run(body)
    assert failure(events) == "overloaded"
    assert accumulate(events).text == "Hi"


@pytest.mark.parametrize(
    "body", [json.dumps(OVERLOADED).encode(), json.dumps([OVERLOADED], indent=1).encode()]
)
def test_rule_9_an_error_instead_of_a_stream_fails_by_its_kind(body: bytes) -> None:
    assert failure(run(body)) == "overloaded"
    assert failure(run(*byte_by_byte(body))) == "overloaded"
    assert failure(parse_body("gemini", body, status=503)) == "overloaded"
    assert failure(parse_body("gemini", body)) == "overloaded"


def test_rule_10_the_last_event_may_lack_its_blank_line() -> None:
    for end in (b"", b"\n", b"\r\n"):
        events = run(sse(chunk(text("Hi"), finish="STOP")).rstrip() + end)
        assert isinstance(events[-1], Completed)
        assert codes(events) == ["end_inferred"]


def test_rule_11_without_a_finish_reason_the_stream_is_truncated() -> None:
    for body in (
        sse(chunk(text("Hi"))),
        array(chunk(text("Hi"))),
        sse({"usageMetadata": {"promptTokenCount": 3}}),
        sse({"responseId": "r"}),
    ):
        events = run(body)
        assert failure(events) == "truncated"


def test_rule_12_candidates_are_choices_and_all_must_finish() -> None:
    both = {
        "candidates": [
            {"content": {"parts": [text("a")]}, "index": 0},
            {"content": {"parts": [text("b")]}, "index": 1},
        ]
    }
    ends = [chunk(finish="STOP", index=0), chunk(call("f", {}), finish="STOP", index=1)]
    events = run(sse(both, ends[0]))
    assert failure(events) == "truncated"
    response = read(both, *ends)
    assert response.text == "a"
    assert [(one.index, one.stop_reason, len(one.items)) for one in response.choices] == [
        (0, "stop", 1),
        (1, "tool_calls", 2),
    ]


def test_rule_12_candidates_without_an_index_are_told_apart_by_position() -> None:
    bare = {
        "candidates": [
            {"content": {"parts": [text("a")]}, "finishReason": "STOP"},
            {"content": {"parts": [text("b")]}, "finishReason": "STOP"},
        ]
    }
    assert [item.choice for one in read(bare).choices for item in one.items] == [0, 1]


@pytest.mark.parametrize("index", [-1, 5000, 1.5, "1", True])
def test_rule_12_an_index_that_is_none_is_malformed(index: Any) -> None:
    assert failure(run(sse(chunk(text("a"), index=index)))) == "malformed"


def test_rule_13_a_signed_part_is_never_merged_with_anything() -> None:
    parts = [
        text("a"),
        text("b", thoughtSignature="s1"),
        text("c", thoughtSignature="s2"),
        text("d"),
        text("e", thought=True, thoughtSignature="s3"),
    ]
    assert [(item.signature, item.text) for item in items(*parts)] == [
        (None, "a"),
        ("s1", "b"),
        ("s2", "c"),
        (None, "d"),
        ("s3", "e"),
    ]


def test_an_item_is_closed_before_the_signed_one_begins() -> None:
    events = run(sse(chunk(text("a"), text("b", thoughtSignature="s")), chunk(finish="STOP")))
    brackets = [
        (type(event).__name__, event.index)
        for event in events
        if isinstance(event, (OutputItemAdded, OutputItemDone))
    ]
    assert brackets == [
        ("OutputItemAdded", 0),
        ("OutputItemDone", 0),
        ("OutputItemAdded", 1),
        ("OutputItemDone", 1),
    ]


# ---------------------------------------------------------------- cases that broke others


def test_case_8_a_whole_call_gives_its_arguments_as_a_delta() -> None:
    events = run(sse(chunk(call("f", {"a": 1}), finish="STOP")))
    assert [event.delta for event in events if isinstance(event, FunctionCallArgumentsDelta)] == [
        '{"a": 1}'
    ]


def test_case_11_a_repeated_call_neither_overwrites_nor_doubles_the_first() -> None:
    events = run(
        sse(
            chunk(call("f", {"a": 1}, id="c", thoughtSignature="sig")),
            chunk(call("f", {"a": 1}, id="c")),
            chunk(finish="STOP"),
        )
    )
    response = accumulate(events)
    assert [(one.call_id, one.arguments, one.signature) for one in response.calls] == [
        ("c", '{"a": 1}', "sig")
    ]
    assert codes(events) == ["repeated_call"]


def test_case_11_a_signature_that_comes_with_the_repetition_is_kept() -> None:
    (only,) = items(
        call("f", {"a": 1}, id="c"), call("f", {"a": 1}, id="c", thoughtSignature="late")
    )
    assert only.signature == "late"


def test_case_11_equal_calls_without_an_id_are_two_calls() -> None:
    assert [one.call_id for one in items(call("roll", {}), call("roll", {}))] == [
        "call_0",
        "call_1",
    ]


@pytest.mark.parametrize("other", [call("f", {"a": 2}, id="c"), call("g", {"a": 1}, id="c")])
def test_case_11_another_call_under_a_taken_id_is_a_call_of_its_own(other: JsonObject) -> None:
    events = run(sse(chunk(call("f", {"a": 1}, id="c")), chunk(other), chunk(finish="STOP")))
    first, second = accumulate(events).calls
    assert (first.call_id, second.call_id, second.id) == ("c", "call_0", "c")
    assert codes(events) == ["duplicate_call_id"]


@pytest.mark.parametrize("signatures", [("s1", None, None), ("s1", "s2", "s3")])
def test_case_23_each_signature_stays_on_its_own_call(signatures: tuple[str | None, ...]) -> None:
    parts = [
        call("f", {"n": n}, **({"thoughtSignature": one} if one else {}))
        for n, one in enumerate(signatures)
    ]
    response = read(chunk(*parts, finish="STOP"))
    assert tuple(item.signature for item in response.items) == signatures


def test_case_24_the_signature_stays_on_the_part_after_the_thought() -> None:
    thought, said = items(text("Hm", thought=True), text("Hi", thoughtSignature="s"))
    assert (thought, said) == (
        Reasoning(content="Hm"),
        Message("assistant", (Text("Hi"),), signature="s"),
    )


@pytest.mark.parametrize(
    "reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "NO_IMAGE", "SOMETHING_NEW"]
)
def test_case_33_a_finish_without_content_is_an_end(reason: str) -> None:
    response = read({"candidates": [{"finishReason": reason, "finishMessage": "why", "index": 0}]})
    assert (response.status, response.stop_reason, response.native_stop_reason) == (
        "completed",
        "other",
        reason,
    )
    assert response.metadata == {"finishMessage": "why"}


def test_case_33_a_call_then_a_bare_stop() -> None:
    response = read(chunk(call("f", {"a": 1})), {"candidates": [{"finishReason": "STOP"}]})
    assert ([one.name for one in response.calls], response.stop_reason) == (["f"], "tool_calls")


@pytest.mark.parametrize("candidates", [None, []])
def test_case_34_chunks_without_candidates_only_count(candidates: Any) -> None:
    response = read(
        chunk(text("Hi"), finish="STOP"),
        {"candidates": candidates, "usageMetadata": {"promptTokenCount": 7}},
    )
    assert (response.text, response.usage and response.usage.input_tokens) == ("Hi", 7)


# ---------------------------------------------------------------- streamed arguments (Vertex)

BOOK = [
    chunk(call("book", willContinue=True, thoughtSignature="s")),
    chunk(piece("$.city", stringValue="Par", willContinue=True)),
    chunk(call(willContinue=True)),
    chunk(piece("$.city", stringValue='is "1"', willContinue=True)),
    chunk(piece("$.city", stringValue="")),
    chunk(piece("$.days[0].at", numberValue=1.0), piece("$.days[0].sure", boolValue=True)),
    chunk(piece("$.days[1]", nullValue=None)),
]
BOOKED = '{"city":"Paris \\"1\\"","days":[{"at":1.0,"sure":true},null]}'


def test_partial_arguments_are_given_out_as_they_grow() -> None:
    events = run(sse(*BOOK, chunk(call()), chunk(finish="STOP")))
    deltas = [event.delta for event in events if isinstance(event, FunctionCallArgumentsDelta)]
    assert deltas[:4] == ['{"city":"Par', 'is \\"1\\"', '"', ',"days":[{"at":1.0']
    (only,) = accumulate(events).calls
    assert ("".join(deltas), only.arguments, only.signature, only.id) == (BOOKED, BOOKED, "s", None)


def test_a_missing_closing_part_is_made_up_for_at_the_finish_or_by_the_next_call() -> None:
    assert [one.arguments for one in read(*BOOK, chunk(finish="STOP")).calls] == [BOOKED]
    response = read(*BOOK, chunk(call("g", {})), chunk(finish="MAX_TOKENS"))
    assert [(one.name, one.arguments) for one in response.calls] == [("book", BOOKED), ("g", "{}")]


def test_streamed_calls_with_and_without_arguments_follow_one_another() -> None:
    stream = [
        chunk(call("f", willContinue=True)),
        chunk(call()),
        *BOOK,
        chunk(call()),
        chunk(call()),
        chunk(finish="STOP"),
    ]
    assert [(one.name, one.arguments) for one in read(*stream).calls] == [
        ("f", "{}"),
        ("book", BOOKED),
    ]


def test_an_id_makes_a_part_with_a_name_go_on() -> None:
    more = {
        "functionCall": {
            "id": "c",
            "name": "f",
            "partialArgs": [{"jsonPath": "$.a", "numberValue": 1}],
        }
    }
    (only,) = items(call("f", id="c", willContinue=True), more)
    assert (only.call_id, only.arguments) == ("c", '{"a":1}')


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"])
def test_a_streamed_call_cut_by_the_provider_is_never_callable(reason: str) -> None:
    response = read(*BOOK, chunk(finish=reason))
    assert response.calls == []
    assert [item.status for item in response.items] == ["incomplete"]


def test_a_streamed_call_that_stops_inside_a_string_is_never_callable() -> None:
    response = read(*BOOK[:2], chunk(finish="STOP"))
    assert (response.calls, response.stop_reason) == ([], "stop")
    response = read(*BOOK[:2], chunk(call("g", {})), chunk(finish="STOP"))
    assert ([one.name for one in response.calls], response.stop_reason) == (["g"], "tool_calls")


def test_a_streamed_call_is_incomplete_where_the_stream_breaks() -> None:
    for count in range(1, len(BOOK) + 1):
        events = run(sse(*BOOK[:count]))
        assert failure(events) == "truncated"
        assert accumulate(events).calls == []


def test_arguments_out_of_order_are_whole_at_the_end_with_a_notice() -> None:
    pieces = [
        piece("$.a.x", numberValue=1),
        piece("$.b", numberValue=2),
        piece("$.a.y", numberValue=3),
    ]
    events = run(
        sse(
            chunk(call("f", willContinue=True)),
            *map(chunk, pieces),
            chunk(call()),
            chunk(finish="STOP"),
        )
    )
    assert [one.arguments for one in accumulate(events).calls] == ['{"a":{"x":1,"y":3},"b":2}']
    assert codes(events) == ["text_replaced"]


def test_whole_arguments_after_pieces_replace_them() -> None:
    events = run(
        sse(
            chunk(call("f", willContinue=True)),
            chunk(piece("$.a", numberValue=1)),
            chunk(call(args={"b": 2})),
            chunk(finish="STOP"),
        )
    )
    assert [one.arguments for one in accumulate(events).calls] == ['{"b": 2}']
    assert codes(events) == ["text_replaced"]


@pytest.mark.parametrize(
    "odd",
    [
        {"jsonPath": "$..a", "numberValue": 1},
        {"jsonPath": "$.a", "listValue": []},
        {"numberValue": 1},
    ],
)
def test_a_piece_that_cannot_be_applied_spoils_the_call_and_is_passed_through(
    odd: JsonObject,
) -> None:
    broken = {"functionCall": {"partialArgs": [odd], "willContinue": True}}
    events = run(
        sse(chunk(call("f", willContinue=True)), chunk(broken), chunk(call()), chunk(finish="STOP"))
    )
    response = accumulate(events)
    assert (response.calls, response.stop_reason) == ([], "stop")
    assert [event.data for event in events if isinstance(event, Passthrough)] == [odd]
    assert codes(events) == ["unknown_delta"]


@pytest.mark.parametrize(
    "nameless",
    [call(args={"a": 1}), call(id="c"), call(thoughtSignature="s"), piece("$.a", numberValue=1)],
)
def test_a_call_without_a_name_is_kept_and_never_callable(nameless: JsonObject) -> None:
    events = run(sse(chunk(nameless), chunk(finish="STOP")))
    response = accumulate(events)
    assert (response.calls, [item.status for item in response.items], response.stop_reason) == (
        [],
        ["incomplete"],
        "stop",
    )
    assert codes(events) == ["nameless_call"]
    assert response.items[0].arguments == ('{"a": 1}' if "args" in nameless["functionCall"] else "")  # type: ignore[union-attr]


def test_counts_stay_where_a_later_chunk_brings_none() -> None:
    response = read(
        chunk(text("a"), usageMetadata={"promptTokenCount": 3}),
        chunk(text("b")),
        chunk(finish="STOP"),
    )
    assert (response.text, response.usage.input_tokens) == ("ab", 3)  # type: ignore[union-attr]


def test_an_empty_call_part_says_nothing() -> None:
    assert items(text("a"), call(), call(willContinue=True)) == (
        Message("assistant", (Text("a"),)),
    )


# ---------------------------------------------------------------- other parts


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("image/png", Image),
        ("audio/L16;rate=24000", Audio),
        ("application/pdf", Document),
        ("video/mp4", Document),
    ],
)
def test_media_are_content_parts_by_their_type(media_type: str, kind: type) -> None:
    inline, filed = items(
        {
            "inlineData": {"mimeType": media_type, "data": "QUJD", "displayName": "x"},
            "thoughtSignature": "s",
        },
        {"fileData": {"mimeType": media_type, "fileUri": "gs://b/f"}},
    )
    assert inline == Message(
        "assistant", (kind(data="QUJD", media_type=media_type, name="x"),), signature="s"
    )
    assert filed == Message("assistant", (kind(url="gs://b/f", media_type=media_type),))


def test_media_bytes_come_as_one_delta() -> None:
    events = run(
        sse(chunk({"inlineData": {"mimeType": "image/png", "data": "QUJD"}}, finish="STOP"))
    )
    assert [
        (event.media_type, event.data) for event in events if isinstance(event, MediaDelta)
    ] == [("image/png", "QUJD")]


def test_a_picture_made_while_thinking_is_no_answer() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}, "thought": True}
    assert items(part) == (Opaque("inlineData", part),)


def test_code_that_the_provider_runs() -> None:
    ran = {
        "executableCode": {"id": "c1", "language": "PYTHON", "code": "print(1)"},
        "thoughtSignature": "s",
    }
    gave = {"codeExecutionResult": {"id": "c1", "outcome": "OUTCOME_OK", "output": "1\n"}}
    assert items(text("a"), ran, gave, text("b")) == (
        Message("assistant", (Text("a"),)),
        ServerToolCall(
            "c1",
            "code_execution",
            '{"language":"PYTHON","code":"print(1)"}',
            id="c1",
            signature="s",
            native={"type": "executableCode"},
        ),
        ServerToolResult(
            "c1",
            "code_execution",
            {"outcome": "OUTCOME_OK", "output": "1\n"},
            id="c1",
            native={"type": "codeExecutionResult"},
        ),
        Message("assistant", (Text("b"),)),
    )


def test_results_without_an_id_answer_the_oldest_open_call() -> None:
    code, result = (
        {"executableCode": {"code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
    )
    made = items(code, code, result, result, result)
    assert [one.call_id for one in made] == ["call_0", "call_1", "call_0", "call_1", "call_2"]
    assert all(one.id is None for one in made)


def test_tools_that_the_provider_runs() -> None:
    asked = {
        "toolCall": {"id": "t", "toolType": "FILE_SEARCH", "args": {"q": 1.0}, "x": 1},
        "thoughtSignature": "s",
    }
    answered = {
        "toolResponse": {"id": "t", "toolType": "FILE_SEARCH", "response": {"hits": []}},
        "thoughtSignature": "s2",
    }
    assert items(asked, answered) == (
        ServerToolCall(
            "t",
            "FILE_SEARCH",
            '{"q": 1.0}',
            id="t",
            signature="s",
            native={"type": "toolCall", "toolCall": {"x": 1}},
        ),
        ServerToolResult(
            "t",
            "FILE_SEARCH",
            {"hits": []},
            id="t",
            signature="s2",
            native={"type": "toolResponse"},
        ),
    )


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"hologram": {"x": 1}, "thought": True}, "hologram"),
        ({"functionResponse": {"name": "f"}}, "functionResponse"),
        ({"thoughtSignature": "s"}, "thoughtSignature"),
        ({"thoughtSignature": "s", "mediaProcessing": {}}, "mediaProcessing"),
    ],
)
def test_an_unknown_part_is_kept_whole_and_in_order(part: JsonObject, kind: str) -> None:
    assert items(text("a"), part, text("b")) == (
        Message("assistant", (Text("a"),)),
        Opaque(kind, part),
        Message("assistant", (Text("b"),)),
    )


def test_keys_beside_the_data_are_native_and_keep_the_part_apart() -> None:
    beside = {"partMetadata": {"k": 1}}
    first, second, third = items(text("a"), text("b", **beside), call("f", {}, extra=2, **beside))
    assert (first.native, second.native) == (None, beside)
    assert third.native == {**beside, "functionCall": {"extra": 2}}


def test_null_members_are_absent_members() -> None:
    nulls = {"functionCall": None, "inlineData": None, "thought": None, "thoughtSignature": None}
    assert items({**nulls, "text": "a"}) == (Message("assistant", (Text("a"),)),)
    assert items(
        {**nulls, "functionCall": {"id": None, "name": "f", "args": None, "willContinue": None}}
    ) == (FunctionCall("call_0", "f"),)


# ---------------------------------------------------------------- ends


def test_every_reason_of_the_table() -> None:
    for reason, stop_reason in STOP_REASONS.items():
        response = read(chunk(text("a"), finish=reason))
        assert (response.stop_reason, response.native_stop_reason) == (stop_reason, reason)


def test_continuation_is_not_an_end() -> None:
    token = {"candidates": [{"finishReason": "CONTINUATION", "continuationToken": "tok"}]}
    for stream in ([chunk(text("a")), token], [chunk(text("a"), finish="STOP"), token]):
        events = run(sse(*stream))
        assert failure(events) == "truncated"
        assert accumulate(events).metadata["continuationToken"] == "tok"
    assert read(chunk(text("a")), token, chunk(text("b"), finish="STOP")).status == "completed"


@pytest.mark.parametrize(
    ("mark", "names"),
    [
        ({}, FINISH_NUMBERS),
        ({"createTime": "2026"}, FINISH_NUMBERS_VERTEX),
        ({"usageMetadata": {"trafficType": 1}}, FINISH_NUMBERS_VERTEX),
    ],
)
def test_integer_enums_become_their_names(mark: JsonObject, names: dict[int, str]) -> None:
    for number, name in names.items():
        if number:
            response = read(chunk(text("a"), finish=number), mark or {"responseId": "r"})
            assert (response.native_stop_reason, response.stop_reason) == (
                name,
                STOP_REASONS.get(name, "other"),
            )
    assert read(chunk(text("a"), finish=99)).native_stop_reason == "99"


def test_integer_block_reasons_and_modalities_become_their_names() -> None:
    for number, name in BLOCK_NUMBERS.items():
        response = read({"promptFeedback": {"blockReason": number}})
        assert (response.stop_reason, response.native_stop_reason) == ("content_filter", name)
    details = [{"modality": number, "tokenCount": number} for number in range(1, 6)]
    assert usage({"promptTokensDetails": details}).input_modalities == {
        "text": 1,
        "image": 2,
        "video": 3,
        "audio": 4,
        "document": 5,
    }
    assert usage(
        {
            "promptTokensDetails": [
                {"modality": 4, "tokenCount": 2},
                {"modality": 77, "tokenCount": 1},
            ]
        }
    ).input_modalities == {
        "audio": 2,
        "77": 1,
    }


@pytest.mark.parametrize("unset", [0, "", None])
def test_a_reason_that_is_not_set_is_no_end(unset: Any) -> None:
    candidate = {
        "candidates": [{"content": {"parts": [text("a")]}, "finishReason": unset}],
        "promptFeedback": {"blockReason": unset},
    }
    assert failure(run(sse(candidate))) == "truncated"


def test_complete_is_told_before_the_end_of_input() -> None:
    one = parser("gemini")
    one.feed(sse(chunk(text("a"))))
    assert not one.complete
    assert not any(isinstance(event, Completed) for event in one.feed(sse(chunk(finish="STOP"))))
    assert (one.complete, one.ended) == (True, False)
    one.feed(sse(chunk(text("b"))))
    assert isinstance(one.close()[-1], Completed)


def test_a_done_mark_of_a_gateway_is_ignored() -> None:
    events = run(sse(chunk(text("a"), finish="STOP")) + b"data: [DONE]\n\n")
    assert isinstance(events[-1], Completed)
    assert codes(events) == []


# ---------------------------------------------------------------- the envelope


def test_candidate_and_envelope_keys_are_metadata_under_their_own_names() -> None:
    candidates = [
        {
            "finishReason": "STOP",
            "safetyRatings": [1],
            "groundingMetadata": {"webSearchQueries": ["q"]},
        }
    ]
    candidates += [{"finishReason": "STOP", "index": 1, "avgLogprobs": -0.5}]
    stream = {
        "candidates": candidates,
        "createTime": "t",
        "modelStatus": {"modelStage": "PREVIEW"},
        "newKey": None,
    }
    events = run(sse(chunk(text("a")), stream, {"createTime": "t"}))
    assert accumulate(events).metadata == {
        "safetyRatings": [1],
        "groundingMetadata": {"webSearchQueries": ["q"]},
        "candidates[1].avgLogprobs": -0.5,
        "createTime": "t",
        "modelStatus": {"modelStage": "PREVIEW"},
    }
    assert (
        sum("createTime" in event.values for event in events if isinstance(event, ResponseMetadata))
        == 1
    )


def test_the_first_id_and_model_stay() -> None:
    response = read({"responseId": "", "modelVersion": "m"}, chunk(text("a"), finish="STOP"))
    assert (response.response_id, response.model) == ("r1", "m")


def test_half_an_emoji_waits_for_the_other_half() -> None:
    body = b"".join(
        b'data: {"candidates":[{"content":{"parts":[{"text":"%s"}]}}]}\n\n' % half
        for half in (b"a\\ud83d", b"\\ude00b", b"c\\ud83d")
    )
    events = run(body + sse(chunk(finish="STOP")))
    assert [event.delta for event in events if isinstance(event, OutputTextDelta)] == [
        "a",
        "😀b",
        "c",
        "\ufffd",
    ]


# ---------------------------------------------------------------- counts


@pytest.mark.parametrize(
    ("raw", "counts"),
    [
        (
            {
                "promptTokenCount": 10,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 7,
                "totalTokenCount": 22,
            },
            (10, 12, None, 7),
        ),
        (
            {
                "promptTokenCount": 10,
                "candidatesTokenCount": 12,
                "thoughtsTokenCount": 7,
                "totalTokenCount": 22,
            },
            (10, 12, None, 7),
        ),
        (
            {
                "promptTokenCount": 10,
                "toolUsePromptTokenCount": 3,
                "candidatesTokenCount": 5,
                "totalTokenCount": 18,
            },
            (13, 5, None, None),
        ),
        (
            {
                "promptTokenCount": 10,
                "toolUsePromptTokenCount": 3,
                "candidatesTokenCount": 12,
                "thoughtsTokenCount": 7,
                "totalTokenCount": 25,
            },
            (13, 12, None, 7),
        ),
        (
            {"promptTokenCount": 10, "cachedContentTokenCount": 8, "candidatesTokenCount": 5},
            (10, 5, 8, None),
        ),
        ({"promptTokenCount": 10, "totalTokenCount": 10}, (10, None, None, None)),
        ({"promptTokenCount": 10, "thoughtsTokenCount": 7}, (10, 7, None, 7)),
        ({"trafficType": "ON_DEMAND"}, (None, None, None, None)),
        (
            {"promptTokenCount": "10", "candidatesTokenCount": 5.0, "thoughtsTokenCount": -1},
            (None, 5, None, None),
        ),
    ],
)
def test_counts_include_thoughts_and_what_tools_read(
    raw: JsonObject, counts: tuple[int | None, ...]
) -> None:
    made = usage(raw)
    assert (
        made.input_tokens,
        made.output_tokens,
        made.cache_read_input_tokens,
        made.reasoning_output_tokens,
    ) == counts
    assert (made.cache_write_input_tokens, made.raw) == (None, raw)


def test_counts_by_modality() -> None:
    made = usage(
        {
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 5},
                {"modality": "IMAGE", "tokenCount": 258},
            ],
            "toolUsePromptTokensDetails": [{"modality": "TEXT", "tokenCount": 2}],
            "candidatesTokensDetails": [
                {"modality": "AUDIO", "tokenCount": 9},
                {"modality": "TEXT"},
                7,
            ],
            "cacheTokensDetails": {"modality": "TEXT"},
        }
    )
    assert usage(
        {"cacheTokensDetails": [{"modality": "VIDEO", "tokenCount": 3}]}
    ).cache_modalities == {"video": 3}
    assert (made.input_modalities, made.output_modalities, made.cache_modalities) == (
        {"text": 7, "image": 258},
        {"audio": 9},
        {},
    )


def counted(*reports: JsonObject) -> list[tuple[int | None, int | None]]:
    events = run(
        sse(*(chunk(text("a"), usageMetadata=one) for one in reports), chunk(finish="STOP"))
    )
    return [
        (event.usage.input_tokens, event.usage.output_tokens)
        for event in events
        if isinstance(event, TokenCount)
    ]


def test_counts_are_snapshots_and_only_changes_are_said() -> None:
    first, second = (
        {"promptTokenCount": 4, "totalTokenCount": 4},
        {"promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6},
    )
    assert counted(first, first, second, second, {}) == [(4, None), (4, 2)]


def test_a_report_that_leaves_counts_out_keeps_the_earlier_ones() -> None:
    assert counted(
        {"promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6},
        {"promptTokenCount": 4, "totalTokenCount": 4},
    ) == [(4, 2)]


def test_a_count_left_out_of_a_grown_total_is_gone() -> None:
    reports = [
        {
            "promptTokenCount": 9,
            "candidatesTokenCount": 21,
            "thoughtsTokenCount": 35,
            "totalTokenCount": 65,
        }
    ]
    reports += [{"promptTokenCount": 87, "thoughtsTokenCount": 78, "totalTokenCount": 165}]
    assert counted(*reports) == [(9, 56), (87, 78)]


@pytest.mark.parametrize("odd", [b"[]", b"7", b'"x"'])
def test_counts_of_another_shape_are_passed_through_and_cost_no_answer(odd: bytes) -> None:
    quick = (
        b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":'
        + odd
        + b"}\n\n"
    )
    events = run(
        quick + quick.replace(b'"text":"a"', b'"text":"b","x":1') + sse(chunk(finish="STOP"))
    )
    assert accumulate(events).text == "ab"
    assert [event.data for event in events if isinstance(event, Passthrough)] == [
        json.loads(odd)
    ] * 2
    assert isinstance(events[-1], Completed)


# ---------------------------------------------------------------- whole bodies

ANSWER = chunk(
    text("Hm", thought=True),
    text("Hi"),
    call("f", {"a": 1}, id="c"),
    finish="STOP",
    usageMetadata={"promptTokenCount": 3},
)


def test_a_whole_body_gives_the_events_of_the_stream_that_says_the_same() -> None:
    assert parse_body("gemini", json.dumps(ANSWER).encode()) == run(sse(ANSWER))
    assert parse_body("gemini", array(ANSWER, chunk(text("!")))) == run(
        array(ANSWER, chunk(text("!")))
    )


def test_a_stream_and_an_array_of_the_same_chunks_give_the_same_events() -> None:
    for chunks in (
        [*BOOK, chunk(finish="STOP")],
        [ANSWER],
        [chunk(text("a")), chunk(text("b"), finish="STOP")],
    ):
        plain = (
            b"["
            + b",\n".join(json.dumps(one, ensure_ascii=False).encode() for one in chunks)
            + b"]"
        )
        assert run(plain) == run(sse(*chunks)) == run(sse(*chunks, end=b"\n\n"))


def test_a_whole_body_is_complete_without_a_reason_but_not_with_a_continuation() -> None:
    def end(body: JsonObject) -> ResponseEvent:
        return parse_body("gemini", json.dumps(body).encode())[-1]

    whole = end(chunk(text("Hi")))
    assert isinstance(whole, Completed)
    assert (whole.stop_reason, whole.native_stop_reason) == ("other", None)
    failed = end(chunk(text("Hi"), finish="CONTINUATION"))
    assert isinstance(failed, Failed)
    assert failed.error.detail == {"finish_reasons": ["CONTINUATION"]}
    assert isinstance(parse_body("gemini", array(chunk(text("Hi"))))[-1], Failed)


def test_no_stream_can_say_that_it_is_a_whole_body() -> None:
    one = parser("gemini")
    one.feed_event(json.dumps(chunk(text("Hi"))))
    one.feed_event(b"", event=" ".join(["the", "body", "is", "whole"]))  # equal, not the same
    assert not one.complete


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"[1]",
        b"null",
        b'"x"',
        b'{"name":"cachedContents/x","usageMetadata":{}}',
        b"<html>",
    ],
)
def test_a_body_of_another_kind_is_malformed(body: bytes) -> None:
    assert failure(parse_body("gemini", body)) == "malformed"


@pytest.mark.parametrize(
    "odd",
    [
        b"null", b"1", b'"x"', b"[1]", b"{", b'{"candidates":{}}', b'{"candidates":[1]}', b'{"candidates":[{"content":[]}]}',
        b'{"candidates":[{"content":{"parts":{}}}]}', b'{"candidates":[{"content":{"parts":[{"text":1}]}}]}',
        b'{"candidates":[{"finishReason":[]}]}',
        b'{"candidates":[{"content":{"parts":[{"functionCall":"f"}]}}]}', b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"candidates":[{"content":{"parts":[{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}}]}", b'{"promptFeedback":1}',
    ],
)  # fmt: skip
def test_a_chunk_of_another_shape_is_malformed_and_keeps_what_came_before(odd: bytes) -> None:
    events = run(sse(chunk(text("Hi"))) + b"data: " + odd + b"\n\n")
    assert failure(events) == "malformed"
    assert accumulate(events).text == "Hi"


def test_the_ceilings_hold() -> None:
    assert (
        failure(
            run(
                sse(chunk(call("f", {"a": "x" * 100})), chunk(finish="STOP")),
                limits=Limits(argument_bytes=50),
            )
        )
        == "limit_exceeded"
    )
    assert (
        failure(run(sse(*[chunk({"hologram": 1})] * 5), limits=Limits(items=4))) == "limit_exceeded"
    )
    streamed = [
        chunk(call("f", willContinue=True)),
        *[chunk(piece("$.a", stringValue="x" * 20, willContinue=True))] * 5,
    ]
    assert failure(run(sse(*streamed), limits=Limits(argument_bytes=50))) == "limit_exceeded"


def test_tool_names_go_back_to_what_the_caller_calls_them() -> None:
    (only,) = items(call("f_", {}), names={"f_": "f"})
    assert only.name == "f"


# ---------------------------------------------------------------- the page about this wire

PAGE = ROOT / "docs" / "wires" / "gemini.md"


def rows(heading: str) -> list[list[str]]:
    """The cells of the table that begins with `heading`."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(heading) + 2
    table = takewhile(lambda line: line.startswith("|"), lines[start:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_the_page_names_every_part_and_reason_the_code_knows() -> None:
    assert [part.strip("`") for part, _ in rows("| part | item |")] == list(Candidate.PARTS)
    assert {
        word.strip("`"): said.split("`")[1] for word, said in rows("| finishReason | stop_reason |")
    } == STOP_REASONS
    table = rows("| number | Developer API | Vertex AI |")
    numbers = {
        int(number): (developer.strip("`"), vertex.strip("`"))
        for number, developer, vertex in table
    }
    assert numbers.pop(0) == ("unset", "unset")
    assert numbers == {
        number: (name, FINISH_NUMBERS_VERTEX.get(number, ""))
        for number, name in FINISH_NUMBERS.items()
        if number
    }


def test_the_page_names_every_notice_the_code_gives() -> None:
    sources = (ROOT / "parsers" / "streamlib_parsers" / "wires" / "gemini").glob("*.py")
    given = {
        code
        for source in sources
        for code in re.findall(r'\.notice\(\s*"(\w+)"', source.read_text(encoding="utf-8"))
    }
    named = set(re.findall(r'Notice\("(\w+)"\)', PAGE.read_text(encoding="utf-8")))
    assert named == given | {"text_replaced", "unknown_delta"}  # these two are the assembly's
