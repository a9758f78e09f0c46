"""A recorded InvokeModel request decodes into a `Prompt` that builds the same request again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import (
    Document,
    FunctionCall,
    Message,
    Origin,
    Prompt,
    Reasoning,
    ReasoningOptions,
    StreamError,
    Text,
    ToolSpec,
    build,
    parse_request,
)
from tests.support.bedrock_readers import request_of
from tests.support.cases import each_case
from tests.support.shared import BODIES, STREAMS, Recording, each_recording

PATH = "/model/us.anthropic.claude-opus-4-6-v1/invoke-with-response-stream"
PROMPTS = ("prompt", "inputText", "message")
"""Bodies of these keys are one text: they are not read."""


def decoded(request: Any, path: str = PATH, **headers: str) -> Prompt:
    return parse_request("invoke", json.dumps(request).encode(), path=path, headers=headers)


def rebuilt(prompt: Prompt) -> dict[str, Any]:
    request = build(
        prompt, prompt.model or "any", provider="custom", wire_api="invoke", base_url="http://x"
    )
    return json.loads(request.body)  # type: ignore[no-any-return]


def plain(value: Any) -> Any:
    """Texts as blocks, Nova's older name of maxTokens as the newer, no keys that say nothing."""
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for key, inner in value.items():
        if key == "max_new_tokens":
            result["maxTokens"] = plain(inner)
        elif key != "cache_control":
            result[key] = plain(inner)
    # the body itself keeps a string: `anthropic_version` marks it
    if "text" not in result and "anthropic_version" not in result:
        for key in ("content", "system"):
            if isinstance(result.get(key), str):
                result[key] = [{"type": "text", "text": result[key]}]
    return {key: inner for key, inner in result.items() if inner not in (None, [], False)}


@each_recording("bedrock-invoke", [*STREAMS, *BODIES])
def test_a_recorded_request_is_rebuilt_block_for_block(recording: Recording) -> None:
    body, path = request_of(recording)
    if not body:
        return
    request = json.loads(body)
    if any(key in request for key in PROMPTS):
        with pytest.raises(StreamError, match="text prompts"):
            parse_request("invoke", body, path=path)
        return
    prompt = parse_request("invoke", body, path=path)
    again = rebuilt(prompt)
    assert prompt.stream is path.endswith("-stream")
    assert _conversation(again) == _conversation(request)
    for key in (request.keys() | again.keys()) - {"messages", "system", "schemaVersion"}:
        assert (plain(again.get(key)) or None) == (plain(request.get(key)) or None), key


def _conversation(request: Any) -> Any:
    """The conversation and the system prompt as blocks; of a Chat body its messages."""
    texts_only = all(isinstance(turn["content"], str) for turn in request["messages"])
    if texts_only and "anthropic_version" not in request:
        return request["messages"]
    system = request.get("system")
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    turns = [(turn["role"], plain(turn)["content"]) for turn in request["messages"]]
    return plain(system), turns


REQUEST = {
    "anthropic_version": "bedrock-2023-05-31",
    "anthropic_beta": ["context-1m-2025-08-07"],
    "max_tokens": 100,
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1.0}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "18C"}],
        },
    ],
}


def test_the_body_of_claude_is_decoded_with_origin_invoke() -> None:
    prompt = decoded(REQUEST, **{"X-Amzn-Bedrock-Service-Tier": "flex"})
    items: Any = prompt.items
    assert (prompt.model, prompt.stream, prompt.service_tier) == (
        "us.anthropic.claude-opus-4-6-v1",
        True,
        "flex",
    )
    assert prompt.reasoning == ReasoningOptions(effort="high")
    assert prompt.headers == {"anthropic-beta": "context-1m-2025-08-07"}
    assert [type(item) for item in items[1:3]] == [Reasoning, FunctionCall]
    assert {item.origin for item in items[1:3]} == {Origin("invoke")}
    assert (items[1].signature, items[2].arguments) == ("EqQB", '{"a": 1.0}')
    again = rebuilt(prompt)
    assert (again["anthropic_version"], again["anthropic_beta"]) == (
        REQUEST["anthropic_version"],
        REQUEST["anthropic_beta"],
    )
    assert plain(again["messages"]) == plain(
        [
            {**REQUEST["messages"][0], "content": [{"type": "text", "text": "hi"}]},
            *REQUEST["messages"][1:],
        ]
    )  # type: ignore[index, dict-item]


def test_the_body_of_nova_is_decoded() -> None:
    request = {
        "schemaVersion": "messages-v1",
        "system": [{"text": "s"}],
        "inferenceConfig": {"max_new_tokens": 10, "topK": 3, "topP": 0.5},
        "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"},
        "messages": [
            {
                "role": "user",
                "content": [
                    {"text": "hi"},
                    {"document": {"format": "pdf", "name": "n", "source": {"bytes": "JVBERi0="}}},
                ],
            }
        ],
    }
    prompt = decoded(request, "/model/us.amazon.nova-2-lite-v1%3A0/invoke")
    assert (prompt.model, prompt.stream, prompt.max_output_tokens, prompt.top_k, prompt.top_p) == (
        *("us.amazon.nova-2-lite-v1:0", False, 10, 3, 0.5),
    )
    assert prompt.reasoning == ReasoningOptions(effort="low")
    assert prompt.items == (
        Message(
            "user",
            [Text("hi"), Document(data="JVBERi0=", media_type="application/pdf", name="n")],
            origin=Origin("invoke"),
        ),
    )
    assert rebuilt(prompt)["reasoningConfig"] == request["reasoningConfig"]


def test_the_keys_of_the_body_decide_for_an_unknown_name() -> None:
    arn = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fabc/invoke"
    assert (
        decoded(REQUEST, arn).model
        == "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc"
    )
    nova = {"inferenceConfig": {}, "messages": [{"role": "user", "content": [{"text": "x"}]}]}
    message = Message("user", [Text("x")], origin=Origin("invoke"))
    assert decoded(nova, arn).items == (message,)


FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
HI = {"role": "user", "content": "Hi"}


@each_case("choice", ["auto", "none", "required"])
@each_case(
    "model",
    ["mistral.mistral-large-2407-v1:0", "openai.gpt-oss-120b-1:0", "ai21.jamba-1-5-mini-v1:0", "m"],
)
def test_chat_form_is_read_with_a_tool_choice_in_one_word(model: str, choice: str) -> None:
    body = {"messages": [HI], "tools": [FUNCTION], "tool_choice": choice}
    prompt = parse_request("invoke", json.dumps(body).encode(), path=f"/model/{model}/invoke")
    assert (prompt.tool_choice, [tool.name for tool in prompt.tools]) == (choice, ["f"])


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": "system", "content": "Be brief."}, HI]},
        {"messages": [HI], "response_format": {"type": "json_object"}},
        {"messages": [HI], "stop": ["END"]},
        {"messages": [HI], "tools": [FUNCTION]},
    ],
)
def test_chat_form_is_known_by_what_only_chat_has(fields: dict[str, Any]) -> None:
    prompt = parse_request("invoke", json.dumps(fields).encode(), path="/model/m/invoke")
    assert prompt.extra is None
    assert [item.text for item in prompt.items][-1:] == ["Hi"]  # type: ignore[union-attr]
    assert all(tool == ToolSpec("f", schema={"type": "object"}) for tool in prompt.tools)


@pytest.mark.parametrize("key", PROMPTS)
def test_request_of_one_text_is_refused(key: str) -> None:
    with pytest.raises(StreamError, match="no text prompts"):
        parse_request("invoke", json.dumps({key: "Hi"}).encode(), path="/model/m/invoke")


def test_messages_form_is_read_for_a_name_that_shows_no_family() -> None:
    tool = {"name": "f", "input_schema": {"type": "object"}}
    body = {"messages": [HI], "max_tokens": 5, "tools": [tool], "tool_choice": {"type": "any"}}
    prompt = parse_request("invoke", json.dumps(body).encode(), path="/model/m/invoke")
    assert (prompt.tool_choice, prompt.max_output_tokens) == ("required", 5)
