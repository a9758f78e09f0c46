"""A choice of allowed tools is a restriction: other wires get the allowed tools alone."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from streamlib import Request, StreamError, WireApi, build, parse_request
from tests.support.cases import each_case

FUNCTIONS = ("look", "erase")


def request_of(wire_api: str, mode: str, allowed: list[dict[str, Any]]) -> bytes:
    """A request with two functions, a hosted tool and this choice."""
    if wire_api == "responses":
        tools: list[Any] = [{"type": "function", "name": name} for name in FUNCTIONS]
        tools.append({"type": "web_search"})
        choice: Any = {"type": "allowed_tools", "mode": mode, "tools": allowed}
        return json.dumps({"input": "hi", "tools": tools, "tool_choice": choice}).encode()
    tools = [{"type": "function", "function": {"name": name}} for name in FUNCTIONS]
    allowed = [{"type": "function", "function": {"name": tool["name"]}} for tool in allowed]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": allowed}}
    turns = [{"role": "user", "content": "hi"}]
    return json.dumps({"messages": turns, "tools": tools, "tool_choice": choice}).encode()


def built(source: Any, target: WireApi, mode: str, *allowed: dict[str, Any]) -> Request:
    prompt = parse_request(source, request_of(source, mode, list(allowed)))
    return build(prompt, "m", provider="custom", wire_api=target, base_url="http://x/v1")


LOOK = {"type": "function", "name": "look"}


@each_case("source", ["responses", "chat"])
@each_case("target", ["messages", "gemini", "interactions", "converse", "ollama", "cohere"])
def test_a_tool_that_is_not_allowed_is_left_out(source: str, target: WireApi) -> None:
    request = built(source, target, "auto", LOOK)
    assert b'"look"' in request.body
    assert b"erase" not in request.body
    assert b"search" not in request.body.lower()
    assert "/tools/1" in [change.path for change in request.report]


@pytest.mark.parametrize("source", ["responses", "chat"])
def test_a_required_choice_stays_required(source: str) -> None:
    body = msgspec.json.decode(built(source, "messages", "required", LOOK).body)
    assert body["tool_choice"] == {"type": "any"}
    assert [tool["name"] for tool in body["tools"]] == ["look"]


def test_a_hosted_tool_is_allowed_by_its_type() -> None:
    prompt = parse_request("responses", request_of("responses", "auto", [{"type": "web_search"}]))
    request = build(prompt, "claude-opus-4-8", provider="anthropic")
    tools = msgspec.json.decode(request.body)["tools"]
    assert [tool["name"] for tool in tools] == ["web_search"]


def test_a_function_inside_a_namespace_may_be_allowed() -> None:
    members = [{"type": "function", "name": name} for name in FUNCTIONS]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [LOOK]}
    body = {
        "input": "hi",
        "tools": [{"type": "namespace", "name": "files", "tools": members}],
        "tool_choice": choice,
    }
    prompt = parse_request("responses", json.dumps(body).encode())
    request = build(prompt, "m", provider="custom", wire_api="chat", base_url="http://x/v1")
    assert b"look" in request.body
    assert b"erase" not in request.body


def test_a_choice_of_no_tools_sends_none() -> None:
    body = msgspec.json.decode(built("responses", "messages", "auto").body)
    assert "tools" not in body


@pytest.mark.parametrize("tools", [None, 5, "x", [1], [{"type": 3}], [{"type": "function"}]])
def test_a_malformed_choice_raises_no_foreign_error(tools: Any) -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": tools}
    body = {"input": "hi", "tools": [LOOK], "tool_choice": choice}
    try:
        prompt = parse_request("responses", json.dumps(body).encode())
        build(prompt, "m", provider="custom", wire_api="chat", base_url="http://x/v1")
    except StreamError as error:
        assert error.info.kind == "invalid_request"  # noqa: PT017
