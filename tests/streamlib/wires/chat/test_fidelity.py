"""What a Chat request holds beside the fields of `Prompt` is sent again (invariant 12, B3)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from streamlib import Message, Request, Text, build, parse_request
from tests.support.cases import each_case

HI: Final = {"role": "user", "content": "hi"}
MARK: Final = {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}
PNG: Final = "data:image/png;base64,iVBORw0KGgo="
SCHEMA: Final = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
CUSTOM: Final = {"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}}


def request_again(messages: list[Any], target: str = "openai:m", **settings: Any) -> Request:
    body = {"model": "m", "messages": messages, **settings}
    prompt = parse_request("chat", msgspec.json.encode(body))
    return build(prompt, target, wire_api="chat")


def rebuilt(messages: list[Any], **settings: Any) -> Any:
    request = request_again(messages, **settings)
    assert request.report == []
    return msgspec.json.decode(request.body)


def named_format(**json_schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, **json_schema}}


@each_case(
    "setting",
    [
        {"response_format": named_format(description="d", strict=True)},
        {"response_format": named_format(strict=False)},
        {"stream": True, "stream_options": {"include_obfuscation": False, "include_usage": True}},
        {"stream": True, "stream_options": {"include_usage": False}},
        {"seed": 0},
        {"top_logprobs": 3},
        {"max_tokens": 3, "max_completion_tokens": 4},
        {"user": "u", "safety_identifier": "s"},
        {"tools": [CUSTOM], "tool_choice": {"type": "custom", "custom": {"name": "other"}}},
    ],
)
def test_setting_is_sent_again(setting: dict[str, Any]) -> None:
    body = rebuilt([HI], **setting)
    assert {key: body.get(key) for key in setting} == setting


@pytest.mark.parametrize(
    "message",
    [
        {"role": "system", "content": [{"type": "text", "text": "a", **MARK}]},
        {
            "role": "developer",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            "name": "n",
        },
        {"role": "system", "content": "a", "name": "n"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a", **MARK},
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}, **MARK},
                {"type": "file", "file": {"file_id": "f", "filename": "a.pdf"}, **MARK},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}, **MARK},
            ],
        },
        {"role": "assistant", "content": "a", "name": "n"},
        {"role": "assistant", "content": "a", "refusal": "b", "name": "n"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}],
        },
    ],
)
def test_message_is_sent_again(message: dict[str, Any]) -> None:
    assert rebuilt([message, HI])["messages"] == [message, HI]


def test_parts_of_a_result_stay_apart() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calls = {"role": "assistant", "content": None, "name": "n", "tool_calls": [call]}
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [HI, calls, {"role": "tool", "tool_call_id": "c", "content": texts}]
    assert rebuilt(messages)["messages"] == messages


def test_adjacent_messages_of_the_assistant_stay_apart() -> None:
    """B3: a refusal after a message without text was joined to it."""
    messages = [
        HI,
        {"role": "assistant", "content": None, "refusal": "a"},
        {"role": "assistant", "content": None, "refusal": "b"},
    ]
    assert rebuilt(messages)["messages"] == messages


def test_two_refusals_of_a_message_are_joined_and_reported() -> None:
    part = {"type": "refusal", "refusal": "a"}
    request = request_again([HI, {"role": "assistant", "content": [part], "refusal": "b"}])
    assert msgspec.json.decode(request.body)["messages"][1]["refusal"] == "ab"
    assert [change.path for change in request.report] == ["/input/2"]


def test_cache_marker_of_an_earlier_part_stays_there() -> None:
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    message = {"role": "user", "content": [marked, {"type": "text", "text": "b"}]}
    request = request_again([message], "openrouter:m")
    assert msgspec.json.decode(request.body)["messages"] == [message]


def test_empty_message_of_the_assistant_is_reported() -> None:
    request = request_again([HI, {"role": "assistant", "content": ""}])
    assert [change.path for change in request.report] == ["/input/1"]


def test_key_that_a_provider_refuses_is_reported() -> None:
    request = request_again([{**HI, "name": "n"}], "groq:m")
    assert [change.path for change in request.report] == ["/input/0"]


def test_format_of_a_schema_is_adapted_with_its_name() -> None:
    """A provider without schemas gets JSON mode, not what `extra` holds of the format."""
    request = request_again([HI], "deepseek:m", response_format=named_format(strict=True))
    assert msgspec.json.decode(request.body)["response_format"] == {"type": "json_object"}


def test_conversation_without_a_field_is_reported() -> None:
    """B3: Chat of most providers has no field for it."""
    request = request_again([HI], "groq:m", prompt_cache_key="k")
    assert [change.path for change in request.report] == ["/conversation_id"]


def test_plain_system_message_is_the_instructions() -> None:
    prompt = parse_request("chat", b'{"messages":[{"role":"system","content":"a"}]}')
    assert prompt.instructions == "a"
    content = b'[{"type":"text","text":"a"},{"type":"text","text":"b"}]'
    body = b'{"messages":[{"role":"system","content":%s}]}' % content
    item = parse_request("chat", body).items[0]
    assert isinstance(item, Message)
    assert list(item.content) == [Text("a"), Text("b")]
