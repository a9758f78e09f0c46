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
    StreamError,
    Text,
    ToolSpec,
    build,
    parse_request,
)
from tests.support.cases import each_case
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
    assert prompt.tools[0] == ToolSpec("f", schema={"type": "object"})
    assert [tool.name for tool in prompt.tools[1:]] == ["web_search", "google_maps"]
    assert prompt.tools[1].provider_run is not None
    assert (prompt.temperature, prompt.max_output_tokens, prompt.stop) == (0.5, 9, ("x",))
    assert prompt.reasoning == ReasoningOptions("low", display="omitted")
    assert (prompt.output_schema, prompt.metadata) == ({"a": 1}, {"a": "b"})
    assert prompt.extra == {
        "safety_settings": [],
        "generation_config": {"image_config": {"image_size": "1K"}},
    }


# --- a request decodes into a prompt that builds the same request again ---

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
FUNCTION = {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA}


def built_again(**body: Any) -> tuple[Any, list[Any]]:
    """The body that the decoded request builds, and the report."""
    data = {"model": "gemini-2.5-flash", "input": "Hi", "store": False, **body}
    prompt = parse_request("interactions", msgspec.json.encode(data))
    request = build(prompt, "google:custom-model", wire_api="interactions")
    return msgspec.json.decode(request.body), request.report


def config(**values: Any) -> dict[str, Any]:
    return {"generation_config": values}


BODIES: list[dict[str, Any]] = [
    config(temperature=0.0),
    config(temperature=0.5),
    config(top_p=0.0),
    config(seed=0),
    config(seed=3),
    config(max_output_tokens=1),
    config(stop_sequences=["END"]),
    config(stop_sequences=["a", "b"]),
    config(thinking_level="low", thinking_summaries="auto"),
    config(thinking_level="minimal", thinking_summaries="auto"),
    config(thinking_level="high"),
    config(thinking_summaries="auto"),
    config(speech_config={"voice": "x"}),
    config(unknown=0),
    {"response_format": {"type": "text", "mime_type": "application/json"}},
    {"response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA}},
    {"response_format": {"type": "text", "mime_type": "text/plain"}},
    {"response_format": {"type": "image", "mime_type": "image/png"}},
    {"response_format": {"type": "text", "mime_type": "application/json", "x": 1}},
    {"response_format": [{"type": "text", "mime_type": "text/plain"}, {"type": "audio"}]},
    {"service_tier": "flex"},
    {"background": True},
    {"previous_interaction_id": "v1_a"},
    {"cached_content": "c"},
    {"system_instruction": "Be brief."},
    {"tools": [FUNCTION]},
    {"tools": [{"type": "function", "name": "g"}]},
    {"tools": [{**FUNCTION, "defer_loading": True}]},
    {"tools": [{**FUNCTION, "defer_loading": False}]},
    {"tools": [{**FUNCTION, "region": "eu"}]},
    {"tools": [{"type": "google_search"}, FUNCTION]},
    {"tools": [{"type": "mcp_server", "name": "m", "url": "https://x"}]},
    {"tools": [FUNCTION], **config(tool_choice="auto")},
    {"tools": [FUNCTION], **config(tool_choice="any")},
    {"tools": [FUNCTION], **config(tool_choice="none")},
    {"tools": [FUNCTION], **config(tool_choice="validated")},
    {
        "tools": [FUNCTION],
        **config(tool_choice={"allowed_tools": {"mode": "any", "tools": ["f"]}}),
    },
    {
        "tools": [FUNCTION],
        **config(tool_choice={"allowed_tools": {"mode": "auto", "tools": ["f"]}}),
    },
    {
        "tools": [FUNCTION],
        **config(tool_choice={"allowed_tools": {"mode": "any", "tools": ["f", "g"]}}),
    },
    {
        "tools": [FUNCTION],
        **config(tool_choice={"allowed_tools": {"mode": "any", "tools": ["f"]}, "x": 1}),
    },
]


@each_case("fields", BODIES, ids=str)
def test_setting_is_built_again(fields: dict[str, Any]) -> None:
    body, report = built_again(**fields)
    assert {key: body.get(key) for key in fields} == fields
    assert body.keys() - fields.keys() <= {"model", "input", "stream", "store"}
    assert report == []


SIGNED = {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "Hm"}]}
CALLED = {
    "type": "function_call",
    "id": "c1",
    "name": "f",
    "arguments": {"a": "x"},
    "signature": "c2ln",
}
ANSWER = {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}


def said(*contents: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "user_input", "content": list(contents), **fields}


TEXT = {"type": "text", "text": "Hi"}
STEPS: list[list[dict[str, Any]]] = [
    [said(TEXT)],
    [said(TEXT, TEXT)],
    [said(TEXT, tag=1)],
    [said({**TEXT, "tag": 1})],
    [said(TEXT), SIGNED, ANSWER, said(TEXT)],
    [said(TEXT), {"type": "thought", "signature": "c2ln"}, ANSWER, said(TEXT)],
    [said(TEXT), {**ANSWER, "tag": 1}, said(TEXT)],
    [said(TEXT), ANSWER, ANSWER, said(TEXT)],
    [
        said(TEXT),
        SIGNED,
        CALLED,
        {"type": "function_result", "call_id": "c1", "name": "f", "result": "3"},
    ],
    [
        said(TEXT),
        SIGNED,
        CALLED,
        {"type": "function_result", "call_id": "c1", "name": "f", "result": "no", "is_error": True},
    ],
    [
        said(TEXT),
        SIGNED,
        CALLED,
        {"type": "function_result", "call_id": "c1", "name": "f", "result": {"a": 1}, "tag": 1},
    ],
    [
        said(TEXT),
        SIGNED,
        CALLED,
        {
            "type": "function_result",
            "call_id": "c1",
            "name": "f",
            "result": [{"type": "text", "text": "x"}],
        },
    ],
    [
        said(TEXT),
        {
            "type": "google_search_call",
            "id": "s1",
            "arguments": {"queries": ["a"]},
            "signature": "c2ln",
        },
        {"type": "google_search_result", "call_id": "s1", "result": [{"url": "https://x"}]},
        ANSWER,
        said(TEXT),
    ],
    [said({"type": "image", "mime_type": "image/png", "data": "aWNv"})],
    [said({"type": "image", "uri": "https://x/a.png", "mime_type": "image/png"})],
    [said({"type": "document", "uri": "files/a", "mime_type": "application/pdf"}, TEXT)],
    [said({"type": "audio", "data": "aWNv", "mime_type": "audio/wav", "rate": 0})],
    [said({"type": "hologram", "data": "x"})],
]


@each_case("steps", STEPS, ids=str)
def test_steps_are_built_again(steps: list[dict[str, Any]]) -> None:
    body, report = built_again(input=steps)
    assert body["input"] == steps
    assert report == []


@pytest.mark.parametrize("tool", [{"name": "x"}, {"type": 5}, {"type": "function"}])
def test_tool_that_is_none_is_refused(tool: dict[str, Any]) -> None:
    with pytest.raises(StreamError):
        parse_request("interactions", msgspec.json.encode({"input": "x", "tools": [tool]}))


def test_call_that_nobody_can_answer_is_refused() -> None:
    call = {"type": "function_call", "id": "c", "arguments": {}}
    with pytest.raises(StreamError, match="a call without a name, or with arguments"):
        parse_request("interactions", msgspec.json.encode({"input": [call]}))


def test_calls_without_ids_get_different_ones() -> None:
    call = {"type": "function_call", "name": "f", "arguments": {}}
    body = {"input": [call, call, said(TEXT), call]}
    items = parse_request("interactions", msgspec.json.encode(body)).items
    ids = [item.call_id for item in items if isinstance(item, FunctionCall)]
    assert ids == ["call_0", "call_1", "call_2"]
