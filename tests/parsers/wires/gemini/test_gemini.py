"""Gemini generateContent: parts and their items, the envelope, the page."""

from __future__ import annotations

import json
import re
from itertools import takewhile
from typing import Any

import pytest

from streamlib_parsers import (
    Completed,
    FunctionCall,
    FunctionCallArgumentsDelta,
    MediaDelta,
    Message,
    Opaque,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    Reasoning,
    ResponseMetadata,
    ServerToolCall,
    ServerToolResult,
    accumulate,
    parse_body,
)
from streamlib_parsers.items import Audio, Document, Image, Text
from streamlib_parsers.wires.gemini import (
    FAILURE_REASONS,
    FINISH_NUMBERS,
    FINISH_NUMBERS_VERTEX,
    STOP_REASONS,
)
from streamlib_parsers.wires.gemini.candidate import PARTS
from tests.support.gemini_streams import (
    BOOK,
    JsonObject,
    array,
    call,
    chunk,
    failure,
    items_of,
    notice_codes,
    read,
    run,
    sse,
    text,
)
from tests.support.partitions import byte_by_byte
from tests.support.shared import ROOT

# --- rules of the wire ---


def test_text_and_reasoning_join_until_the_kind_changes() -> None:
    parts = [
        text("I ", thought=True),
        text("think", thought=True),
        text("Hel"),
        text("lo"),
        text("Hm", thought=True),
    ]
    assert items_of(*parts) == (
        Reasoning(content="I think"),
        Message("assistant", (Text("Hello"),)),
        Reasoning(content="Hm"),
    )


def test_complete_call_keeps_the_providers_bytes() -> None:
    part = b'{"functionCall":{"id":"c1","name":"f","args":{"z": 1.0, "a":[1e5,"\\u00e9"]}}}'
    events = run(
        b'data: {"candidates":[{"content":{"parts":[' + part + b']},"finishReason":"STOP"}]}\n\n'
    )
    response = accumulate(events)
    assert response.calls[0].arguments == '{"z": 1.0, "a":[1e5,"\\u00e9"]}'
    assert [event.delta for event in events if isinstance(event, FunctionCallArgumentsDelta)] == [
        response.calls[0].arguments
    ]


def test_call_id_is_generated_and_id_none_when_missing() -> None:
    with_id, without, empty = items_of(
        call("f", {}, id="c1"), call("g", {}), call("h", {}, id=""), call_id=lambda n: f"mine_{n}"
    )
    assert (with_id.call_id, with_id.id) == ("c1", "c1")
    assert [(item.call_id, item.id) for item in (without, empty)] == [
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
def test_candidate_may_lack_content_or_parts(last: JsonObject) -> None:
    response = read(chunk(text("Hi")), last)
    assert (response.text, response.status, response.stop_reason, len(response.items)) == (
        "Hi",
        "completed",
        "stop",
        1,
    )


def test_empty_text_is_dropped_unless_signed() -> None:
    assert items_of(text("Hi"), text(""), text("!"), text("", thoughtSignature="sig")) == (
        Message("assistant", (Text("Hi!"),)),
        Message("assistant", (Text(""),), signature="sig"),
    )


@pytest.mark.parametrize("reason", ["STOP", "FUNCTION_CALL"])
def test_stop_with_a_call_is_tool_calls(reason: str) -> None:
    response = read(chunk(call("f", {})), chunk(finish=reason))
    assert (response.stop_reason, response.native_stop_reason) == ("tool_calls", reason)
    assert read(*BOOK, chunk(finish=reason)).calls


def test_last_finish_reason_counts_and_usage_may_follow() -> None:
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
def test_blocked_prompt_completes_without_items(reason: str) -> None:
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
def test_error_in_the_stream_fails_it_by_its_kind(body: bytes) -> None:
    events = run(body)
    assert failure(events) == "overloaded"
    assert accumulate(events).text == "Hi"


@pytest.mark.parametrize(
    "body", [json.dumps(OVERLOADED).encode(), json.dumps([OVERLOADED], indent=1).encode()]
)
def test_error_instead_of_a_stream_fails_by_its_kind(body: bytes) -> None:
    assert failure(run(body)) == "overloaded"
    assert failure(run(*byte_by_byte(body))) == "overloaded"
    assert failure(parse_body("gemini", body, status=503)) == "overloaded"
    assert failure(parse_body("gemini", body)) == "overloaded"


def test_last_event_may_lack_its_blank_line() -> None:
    for end in (b"", b"\n", b"\r\n"):
        events = run(sse(chunk(text("Hi"), finish="STOP")).rstrip() + end)
        assert isinstance(events[-1], Completed)
        assert notice_codes(events) == ["end_inferred"]


def test_stream_without_finish_reason_is_truncated() -> None:
    for body in (
        sse(chunk(text("Hi"))),
        array(chunk(text("Hi"))),
        sse({"usageMetadata": {"promptTokenCount": 3}}),
        sse({"responseId": "r"}),
    ):
        events = run(body)
        assert failure(events) == "truncated"


def test_candidates_are_choices_and_all_must_finish() -> None:
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
    assert [
        (choice.index, choice.stop_reason, len(choice.items)) for choice in response.choices
    ] == [
        (0, "stop", 1),
        (1, "tool_calls", 2),
    ]


def test_candidates_without_index_are_numbered_by_position() -> None:
    bare = {
        "candidates": [
            {"content": {"parts": [text("a")]}, "finishReason": "STOP"},
            {"content": {"parts": [text("b")]}, "finishReason": "STOP"},
        ]
    }
    assert [item.choice for choice in read(bare).choices for item in choice.items] == [0, 1]


@pytest.mark.parametrize("index", [-1, 5000, 1.5, "1", True])
def test_invalid_candidate_index_is_malformed(index: Any) -> None:
    assert failure(run(sse(chunk(text("a"), index=index)))) == "malformed"


def test_signed_part_is_never_joined() -> None:
    parts = [
        text("a"),
        text("b", thoughtSignature="s1"),
        text("c", thoughtSignature="s2"),
        text("d"),
        text("e", thought=True, thoughtSignature="s3"),
    ]
    assert [(item.signature, item.text) for item in items_of(*parts)] == [
        (None, "a"),
        ("s1", "b"),
        ("s2", "c"),
        (None, "d"),
        ("s3", "e"),
    ]


def test_item_is_closed_before_a_signed_one_starts() -> None:
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


# --- other parts ---


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("image/png", Image),
        ("audio/L16;rate=24000", Audio),
        ("application/pdf", Document),
        ("video/mp4", Document),
    ],
)
def test_media_become_parts_by_their_media_type(media_type: str, kind: type) -> None:
    inline, filed = items_of(
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


def test_media_bytes_are_one_delta() -> None:
    events = run(
        sse(chunk({"inlineData": {"mimeType": "image/png", "data": "QUJD"}}, finish="STOP"))
    )
    assert [
        (event.media_type, event.data) for event in events if isinstance(event, MediaDelta)
    ] == [("image/png", "QUJD")]


def test_image_of_reasoning_is_opaque() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}, "thought": True}
    assert items_of(part) == (Opaque("inlineData", part),)


def test_executed_code_is_a_server_tool() -> None:
    ran = {
        "executableCode": {"id": "c1", "language": "PYTHON", "code": "print(1)"},
        "thoughtSignature": "s",
    }
    gave = {"codeExecutionResult": {"id": "c1", "outcome": "OUTCOME_OK", "output": "1\n"}}
    assert items_of(text("a"), ran, gave, text("b")) == (
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


def test_results_without_an_id_answer_the_oldest_call() -> None:
    code, result = (
        {"executableCode": {"code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
    )
    calls_and_results = items_of(code, code, result, result, result)
    assert [item.call_id for item in calls_and_results] == [
        "call_0",
        "call_1",
        "call_0",
        "call_1",
        "call_2",
    ]
    assert all(item.id is None for item in calls_and_results)


def test_provider_run_tools_are_server_tools() -> None:
    requested = {
        "toolCall": {"id": "t", "toolType": "FILE_SEARCH", "args": {"q": 1.0}, "x": 1},
        "thoughtSignature": "s",
    }
    answered = {
        "toolResponse": {"id": "t", "toolType": "FILE_SEARCH", "response": {"hits": []}},
        "thoughtSignature": "s2",
    }
    assert items_of(requested, answered) == (
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
def test_unknown_part_is_opaque_and_in_order(part: JsonObject, kind: str) -> None:
    assert items_of(text("a"), part, text("b")) == (
        Message("assistant", (Text("a"),)),
        Opaque(kind, part),
        Message("assistant", (Text("b"),)),
    )


def test_keys_beside_the_data_are_native_and_separate_the_part() -> None:
    beside = {"partMetadata": {"k": 1}}
    first, second, third = items_of(
        text("a"), text("b", **beside), call("f", {}, extra=2, **beside)
    )
    assert (first.native, second.native) == (None, beside)
    assert third.native == {**beside, "functionCall": {"extra": 2}}


def test_null_members_count_as_absent() -> None:
    nulls = {"functionCall": None, "inlineData": None, "thought": None, "thoughtSignature": None}
    assert items_of({**nulls, "text": "a"}) == (Message("assistant", (Text("a"),)),)
    assert items_of(
        {**nulls, "functionCall": {"id": None, "name": "f", "args": None, "willContinue": None}}
    ) == (FunctionCall("call_0", "f"),)


# --- the envelope ---


def test_candidate_and_envelope_keys_are_metadata() -> None:
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


def test_first_id_and_model_stay() -> None:
    response = read({"responseId": "", "modelVersion": "m"}, chunk(text("a"), finish="STOP"))
    assert (response.response_id, response.model) == ("r1", "m")


def test_surrogate_waits_for_its_other_half() -> None:
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


# --- the page of this wire ---

PAGE = ROOT / "docs" / "wires" / "gemini.md"


def rows(heading: str) -> list[list[str]]:
    """The cells of the table that begins with `heading`."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(heading) + 2
    table = takewhile(lambda line: line.startswith("|"), lines[start:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_page_names_every_part_and_reason() -> None:
    assert [part.strip("`") for part, _ in rows("| part | item |")] == list(PARTS)
    assert {
        reason.strip("`"): meaning.split("`")[1]
        for reason, meaning in rows("| finishReason | stop_reason |")
    } == STOP_REASONS | dict.fromkeys(FAILURE_REASONS, "Failed")
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


def test_page_names_every_notice() -> None:
    sources = (ROOT / "parsers" / "streamlib_parsers" / "wires" / "gemini").glob("*.py")
    emitted = {
        code
        for source in sources
        for code in re.findall(r'\.notice\(\s*"(\w+)"', source.read_text(encoding="utf-8"))
    }
    named = set(re.findall(r'Notice\("(\w+)"\)', PAGE.read_text(encoding="utf-8")))
    assert named == emitted | {"text_replaced", "unknown_delta"}  # the assembler emits these two
