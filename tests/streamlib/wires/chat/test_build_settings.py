"""Chat requests: tools and settings in each provider's terms."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import (
    CustomToolCall,
    Prompt,
    Provider,
    StreamError,
    ToolSpec,
    build,
    user,
)
from streamlib.providers.models import Traits
from streamlib.providers.shapes import (
    ChatShape,
)
from tests.support.cases import each_case
from tests.support.chat_builds import TOOL, body, built, changes, sent


def test_tools_functions_free_form_and_hosted() -> None:
    hosted = {"type": "web_search", "x": 1}
    grammar = {"type": "grammar", "syntax": "lark", "definition": "a"}
    tools = [
        TOOL,
        ToolSpec("p", format=grammar),
        ToolSpec("q", format={"type": "text"}),
        ToolSpec("w", native=hosted, native_wire="chat"),
        ToolSpec("s", strict=True),
    ]
    assert body(built(tools=tools))["tools"] == [
        {
            "type": "function",
            "function": {"name": "f", "description": "does f", "parameters": TOOL.schema},
        },
        {
            "type": "custom",
            "custom": {
                "name": "p",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "a"}},
            },
        },
        {"type": "custom", "custom": {"name": "q", "format": {"type": "text"}}},
        hosted,
        {
            "type": "function",
            "function": {
                "name": "s",
                "parameters": {"type": "object", "properties": {}},
                "strict": True,
            },
        },
    ]


def test_free_form_call_and_its_result() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    messages = sent(user("x"), call, call.output("ok"))
    assert messages[1]["tool_calls"] == [
        {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    ]
    assert messages[2] == {"role": "tool", "tool_call_id": "c", "content": "ok"}


def test_free_form_tools_are_functions_if_unknown() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    request = built(
        user("x"),
        call,
        call.output("ok"),
        tools=[ToolSpec("patch", format={"type": "text"})],
        shape=ChatShape(custom_tools=False),
    )
    assert body(request)["tools"][0]["function"]["parameters"]["required"] == ["input"]
    assert body(request)["messages"][1]["tool_calls"][0]["function"] == {
        "name": "patch",
        "arguments": '{"input":"*** Begin"}',
    }
    assert {path for _, path in changes(request)} == {"/input/1", "/tools/0/format"}


def test_lone_surrogate_in_free_text_is_replaced() -> None:
    call = CustomToolCall("c", "patch", "\ud83d")
    assert sent(user("x"), call, call.output("ok"), shape=ChatShape(custom_tools=False))[1][
        "tool_calls"
    ]
    with pytest.raises(StreamError) as caught:
        built(user("\ud83d"))
    assert caught.value.kind == "invalid_request"


def test_s1_parameters_are_an_object() -> None:
    request = built(tools=[ToolSpec("f", schema={"properties": {}})])
    assert body(request)["tools"][0]["function"]["parameters"] == {
        "properties": {},
        "type": "object",
    }
    assert changes(request) == [("changed", "/tools/0/schema")]


def test_s2_strict_schemas_are_fitted_only_if_requested() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}}
    fitted = built(
        tools=[ToolSpec("f", schema=schema, strict=True)], shape=ChatShape(strict_schemas=True)
    )
    assert body(fitted)["tools"][0]["function"]["parameters"]["required"] == ["a"]
    assert fitted.report
    as_asked = built(tools=[ToolSpec("f", schema=schema, strict=True)], output_schema=schema)
    assert body(as_asked)["tools"][0]["function"]["parameters"] == schema
    assert body(as_asked)["response_format"]["json_schema"]["schema"] == schema
    assert as_asked.report == []


def test_schema_with_a_value_of_any_type_is_not_strict() -> None:
    """OpenAI refused the whole request: "schema must have a 'type' key"."""
    schema = {"type": "object", "properties": {"a": {"description": "anything"}}}
    request = built(
        tools=[ToolSpec("f", schema=schema, strict=True)],
        output_schema=schema,
        shape=ChatShape(strict_schemas=True),
    )
    function = body(request)["tools"][0]["function"]
    assert (function["parameters"], function["strict"]) == (schema, False)
    json_schema = body(request)["response_format"]["json_schema"]
    assert (json_schema["schema"], json_schema["strict"]) == (schema, False)
    assert sorted(changes(request)) == [
        ("changed", "/output_schema/properties/a"),
        ("changed", "/tools/0/schema/properties/a"),
    ]


def test_strict_that_the_caller_wrote_is_sent() -> None:
    """The report said that the schema was not sent as strict, and it was, unfitted."""
    request = built(
        output_schema={"type": "object", "properties": {"a": {}}},
        shape=ChatShape(strict_schemas=True),
        extra={"response_format": {"json_schema": {"strict": True}}},
    )
    json_schema = body(request)["response_format"]["json_schema"]
    assert (json_schema["strict"], json_schema["schema"]["required"]) == (True, ["a"])
    assert [change.reason for change in request.report] == [
        "every property is required here, these may be null: a"
    ]


@each_case(
    "choice, choices, sent, reported",
    [
        ("auto", {}, "auto", False),
        ("required", {}, "required", False),
        ("none", {}, "none", False),
        ("f", {}, {"type": "function", "function": {"name": "f"}}, False),
        ("p", {}, {"type": "custom", "custom": {"name": "p"}}, False),
        ("required", {"required": "any"}, "any", False),
        ("required", {"required": "auto"}, "auto", True),
        ("f", {"tool": "required"}, "required", True),
        ("none", {"none": ""}, None, True),
    ],
)
def test_s5_tool_choice_in_the_providers_terms(
    choice: str, choices: dict[str, str], sent: Any, reported: bool
) -> None:
    tools = [TOOL, ToolSpec("p", format={"type": "text"})]
    request = built(tools=tools, tool_choice=choice, shape=ChatShape(tool_choices=choices))
    assert (body(request).get("tool_choice"), [path for _, path in changes(request)]) == (
        sent,
        ["/tool_choice"] if reported else [],
    )


def test_s5_forced_choice_becomes_auto_if_the_model_takes_none() -> None:
    request = built(tools=[TOOL], tool_choice="f", traits=Traits(forced_tools=False))
    assert (body(request)["tool_choice"], changes(request)) == (
        "auto",
        [("changed", "/tool_choice")],
    )


def test_s5_choice_without_tools_is_not_sent() -> None:
    request = built(tool_choice="required", parallel_tools=False)
    assert changes(request) == [("dropped", "/tool_choice"), ("dropped", "/parallel_tools")]


def test_every_setting_has_its_wire_name() -> None:
    sent_body = body(
        built(
            *(),
            max_output_tokens=9,
            temperature=0.5,
            top_p=0.9,
            top_k=3,
            presence_penalty=0.1,
            frequency_penalty=0.2,
            stop=["END"],
            seed=1,
            n=2,
            logprobs=3,
            metadata={"a": "b"},
            service_tier="flex",
            verbosity="low",
            user_id="u",
            tools=[TOOL],
            parallel_tools=False,
        )
    )
    assert {
        key: value for key, value in sent_body.items() if key not in ("messages", "tools", "model")
    } == {
        "stream": True,
        "stream_options": {"include_usage": True},
        "parallel_tool_calls": False,
        "max_tokens": 9,
        "stop": ["END"],
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "logprobs": True,
        "top_logprobs": 3,
        "seed": 1,
        "n": 2,
        "verbosity": "low",
        "metadata": {"a": "b"},
        "service_tier": "flex",
        "user": "u",
    }


def test_names_of_fields_are_the_providers() -> None:
    shape = ChatShape(
        max_tokens="max_completion_tokens",
        user="safety_identifier",
        conversation="metadata.session",
    )
    sent = body(
        built(
            shape=shape, max_output_tokens=9, user_id="u", conversation_id="c", metadata={"a": "b"}
        )
    )
    assert (sent["max_completion_tokens"], sent["safety_identifier"], sent["metadata"]) == (
        9,
        "u",
        {"a": "b", "session": "c"},
    )


@pytest.mark.parametrize(
    ("name", "sent_as"), [("c", "c"), ("a\r\nb: c", None), ("é", None), ("a\x00", None)]
)
def test_conversation_id_never_breaks_a_header(name: str, sent_as: str | None) -> None:
    provider = Provider("there", base_url="http://x", conversation_header="x-conv")
    assert (
        build(Prompt(input="x", conversation_id=name), "m", provider=provider).headers.get("x-conv")
        == sent_as
    )


def test_settings_a_provider_lacks_are_reported() -> None:
    request = built(shape=ChatShape(user=""), user_id="u", top_k=3)
    assert changes(request) == [("dropped", "/top_k"), ("dropped", "/user_id")]


def test_s3_max_tokens_stays_under_the_models_limit() -> None:
    request = built(max_output_tokens=999, traits=Traits(max_output=100))
    assert (body(request)["max_tokens"], changes(request)) == (
        100,
        [("changed", "/max_output_tokens")],
    )


def test_s4_sampling_only_for_models_that_take_it() -> None:
    thinker = Traits(thinking=("level",), sampling=False, thinking_default=False)
    assert body(built(temperature=0.5, traits=thinker))["temperature"] == 0.5
    assert changes(built(temperature=0.5, traits=thinker, reasoning="low")) == [
        ("dropped", "/temperature")
    ]
    assert changes(built(logprobs=0, traits=Traits(thinking=("adaptive",), sampling=False))) == [
        ("dropped", "/logprobs")
    ]


def test_request_without_streaming_has_no_stream_options() -> None:
    sent = body(built(stream=False))
    assert (sent["stream"], "stream_options" in sent) == (False, False)
    assert "stream_options" not in body(built(shape=ChatShape(stream_usage=False)))


def test_structured_output_as_the_provider_takes_it() -> None:
    schema = {
        "title": "My answer",
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    assert body(built(output_schema=schema))["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "My_answer", "schema": schema, "strict": True},
    }
    fitted = built(output_schema=schema, shape=ChatShape(strict_schemas=True))
    assert body(fitted)["response_format"]["json_schema"]["schema"]["additionalProperties"] is False
    plain = built(output_schema=schema, shape=ChatShape(output="json_object"))
    assert (body(plain)["response_format"], changes(plain)) == (
        {"type": "json_object"},
        [("changed", "/output_schema")],
    )
    assert changes(built(output_schema=schema, shape=ChatShape(output=""))) == [
        ("dropped", "/output_schema")
    ]


def test_provider_values_are_merged_key_by_key() -> None:
    provider = Provider(
        "there",
        base_url="http://x",
        unsupported={"seed": "it has none"},
        rename={"stop": "stop_words"},
        defaults={"stream_options": {"include_obfuscation": False}},
        overrides={"n": 1},
    )
    prompt = Prompt(
        input="x",
        seed=1,
        stop=["END"],
        n=3,
        extra={"stream_options": {"chunk_include_usage": True}},
    )
    request = build(prompt, "m", provider=provider)
    sent = body(request)
    assert (sent["stop_words"], sent["n"], "seed" in sent) == (["END"], 1, False)
    assert sent["stream_options"] == {
        "include_obfuscation": False,
        "include_usage": True,
        "chunk_include_usage": True,
    }


@pytest.mark.parametrize("count", [4, 5])
def test_stop_sequences_beyond_the_limit_are_reported(count: int) -> None:
    stop = [f"end {number}" for number in range(count)]
    request = build(Prompt("hi", stop=stop), "openai:gpt-4o", wire_api="chat")
    assert body(request)["stop"] == stop[:4]
    assert changes(request) == ([("changed", "/stop")] if count > 4 else [])
