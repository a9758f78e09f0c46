"""Interactions requests of clients as prompts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    FunctionCall,
    FunctionCallOutput,
    Message,
    Prompt,
    Reasoning,
    ReasoningOptions,
    Text,
    build,
    parse_request,
)
from tests.support.interactions_frames import text


def decoded(**fields: Any) -> Prompt:
    return parse_request("interactions", msgspec.json.encode({"model": "m", **fields}))


@pytest.mark.parametrize(
    "value",
    [
        "Hi",
        text("Hi"),
        [text("Hi")],
        [{"type": "user_input", "content": [text("Hi")]}],
        [{"type": "user_input", "content": "Hi"}],
    ],
)
def test_every_form_of_the_input_is_read(value: Any) -> None:
    prompt = decoded(input=value)
    (item,) = prompt.items
    assert isinstance(item, Message)
    assert (item.role, item.content) == ("user", (Text("Hi"),))
    assert (prompt.model, prompt.stream) == ("m", False)


def test_steps_of_the_model_are_the_items_it_gave() -> None:
    prompt = decoded(
        input=[
            {"type": "user_input", "content": [text("Hi")]},
            {"type": "thought", "signature": "c2ln"},
            {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1.0}},
            {"type": "function_result", "call_id": "c", "name": "f", "result": {"b": [1]}},
        ]
    )
    _, thought, call, result = prompt.items
    assert isinstance(thought, Reasoning)
    assert thought.signature == "c2ln"
    assert isinstance(call, FunctionCall)
    assert call.arguments == '{"a":1.0}'
    assert isinstance(result, FunctionCallOutput)
    assert result.output == '{"b":[1]}'


def test_result_among_the_contents_of_a_user_is_read() -> None:
    """As rig sends it; the server accepts it."""
    result = {"type": "function_result", "call_id": "c", "name": "f", "result": {"sum": 18.0}}
    body = {"model": "m", "input": [{"type": "user_input", "content": [result]}]}
    prompt = parse_request(
        "interactions", msgspec.json.encode({**body, "previous_interaction_id": "v1_a"})
    )
    request = build(prompt, "custom:m", wire_api="interactions", base_url="http://x")
    assert msgspec.json.decode(request.body)["input"] == [result]
    assert request.report == []


def test_agent_is_the_model_and_stays_an_agent() -> None:
    raw = {"agent": "my-agent", "input": "Go", "background": True, "agent_config": {"type": "x"}}
    prompt = parse_request("interactions", msgspec.json.encode(raw))
    assert prompt.model == "my-agent"
    request = build(prompt, "custom:other", wire_api="interactions", base_url="http://x")
    sent = msgspec.json.decode(request.body)
    assert (sent["agent"], sent["agent_config"]) == ("other", {"type": "x"})
    assert "model" not in sent


def test_settings_have_their_fields() -> None:
    prompt = decoded(
        input="Hi",
        stream=True,
        system_instruction="Be brief.",
        tools=[
            {"type": "function", "name": "f", "parameters": {"type": "object"}},
            {"type": "google_search"},
            {"type": "google_maps", "latitude": 1.5},
        ],
        generation_config={
            "temperature": 0.5,
            "max_output_tokens": 9,
            "stop_sequences": ["x"],
            "thinking_level": "low",
            "tool_choice": "any",
            "image_config": {"image_size": "1K"},
        },
        response_format=[{"type": "text", "mime_type": "application/json", "schema": {"a": 1}}],
        labels={"a": "b"},
        safety_settings=[],
    )
    assert (prompt.instructions, prompt.stream, prompt.tool_choice) == (
        "Be brief.",
        True,
        "required",
    )
    assert [tool.name for tool in prompt.tools] == ["f", "web_search", "google_maps"]
    assert prompt.tools[1].provider_run is not None
    assert (prompt.temperature, prompt.max_output_tokens, prompt.stop) == (0.5, 9, ("x",))
    assert prompt.reasoning == ReasoningOptions("low", display="omitted")
    assert (prompt.output_schema, prompt.metadata) == ({"a": 1}, {"a": "b"})
    assert prompt.extra == {
        "safety_settings": [],
        "generation_config": {"image_config": {"image_size": "1K"}},
    }
