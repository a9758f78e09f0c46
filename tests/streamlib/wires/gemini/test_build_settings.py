"""Gemini requests: tools and settings."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import (
    CacheOptions,
    ReasoningOptions,
    Request,
    ToolSpec,
)
from tests.support.cases import each_case
from tests.support.gemini_builds import NEW, OLD, PRO, SEARCH, TOOL, body, built, paths, reasons


def config(request: Request) -> dict[str, Any]:
    return body(request).get("generationConfig", {})  # type: ignore[no-any-return]


# --- tools ---


def test_functions_are_one_tool_and_hosted_tools_separate() -> None:
    sent = body(
        built(tools=[SEARCH, TOOL, ToolSpec("g"), ToolSpec("url", native={"urlContext": {}})])
    )["tools"]
    assert [next(iter(tool)) for tool in sent] == [
        "googleSearch",
        "functionDeclarations",
        "urlContext",
    ]
    assert sent[1]["functionDeclarations"] == [
        {
            "name": "f",
            "description": "does f",
            "parametersJsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
        },
        {"name": "g"},
    ]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"mode": "AUTO"}),
        ("required", {"mode": "ANY"}),
        ("none", {"mode": "NONE"}),
        ("f", {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    ],
)
def test_tool_choice_in_the_wires_terms(choice: str, sent: dict[str, Any]) -> None:
    assert (
        body(built(tools=[TOOL], tool_choice=choice))["toolConfig"]["functionCallingConfig"] == sent
    )


@pytest.mark.parametrize("tools", [[], [SEARCH]])
def test_g15_no_function_calling_config_without_functions(tools: list[ToolSpec]) -> None:
    request = built(tools=tools, tool_choice="required")
    assert "toolConfig" not in body(request)
    assert reasons(request)[0] == "there is no such function to call"
    assert built(tools=tools, tool_choice="auto").report == []


def test_g16_cached_content_is_sent_alone() -> None:
    request = built(
        tools=[TOOL],
        tool_choice="auto",
        instructions="s",
        extra={"cachedContent": "cachedContents/1"},
    )
    assert body(request).keys() == {"contents", "cachedContent"}
    assert paths(request) == {"/tools", "/tool_choice", "/instructions"}


def test_g17_hosted_tools_beside_functions() -> None:
    assert body(built(tools=[TOOL, SEARCH], model=NEW))["toolConfig"] == {
        "includeServerSideToolInvocations": True
    }
    older = built(tools=[TOOL, SEARCH], model=OLD)
    assert [next(iter(tool)) for tool in body(older)["tools"]] == ["functionDeclarations"]
    assert paths(older) == {"/tools/1"}
    assert "googleSearch" in body(built(tools=[SEARCH], model=OLD))["tools"][0]


def test_g17_vertex_does_not_know_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "global")
    request = built(tools=[TOOL, SEARCH], model="vertex:gemini-3.5-flash")
    assert "toolConfig" not in body(request)
    assert request.report == []


def test_g12_refused_schema_keywords_move_and_are_reported() -> None:
    schema = {
        "$schema": "x",
        "type": "object",
        "properties": {
            "const": {"const": "a"},
            "n": {"type": "integer", "exclusiveMinimum": 3, "description": "count"},
            "mail": {"type": ["string", "null"], "format": "email"},
            "day": {"anyOf": [{"type": "string", "format": "date"}, {"examples": [1]}]},
        },
    }
    request = built(tools=[ToolSpec("f", schema=schema)])
    assert body(request)["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == {
        "type": "object",
        "properties": {
            "const": {"enum": ["a"]},
            "n": {"type": "integer", "description": "count (exclusiveMinimum: 3)"},
            "mail": {"type": ["string", "null"], "description": "(format: email)"},
            "day": {
                "anyOf": [{"type": "string", "format": "date"}, {"description": "(examples: [1])"}]
            },
        },
    }
    under = "/tools/0/schema/properties"
    assert paths(request) == {f"{under}/n", f"{under}/mail", f"{under}/day/anyOf/1"}


@pytest.mark.parametrize(
    "schema", [None, {}, {"type": "object"}, {"type": "object", "properties": {}, "required": []}]
)
def test_g13_function_without_arguments_has_no_parameters(schema: Any) -> None:
    assert body(built(tools=[ToolSpec("f", schema=schema)]))["tools"] == [
        {"functionDeclarations": [{"name": "f"}]}
    ]


def test_parameters_are_an_object() -> None:
    request = built(tools=[ToolSpec("f", schema={"anyOf": [{"type": "object"}]})])
    assert (
        body(request)["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["type"]
        == "object"
    )
    assert paths(request) == {"/tools/0/schema"}


def test_unsupported_tool_settings_are_reported() -> None:
    assert paths(built(tools=[ToolSpec("f", strict=True)], parallel_tools=False)) == {
        "/tools/0/strict",
        "/parallel_tools",
    }


# --- settings ---


@each_case(
    "model, reasoning, thinking, reported",
    [
        ("gemini-3.5-flash", "high", {"includeThoughts": True, "thinkingLevel": "HIGH"}, False),
        ("gemini-3.5-flash", "max", {"includeThoughts": True, "thinkingLevel": "HIGH"}, True),
        ("gemini-3.5-flash", "off", {"thinkingLevel": "MINIMAL"}, True),
        ("gemini-3.5-flash", 0, {"thinkingLevel": "MINIMAL"}, True),
        ("gemini-3.5-flash", 3000, {"includeThoughts": True, "thinkingLevel": "MEDIUM"}, True),
        ("gemini-3.5-flash", -1, {"includeThoughts": True}, False),
        (
            "gemini-3.1-pro-preview",
            "minimal",
            {"includeThoughts": True, "thinkingLevel": "LOW"},
            True,
        ),
        ("gemini-3.1-pro-preview", "off", {"thinkingLevel": "LOW"}, True),
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}, False),
        ("gemini-2.5-flash", "medium", {"includeThoughts": True, "thinkingBudget": 10_000}, True),
        ("gemini-2.5-flash", "max", {"includeThoughts": True, "thinkingBudget": 24_576}, True),
        ("gemini-2.5-flash", -1, {"includeThoughts": True, "thinkingBudget": -1}, False),
        ("gemini-2.5-flash", 99_999, {"includeThoughts": True, "thinkingBudget": 24_576}, True),
        ("gemini-2.5-pro", "off", {"thinkingBudget": 128}, True),
        ("gemini-2.5-pro", 1, {"includeThoughts": True, "thinkingBudget": 128}, True),
        ("gemini-2.5-flash-image", "high", None, True),
        ("gemini-2.0-flash", "high", None, True),
        ("gemma-3-27b-it", "low", None, True),
        (
            "gemini-3.5-flash",
            ReasoningOptions("low", display="omitted"),
            {"thinkingLevel": "LOW"},
            False,
        ),
        ("gemini-3.5-flash", ReasoningOptions(), {"includeThoughts": True}, False),
        (
            "gemini-3.5-flash",
            ReasoningOptions("low", 5000),
            {"includeThoughts": True, "thinkingLevel": "LOW"},
            True,
        ),
        (
            "gemini-2.5-flash",
            ReasoningOptions("low", 5000),
            {"includeThoughts": True, "thinkingBudget": 5000},
            True,
        ),
        (
            "a-model-of-tomorrow",
            "xhigh",
            {"includeThoughts": True, "thinkingLevel": "XHIGH"},
            False,
        ),
        ("a-model-of-tomorrow", 5000, {"includeThoughts": True, "thinkingBudget": 5000}, False),
        ("a-model-of-tomorrow", "off", {"thinkingBudget": 0}, False),
    ],
)
def test_g10_g11_each_model_gets_the_form_of_thinking_it_takes(
    model: str, reasoning: Any, thinking: Any, reported: bool
) -> None:
    request = built(reasoning=reasoning, model=f"google:{model}")
    assert config(request).get("thinkingConfig") == thinking
    assert bool(request.report) is reported
    assert all(path.startswith("/reasoning") for path in paths(request))


def test_g18_output_schema_beside_tools() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    newer, older = (built(tools=[TOOL], output_schema=schema, model=model) for model in (NEW, OLD))
    assert config(newer) == {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert config(older) == {}
    assert paths(older) == {"/output_schema"}
    assert "responseJsonSchema" in config(built(output_schema=schema, model=OLD))


def test_g23_sampling_only_for_models_that_take_it() -> None:
    settings = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
    }
    assert config(built(**settings, model=PRO)) == {
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 3,
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
    }
    assert paths(built(**settings, model=NEW)) == {"/presence_penalty", "/frequency_penalty"}
    assert paths(built(**settings, model="google:gemini-3.6-flash")) == {
        f"/{name}" for name in settings
    }


def test_g24_at_most_five_stop_sequences() -> None:
    request = built(stop=["", *"abcdef"])
    assert config(request)["stopSequences"] == ["a", "b", "c", "d", "e"]
    assert paths(request) == {"/stop/0", "/stop"}


def test_plain_settings_have_their_wire_names() -> None:
    request = built(
        seed=7, n=2, max_output_tokens=9, logprobs=3, service_tier="flex", metadata={"team": "a"}
    )
    assert config(request) == {
        "seed": 7,
        "candidateCount": 2,
        "maxOutputTokens": 9,
        "responseLogprobs": True,
        "logprobs": 3,
    }
    assert (body(request)["serviceTier"], body(request)["labels"]) == ("flex", {"team": "a"})
    assert request.report == []
    assert config(built(logprobs=0)) == {"responseLogprobs": True}


def test_settings_the_wire_lacks_are_reported() -> None:
    request = built(
        verbosity="low", user_id="u", cache=CacheOptions("1h"), metadata={"team": "a"}, model=NEW
    )
    assert paths(request) == {"/verbosity", "/user_id", "/cache", "/metadata"}
    assert built(cache="auto").report == []
    assert paths(built(conversation_id="c")) == {"/conversation_id"}


def test_extra_is_merged_over_the_body() -> None:
    extra = {
        "safetySettings": [],
        "generationConfig": {"responseModalities": ["IMAGE"]},
        "toolConfig": {"retrievalConfig": {}},
    }
    sent = body(built(temperature=0.5, tools=[TOOL], tool_choice="auto", extra=extra))
    assert sent["generationConfig"] == {"temperature": 0.5, "responseModalities": ["IMAGE"]}
    assert sent["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}, "retrievalConfig": {}}
    assert sent["safetySettings"] == []
