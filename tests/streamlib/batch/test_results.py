"""The results of a batch: a row for whatever a line holds."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlib import Prompt, ToolSpec
from streamlib.batch import batch_lines, read_batch
from tests.support.cases import each_case

MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
COMPLETION = {
    "id": "c",
    "object": "chat.completion",
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": [
        {
            "type": "message",
            "id": "i",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hi", "annotations": []}],
        }
    ],
}
GEMINI = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}
    ]
}
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 2},
}
GOOD: dict[str, Any] = {
    "anthropic": {"custom_id": "a", "result": {"type": "succeeded", "message": MESSAGE}},
    "openai chat": {
        "id": "r",
        "custom_id": "a",
        "response": {"status_code": 200, "request_id": "q", "body": COMPLETION},
        "error": None,
    },
    "openai responses": {
        "custom_id": "a",
        "response": {"status_code": 200, "body": RESPONSE},
        "error": None,
    },
    "google": {"key": "a", "response": GEMINI},
    "google inline": {"metadata": {"key": "a"}, "response": GEMINI},
    "bedrock converse": {"recordId": "a", "modelInput": {}, "modelOutput": CONVERSE},
    "bedrock invoke": {"recordId": "a", "modelInput": {}, "modelOutput": MESSAGE},
}


READ_AS = {"anthropic": "messages", "google": "gemini"}
"""Provider -> the wire of its bodies; of the others the name of the case has it."""


@each_case("name", GOOD)
@each_case("form", ["bytes", "text", "dict"])
def test_response_is_typed(name: str, form: str) -> None:
    line: Any = GOOD[name]
    if form != "dict":
        line = json.dumps(line)
    [row] = read_batch([line.encode() if form == "bytes" else line])
    assert (row.id, row.error, row.line) == ("a", None, 1)
    assert row.response is not None
    assert (row.response.text, row.response.status) == ("hi", "completed")
    origin = row.response.items[0].origin
    assert origin is not None
    provider, _, wire_api = name.partition(" ")
    assert origin.wire_api == READ_AS.get(provider, wire_api)


FAILED: dict[str, tuple[Any, str, bool]] = {
    "anthropic refused": (
        {
            "custom_id": "a",
            "result": {
                "type": "errored",
                "error": {
                    "type": "error",
                    "error": {"type": "invalid_request_error", "message": "no"},
                },
            },
        },
        "invalid_request",
        False,
    ),
    "anthropic overloaded": (
        {
            "custom_id": "a",
            "result": {"type": "errored", "error": {"type": "overloaded_error", "message": "no"}},
        },
        "overloaded",
        True,
    ),
    "anthropic cancelled": (
        {"custom_id": "a", "result": {"type": "canceled"}},
        "cancelled",
        True,
    ),
    "anthropic expired": ({"custom_id": "a", "result": {"type": "expired"}}, "deadline", True),
    "openai expired": (
        {"custom_id": "a", "response": None, "error": {"code": "batch_expired", "message": "late"}},
        "deadline",
        True,
    ),
    "openai refused": (
        {
            "custom_id": "a",
            "response": {
                "status_code": 400,
                "body": {"error": {"message": "no", "type": "invalid_request_error"}},
            },
            "error": None,
        },
        "invalid_request",
        False,
    ),
    "openai limited": (
        {
            "custom_id": "a",
            "response": {
                "status_code": 429,
                "body": {"error": {"message": "slow", "code": "rate_limit_exceeded"}},
            },
            "error": None,
        },
        "rate_limited",
        True,
    ),
    "openai late": (
        {"custom_id": "a", "response": None, "error": {"code": "request_timeout", "message": "no"}},
        "server_error",
        True,
    ),
    "openai without a response": (
        {"custom_id": "a", "response": None, "error": {"code": "bad_request", "message": "no"}},
        "invalid_request",
        False,
    ),
    "mistral text": (
        {"custom_id": "a", "response": {"status_code": 400, "body": "no"}, "error": None},
        "invalid_request",
        False,
    ),
    "google exhausted": (
        {"key": "a", "error": {"code": 8, "message": "no"}},
        "rate_limited",
        True,
    ),
    "google without a code": (
        {"key": "a", "error": {"message": "no"}},
        "invalid_request",
        False,
    ),
    "google refused": (
        {"key": "a", "error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}},
        "invalid_request",
        False,
    ),
    "bedrock": (
        {
            "recordId": "a",
            "modelInput": {},
            "error": {"errorCode": "ThrottlingException", "errorMessage": "no"},
        },
        "rate_limited",
        True,
    ),
}


@each_case("name", FAILED)
def test_failure_has_its_kind_and_retryable(name: str) -> None:
    line, kind, retryable = FAILED[name]
    [row] = read_batch([line])
    assert row.error is not None
    assert (row.id, row.response, row.error.kind) == ("a", None, kind)
    assert row.error.retryable is retryable
    assert row.error.message


@each_case(
    "line, status, code",
    [
        (FAILED["openai late"][0], 408, "request_timeout"),
        ({"key": "a", "error": {"code": 4, "message": "no"}}, 504, "4"),
        ({"key": "a", "error": {"code": 8, "message": "no"}}, 429, "8"),
        ({"key": "a", "error": {"code": 13, "message": "no"}}, 500, "13"),
        ({"key": "a", "error": {"code": 14, "message": "no"}}, 503, "14"),
        ({"key": "a", "error": {"code": 3, "message": "no"}}, 400, "3"),
        ({"key": "a", "error": {"code": 404, "message": "no"}}, 404, "404"),
        ({"recordId": "a", "error": {"errorCode": 400, "errorMessage": "no"}}, 400, None),
        ({"recordId": "a", "error": {"errorCode": 429, "errorMessage": "no"}}, 429, None),
        ({"recordId": "a", "error": {"errorCode": 3, "errorMessage": "no"}}, 400, "3"),
    ],
)
def test_number_of_an_error_becomes_its_status(
    line: dict[str, Any], status: int, code: str | None
) -> None:
    """Those of gRPC are other numbers than those of HTTP."""
    [row] = read_batch([line])
    assert row.error is not None
    assert (row.error.status, row.error.code) == (status, code)
    assert row.error.message == "no"


def test_request_that_was_not_run_has_the_providers_words() -> None:
    line: dict[str, Any] = {"custom_id": "a", "error": {"code": "batch_expired"}}
    [silent] = read_batch([line])
    line["error"]["message"] = "late"
    [told] = read_batch([line])
    assert silent.error is not None
    assert told.error is not None
    assert told.error.message == "late"
    assert silent.error.message == "the batch expired before this request was run"


def test_names_and_origin_are_those_that_were_sent() -> None:
    prompt = Prompt("x", tools=[ToolSpec("my tool!")])
    lines = batch_lines({"a": prompt}, "anthropic:claude-opus-4-5")
    call = {"type": "tool_use", "id": "t", "name": "my_tool_", "input": {}}
    message = {**MESSAGE, "content": [call], "stop_reason": "tool_use"}
    line = {"custom_id": "a", "result": {"type": "succeeded", "message": message}}
    [row] = read_batch([line], sent=lines.requests)
    assert row.response is not None
    [made] = row.response.function_calls
    assert made.name == "my tool!"
    assert made.origin == lines.requests["a"].origin


WITHOUT_ID: dict[str, Any] = {
    "vertex": {"request": {"contents": []}, "response": GEMINI, "status": ""},
    "mistral": {"id": "r", "custom_id": None, "response": {"status_code": 200, "body": COMPLETION}},
    "bedrock": {"modelInput": {}, "modelOutput": CONVERSE},
}


@pytest.mark.parametrize("name", WITHOUT_ID)
def test_result_without_an_id_is_not_lost(name: str) -> None:
    [row] = read_batch([WITHOUT_ID[name]])
    assert (row.id, row.error) == (None, None)
    assert row.response is not None
    assert row.response.text == "hi"


def test_refusal_of_vertex_is_an_error_in_its_words() -> None:
    [row] = read_batch([{"request": {}, "response": {}, "status": "Bad Request: no"}])
    assert row.error is not None
    assert (row.error.kind, row.response) == ("invalid_request", None)
    assert "Bad Request: no" in row.error.message


CUT = {
    "anthropic": '{"custom_id":"b","res',
    "openai": '{"id": "batch_req_1", "custom_id": "b", "response": {"status_code": 200',
    "google": '{"key":"b","response":{"candidates":[{"content":{"parts":[{"text":"x',
    "bedrock": '{"recordId":"b"',
    "escaped": '{"custom_id":"\\u0062","result":',
}


@pytest.mark.parametrize("name", CUT)
def test_line_that_was_cut_keeps_its_id(name: str) -> None:
    [row] = read_batch(CUT[name].encode())
    assert row.error is not None
    assert (row.id, row.response, row.error.kind) == ("b", None, "malformed")


@pytest.mark.parametrize("line", ['{"custom_i', '{"custom_id":"b', "", '{"x":{"key":"b"', "nul"])
def test_line_that_was_cut_before_its_id_has_none(line: str) -> None:
    rows = list(read_batch([line, *([] if line else ["{"])]))
    assert [row.id for row in rows] == [None]
    assert rows[0].error is not None


def test_text_of_a_file_is_no_path() -> None:
    text = "\n".join([json.dumps(GOOD["google"]), json.dumps({**GOOD["google"], "key": "b"})])
    assert [row.id for row in read_batch(text)] == ["a", "b"]


def test_line_that_is_too_long_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlib.batch.results.LINE_BYTES", 1_000)
    good = json.dumps(GOOD["google"]).encode()
    long = json.dumps({"key": "long", "response": "x" * 3_500}).encode()
    rows = list(read_batch(b"\n".join([good, long, good.replace(b'"a"', b'"z"')])))
    assert [row.id for row in rows] == ["a", "long", "z"]
    assert rows[1].error is not None
    assert [row.error for row in (rows[0], rows[2])] == [None, None]


BAD: dict[str, tuple[bytes, str]] = {
    "cut": (b'{"custom_id":"b","res', "line 2: no JSON, or only its beginning"),
    "list": (b"[1]", "line 2: the line is no JSON object"),
    "no id": (b"{}", "line 2: none of the keys custom_id, key, recordId with an id"),
    "no result": (b'{"custom_id":"b"}', "line 2: neither response nor error"),
    "unknown result": (b'{"custom_id":"b","result":{"type":"paused"}}', "of the type 'paused'"),
    "odd result": (b'{"custom_id":"b","result":{"type":["x"]}}', "of the type"),
    "no body": (b'{"custom_id":"b","response":{"status_code":200}}', "response.body is no JSON"),
    "twice": (json.dumps(GOOD["anthropic"]).encode(), "line 2: the id 'a' is that of line 1, too"),
}


@each_case("name", BAD)
def test_bad_line_is_a_row_with_its_number(name: str) -> None:
    line, message = BAD[name]
    good = json.dumps(GOOD["anthropic"]).encode()
    other = good.replace(b'"a"', b'"z"', 1)
    first, second, third = read_batch(b"\n".join([good, line, b"", other, b""]))
    assert (first.error, third.error, third.id, third.line) == (None, None, "z", 4)
    assert second.error is not None
    assert (second.error.kind, second.line) == ("malformed", 2)
    assert message in second.error.message


def test_unknown_provider_is_an_error() -> None:
    with pytest.raises(ValueError, match="no form of batches is known for 'groq'"):
        list(read_batch([], provider="groq"))


def test_path_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(json.dumps({**GOOD["google"], "key": str(n)}) for n in range(5)))
    assert [row.id for row in read_batch(path)] == ["0", "1", "2", "3", "4"]


def test_memory_does_not_grow_with_the_file() -> None:
    text = json.dumps(GOOD["google"] | {"pad": "x" * 10_000})

    def lines() -> Iterator[str]:
        for number in range(300):
            yield text.replace('"a"', f'"{number}"', 1)

    tracemalloc.start(1)
    for row in read_batch(lines()):
        assert row.error is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500_000


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
KEYS = ("custom_id", "key", "recordId", "result", "response", "error", "modelOutput")


@given(st.dictionaries(st.sampled_from(KEYS), JSON_VALUES), st.sampled_from((None, "openai")))
def test_any_line_becomes_one_row(line: dict[str, Any], provider: str | None) -> None:
    [row] = read_batch([line], provider=provider)
    assert row.response is not None or row.error is not None
