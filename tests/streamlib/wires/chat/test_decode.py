"""Recorded Chat requests decode into prompts that build the same requests again."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from streamlib import (
    Audio,
    CacheOptions,
    CustomToolCall,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Prompt,
    Provider,
    Reasoning,
    ReasoningOptions,
    Request,
    Text,
    build,
    parse_request,
)
from streamlib.providers.models import Traits
from streamlib.providers.shapes import (
    ANYTHING,
    EFFORT,
    ENABLE_THINKING,
    REASONING_OBJECT,
    TEMPLATE_ENABLE_THINKING,
    THINKING_TYPE,
    ChatShape,
    Thinking,
)
from tests.support.cases import each_case
from tests.support.shared import BODIES, PAYLOADS, STREAMS, Recording, each_recording

STYLES: dict[str, Thinking] = {
    "thinking": THINKING_TYPE,
    "enable_thinking": ENABLE_THINKING,
    "reasoning": REASONING_OBJECT,
    "chat_template_kwargs": TEMPLATE_ENABLE_THINKING,
}
SAME = frozenset(
    {"messages", "stream", "stream_options", "random_seed", "functions", "function_call"}
)
"""Top-level keys that are compared elsewhere, or are other names of a key that is compared."""


def decoded(request: Any) -> Prompt:
    return parse_request("chat", json.dumps(request).encode())


def shape_of(request: dict[str, Any]) -> ChatShape:
    """The shape that a provider file would give the server that this request was sent to."""
    shape = msgspec.structs.replace(
        ANYTHING,
        developer_role=True,
        thinking=next((style for key, style in STYLES.items() if key in request), EFFORT),
        max_tokens="max_tokens",
    )
    if "max_completion_tokens" in request:
        shape = msgspec.structs.replace(shape, max_tokens="max_completion_tokens")
    if request.get("tool_choice") == "any":
        shape = msgspec.structs.replace(shape, tool_choices={"required": "any"})
    else:
        shape = msgspec.structs.replace(shape, tool_choices={})
    if any("reasoning" in turn for turn in request["messages"]):
        echo = ("reasoning_details", "reasoning")
        shape = msgspec.structs.replace(shape, reasoning_echo=echo)
    return shape


def rebuilt(request: dict[str, Any]) -> Request:
    provider = Provider("recorded", base_url="http://x", chat=shape_of(request))
    return build(
        decoded(request), request.get("model") or "any", provider=provider, models={"": Traits()}
    )


def plain(value: Any) -> Any:
    """Without cache markers, nulls and empty values, which have no effect."""
    if isinstance(value, dict):
        remaining = {key: plain(inner) for key, inner in value.items() if key != "cache_control"}
        return {key: inner for key, inner in remaining.items() if inner not in (None, [], {}, "")}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def turn_of(message: dict[str, Any]) -> Any:
    """A message as every server reads it: a string is a text part, adjacent texts are one text."""
    content = message.get("content")
    parts = (
        [{"type": "text", "text": content}]
        if isinstance(content, str)
        else [part_of(part) for part in content or ()]
    )
    if message["role"] in ("assistant", "tool", "system", "developer"):
        joined = {"assistant": "", "tool": "\n"}.get(message["role"], "\n\n").join(
            str(part.get("text", "")) for part in parts
        )
        parts = [{"type": "text", "text": joined}] if joined else []
    calls = [
        {
            "id": str(call.get("id", "call_0")),
            "name": call["function"]["name"],
            "arguments": {"null": ""}.get(text := call["function"]["arguments"], text) or "{}",
        }
        for call in message.get("tool_calls") or ()
    ]
    repeated = {"reasoning_content"} & message.keys() if "reasoning" in message else set()
    repeated |= {"reasoning"} if message.get("reasoning_details") else set()
    rest = {
        key: value
        for key, value in message.items()
        if key not in {"content", "tool_calls", "prefix", *repeated}
    }
    if message["role"] == "tool":
        rest.setdefault("tool_call_id", "call_0")
    return plain({**rest, "content": parts, "calls": calls})


def part_of(part: Any) -> Any:
    if part.get("type") == "image_url" and isinstance(part["image_url"], str):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    if part.get("type") == "input_audio":
        return {
            "type": "input_audio",
            "data": part["input_audio"]["data"]
            if isinstance(part["input_audio"], dict)
            else part["input_audio"],
        }
    return (
        part
        if "type" in part
        else {"type": "text", "text": json.dumps(part, ensure_ascii=False, separators=(",", ":"))}
    )


UNANSWERED = {
    "the call had no output; it is answered with an error",
    "an output without its call, sent as user text",
}
"""Repairs of recordings that hold only a part of their conversation."""


def settings(request: dict[str, Any]) -> Any:
    """Everything but the conversation, in one form: 0 alternatives are none, one stop is a list."""
    remaining = {
        key: value for key, value in request.items() if key not in SAME and value is not False
    }
    remaining["seed"] = request.get("seed") or request.get("random_seed")
    remaining["top_logprobs"] = request.get("top_logprobs") or None
    remaining["stop"] = (
        [request["stop"]] if isinstance(request.get("stop"), str) else request.get("stop")
    )
    remaining["tools"] = [tool_of(tool) for tool in request.get("tools") or ()]
    form = (request.get("response_format") or {}).get("json_schema")
    remaining["response_format"] = form["schema"] if form else request.get("response_format")
    if "effort" in (remaining.get("reasoning") or {}):
        remaining["reasoning"] = {
            key: value for key, value in remaining["reasoning"].items() if key != "enabled"
        }
    if not remaining["tools"]:
        remaining.pop("tool_choice", None)
        remaining.pop("parallel_tool_calls", None)
    return plain(remaining)


def tool_of(tool: dict[str, Any]) -> Any:
    """Functions have parameters, also where they take none."""
    parameters = {"parameters": {"type": "object"}}
    return (
        plain({"type": "function", **tool, "function": {**parameters, **tool["function"]}})
        if "function" in tool
        else plain(tool)
    )


@each_recording("openai-chat", [*STREAMS, *BODIES, *PAYLOADS])
def test_recorded_request_is_rebuilt_message_for_message(recording: Recording) -> None:
    request = recording.meta.get("request_json")
    if not isinstance(request, dict) or not any(
        isinstance(turn, dict) and turn.get("content") for turn in request.get("messages") or ()
    ):
        return
    if recording.meta.get("status") == 400:
        return  # the server did not take it either
    request.setdefault("model", "any")
    again = rebuilt(request)
    sent = json.loads(again.body)
    if not request.get("functions"):
        assert settings(sent) == settings(request)
    if not any(change.reason in UNANSWERED for change in again.report):
        expected = [turn_of(turn) for turn in request["messages"]]
        assert [turn_of(turn) for turn in sent["messages"]] == [
            turn for turn in expected if turn.keys() != {"role"}
        ]


REQUEST = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_completion_tokens": 100,
    "reasoning_effort": "high",
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": True},
    },
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "f",
                "description": "d",
                "parameters": {"type": "object"},
                "strict": True,
            },
        },
        {
            "type": "custom",
            "custom": {
                "name": "p",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "a"}},
            },
        },
        {"type": "web_search"},
    ],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": False,
    "stop": "END",
    "logprobs": True,
    "top_logprobs": 3,
    "prompt_cache_key": "c",
    "safety_identifier": "u",
    "store": False,
    "messages": [
        {"role": "system", "content": "Be terse."},
        {"role": "developer", "content": [{"type": "text", "text": "And kind."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
                },
                {
                    "type": "file",
                    "file": {
                        "filename": "a.pdf",
                        "file_data": "data:application/pdf;base64,JVBERi0=",
                    },
                },
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
                {"type": "hologram", "x": 1},
            ],
        },
        {
            "role": "assistant",
            "content": "so",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"a": 1.0}'},
                },
                {"id": "c2", "type": "custom", "custom": {"name": "p", "input": "a"}},
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": "18C",
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
        },
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "ok"}]},
        {"role": "user", "content": "and?", "name": "ann"},
    ],
}


def test_every_setting_is_read() -> None:
    prompt = decoded(REQUEST)
    assert (prompt.model, prompt.stream, prompt.max_output_tokens, prompt.reasoning) == (
        "m",
        True,
        100,
        ReasoningOptions("high"),
    )
    assert (prompt.instructions, prompt.items[0].role, prompt.items[0].text) == (
        "Be terse.",
        "developer",
        "And kind.",
    )  # type: ignore[union-attr]
    assert [tool.name for tool in prompt.tools] == ["f", "p", "web_search"]
    assert prompt.tools[1].format == {"type": "grammar", "syntax": "lark", "definition": "a"}
    assert (prompt.tool_choice, prompt.parallel_tools, prompt.stop, prompt.logprobs) == (
        "f",
        False,
        ("END",),
        3,
    )
    assert (prompt.conversation_id, prompt.user_id, prompt.output_schema) == (
        "c",
        "u",
        {"type": "object"},
    )
    # A format of the builder has a name of its own.
    rest = {"json_schema": {"name": "x"}}
    assert prompt.extra == {"store": False, "response_format": rest}
    assert prompt.cache == CacheOptions("1h", (6,))


def test_assistant_message_becomes_the_items_once_received() -> None:
    items = decoded(REQUEST).items
    kinds = [
        Message,
        Message,
        Reasoning,
        Message,
        FunctionCall,
        CustomToolCall,
        FunctionCallOutput,
        FunctionCallOutput,
        Message,
    ]
    assert [type(item) for item in items] == kinds
    any_items: list[Any] = list(items)
    reasoning, call, custom = any_items[2], any_items[4], any_items[5]
    assert (reasoning.content, call.arguments, custom.input) == ("hm", '{"a": 1.0}', "a")
    assert {item.status for item in items} == {"completed"}


def test_user_content_is_read_part_by_part() -> None:
    message = decoded(REQUEST).items[1]
    assert isinstance(message, Message)
    text, image, document, audio, unknown = message.content
    assert text == Text("see")
    assert image == Image("iVBORw0KGgo=", media_type="image/png", native={"detail": "low"})
    assert document == Document("JVBERi0=", media_type="application/pdf", name="a.pdf")
    assert audio == Audio("AAAA", media_type="audio/mpeg")
    assert unknown.native == {"type": "hologram", "x": 1}


def test_complete_request_is_rebuilt() -> None:
    again = json.loads(rebuilt(REQUEST).body)
    request = json.loads(json.dumps(REQUEST))
    request["messages"][1]["content"] = "And kind."
    request["messages"][5]["content"] = "ok"
    del request["messages"][4]["cache_control"]
    assert again["messages"] == request["messages"]
    for key in (
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning_effort",
        "stream",
        "stream_options",
        "store",
        "logprobs",
        "top_logprobs",
    ):
        assert again[key] == request[key], key
    assert (again["stop"], again["user"], again["max_completion_tokens"]) == (["END"], "u", 100)


@each_case(
    "fields, reasoning",
    [
        ({"reasoning_effort": "none"}, "off"),
        ({"reasoning_effort": "low"}, ReasoningOptions("low")),
        ({"reasoning": {"max_tokens": 9}}, ReasoningOptions(budget=9)),
        ({"reasoning": {"effort": "xhigh", "exclude": True}}, ReasoningOptions("xhigh")),
        ({"reasoning": {"enabled": False}}, "off"),
        ({"thinking": {"type": "enabled", "budget_tokens": 7}}, ReasoningOptions(budget=7)),
        ({"thinking": {"type": "disabled"}}, "off"),
        (
            {"thinking": {"type": "enabled", "clear_thinking": False}, "reasoning_effort": "max"},
            ReasoningOptions("max"),
        ),
        ({"enable_thinking": True, "thinking_budget": 5}, ReasoningOptions(budget=5)),
        ({"enable_thinking": False}, "off"),
        ({"chat_template_kwargs": {"enable_thinking": True, "x": 1}}, ReasoningOptions()),
        ({"chat_template_kwargs": {"thinking": False}}, "off"),
        ({"reasoning_effort": "default"}, None),
        ({"thinking": {"type": "auto"}}, ReasoningOptions()),
        ({"enable_thinking": "false"}, None),
        ({"reasoning": {"enabled": False, "effort": "high"}}, "off"),
        ({}, None),
    ],
)
def test_thinking_is_read_in_every_providers_form(fields: dict[str, Any], reasoning: Any) -> None:
    assert (
        decoded({"messages": [{"role": "user", "content": "x"}], **fields}).reasoning == reasoning
    )


@pytest.mark.parametrize(
    ("fields", "extra"),
    [
        ({"reasoning": {"effort": "low", "exclude": True}}, {"reasoning": {"exclude": True}}),
        (
            {"thinking": {"type": "enabled", "clear_thinking": False}},
            {"thinking": {"clear_thinking": False}},
        ),
        (
            {"chat_template_kwargs": {"enable_thinking": True, "x": 1}},
            {"chat_template_kwargs": {"x": 1}},
        ),
        ({"reasoning_effort": "default"}, None),
        ({"response_format": {"type": "grammar"}}, None),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": []},
                }
            },
            None,
        ),
        ({"logit_bias": {"1": 2}}, None),
    ],
)
def test_what_a_prompt_cannot_express_stays_in_extra(fields: dict[str, Any], extra: Any) -> None:
    assert decoded({"messages": [{"role": "user", "content": "x"}], **fields}).extra == (
        extra or fields
    )


def test_extra_is_sent_beside_what_the_builder_writes() -> None:
    request = {
        "messages": [{"role": "user", "content": "x"}],
        "thinking": {"type": "enabled", "clear_thinking": False},
    }
    assert json.loads(rebuilt(request).body)["thinking"] == {
        "type": "enabled",
        "clear_thinking": False,
    }


def test_older_functions_are_tools_and_results_match_calls() -> None:
    request: dict[str, Any] = {
        "functions": [{"name": "f", "parameters": {"type": "object"}}],
        "function_call": {"name": "f"},
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "function", "name": "f", "content": "1"},
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "function", "name": "f", "content": "2"},
        ],
    }
    prompt = decoded(request)
    calls = [item for item in prompt.items if isinstance(item, FunctionCall)]
    outputs = [item for item in prompt.items if isinstance(item, FunctionCallOutput)]
    assert ([tool.name for tool in prompt.tools], prompt.tool_choice) == (["f"], "f")
    assert len({call.call_id for call in calls}) == 2
    assert [output.call_id for output in outputs] == [call.call_id for call in calls]
    assert rebuilt({"model": "m", **request}).report == []


def test_signed_call_of_gemini_is_replayed_signed() -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "Sig="}},
    }
    turns = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "y"},
    ]
    assert decoded({"messages": turns}).items[1].signature == "Sig="
    assert json.loads(rebuilt({"messages": turns}).body)["messages"][1]["tool_calls"] == [call]


def test_integers_may_be_written_with_a_point() -> None:
    prompt = decoded(
        {"messages": [{"role": "user", "content": "x"}], "max_tokens": 100.0, "seed": 1.0}
    )
    assert (prompt.max_output_tokens, type(prompt.max_output_tokens), prompt.seed) == (100, int, 1)
