"""A recorded Messages request decodes into a `Prompt` that builds the same request again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import (
    CacheOptions,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Opaque,
    Prompt,
    Reasoning,
    StreamError,
    build,
    parse_request,
)
from tests.support.shared import BODIES, STREAMS, Recording, each_recording

EXPLAINED = {
    "stream": "a whole body is asked for by leaving `stream` out or by false",
    "model": "recordings of Vertex and Bedrock name the model elsewhere",
    "max_tokens": "Messages needs it; where a recording lacks it one is generated",
}
"""Settings that may differ, and why."""


def decoded(request: Any) -> Prompt:
    return parse_request("messages", json.dumps(request).encode())


def rebuilt(prompt: Prompt) -> dict[str, Any]:
    model = prompt.model or "any"
    return json.loads(
        build(prompt, model, provider="custom", wire_api="messages", base_url="http://x").body
    )  # type: ignore[no-any-return]


def plain(value: Any) -> Any:
    """Without cache markers, nulls, empty lists and false flags: ways of saying nothing."""
    if isinstance(value, dict):
        kept = {key: plain(one) for key, one in value.items() if key != "cache_control"}
        return {
            key: one
            for key, one in kept.items()
            if one is not None and one != [] and one is not False
        }
    return [plain(one) for one in value] if isinstance(value, list) else value


def turns(request: Any) -> list[Any]:
    """Runs of one role, each block alike: a string is a text block, as the API reads it."""
    found: list[Any] = []
    for turn in request["messages"]:
        content = (
            turn["content"]
            if isinstance(turn["content"], list)
            else [{"type": "text", "text": turn["content"]}]
        )
        if found and found[-1][0] == turn["role"]:
            found[-1][1].extend(content)
        else:
            found.append((turn["role"], list(content)))
    for _, blocks in found:
        for block in blocks:
            if isinstance(block.get("content"), str):
                block["content"] = (
                    [{"type": "text", "text": block["content"]}] if block["content"] else []
                )
    return plain(found)  # type: ignore[no-any-return]


@each_recording("anthropic-messages", [*STREAMS, *BODIES])
def test_a_recorded_request_is_rebuilt_turn_for_turn(recording: Recording) -> None:
    request = recording.meta.get("request_json")
    request = json.loads(request) if isinstance(request, str) else request
    if (
        not request
        or not request.get("messages")
        or not all(isinstance(turn, dict) for turn in request["messages"])
    ):
        return
    again = rebuilt(decoded(request))
    changed = {
        change.path
        for change in build(
            decoded(request), "any", provider="custom", wire_api="messages", base_url="http://x"
        ).report
    }
    if not any(path.startswith("/input") for path in changed):
        assert [(role, plain(blocks)) for role, blocks in turns(again)] == [
            (role, plain(blocks)) for role, blocks in turns(request)
        ]


REQUEST = {
    "model": "claude-opus-5",
    "max_tokens": 100,
    "stream": True,
    "system": [{"type": "text", "text": "Be terse."}, {"type": "text", "text": "And kind."}],
    "thinking": {"type": "adaptive", "display": "summarized"},
    "output_config": {"effort": "high"},
    "tools": [
        {"name": "f", "description": "d", "input_schema": {"type": "object"}},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    "stop_sequences": ["END"],
    "metadata": {"user_id": "u"},
    "speed": "fast",
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1.0}},
                {"type": "hologram", "x": 1},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": "18C",
                    "is_error": True,
                    "cache_control": {"type": "ephemeral", "ttl": "1h"},
                },
                {"type": "text", "text": "so?"},
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
                {"type": "container_upload", "file_id": "f"},
            ],
        },
    ],
}


def test_every_setting_finds_its_place() -> None:
    prompt = decoded(REQUEST)
    assert (prompt.model, prompt.stream, prompt.max_output_tokens) == ("claude-opus-5", True, 100)
    assert (prompt.instructions, prompt.items[0].text) == ("Be terse.", "And kind.")  # type: ignore[union-attr]
    assert prompt.thinking is not None
    assert (prompt.thinking.effort, prompt.thinking.display) == ("high", "summarized")
    assert ([tool.name for tool in prompt.tools], prompt.tools[1].native is not None) == (
        ["f", "web_search"],
        True,
    )
    assert (prompt.tool_choice, prompt.parallel_tools, prompt.stop, prompt.user_id) == (
        "required",
        False,
        ("END",),
        "u",
    )
    assert prompt.extra == {"speed": "fast"}
    assert prompt.cache == CacheOptions("1h", (5,))


def test_an_assistant_turn_is_read_as_it_was_once_answered() -> None:
    items = decoded(REQUEST).items
    kinds = [Message, Message, Reasoning, FunctionCall, Opaque, FunctionCallOutput, Message, Opaque]
    assert [type(item) for item in items] == kinds
    assert (items[2].signature, items[3].arguments) == ("EqQB", '{"a": 1.0}')  # type: ignore[union-attr]
    assert (items[5].output, items[5].is_error) == ("18C", True)  # type: ignore[union-attr]
    assert items[7].native == {"role": "user"}


def test_the_whole_request_is_built_again() -> None:
    again = rebuilt(decoded(REQUEST))
    assert turns(again) == turns(json.loads(json.dumps(REQUEST)))
    for key in (
        "system",
        "thinking",
        "output_config",
        "tools",
        "tool_choice",
        "stop_sequences",
        "metadata",
        "speed",
        "max_tokens",
    ):
        assert again[key] == REQUEST[key]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b'{"messages":[1]}',
        b'{"messages":[{"role":"user"}]}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_anything_else_is_an_invalid_request(body: bytes) -> None:
    with pytest.raises(StreamError) as caught:
        parse_request("messages", body)
    assert caught.value.kind == "invalid_request"
