"""A request of Cohere's v2 chat decodes into a `Prompt` that builds the same request again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Prompt,
    ReasoningOptions,
    StreamError,
    Text,
    build,
    parse_request,
)
from streamlib.request.schemas import ANY_OBJECT
from tests.support.cases import each_case

HI = {"role": "user", "content": "Hi"}
FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CITED = {"start": 0, "end": 2, "text": "Hi", "sources": [{"type": "tool", "id": "t"}]}


def decoded(**body: Any) -> Prompt:
    return parse_request("cohere", msgspec.json.encode({"model": "m", "messages": [HI], **body}))


def built_again(**body: Any) -> tuple[Any, list[Any]]:
    """The body that the decoded request builds, and the report."""
    model = "cohere:command-a-reasoning-08-2025"
    request = build(decoded(**body), model)
    return msgspec.json.decode(request.body), request.report


SETTINGS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 0.7},
    {"p": 0.0},
    {"k": 0},
    {"k": 5},
    {"seed": 0},
    {"seed": 7},
    {"presence_penalty": 0.0},
    {"frequency_penalty": 0.0},
    {"frequency_penalty": 0.5},
    {"max_tokens": 1},
    {"stop_sequences": ["END"]},
    {"stop_sequences": ["a", "b"]},
    {"logprobs": True},
    {"logprobs": False},
    {"thinking": {"type": "disabled"}},
    {"thinking": {"type": "enabled"}},
    {"thinking": {"type": "enabled", "token_budget": 1}},
    {"thinking": {"type": "enabled", "token_budget": 777}},
    {"thinking": {"type": "enabled", "token_budget": 0}},
    {"thinking": {"type": "enabled", "token_budget": -1}},
    {"thinking": {"type": "enabled", "token_budget": True}},
    {"thinking": {"type": "enabled", "token_budget": "9"}},
    {"thinking": {"type": "enabled", "level": "high"}},
    {"thinking": {"type": "disabled", "token_budget": 5}},
    {"thinking": {"type": "later"}},
    {"response_format": {"type": "json_object"}},
    {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
    {"response_format": {"type": "json_object", "json_schema": "x"}},
    {"response_format": {"type": "json_object", "strict": True}},
    {"response_format": {"type": "text"}},
    {"safety_mode": "NONE"},
    {"documents": ["a", {"data": {"text": "b"}}]},
    {"citation_options": {"mode": "FAST"}},
    {"priority": 0},
    {"raw_prompting": False},
    {"tools": [TOOL]},
    {"tools": [TOOL], "strict_tools": True},
    {"tools": [{**TOOL, "function": {"name": "g", "parameters": SCHEMA}}, TOOL]},
    {"tools": [{**TOOL, "region": "eu"}]},
    {"tools": [{**TOOL, "function": {**FUNCTION, "cached": True}}]},
    {"tools": [{"type": "web", "name": "web"}]},
    {"tools": [{"type": "web"}]},
    {"tools": [TOOL], "tool_choice": "REQUIRED"},
    {"tools": [TOOL], "tool_choice": "NONE"},
    {"tools": [TOOL], "tool_choice": "SOMETIMES"},
]


@each_case("fields", SETTINGS, ids=str)
def test_setting_is_built_again(fields: dict[str, Any]) -> None:
    body, report = built_again(**fields)
    assert {key: body.get(key) for key in fields} == fields
    assert body.keys() == {"model", "messages", "stream", *fields}
    assert report == []


@each_case(
    "fields, name, value",
    [
        ({"temperature": 0}, "temperature", 0),
        ({"p": 0.0}, "top_p", 0.0),
        ({"k": 0}, "top_k", 0),
        ({"seed": 0}, "seed", 0),
        ({"presence_penalty": 0.0}, "presence_penalty", 0.0),
        ({"frequency_penalty": 0.0}, "frequency_penalty", 0.0),
        ({"max_tokens": 9}, "max_output_tokens", 9),
        ({"stop_sequences": ["END"]}, "stop", ("END",)),
        ({"logprobs": True}, "logprobs", 0),
        ({"logprobs": False}, "logprobs", None),
        ({"thinking": {"type": "disabled"}}, "reasoning", "off"),
        (
            {"thinking": {"type": "enabled", "token_budget": 777}},
            "reasoning",
            ReasoningOptions(budget=777),
        ),
        ({"response_format": {"type": "json_object"}}, "output_schema", ANY_OBJECT),
        ({"response_format": {"type": "json_object", "json_schema": SCHEMA}}, "schema", SCHEMA),
        ({"response_format": {"type": "text"}}, "output_schema", None),
        ({"tools": [TOOL], "tool_choice": "REQUIRED"}, "tool_choice", "required"),
        ({"tools": [TOOL], "tool_choice": "NONE"}, "tool_choice", "none"),
        ({"safety_mode": None}, "extra", None),
        ({"stream": True}, "stream", True),
        ({}, "stream", False),
    ],
)
def test_setting_is_decoded(fields: dict[str, Any], name: str, value: Any) -> None:
    assert getattr(decoded(**fields), name) == value


@pytest.mark.parametrize("strict", [True, False])
def test_strict_tools_are_those_of_all_tools(strict: bool) -> None:
    prompt = decoded(tools=[TOOL, {**TOOL, "function": {"name": "g"}}], strict_tools=strict)
    assert [tool.strict for tool in prompt.tools] == [strict, strict]
    assert prompt.extra is None
    assert decoded(strict_tools=strict).extra == {"strict_tools": strict}
    assert decoded(tools=[TOOL], strict_tools="no").extra == {"strict_tools": "no"}


MESSAGES: list[list[dict[str, Any]]] = [
    [{"role": "system", "content": "Be brief."}, HI],
    [{"role": "system", "content": "Be brief."}, {"role": "system", "content": "Now."}, HI],
    [{"role": "system", "content": "Be brief.", "tag": 1}, HI],
    [HI, {"role": "system", "content": "Now."}, HI],
    [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
    [{"role": "user", "content": [{"type": "text", "text": "a", "tag": 1}]}],
    [{"role": "user", "content": "a", "tag": 1}],
    [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}},
            ],
        }
    ],
    [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            ],
        }
    ],
    [HI, {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}, HI],
    [
        HI,
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "c"}]},
        HI,
    ],
    [HI, {"role": "assistant", "content": [{"type": "text", "text": "a"}], "tag": 1}, HI],
    [
        HI,
        {
            "role": "assistant",
            "tool_plan": "Look.",
            "tool_calls": [CALL, {**CALL, "id": "c2", "tag": 1}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "2"}]},
    ],
    [
        HI,
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}],
            "citations": [{**CITED, "content_index": 1}],
        },
        HI,
    ],
    [
        HI,
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Hi"}],
            "citations": [CITED],
        },
        HI,
    ],
    [
        HI,
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Hi"}],
            "citations": [{**CITED, "content_index": 9}],
        },
        HI,
    ],
    [
        HI,
        {"role": "assistant", "tool_calls": [CALL]},
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "document", "document": {"data": {"text": "3"}, "id": "d"}}],
            "tag": 1,
        },
    ],
]


@each_case("messages", MESSAGES, ids=str)
def test_messages_are_built_again(messages: list[dict[str, Any]]) -> None:
    body, report = built_again(messages=messages)
    assert body["messages"] == messages
    assert report == []


def test_instructions_are_the_first_plain_system_message() -> None:
    plain = {"role": "system", "content": "Be brief."}
    assert decoded(messages=[plain, HI]).instructions == "Be brief."
    for messages in ([HI, plain], [{**plain, "tag": 1}, HI]):
        prompt = decoded(messages=messages)
        assert prompt.instructions is None
        assert len(prompt.items) == 2
    two = decoded(messages=[plain, {"role": "system", "content": "Now."}, HI])
    assert (two.instructions, len(two.items)) == ("Be brief.", 2)
    several = {"role": "system", "content": [{"type": "text", "text": "a"}] * 2}
    assert decoded(messages=[several, HI]).instructions is None


@pytest.mark.parametrize("content", ["", [{"type": "text", "text": ""}]])
def test_empty_text_is_a_message_where_nothing_is_beside_it(content: Any) -> None:
    def kinds(**fields: Any) -> list[str]:
        items = decoded(messages=[HI, {"role": "assistant", "content": content, **fields}]).items
        return [type(item).__name__ for item in items[1:]]

    assert kinds() == ["Message"]
    assert kinds(tool_calls=[CALL]) == ["FunctionCall"]
    assert kinds(tool_plan="Look.") == ["Message"]


def test_calls_without_ids_get_different_ones() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    answers = {"role": "assistant", "tool_calls": [call, call]}
    items = decoded(messages=[HI, answers, HI, answers]).items
    ids = [item.call_id for item in items if isinstance(item, FunctionCall)]
    assert ids == ["call_0", "call_1", "call_2", "call_3"]


@pytest.mark.parametrize(
    ("url", "data", "media_type"),
    [
        ("data:image/png;base64,aWNv", "aWNv", "image/png"),
        ("data:;base64,aWNv", "aWNv", None),
        ("data:image/png;charset=x;base64,aWNv", None, None),
        ("data:image/png,raw", None, None),
        ("https://x/a;base64,b", None, None),
    ],
)
def test_image_is_inline_only_in_base64(url: str, data: str | None, media_type: str | None) -> None:
    for image in (url, {"url": url}):
        content = [{"type": "image_url", "image_url": image}]
        (message,) = decoded(messages=[{"role": "user", "content": content}]).items
        assert isinstance(message, Message)
        (part,) = message.content
        assert isinstance(part, Image)
        assert (part.data, part.media_type) == (data, media_type)
        assert part.url == (None if data else url)


def test_content_of_an_unknown_kind_is_text_for_other_wires() -> None:
    content = [{"type": "video", "video": {"id": "v"}}]
    (message,) = decoded(messages=[{"role": "user", "content": content}]).items
    assert isinstance(message, Message)
    assert message.content == (Text('{"id":"v"}', native=content[0]),)


def test_result_keeps_its_text_and_its_keys() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "x", "tag": 1}
    item = decoded(messages=[HI, {"role": "assistant", "tool_calls": [CALL]}, result]).items[-1]
    assert isinstance(item, FunctionCallOutput)
    assert (item.call_id, item.output, item.native) == ("c1", "x", {"tag": 1})


@pytest.mark.parametrize(
    "message",
    [
        {"role": "dog", "content": "x"},
        {"role": "user"},
        {"role": "tool", "content": "x"},
        {"role": "tool", "tool_call_id": 5, "content": "x"},
        {"role": "user", "content": [{"text": "x"}]},
        {"role": "user", "content": [{"type": "text", "text": 5}]},
    ],
)
def test_message_that_is_none_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(StreamError):
        decoded(messages=[message])


def test_setting_is_not_left_in_extra_too() -> None:
    for fields in (
        {"logprobs": True},
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled", "token_budget": 777}},
        {"response_format": {"type": "json_object"}},
        {"tools": [TOOL], "tool_choice": "REQUIRED"},
        {"tools": [TOOL], "strict_tools": True},
    ):
        assert decoded(**fields).extra is None
