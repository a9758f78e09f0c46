"""Gemini requests are decoded: every setting, tool and part; anything else is invalid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import (
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Opaque,
    Prompt,
    Reasoning,
    ReasoningOptions,
    Text,
    build,
    parse_request,
    user,
)
from tests.support.gemini_requests import PATH, camel, decoded, rebuilt, turns

REQUEST: dict[str, Any] = {
    "system_instruction": {"parts": [{"text": "Be terse."}, {"text": "And kind."}]},
    "contents": [
        {
            "parts": [
                {"text": "hi"},
                {"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo="}},
                {"hologram": {"x": 1}},
            ]
        },
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {
                    "functionCall": {"id": "c1", "name": "f", "args": {"a": 1.0}},
                    "thought_signature": "CiQB",
                },
                {"functionCall": {"name": "g", "args": {}}},
                {"functionCall": {"name": "g", "args": {}}},
                {"text": "", "thoughtSignature": "EpoH"},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "18C"}}},
                {"functionResponse": {"name": "g", "response": {"error": "no"}}},
                {
                    "functionResponse": {
                        "name": "g",
                        "response": {"temp": 1.0, "$ref": "x"},
                        "scheduling": "SILENT",
                    }
                },
                {"text": "so?"},
            ],
        },
    ],
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "f",
                    "description": "d",
                    "parameters": {
                        "type": "OBJECT",
                        "properties": {"type": {"type": "STRING", "nullable": True}},
                    },
                },
                {
                    "name": "g",
                    "parametersJsonSchema": {
                        "type": "object",
                        "properties": {"b": {"type": "integer"}},
                    },
                },
            ]
        },
        {"googleSearch": {}},
    ],
    "toolConfig": {
        "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]},
        "retrievalConfig": {"languageCode": "de"},
    },
    "generationConfig": {
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 3,
        "maxOutputTokens": 100,
        "stopSequences": ["END"],
        "seed": 7,
        "candidateCount": 2,
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
        "responseLogprobs": True,
        "logprobs": 4,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
        "responseModalities": ["TEXT"],
    },
    "safetySettings": [{"category": "c", "threshold": "t"}],
    "labels": {"team": "a"},
    "serviceTier": "flex",
}


def test_every_setting_is_read() -> None:
    prompt = decoded(REQUEST)
    assert (prompt.model, prompt.stream, prompt.max_output_tokens) == (
        "gemini-3.5-flash",
        True,
        100,
    )
    assert (
        prompt.temperature,
        prompt.top_p,
        prompt.top_k,
        prompt.seed,
        prompt.n,
        prompt.logprobs,
    ) == (0.5, 0.9, 3, 7, 2, 4)
    assert (prompt.presence_penalty, prompt.frequency_penalty, prompt.stop) == (0.1, 0.2, ("END",))
    assert (prompt.instructions, prompt.items[0]) == (
        "Be terse.",
        Message("system", (Text("And kind."),), origin=prompt.items[0].origin),
    )
    assert prompt.reasoning == ReasoningOptions("low")
    assert prompt.output_schema == {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert (prompt.tool_choice, prompt.metadata, prompt.service_tier) == (
        "f",
        {"team": "a"},
        "flex",
    )
    assert [(tool.name, tool.native) for tool in prompt.tools] == [
        ("f", None),
        ("g", None),
        ("web_search", {"googleSearch": {}}),
    ]
    assert prompt.tools[0].schema == {
        "type": "object",
        "properties": {"type": {"type": ["string", "null"]}},
    }
    assert prompt.extra == {
        "safetySettings": [{"category": "c", "threshold": "t"}],
        "generationConfig": {"responseModalities": ["TEXT"]},
        "toolConfig": {"retrievalConfig": {"languageCode": "de"}},
    }


def test_model_turn_becomes_the_items_once_received() -> None:
    items = decoded(REQUEST).items
    kinds = [
        Message,
        Message,
        Opaque,
        Reasoning,
        *[FunctionCall] * 3,
        Message,
        *[FunctionCallOutput] * 3,
        Message,
    ]
    assert [type(item) for item in items] == kinds
    calls = [item for item in items if isinstance(item, FunctionCall)]
    assert [(call.id, call.arguments, call.signature) for call in calls] == [
        ("c1", '{"a": 1.0}', "CiQB"),
        (None, "{}", None),
        (None, "{}", None),
    ]
    last = items[7]
    assert isinstance(last, Message)
    assert (last.signature, last.content) == ("EpoH", (Text(""),))


def test_results_are_matched_by_id_and_by_name() -> None:
    items = decoded(REQUEST).items
    calls = [item.call_id for item in items if isinstance(item, FunctionCall)]
    outputs = [item for item in items if isinstance(item, FunctionCallOutput)]
    assert [output.call_id for output in outputs] == calls
    assert len(set(calls)) == 3
    assert [(output.output, output.is_error) for output in outputs] == [
        ("18C", False),
        ("no", True),
        ('{"temp": 1.0, "$ref": "x"}', False),
    ]


def test_complete_request_is_rebuilt() -> None:
    again = rebuilt(decoded(REQUEST))
    assert turns(again) == turns(json.loads(json.dumps(REQUEST)))
    assert again["systemInstruction"] == REQUEST["system_instruction"]
    for key in ("safetySettings", "labels", "serviceTier"):
        assert again[key] == REQUEST[key]
    assert again["generationConfig"] == {
        **REQUEST["generationConfig"],
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
    }
    assert again["toolConfig"] == {
        **REQUEST["toolConfig"],
        "includeServerSideToolInvocations": True,
    }
    assert again["tools"][1] == {"googleSearch": {}}


@pytest.mark.parametrize(
    ("thinking", "reasoning"),
    [
        ({"thinkingBudget": 0}, "off"),
        ({"thinkingBudget": 512}, ReasoningOptions(budget=512, display="omitted")),
        ({"includeThoughts": True}, ReasoningOptions()),
        ({"include_thoughts": True, "thinking_level": "MEDIUM"}, ReasoningOptions("medium")),
        ({"includeThoughts": True, "thinkingBudget": -1}, ReasoningOptions()),
        ({"includeThoughts": False}, None),
        ({}, None),
    ],
)
def test_thinking_is_read_in_every_form(thinking: Any, reasoning: Any) -> None:
    prompt = decoded(
        {"contents": [{"parts": [{"text": "x"}]}], "generationConfig": {"thinkingConfig": thinking}}
    )
    assert prompt.reasoning == reasoning
    sent = rebuilt(prompt).get("generationConfig", {}).get("thinkingConfig", {})
    assert camel(sent) == camel(thinking)
    assert (False in sent.values()) == (False in thinking.values())


@pytest.mark.parametrize(
    ("calling", "choice"),
    [
        ({"mode": "AUTO"}, "auto"),
        ({"mode": "ANY"}, "required"),
        ({"mode": "NONE"}, "none"),
        ({"mode": "ANY", "allowedFunctionNames": ["f", "g"]}, "required"),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["f"]}, None),
    ],
)
def test_tool_choices_are_read_or_stay_in_extra(calling: Any, choice: str | None) -> None:
    request = {
        "contents": REQUEST["contents"][:1],
        "tools": REQUEST["tools"][:1],
        "toolConfig": {"functionCallingConfig": calling},
    }
    prompt = decoded(request)
    assert prompt.tool_choice == choice
    assert rebuilt(prompt)["toolConfig"]["functionCallingConfig"] == calling


def test_openapi_schema_becomes_json_schema() -> None:
    older = {
        "type": "ARRAY",
        "items": {"type": "STRING", "any_of": [{"type": "NUMBER"}], "nullable": True},
        "min_items": 1,
    }
    request = {
        "contents": REQUEST["contents"][:1],
        "generationConfig": {"responseMimeType": "application/json", "responseSchema": older},
    }
    inner = {"type": ["string", "null"], "anyOf": [{"type": "number"}]}
    assert decoded(request).output_schema == {"type": "array", "items": inner, "minItems": 1}


@pytest.mark.parametrize(
    "config",
    [
        {"responseMimeType": "text/x.enum"},
        {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING"}},
    ],
)
def test_other_output_formats_stay_in_extra(config: Any) -> None:
    prompt = decoded({"contents": REQUEST["contents"][:1], "generationConfig": config})
    assert (prompt.output_schema, prompt.extra) == (None, {"generationConfig": config})


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        (PATH, "gemini-3.5-flash", True),
        ("/v1/models/a%2Fb:generateContent", "a/b", False),
        (
            "/v1beta1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent",
            "m",
            True,
        ),
        ("", "gemini-2.0-flash", None),
    ],
)
def test_model_is_read_from_the_path_else_the_body(
    path: str, model: str, stream: bool | None
) -> None:
    prompt = decoded(
        {"model": "models/gemini-2.0-flash", "contents": [{"parts": [{"text": "x"}]}]}, path
    )
    assert (prompt.model, prompt.stream) == (model, stream)


def test_single_object_may_stand_for_a_list() -> None:
    request = {
        "contents": {"parts": {"text": "x"}},
        "tools": {"function_declarations": {"name": "f"}},
        "systemInstruction": {"parts": {"text": "s"}},
    }
    prompt = decoded(request)
    message = prompt.items[0]
    assert isinstance(message, Message)
    assert (message.text, prompt.tools[0].name, prompt.instructions) == ("x", "f", "s")


def test_generated_ids_differ_in_every_turn() -> None:
    turn = [
        {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
        {"parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    ]
    items = decoded({"contents": [{"parts": [{"text": "x"}]}, *turn, *turn]}).items
    calls = [item.call_id for item in items if isinstance(item, FunctionCall)]
    assert len(set(calls)) == 2
    assert [item.call_id for item in items if isinstance(item, FunctionCallOutput)] == calls


def test_result_with_media_holds_text_and_media() -> None:
    media = [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}, {"hologram": 1}]
    result = {"functionResponse": {"name": "f", "response": {"output": "see"}, "parts": media}}
    contents = [
        {"parts": [{"text": "x"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"parts": [result]},
    ]
    prompt = decoded({"contents": contents})
    output = prompt.items[2]
    assert isinstance(output, FunctionCallOutput)
    assert output.output == (Text("see"), Image(data="AA==", media_type="image/png"))
    assert rebuilt(prompt)["contents"] == [
        {"role": "user", **contents[0]},
        contents[1],
        {"role": "user", **contents[2]},
    ]


def test_gemini_state_is_sent_to_no_other_wire() -> None:
    """Gateways: state of one wire in the body of another is a 400, or a leak."""
    request = build(decoded(REQUEST), "anthropic:claude-opus-5")
    for secret in (b"CiQB", b"EpoH", b"hologram", b"scheduling", b"thought"):
        assert secret not in request.body.replace(b"/input/0/thought", b"")
    assert b'{"temp\\": 1.0' not in request.body
    sent = json.loads(request.body)
    assert sent["messages"][2]["content"][2]["content"] == [
        {"type": "text", "text": '{"temp": 1.0, "$ref": "x"}'}
    ]


def test_many_pending_calls_of_one_name_take_linear_time() -> None:
    count = 9_000
    model = {
        "role": "model",
        "parts": [{"functionCall": {"id": f"i{n}", "name": "f", "args": {}}} for n in range(count)],
    }
    results = {
        "parts": [
            {"functionResponse": {"id": f"i{n}", "name": "f", "response": {"output": "1"}}}
            for n in reversed(range(count))
        ]
    }
    outputs = [
        item
        for item in decoded({"contents": [model, results]}).items
        if isinstance(item, FunctionCallOutput)
    ]
    assert [output.call_id for output in outputs] == [f"i{n}" for n in reversed(range(count))]


def test_prompt_survives_build_and_decode() -> None:
    call = FunctionCall("c1", "f", '{"a": 1.0}', id="c1", signature="CiQB")
    original = Prompt(
        input=[user("x"), call, call.output("y")],
        instructions="s",
        temperature=0.5,
        stop=["a"],
        reasoning="low",
        seed=1,
    )
    request = build(original, "google:gemini-3.5-flash")
    again = parse_request("gemini", request.body, path=request.url)
    assert (again.model, again.instructions, again.temperature, again.stop, again.seed) == (
        "gemini-3.5-flash",
        "s",
        0.5,
        ("a",),
        1,
    )
    assert again.reasoning == ReasoningOptions("low")
    assert build(again, "google:gemini-3.5-flash").body == request.body


@pytest.mark.parametrize("parts", [[{"text": ""}], [{"text": "", "thought": True}], []])
def test_empty_turn_of_the_model_is_not_lost(parts: list[dict[str, Any]]) -> None:
    contents = [
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": parts},
        {"role": "user", "parts": [{"text": "b"}]},
    ]
    prompt = decoded({"contents": contents})
    assert [item.role for item in prompt.items if isinstance(item, Message)] == [
        "user",
        "assistant",
        "user",
    ]
    report = build(prompt, "google:gemini-3-pro").report
    assert [(change.action, change.path[:8]) for change in report] == [("dropped", "/input/1")]
