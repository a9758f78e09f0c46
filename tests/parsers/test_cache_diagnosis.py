"""What a provider says of its cache: the same words for both that say something."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import Response, accumulate, parse_body, parser
from streamlib.history import CacheDiagnosis
from streamlib_parsers.items import WireApi
from tests.support.cases import each_case

MESSAGE: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": [],
}


def read(wire_api: WireApi, body: dict[str, Any]) -> Response:
    return accumulate(parse_body(wire_api, json.dumps(body).encode()))


def missed(kind: str) -> dict[str, Any]:
    return {"cache_miss_reason": {"type": kind, "cache_missed_input_tokens": 12}}


@each_case(
    "value, expected",
    [
        (missed("model_changed"), CacheDiagnosis("miss", "model_changed", 12)),
        (missed("system_changed"), CacheDiagnosis("miss", "system_changed", 12)),
        (missed("tools_changed"), CacheDiagnosis("miss", "tools_changed", 12)),
        (missed("messages_changed"), CacheDiagnosis("miss", "messages_changed", 12)),
        (missed("something_new"), CacheDiagnosis("miss", "something_new", 12)),
        ({"cache_miss_reason": {"type": "unavailable"}}, CacheDiagnosis("unavailable")),
        (
            {"cache_miss_reason": {"type": "previous_message_not_found"}},
            CacheDiagnosis("not_found"),
        ),
        ({"cache_miss_reason": None}, CacheDiagnosis("pending")),
        ({"cache_miss_reason": {}}, CacheDiagnosis("unavailable")),
        ({"cache_miss_reason": 5}, CacheDiagnosis("pending")),
        (None, None),
        ("x", None),
    ],
)
def test_anthropics_diagnosis_is_typed(value: Any, expected: CacheDiagnosis | None) -> None:
    assert read("messages", {**MESSAGE, "diagnostics": value}).cache_diagnosis == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"type": "cache_hit"}, CacheDiagnosis("hit")),
        (
            {
                "type": "cache_miss",
                "reason": "tools_changed",
                "cache_missed_tokens": 12,
                "comparison_reusable_tokens": 20,
            },
            CacheDiagnosis("miss", "tools_changed", 12, 20),
        ),
        (
            {"type": "cache_miss", "reason": "input_changed", "cache_missed_tokens": True},
            CacheDiagnosis("miss", "input_changed"),
        ),
        ({"type": "comparison_response_not_found"}, CacheDiagnosis("not_found")),
        ({"type": "unavailable"}, CacheDiagnosis("unavailable")),
        ({"type": "new"}, CacheDiagnosis("unavailable")),
        (None, None),
    ],
)
def test_openais_diagnosis_is_typed(value: Any, expected: CacheDiagnosis | None) -> None:
    body = {**RESPONSE, "prompt_cache_diagnostics": value}
    assert read("responses", body).cache_diagnosis == expected


def test_diagnosis_of_a_stream_is_typed() -> None:
    start = {**MESSAGE, "content": [], "diagnostics": missed("tools_changed")}
    parse = parser("messages")
    events = parse.feed_event(json.dumps({"type": "message_start", "message": start}).encode())
    found = accumulate(events).cache_diagnosis
    assert found == CacheDiagnosis("miss", "tools_changed", 12)
