"""JSON of any form, which every wire names differently, from one wire to another."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import Prompt, Response, build, encode_body, parse_request
from streamlib.request.schemas import ANY_OBJECT
from tests.support.cases import each_case

USER = {"role": "user", "content": "x"}
FORMS: dict[str, dict[str, Any]] = {
    "chat": {"messages": [USER], "response_format": {"type": "json_object"}},
    "responses": {"input": "x", "text": {"format": {"type": "json_object"}}},
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "x"}]}],
        "generationConfig": {"responseMimeType": "application/json"},
    },
    "interactions": {
        "input": "x",
        "response_format": {"type": "text", "mime_type": "application/json"},
    },
    "ollama": {"messages": [USER], "format": "json"},
    "cohere": {"messages": [USER], "response_format": {"type": "json_object"}},
}
"""Requests for any JSON object."""
FIELDS = {
    "chat": ("response_format", {"type": "json_object"}),
    "responses": ("text", {"format": {"type": "json_object"}}),
    "gemini": ("generationConfig", {"responseMimeType": "application/json"}),
    "interactions": ("response_format", {"type": "text", "mime_type": "application/json"}),
    "ollama": ("format", "json"),
    "cohere": ("response_format", {"type": "json_object"}),
}


@each_case("target", FORMS)
@each_case("source", FORMS)
def test_json_of_any_form_reaches_every_wire(source: Any, target: Any) -> None:
    """B11: `json_object` was dropped towards Responses and Gemini."""
    prompt = parse_request(source, msgspec.json.encode(FORMS[source]), path="/models/m")
    assert prompt.output_schema == ANY_OBJECT
    request = build(prompt, "custom:m", wire_api=target, base_url="http://x")
    key, value = FIELDS[target]
    assert msgspec.json.decode(request.body)[key] == value
    assert request.report == []


@pytest.mark.parametrize("wire", ["messages", "converse"])
def test_json_of_any_form_is_reported_where_it_is_missing(wire: Any) -> None:
    prompt = Prompt("x", output_schema={"type": "object"})
    request = build(prompt, "custom:claude-opus-5", wire_api=wire, base_url="http://x")
    assert b'"schema"' not in request.body
    assert [change.path for change in request.report] == ["/output_schema"]


@pytest.mark.parametrize(("wire", "key"), [("chat", "created"), ("responses", "created_at")])
def test_body_has_the_time_that_is_given(wire: str, key: str) -> None:
    """B11: complete bodies of a gateway said 1970."""
    response = Response("r", "m", "completed", stop_reason="stop")
    body = msgspec.json.decode(encode_body(wire, response, created_at=1_700_000_000))
    assert body[key] == 1_700_000_000
