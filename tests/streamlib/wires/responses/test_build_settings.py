"""Responses requests: tools, reasoning, settings and providers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    CacheOptions,
    Message,
    Prompt,
    ReasoningOptions,
    Response,
    StreamError,
    Text,
    ToolSpec,
    build,
    parse_request,
    user,
)
from tests.support.cases import each_case
from tests.support.responses_builds import MESSAGE, PNG, TOOL, body, built, changes

# --- tools ---


def test_s1_tools_are_flat_and_strict_is_always_sent() -> None:
    strict = msgspec.structs.replace(TOOL, name="g", strict=True)
    tools = body(built(tools=[TOOL, strict, ToolSpec("h")]))["tools"]
    assert tools[0] == {
        "type": "function",
        "name": "f",
        "description": "does f",
        "parameters": TOOL.schema,
        "strict": False,
    }
    assert tools[1]["strict"] is True
    assert tools[2] == {
        "type": "function",
        "name": "h",
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    }


def test_strict_schema_is_closed_and_all_required() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 1}, "b": {"$ref": "#/$defs/B"}},
        "required": ["b"],
    }
    request = built(tools=[ToolSpec("f", schema=schema, strict=True)])
    parameters = body(request)["tools"][0]["parameters"]
    assert parameters["required"] == ["a", "b"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["a"] == {
        "type": ["string", "null"],
        "description": "(minLength: 1)",
    }
    assert changes(request) == [
        ("changed", "/tools/0/schema/properties/a"),
        ("changed", "/tools/0/schema"),
    ]


@pytest.mark.parametrize(
    ("child", "nullable"),
    [
        ({"type": "string", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        (
            {"$ref": "#/$defs/A", "description": "d"},
            {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "description": "d"},
        ),
        ({"allOf": [{"$ref": "#/$defs/A"}]}, {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}),
        ({"const": 1}, {"anyOf": [{"const": 1, "type": "integer"}, {"type": "null"}]}),
        ({"enum": ["a", "b"]}, {"type": ["string", "null"], "enum": ["a", "b", None]}),
        # Other keywords say the type too.
        ({"pattern": "a"}, {"pattern": "a", "type": ["string", "null"]}),
        ({"minimum": 0}, {"minimum": 0, "type": ["number", "null"]}),
        (
            {"items": {"enum": [1, 2.5]}},
            {"items": {"enum": [1, 2.5], "type": "number"}, "type": ["array", "null"]},
        ),
        (
            {"properties": {}},
            {
                "properties": {},
                "type": ["object", "null"],
                "additionalProperties": False,
                "required": [],
            },
        ),
        # A choice needs no type beside it.
        (
            {"oneOf": [{"const": 1}, {"type": "string"}], "enum": [1, "a"]},
            {
                "anyOf": [{"const": 1, "type": "integer"}, {"type": "string"}, {"type": "null"}],
                "enum": [1, "a"],
            },
        ),
    ],
)
def test_optional_property_of_a_strict_schema_may_be_null(
    child: dict[str, Any], nullable: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {"a": child}}
    assert (
        body(built(output_schema=schema))["text"]["format"]["schema"]["properties"]["a"] == nullable
    )


@each_case(
    "child, inner",
    [
        ({}, ""),
        ({"default": 4}, ""),
        ({"enum": []}, ""),
        ({"type": "array", "items": True}, "/items"),
        ({"oneOf": [{"type": "string"}, {}]}, "/oneOf/1"),
        # Arrays of any type: msgspec's form of `list[Any]`, and constants.
        ({"type": "array"}, ""),
        ({"type": ["array", "null"]}, ""),
        ({"const": [1, 2]}, ""),
        ({"enum": [[1], [2]]}, ""),
        # Closed, these objects could only be {}.
        ({"const": {"a": 1}}, ""),
        ({"required": ["a"]}, ""),
    ],
)
def test_schema_with_a_value_of_any_type_is_not_strict(child: dict[str, Any], inner: str) -> None:
    """The API refused the whole request: "schema must have a 'type' key"."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": child}}
    request = built(output_schema=schema, tools=[ToolSpec("f", schema=schema, strict=True)])
    text_format, tool = body(request)["text"]["format"], body(request)["tools"][0]
    assert (text_format["schema"], text_format["strict"]) == (schema, False)
    assert (tool["parameters"], tool["strict"]) == (schema, False)
    assert sorted(changes(request)) == [
        ("changed", f"/output_schema/properties/b{inner}"),
        ("changed", f"/tools/0/schema/properties/b{inner}"),
    ]
    assert "no type: the schema is not sent as strict" in request.report[0].reason


def test_strict_that_the_caller_wrote_is_sent() -> None:
    """The report said that the schema was not sent as strict, and it was, unfitted."""
    schema = {"type": "object", "properties": {"a": {}}}
    request = built(output_schema=schema, extra={"text": {"format": {"strict": True}}})
    text_format = body(request)["text"]["format"]
    assert (text_format["strict"], text_format["schema"]["required"]) == (True, ["a"])
    assert [change.reason for change in request.report] == [
        "every property is required here, these may be null: a"
    ]
    not_strict = built(output_schema=schema, extra={"text": {"format": {"strict": False}}})
    text_format = body(not_strict)["text"]["format"]
    assert (text_format["strict"], text_format["schema"]) == (False, schema)
    assert not_strict.report == []


def test_parameters_that_are_not_an_object_become_one() -> None:
    request = built(tools=[ToolSpec("f", schema={"properties": {}})])
    assert body(request)["tools"][0]["parameters"] == {"properties": {}, "type": "object"}
    assert changes(request) == [("changed", "/tools/0/schema")]


def test_free_form_and_hosted_tools() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: x"}
    hosted = ToolSpec("web_search", native={"type": "web_search", "search_context_size": "low"})
    assert body(built(tools=[ToolSpec("patch", "d", format=grammar), hosted]))["tools"] == [
        {"type": "custom", "name": "patch", "description": "d", "format": grammar},
        {"type": "web_search", "search_context_size": "low"},
    ]


@each_case(
    "choice, sent_as",
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        ("f", {"type": "function", "name": "f"}),
        ("patch", {"type": "custom", "name": "patch"}),
        ("search", {"type": "web_search_preview"}),
        ("deep", {"type": "mcp", "server_label": "deep"}),
        ("later", {"type": "function", "name": "later"}),
    ],
)
def test_tool_choice_is_flat(choice: str, sent_as: Any) -> None:
    tools = [
        TOOL,
        ToolSpec("patch", format={"type": "text"}),
        ToolSpec("search", native={"type": "web_search_preview"}),
        ToolSpec("deep", native={"type": "mcp", "server_label": "deep"}),
        ToolSpec("later", native={"type": "function", "name": "later", "defer_loading": True}),
    ]
    assert body(built(tools=tools, tool_choice=choice))["tool_choice"] == sent_as


def test_s6_tool_choice_needs_tools() -> None:
    request = built(tool_choice="auto", parallel_tools=False)
    assert "tool_choice" not in body(request)
    assert changes(request) == [("dropped", "/tool_choice"), ("dropped", "/parallel_tools")]
    assert body(built(tools=[TOOL], parallel_tools=False))["parallel_tool_calls"] is False


def test_long_tool_names_are_mapped_in_request_names() -> None:
    request = built(tools=[ToolSpec("a.b")], tool_choice="a.b")
    assert body(request)["tool_choice"] == {"type": "function", "name": "a_b"}
    assert request.names == {"a_b": "a.b"}


# --- requested reasoning ---


@each_case(
    "model, options, effort, reported",
    [
        ("gpt-5", "high", "high", []),
        ("gpt-5", "off", "minimal", [("changed", "/reasoning")]),
        ("gpt-5", "max", "high", [("changed", "/reasoning")]),
        ("gpt-5.1", "off", "none", []),
        ("gpt-5.1", "minimal", "low", [("changed", "/reasoning")]),
        ("gpt-5.2", "xhigh", "xhigh", []),
        ("gpt-5-pro", "low", "high", [("changed", "/reasoning")]),
        ("gpt-5.6-sol", "max", "max", []),
        ("gpt-6-astra", "off", "low", [("changed", "/reasoning")]),
        ("o4-mini", "minimal", "low", [("changed", "/reasoning")]),
        ("gpt-5", 12_000, "high", [("changed", "/reasoning")]),
        ("something-new", "max", "max", []),
        ("something-new", "off", "none", []),
    ],
)
def test_s2_effort_is_a_level_the_model_takes(
    model: str, options: Any, effort: str, reported: Any
) -> None:
    request = built(model=f"openai:{model}", reasoning=options)
    assert body(request)["reasoning"] == {"effort": effort}
    assert changes(request) == reported


def test_summary_is_sent_and_display_is_not() -> None:
    request = built(reasoning=ReasoningOptions(effort="low", summary="auto", display="omitted"))
    assert body(request)["reasoning"] == {"effort": "low", "summary": "auto"}
    assert changes(request) == [("dropped", "/reasoning/display")]
    assert body(built(reasoning=ReasoningOptions(summary="auto")))["reasoning"] == {
        "summary": "auto"
    }


def test_s3_model_that_cannot_think_gets_no_reasoning_fields() -> None:
    """S3: gpt-4o refuses both with a 400."""
    request = built(model="openai:gpt-4o", reasoning="low")
    assert not {"reasoning", "include"} & body(request).keys()
    assert changes(request) == [("dropped", "/reasoning")]


def test_s3_encrypted_reasoning_is_requested_if_not_stored() -> None:
    encrypted = ["reasoning.encrypted_content"]
    assert body(built())["include"] == encrypted
    assert "include" not in body(built(extra={"store": True}))
    assert body(built(extra={"store": True}, reasoning="low"))["include"] == encrypted


# --- settings ---


@each_case(
    "model, settings, taken",
    [
        ("gpt-4.1", {}, True),
        ("gpt-5", {}, False),
        ("o3", {}, False),
        ("gpt-5.1", {}, True),
        ("gpt-5.1", {"reasoning": "low"}, False),
        ("gpt-5.6", {}, False),
        ("gpt-5.6", {"reasoning": "off"}, True),
        ("something-new", {"reasoning": "low"}, True),
    ],
)
def test_s4_sampling_only_for_models_that_do_not_think(
    model: str, settings: Any, taken: bool
) -> None:
    request = built(model=f"openai:{model}", temperature=0.5, top_p=0.9, logprobs=2, **settings)
    fields = body(request)
    assert (fields.get("temperature"), fields.get("top_p"), fields.get("top_logprobs")) == (
        (0.5, 0.9, 2) if taken else (None, None, None)
    )
    assert ("message.output_text.logprobs" in fields.get("include", [])) is taken
    assert changes(request) == (
        []
        if taken
        else [("dropped", "/temperature"), ("dropped", "/top_p"), ("dropped", "/logprobs")]
    )


def test_logprobs_without_alternatives_are_only_included() -> None:
    fields = body(built(logprobs=0))
    assert "message.output_text.logprobs" in fields["include"]
    assert "top_logprobs" not in fields


def test_settings_the_wire_lacks_are_reported() -> None:
    request = built(
        seed=1,
        stop=["x"],
        presence_penalty=0.1,
        frequency_penalty=0.1,
        top_k=4,
        n=2,
        thinking_mismatch="drop_block",
    )
    assert body(request).keys() == {"model", "input", "stream", "store", "include"}
    assert sorted(path for _, path in changes(request)) == [
        "/frequency_penalty",
        "/n",
        "/presence_penalty",
        "/seed",
        "/stop",
        "/thinking_mismatch",
        "/top_k",
    ]


def test_plain_settings_have_their_wire_names() -> None:
    fields = body(
        built(
            instructions="be brief",
            max_output_tokens=100,
            metadata={"a": "b"},
            service_tier="flex",
            user_id="u1",
            conversation_id="c1",
            verbosity="low",
            stream=False,
            n=1,
            extra={"truncation": "auto"},
        )
    )
    assert {key: fields[key] for key in fields.keys() - {"input", "model", "include", "store"}} == {
        "instructions": "be brief",
        "max_output_tokens": 100,
        "metadata": {"a": "b"},
        "service_tier": "flex",
        "safety_identifier": "u1",
        "prompt_cache_key": "c1",
        "text": {"verbosity": "low"},
        "stream": False,
        "truncation": "auto",
    }


def test_s5_long_keys_are_hashed_the_same_way_each_time() -> None:
    request = built(conversation_id="c" * 65, user_id="u" * 129)
    again = built(conversation_id="c" * 65, user_id="u" * 129)
    fields = body(request)
    assert len(fields["prompt_cache_key"]) == len(fields["safety_identifier"]) == 64
    assert request.body == again.body
    assert changes(request) == [("changed", "/user_id"), ("changed", "/conversation_id")]


def test_output_schema_is_a_flat_strict_format_with_a_name() -> None:
    schema = {
        "title": "My answer",
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
    }
    assert body(built(output_schema=schema))["text"]["format"] == {
        "type": "json_schema",
        "name": "My_answer",
        "schema": {**schema, "additionalProperties": False},
        "strict": True,
    }


def test_format_in_extra_is_not_mixed_with_ours() -> None:
    form = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": False}
    assert body(built(output_schema={"type": "object"}, extra={"text": {"format": form}}))[
        "text"
    ] == {"format": form}


def test_cache_breakpoints_are_on_the_last_part_of_an_item() -> None:
    cache = CacheOptions("1h", [0, 1])
    request = built(user("a", PNG), MESSAGE, user("b"), model="azure:any", cache=cache)
    fields = body(request)
    marked = [
        ["prompt_cache_breakpoint" in part for part in item["content"]] for item in fields["input"]
    ]
    assert marked == [[False, True], [False], [False]]
    assert fields["prompt_cache_options"] == {"ttl": "12h"}
    assert changes(request) == [("dropped", "/cache/breakpoints/1"), ("changed", "/cache/ttl")]


def test_automatic_caching_sends_no_field() -> None:
    assert "prompt_cache_options" not in body(built(cache="auto"))
    lasting = built(model="azure:any", cache=CacheOptions("30m"))
    assert body(lasting)["prompt_cache_options"] == {"ttl": "30m"}


def test_empty_input_is_refused_unless_the_server_has_state() -> None:
    with pytest.raises(StreamError, match="nothing to send"):
        built(Message("assistant"))
    state = {"previous_response_id": "resp_1"}
    assert "input" not in body(built(Message("assistant"), extra=state))


# --- providers ---


def test_openai_uses_responses_by_default() -> None:
    request = built(model="openai:gpt-5")
    assert (request.url, request.wire_api) == ("https://api.openai.com/v1/responses", "responses")


def test_the_codex_backend_gets_what_it_takes() -> None:
    prompt = Prompt(
        input=[Message("system", [Text("s")]), user("x")],
        max_output_tokens=5,
        temperature=0.1,
        metadata={"a": "b"},
        stream=False,
    )
    request = build(prompt, "codex:gpt-5.1", account="acc_1")
    fields = body(request)
    assert request.url == "https://chatgpt.com/backend-api/codex/responses"
    assert request.headers["ChatGPT-Account-ID"] == "acc_1"
    assert (fields["store"], fields["stream"], fields["input"][0]["role"]) == (
        False,
        True,
        "developer",
    )
    assert fields["instructions"]
    assert not {"max_output_tokens", "temperature", "metadata"} & fields.keys()
    assert {path for _, path in changes(request)} == {
        "/max_output_tokens",
        "/temperature",
        "/metadata",
    }


def test_closing_an_open_schema_is_reported() -> None:
    """A schema that allows further keys says something else once they are forbidden."""
    open_schema = {"type": "object", "properties": {}, "additionalProperties": True}
    request = build(Prompt("hi", output_schema=open_schema), "gpt-5", provider="openai")
    reasons = [change.reason for change in request.report if change.path == "/output_schema"]
    assert any("no other keys" in reason for reason in reasons)


def test_encrypted_reasoning_that_no_model_gives_is_reported() -> None:
    """The service refuses the element for such models; it was left out without a word."""
    values = ["reasoning.encrypted_content", "web_search_call.results"]
    for include, sent in ((values[:1], None), (values, values[1:])):
        raw = {"model": "gpt-4.1", "input": "x", "include": include, "store": False}
        prompt = parse_request("responses", msgspec.json.encode(raw))
        request = build(prompt, "openai:gpt-4.1")
        assert body(request).get("include") == sent
        assert ("dropped", "/extra/include") in changes(request)
        thinking = build(prompt, "openai:gpt-5.5")
        assert sorted(body(thinking)["include"]) == include
        assert changes(thinking) == []
    own = Prompt("x", extra={"include": values[:1]})
    assert body(build(own, "openai:gpt-4.1"))["include"] == values[:1]


@pytest.mark.parametrize(("requested", "sent"), [(1, 16), (15, 16), (16, 16), (17, 17)])
def test_output_has_sixteen_tokens_at_least(requested: int, sent: int) -> None:
    request = built(max_output_tokens=requested)
    assert body(request)["max_output_tokens"] == sent
    reported = [("changed", "/max_output_tokens")] if requested < sent else []
    assert changes(request) == reported


def test_unknown_server_gets_no_cache_breakpoints() -> None:
    """A client's own part may carry one too."""
    part = {"type": "input_text", "text": "a"}
    lasting = {**part, "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}
    raw = {"model": "m", "input": [{"role": "user", "content": [lasting, part]}]}
    prompt = parse_request("responses", msgspec.json.encode(raw))
    prompt = msgspec.structs.replace(prompt, cache=CacheOptions("30m", [0]))
    for model, is_known in (("custom:any", False), ("azure:any", True)):
        request = build(prompt, model, wire_api="responses", base_url="http://x")
        assert (b"prompt_cache" in request.body) == is_known
        assert (("dropped", "/cache/breakpoints/0") in changes(request)) == (not is_known)


# --- what is asked of the cache ---


def test_older_models_get_no_cache_breakpoints() -> None:
    for model, is_sent in (("gpt-5.5", False), ("gpt-5.6", True), ("gpt-6-astra", True)):
        cache = CacheOptions("12h", [0], prewarm=True, compare="resp_1")
        request = built(user("a"), model=f"openai:{model}", cache=cache)
        assert (b"prompt_cache" in request.body) == is_sent
        if is_sent:
            assert changes(request) == []
            assert body(request)["prompt_cache_options"] == {
                "ttl": "12h",
                "prewarm": True,
                "comparison_response_id": "resp_1",
            }
        else:
            names = ["breakpoints/0", "ttl", "prewarm", "compare"]
            assert changes(request) == [("dropped", f"/cache/{name}") for name in names]
            assert "gpt-5.6" in request.report[0].reason


def test_response_to_compare_with_is_named() -> None:
    model = "openai:gpt-5.6"
    for compared in (Response("resp_1"), "resp_1"):
        options = body(built(model=model, cache=CacheOptions(compare=compared)))
        assert options["prompt_cache_options"] == {"comparison_response_id": "resp_1"}
    # There is none yet: OpenAI has no word for that.
    assert "prompt_cache_options" not in body(built(model=model, cache=CacheOptions(compare="")))
    request = built(model=model, cache=CacheOptions(compare=Response("msg_1")))
    assert changes(request) == [("dropped", "/cache/compare")]
    with pytest.raises(TypeError, match="compare is a Response or its id, not 5"):
        CacheOptions(compare=5)  # type: ignore[arg-type]


def test_lifetimes_of_breakpoints_keep_the_other_options() -> None:
    part = Text("a", native={"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}})
    cache = CacheOptions("30m", compare="resp_1")
    fields = body(built(Message("user", [part]), model="openai:gpt-5.6", cache=cache))
    assert fields["prompt_cache_options"] == {"comparison_response_id": "resp_1"}
