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
    Text,
    build,
    parse_request,
)
from tests.support.shared import BODIES, STREAMS, Recording, each_recording


def decoded(request: Any) -> Prompt:
    return parse_request("messages", json.dumps(request).encode())


def rebuilt(prompt: Prompt) -> dict[str, Any]:
    model = prompt.model or "any"
    return json.loads(
        build(prompt, model, provider="custom", wire_api="messages", base_url="http://x").body
    )  # type: ignore[no-any-return]


def plain(value: Any) -> Any:
    """Without cache markers, nulls, empty lists and false flags, which mean the same as no key."""
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for key, inner in value.items():
        plain_inner = plain(inner)
        says_nothing = plain_inner is None or plain_inner is False or plain_inner == []
        if key != "cache_control" and not says_nothing:
            result[key] = plain_inner
    return result


def as_blocks(content: Any) -> list[Any]:
    """A string is one text block, as the API reads it."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content)


def turns(request: Any) -> list[Any]:
    """Runs of one role, each with its blocks."""
    runs: list[Any] = []
    for turn in request["messages"]:
        blocks = as_blocks(turn["content"])
        if runs and runs[-1][0] == turn["role"]:
            runs[-1][1].extend(blocks)
        else:
            runs.append((turn["role"], blocks))
    for _, blocks in runs:
        for block in blocks:
            content = block.get("content")
            if content == "":
                block["content"] = []
            elif isinstance(content, str):
                block["content"] = as_blocks(content)
    return plain(runs)  # type: ignore[no-any-return]


@each_recording("anthropic-messages", [*STREAMS, *BODIES])
def test_a_recorded_request_is_rebuilt_turn_for_turn(recording: Recording) -> None:
    request = recording.meta.get("request_json")
    if isinstance(request, str):
        request = json.loads(request)
    if not request or not request.get("messages"):
        return
    if not all(isinstance(turn, dict) for turn in request["messages"]):
        return
    prompt = decoded(request)
    if any(not isinstance(tool.schema, (dict, type(None))) for tool in prompt.tools):
        # The service refused this request, too: a schema that is `true`.
        assert recording.meta["status"] == 400
        with pytest.raises(StreamError, match="a schema is an object"):
            rebuilt(prompt)
        return
    report = build(
        prompt, "any", provider="custom", wire_api="messages", base_url="http://x"
    ).report
    if any(change.path.startswith("/input") for change in report):
        return
    again = rebuilt(prompt)
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


def test_parts_of_a_result_are_decoded_one_by_one() -> None:
    content = [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        {"type": "hologram", "x": 1},
    ]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": content}
    output = decoded({**REQUEST, "messages": [{"role": "user", "content": [result]}]}).items[-1]
    assert isinstance(output, FunctionCallOutput)
    text, image, other = output.output
    assert (text, getattr(image, "url", None)) == (Text("see"), "https://x/y.png")
    assert other == Text('{"type":"hologram","x":1}', native=content[2])


def test_every_setting_is_decoded() -> None:
    prompt = decoded(REQUEST)
    items: Any = prompt.items
    assert (prompt.model, prompt.stream, prompt.max_output_tokens) == ("claude-opus-5", True, 100)
    assert (prompt.instructions, items[0].text) == ("Be terse.", "And kind.")
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


def test_an_assistant_turn_is_decoded_as_it_was_received() -> None:
    items: Any = decoded(REQUEST).items
    kinds = [Message, Message, Reasoning, FunctionCall, Opaque, FunctionCallOutput, Message, Opaque]
    assert [type(item) for item in items] == kinds
    assert (items[2].signature, items[3].arguments) == ("EqQB", '{"a": 1.0}')
    assert (items[5].output, items[5].is_error) == ("18C", True)
    assert items[7].native == {"role": "user"}


def test_the_complete_request_is_rebuilt() -> None:
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
