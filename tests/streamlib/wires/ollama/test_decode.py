"""Recorded requests to Ollama's native API decode into prompts that build them again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import (
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Prompt,
    Reasoning,
    ReasoningOptions,
    Text,
    build,
    parse_request,
)
from tests.support.shared import BODIES, STREAMS, Recording, each_recording


def decoded(request: Any) -> Prompt:
    return parse_request("ollama", json.dumps(request).encode())


def rebuilt(request: Any) -> Any:
    return json.loads(build(decoded(request), request["model"], provider="ollama").body)


def plain(request: dict[str, Any]) -> dict[str, Any]:
    """Without ids, which older servers know nothing of, and without empty values."""
    for message in request["messages"]:
        message.pop("tool_call_id", None)
        for call in message.get("tool_calls", ()):
            call.pop("id", None)
    return {key: value for key, value in request.items() if value not in (None, "", [], {})}


@each_recording("ollama-native", [*STREAMS, *BODIES])
def test_recorded_request_is_rebuilt_message_for_message(recording: Recording) -> None:
    request = recording.meta.get("request_json")
    if isinstance(request, dict) and request.get("messages"):
        assert plain(rebuilt(request)) == plain(request)


REQUEST: dict[str, Any] = {
    "model": "qwen3:4b",
    "stream": False,
    "think": "low",
    "format": {"type": "object"},
    "logprobs": True,
    "top_logprobs": 2,
    "keep_alive": "5m",
    "options": {
        "num_predict": 9,
        "temperature": 0.5,
        "stop": "END",
        "num_ctx": 32768,
        "min_p": None,
    },
    "tools": [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
        }
    ],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "see", "images": ["iVBORw0KGgo="]},
        {
            "role": "assistant",
            "content": "so",
            "thinking": "hm",
            "tool_calls": [
                {"function": {"name": "f", "arguments": {"a": 1.0}}},
                {"function": {"name": "g", "arguments": {}}},
                {"function": {"name": "f", "arguments": {"a": 2}}},
            ],
        },
        {"role": "tool", "tool_name": "g", "content": "of g"},
        {"role": "tool", "tool_name": "f", "content": "first f"},
        {"role": "tool", "content": "second f"},
        {"role": "user", "content": "and?"},
    ],
}


def test_every_setting_is_read() -> None:
    prompt = decoded(REQUEST)
    assert (prompt.model, prompt.stream, prompt.instructions, prompt.reasoning) == (
        "qwen3:4b",
        False,
        "s",
        ReasoningOptions("low"),
    )
    assert (prompt.max_output_tokens, prompt.temperature, prompt.stop, prompt.logprobs) == (
        9,
        0.5,
        ("END",),
        2,
    )
    assert (prompt.output_schema, [tool.name for tool in prompt.tools]) == (
        {"type": "object"},
        ["f"],
    )
    assert prompt.extra == {"keep_alive": "5m", "options": {"num_ctx": 32768}}


def test_assistant_message_becomes_the_items_once_received() -> None:
    items = decoded(REQUEST).items
    kinds = [Message, Reasoning, Message, *[FunctionCall] * 3, *[FunctionCallOutput] * 3, Message]
    assert [type(item) for item in items] == kinds
    message = items[0]
    assert isinstance(message, Message)
    assert message.content == (Text("see"), Image("iVBORw0KGgo=", media_type="image/png"))
    assert items[3].arguments == '{"a": 1.0}'  # type: ignore[union-attr]


def test_results_are_matched_by_name_then_by_order() -> None:
    items = decoded(REQUEST).items
    calls = {
        item.call_id: (item.name, item.arguments)
        for item in items
        if isinstance(item, FunctionCall)
    }
    answers = [
        (calls[item.call_id], item.output) for item in items if isinstance(item, FunctionCallOutput)
    ]
    assert answers == [
        (("g", "{}"), "of g"),
        (("f", '{"a": 1.0}'), "first f"),
        (("f", '{"a": 2}'), "second f"),
    ]


def test_results_that_name_their_call_are_matched() -> None:
    calls = [{"id": name, "function": {"name": "f", "arguments": {}}} for name in "ab"]
    turns = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_name": "f", "tool_call_id": "b", "content": "of b"},
        {"role": "tool", "tool_name": "f", "tool_call_id": "a", "content": "of a"},
    ]
    outputs = [
        item for item in decoded({"messages": turns}).items if isinstance(item, FunctionCallOutput)
    ]
    assert [(item.call_id, item.output) for item in outputs] == [("b", "of b"), ("a", "of a")]


def test_generated_ids_stay_distinct_over_the_conversation() -> None:
    call = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
    }
    result = {"role": "tool", "tool_name": "f", "content": "1"}
    prompt = decoded({"messages": [{"role": "user", "content": "x"}, call, result, call, result]})
    calls = [item.call_id for item in prompt.items if isinstance(item, FunctionCall)]
    assert len(set(calls)) == 2
    assert [item.call_id for item in prompt.items if isinstance(item, FunctionCallOutput)] == calls
    assert build(prompt, "ollama:m").report == []


@pytest.mark.parametrize(
    ("think", "reasoning"),
    [
        (True, ReasoningOptions()),
        (False, "off"),
        ("high", ReasoningOptions("high")),
        (None, None),
        ("strange", None),
    ],
)
def test_thinking_is_read_in_every_form(think: Any, reasoning: Any) -> None:
    assert decoded({"messages": [], "think": think}).reasoning == reasoning


def test_tool_that_is_no_function_has_its_name_or_type() -> None:
    tools = [{"type": "web_search"}, {"type": "mcp", "name": "files"}]
    prompt = decoded({**REQUEST, "tools": tools})
    assert [tool.name for tool in prompt.tools] == ["web_search", "files"]
    assert [tool.native for tool in prompt.tools] == tools


def test_unlimited_output_stays_in_extra() -> None:
    prompt = decoded(
        {
            "messages": [{"role": "user", "content": "x"}],
            "options": {"num_predict": -1},
        }
    )
    assert (prompt.max_output_tokens, prompt.extra) == (
        None,
        {"options": {"num_predict": -1}},
    )


def test_stream_is_true_unless_it_is_false() -> None:
    assert decoded({"messages": []}).stream is True
