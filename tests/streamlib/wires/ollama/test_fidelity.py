"""What a request to Ollama holds beside the fields of `Prompt` is sent again (invariant 12, B3)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from streamlib import Request, build, parse_request

HI: Final = {"role": "user", "content": "hi"}
CALL: Final = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}
PNG: Final = "iVBORw0KGgo="
PARAMETERS: Final = {"type": "object", "properties": {}}


def request_again(messages: list[Any], **settings: Any) -> Request:
    body = {"model": "m", "messages": messages, **settings}
    return build(parse_request("ollama", msgspec.json.encode(body)), "ollama:m")


def rebuilt(messages: list[Any], **settings: Any) -> Any:
    request = request_again(messages, **settings)
    assert request.report == []
    return msgspec.json.decode(request.body)


@pytest.mark.parametrize(
    "setting",
    [
        {"think": "deep"},
        {"options": {"stop": []}},  # replaces those of the Modelfile
        {"top_logprobs": 3},
        {
            "tools": [
                {
                    "type": "function",
                    "items": {"a": 1},
                    "function": {"name": "f", "parameters": PARAMETERS, "x": 1},
                }
            ]
        },
    ],
)
def test_setting_is_sent_again(setting: dict[str, Any]) -> None:
    body = rebuilt([HI], **setting)
    assert {key: body.get(key) for key in setting} == setting


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "system", "content": "a", "images": [PNG]}, HI],
        [{**HI, "x": 1}],
        [HI, {"role": "assistant", "content": "a", "images": [PNG]}],
        [
            HI,
            {"role": "assistant", "content": "a"},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {
                "role": "tool",
                "tool_name": "f",
                "tool_call_id": "c",
                "content": "b",
                "images": [PNG],
                "x": 1,
            },
        ],
    ],
)
def test_messages_are_sent_again(messages: list[Any]) -> None:
    assert rebuilt(messages)["messages"] == messages


def test_conversation_without_a_field_is_reported() -> None:
    prompt = parse_request("ollama", msgspec.json.encode({"model": "m", "messages": [HI]}))
    prompt = msgspec.structs.replace(prompt, conversation_id="k")
    assert [change.path for change in build(prompt, "ollama:m").report] == ["/conversation_id"]
