"""The rows of settings: written to a body, read from one, and what has no row is reported."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import (
    CacheMark,
    CacheOptions,
    Prompt,
    ReasoningOptions,
    Request,
    ToolSpec,
    WireApi,
    build,
    parse_request,
)
from streamlib.providers import Provider
from streamlib.providers.models import Traits
from streamlib.request.report import Report
from streamlib.request.target import BuildContext, Target
from streamlib.wires.settings import Setting, SettingsTable, output_limit, without_settings
from streamlib_parsers.items import JsonObject
from tests.support.cases import each_case


def context(traits: Traits | None = None) -> BuildContext:
    provider = Provider("p", ("chat",), "http://p")
    target = Target(provider, "m", "chat", "http://p", traits or Traits())
    return BuildContext(target, Report())


def written(table: SettingsTable, traits: Traits | None = None, **settings: Any) -> Any:
    """The fields, and the report's actions and paths."""
    build = context(traits)
    fields = table.write(Prompt("hi", **settings), build)
    return fields, [(change.action, change.path) for change in build.report.changes]


def test_row_is_written_and_read_at_its_path() -> None:
    table = SettingsTable("W", Setting("top_p", "config.p"), Setting("seed", "config.seed"))
    fields, report = written(table, top_p=0.0, seed=0)
    assert (fields, report) == ({"config": {"p": 0.0, "seed": 0}}, [])
    assert table.read(fields) == {"top_p": 0.0, "seed": 0, "extra": None}


def test_row_reads_an_older_name() -> None:
    table = SettingsTable("W", Setting("user_id", "safety_identifier", also=("user",)))
    assert table.read({"user": "u"}) == {"user_id": "u", "extra": None}


@pytest.mark.parametrize("value", [0, 0.0, False, "", []])
def test_row_keeps_a_zero_before_an_older_name(value: Any) -> None:
    table = SettingsTable("W", Setting("user_id", "new", also=("old",)))
    assert table.read({"new": value, "old": 5}) == {"user_id": value, "extra": {"old": 5}}
    assert table.read({"old": value}) == {"user_id": value, "extra": None}


def test_row_leaves_another_value_in_extra() -> None:
    table = SettingsTable("W", Setting("user_id", "safety_identifier", also=("user",)))
    fields: JsonObject = {"user": "u", "safety_identifier": "s"}
    assert table.read(fields) == {"user_id": "s", "extra": {"user": "u"}}


def test_row_needs_a_trait_of_the_model() -> None:
    table = SettingsTable("W", Setting("top_k", "k", needs="sampling"))
    assert written(table, top_k=0) == ({"k": 0}, [])
    without = Traits(sampling=False)
    assert written(table, without, top_k=0) == ({}, [("dropped", "/top_k")])


def test_output_limit_is_that_of_the_model() -> None:
    table = SettingsTable("W", Setting("max_output_tokens", "max", write=output_limit))
    assert written(table, max_output_tokens=9) == ({"max": 9}, [])
    fields, report = written(table, Traits(max_output=5), max_output_tokens=9)
    assert (fields, report) == ({"max": 5}, [("changed", "/max_output_tokens")])


def test_long_text_is_sent_as_its_hash() -> None:
    table = SettingsTable("W", Setting("user_id", "user", longest=64))
    fields, report = written(table, user_id="u" * 65)
    assert len(fields["user"]) == 64
    assert report == [("changed", "/user_id")]


def test_setting_without_a_row_is_reported() -> None:
    table = SettingsTable("W", Setting("reasoning", "think"), Setting("cache"))
    _, report = written(
        table,
        temperature=0,
        metadata={},
        reasoning=ReasoningOptions(summary="auto"),
        cache=CacheOptions("1h"),
    )
    paths = [path for _, path in report]
    assert paths == ["/temperature", "/metadata", "/reasoning/summary", "/cache/ttl"]


def test_option_of_a_lost_setting_is_lost_with_it() -> None:
    _, report = written(SettingsTable("W"), cache=CacheOptions("1h"))
    assert report == [("dropped", "/cache")]


def test_fixed_value_is_neither_sent_nor_reported() -> None:
    table = SettingsTable("W", Setting("n", fixed=1))
    assert written(table, n=1) == ({}, [])
    assert written(table, n=0) == ({}, [("dropped", "/n")])


def test_extra_has_unknown_fields_and_rests() -> None:
    table = SettingsTable("W", Setting("top_p", "config.p"))
    read = table.read({"config": {"p": 1, "other": 2}, "unknown": None})
    assert read == {"top_p": 1, "extra": {"unknown": None, "config": {"other": 2}}}


def test_without_settings_reports_what_was_set() -> None:
    report = Report()
    prompt = without_settings(Prompt(top_p=0, top_k=1), ("top_p", "seed"), "why", report)
    assert prompt == Prompt(top_k=1)
    assert [change.path for change in report.changes] == ["/top_p"]


# --- on the wires ---

OLD_GPT = "custom:gpt-4o"
"""A model that does not think."""

LASTING = {"type": "ephemeral", "ttl": "1h"}
"""A cache mark of an hour."""

MESSAGES: dict[str, Any] = {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
"""The smallest request of Messages, but for its model."""


def rebuilt(wire: WireApi, fields: dict[str, Any], model: str = "custom:m") -> Request:
    """A decoded request, built again for a model."""
    prompt = parse_request(wire, msgspec.json.encode(fields))
    return build(prompt, model, wire_api=wire, base_url="http://x")


def sent(request: Request) -> Any:
    return msgspec.json.decode(request.body)


def actions(request: Request) -> list[tuple[str, str]]:
    return [(change.action, change.path) for change in request.report]


def test_include_beside_background_comes_back() -> None:
    """A response in the background is stored, and the builder asks for no encrypted reasoning."""
    include = ["reasoning.encrypted_content"]
    request = rebuilt("responses", {"input": "hi", "background": True, "include": include})
    assert sent(request)["include"] == include
    assert request.report == []
    other = rebuilt("responses", {"input": "hi", "background": True, "include": include}, OLD_GPT)
    assert actions(other) == [("dropped", "/extra/include")]


@pytest.mark.parametrize("summary", ["off", "none", "verbose"])
def test_summary_that_responses_lacks_is_reported(summary: str) -> None:
    prompt = Prompt("hi", reasoning=ReasoningOptions("high", summary=summary))
    request = build(prompt, "custom:m", wire_api="responses", base_url="http://x")
    assert sent(request)["reasoning"] == {"effort": "high"}
    assert actions(request) == [("dropped", "/reasoning/summary")]


def test_summary_of_a_decoded_request_comes_back() -> None:
    reasoning = {"effort": "high", "summary": "verbose"}
    request = rebuilt("responses", {"input": "hi", "reasoning": reasoning})
    assert sent(request)["reasoning"] == reasoning


@pytest.mark.parametrize("effort", [None, "high"])
def test_adaptive_thinking_that_becomes_tokens_is_reported(effort: str | None) -> None:
    fields: dict[str, Any] = {**MESSAGES, "thinking": {"type": "adaptive"}}
    if effort is not None:
        fields["output_config"] = {"effort": effort}
    request = rebuilt("messages", fields, "custom:claude-sonnet-4-5")
    assert sent(request)["thinking"]["type"] == "enabled"
    assert ("changed", "/reasoning") in actions(request)
    assert ("changed", "/reasoning") not in actions(rebuilt("messages", fields))


CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
"""The smallest request of Chat."""


def converse(**fields: Any) -> dict[str, Any]:
    """A Converse request with fields for the model."""
    turn = {"role": "user", "content": [{"text": "hi"}]}
    return {"messages": [turn], "additionalModelRequestFields": fields}


def gemini(**thinking: Any) -> dict[str, Any]:
    config = {"thinkingConfig": thinking}
    turn = {"role": "user", "parts": [{"text": "hi"}]}
    return {"contents": [turn], "generationConfig": config}


OPENROUTER = {"reasoning": {"enabled": False, "effort": "high"}}
KIMI = {"thinking": {"type": "disabled", "keep": "all"}, "reasoning_effort": "high"}
CLAUDE = {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low"}}
NOVA = {"reasoningConfig": {"type": "disabled", "maxReasoningEffort": "low"}}


@each_case(
    "wire, model, fields",
    [
        ("chat", "openrouter:m", {**CHAT, **OPENROUTER}),
        ("chat", "openrouter:m", {**CHAT, "reasoning": {"enabled": False, "effort": "new"}}),
        ("chat", "openrouter:m", {**CHAT, "reasoning": {"effort": "new"}}),
        ("chat", "deepseek:m", {**CHAT, **KIMI}),
        ("chat", "deepseek:m", {**CHAT, "thinking": {"type": "auto"}}),
        (
            "chat",
            "together:m",
            {**CHAT, "reasoning": {"enabled": False}, "reasoning_effort": "low"},
        ),
        ("gemini", "google:gemini-2.5-flash", gemini(thinkingBudget=0, thinkingLevel="HIGH")),
        ("gemini", "google:gemini-2.5-flash", gemini(thinkingBudget=0, thinkingLevel="NEW")),
        ("converse", "bedrock:us.anthropic.claude-new", converse(**CLAUDE)),
        ("converse", "bedrock:us.anthropic.claude-new", converse(output_config={"effort": "low"})),
        ("converse", "bedrock:us.amazon.nova-2-lite", converse(**NOVA)),
        ("converse", "bedrock:us.amazon.nova-2-lite", converse(reasoningConfig={"type": "new"})),
        ("converse", "bedrock:qwen.qwen3", converse(reasoning_config="new")),
        ("converse", "bedrock:m", converse(thinking={"budget_tokens": 2000})),
    ],
)
def test_level_beside_off_comes_back(wire: WireApi, model: str, fields: dict[str, Any]) -> None:
    request = rebuilt(wire, fields, model)
    again = sent(request)
    assert again | fields == again
    assert request.report == []
    elsewhere = build(parse_request(wire, msgspec.json.encode(fields)), "cohere:m")
    assert any(change.path.startswith(("/extra", "/reasoning")) for change in elsewhere.report)


@each_case(
    "model, fields, path",
    [
        ("openai:gpt-5.1", OPENROUTER, "/extra/reasoning/effort"),
        ("openai:gpt-5.1", KIMI, "/extra/reasoning_effort"),
        ("openai:gpt-4o", KIMI, "/extra/reasoning_effort"),
        ("together:m", OPENROUTER, "/extra/reasoning/effort"),
        ("vllm:m", {"reasoning_effort": "none", **OPENROUTER}, "/extra/reasoning/effort"),
        (
            "deepseek:m",
            {"reasoning_effort": "none", "thinking": {"type": "enabled"}},
            "/extra/thinking/type",
        ),
        (
            "openrouter:m",
            {"reasoning": {"enabled": True, "effort": "none", "exclude": 1}},
            "/extra/reasoning/enabled",
        ),
    ],
)
def test_level_beside_off_of_another_provider_is_reported(
    model: str, fields: dict[str, Any], path: str
) -> None:
    """Merged over the body, it would switch thinking on, or be refused."""
    request = rebuilt("chat", {**CHAT, **fields, "stream": False}, model)
    assert not any(word in request.body for word in (b':"high"', b':"enabled"', b":true"))
    assert ("dropped", path) in actions(request)
    assert ("exclude" in repr(fields)) == (b"exclude" in request.body)


def test_thinking_dropped_for_a_call_is_reported_once() -> None:
    prompt = Prompt("hi", reasoning="high", tools=[ToolSpec("f")], tool_choice="f")
    request = build(prompt, "anthropic:claude-sonnet-4-5")
    assert actions(request) == [("dropped", "/reasoning")]


def test_thinking_level_that_becomes_tokens_is_reported() -> None:
    config = {"thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True}}
    fields = {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": config}
    request = rebuilt("gemini", fields, "custom:gemini-2.5-pro")
    assert sent(request)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 16_384
    assert actions(request) == [("changed", "/reasoning")]
    assert rebuilt("gemini", fields, "custom:gemini-3-pro").report == []


@pytest.mark.parametrize("wire", ["messages", "converse"])
def test_mark_of_instructions_lives_as_long_as_the_options(wire: WireApi) -> None:
    prompt = Prompt("hi", "Be terse.", cache=CacheOptions("1h", instructions=CacheMark()))
    request = build(prompt, "custom:claude-sonnet-4-5", wire_api=wire, base_url="http://x")
    marks = {
        "messages": {"type": "text", "text": "Be terse.", "cache_control": LASTING},
        "converse": {"cachePoint": {"type": "default", "ttl": "1h"}},
    }
    assert sent(request)["system"][-1] == marks[wire]
    assert request.report == []


def test_mark_without_a_lifetime_keeps_the_default_of_the_api() -> None:
    """Beside a mark of an hour, one of five minutes stays what it is."""
    short = {"type": "ephemeral"}
    parts = [{"type": "text", "text": "hi", "cache_control": LASTING}]
    system = [{"type": "text", "text": "Be terse.", "cache_control": short}]
    fields = {**MESSAGES, "messages": [{"role": "user", "content": parts}], "system": system}
    request = sent(rebuilt("messages", {**fields, "cache_control": short}))
    assert request["system"] == system
    assert request["messages"][0]["content"] == parts
    assert request["cache_control"] == short


def test_tool_without_a_name_is_not_called_by_its_kind() -> None:
    tools = [{"type": "function", "name": "", "parameters": {}}]
    choice = {"type": "function", "name": ""}
    request = rebuilt("responses", {"input": "hi", "tools": tools, "tool_choice": choice})
    assert sent(request)["tool_choice"]["name"] == sent(request)["tools"][0]["name"]


@pytest.mark.parametrize("name", ["thinking_mismatch", "cache"])
def test_invoke_reports_what_a_chat_body_lacks(name: str) -> None:
    values: dict[str, Any] = {
        "thinking_mismatch": "error",
        "cache": CacheOptions(instructions=CacheMark()),
    }
    prompt = Prompt("hi", **{name: values[name]})
    request = build(prompt, "bedrock:openai.gpt-oss-20b", wire_api="invoke", base_url="http://x")
    assert [path.split("/")[1] for _, path in actions(request)] == [name]


@pytest.mark.parametrize("wire", ["messages", "converse", "invoke"])
@pytest.mark.parametrize("reasoning", [None, "off", ReasoningOptions("low", effort_only=True)])
def test_mismatch_without_thinking_is_reported(wire: WireApi, reasoning: Any) -> None:
    prompt = Prompt("hi", reasoning=reasoning, thinking_mismatch="drop_block")
    model = "custom:claude-opus-4-8"
    request = build(prompt, model, wire_api=wire, base_url="http://x")
    assert ("dropped", "/thinking_mismatch") in actions(request)
    thinking = msgspec.structs.replace(prompt, reasoning=ReasoningOptions())
    assert build(thinking, model, wire_api=wire, base_url="http://x").report == []


def test_thinking_without_a_level_is_reported_where_it_needs_one() -> None:
    """GPT-5.1 does not think by default, and Responses has no switch."""
    request = build(Prompt("hi", reasoning=ReasoningOptions()), "openai:gpt-5.1")
    assert actions(request) == [("dropped", "/reasoning")]
    assert build(Prompt("hi", reasoning=ReasoningOptions()), "openai:gpt-5").report == []


@pytest.mark.parametrize("option", ["summary", "display"])
def test_converse_reports_options_of_reasoning_it_lacks(option: str) -> None:
    options = {
        "summary": ReasoningOptions("high", summary="auto"),
        "display": ReasoningOptions("high", display="omitted"),
    }[option]
    for model in ("amazon.nova-2-lite", "openai.gpt-oss-20b"):
        prompt = Prompt("hi", reasoning=options)
        request = build(prompt, f"bedrock:{model}", wire_api="converse", base_url="http://x")
        assert actions(request) == [("dropped", f"/reasoning/{option}")]


def test_setting_that_a_provider_refuses_has_its_own_name() -> None:
    """Interactions named the field of the body, `/labels`."""
    for wire in ("gemini", "interactions"):
        request = build(Prompt("hi", metadata={"a": "b"}), "google:gemini-3-pro", wire_api=wire)
        assert [(change.action, change.path) for change in request.report] == [
            ("dropped", "/metadata")
        ]
