"""Thinking, tools and other settings of Messages requests, by model."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib import (
    Compaction,
    CustomToolCall,
    FunctionCall,
    Message,
    Opaque,
    Origin,
    Prompt,
    Provider,
    Reasoning,
    ReasoningOptions,
    ServerToolCall,
    Text,
    ToolSpec,
    build,
    user,
)
from tests.support.cases import each_case
from tests.support.messages_builds import CALL, HERE, SIGNED, TOOL, body, built, reasons, turns

# --- thinking ---


def test_t1_max_tokens_is_raised_above_the_budget() -> None:
    request = built(reasoning=4000, max_output_tokens=100, model="anthropic:claude-sonnet-4-5")
    sent = body(request)
    assert (sent["thinking"]["budget_tokens"], sent["max_tokens"]) == (4000, 4100)
    assert reasons(request) == ["raised above the thinking budget"]


def test_t1_a_budget_at_the_limit_leaves_tokens_for_the_text() -> None:
    """claude-opus-4 writes at most 32,000 tokens, reasoning included; "max" is more than that."""
    request = built(reasoning="max", max_output_tokens=8000, model="anthropic:claude-opus-4")
    assert (body(request)["thinking"]["budget_tokens"], body(request)["max_tokens"]) == (
        24_000,
        32_000,
    )
    assert any("24000 for thinking" in reason for reason in reasons(request))
    request = built(reasoning="max", max_output_tokens=31_000, model="anthropic:claude-opus-4")
    assert (body(request)["thinking"]["budget_tokens"], body(request)["max_tokens"]) == (
        16_000,
        32_000,
    )


@each_case(
    "model, reasoning, thinking, effort",
    [
        ("claude-opus-5", "high", {"type": "adaptive"}, "high"),
        ("claude-opus-5", 3000, {"type": "adaptive"}, "medium"),
        ("claude-sonnet-4-5", "medium", {"type": "enabled", "budget_tokens": 10_000}, None),
        ("claude-opus-4-6", "xhigh", {"type": "adaptive"}, "high"),
        ("claude-opus-5", "off", {"type": "disabled"}, None),
        ("claude-sonnet-5-5", "off", {"type": "between_tools"}, None),
        ("claude-fable-5", "off", None, None),
        ("claude-3-5-haiku", "high", None, None),
        (
            "claude-opus-5",
            ReasoningOptions(effort="low", display="summarized"),
            {"type": "adaptive", "display": "summarized"},
            "low",
        ),
    ],
)
def test_t2_to_t5_each_model_gets_the_form_it_takes(
    model: str, reasoning: Any, thinking: Any, effort: str | None
) -> None:
    sent = body(built(reasoning=reasoning, model=f"anthropic:{model}"))
    assert (sent.get("thinking"), sent.get("output_config", {}).get("effort")) == (thinking, effort)


def test_t6_thinking_gives_way_to_a_forced_call() -> None:
    request = built(
        reasoning="high", tools=[TOOL], tool_choice="required", model="anthropic:claude-sonnet-4-5"
    )
    assert "thinking" not in body(request)
    assert "a forced tool choice" in reasons(request)[0]


def test_t7_forced_choices_become_auto_where_they_are_refused() -> None:
    request = built(tools=[TOOL], tool_choice="f", model="anthropic:claude-opus-5-5")
    assert body(request)["tool_choice"] == {"type": "auto"}
    assert "takes no forced tool choice" in reasons(request)[0]


def test_t8_thinking_is_off_in_a_tool_turn_without_reasoning() -> None:
    request = built(
        user("x"),
        CALL,
        CALL.output("1"),
        reasoning="high",
        tools=[TOOL],
        model="anthropic:claude-sonnet-4-5",
    )
    assert "thinking" not in body(request)


def test_t8b_last_turn_has_no_reasoning_when_thinking_is_off() -> None:
    request = built(
        user("x"),
        SIGNED,
        Message("assistant", [Text("so")]),
        reasoning="off",
        model="anthropic:claude-sonnet-4-5",
    )
    assert turns(request)[-1] == ("assistant", ["text"])
    assert [change.breaks_prefix for change in request.report] == [True]


def test_t10_unsigned_reasoning_is_text_for_anthropic() -> None:
    unsigned = Reasoning("hm", origin=HERE)
    request = built(user("x"), unsigned, user("y"), model="anthropic:claude-opus-5")
    content = body(request)["messages"][1]["content"]
    assert content == [{"type": "text", "text": "<think>\nhm\n</think>"}]
    assert [change.action for change in request.report] == ["downgraded"]


def test_t10_unsigned_reasoning_is_kept_for_local_servers() -> None:
    unsigned = Reasoning("hm", origin=HERE)
    reply = Message("assistant", [Text("so")], origin=HERE)
    sent = turns(built(user("x"), unsigned, reply, user("y")))
    assert sent[1] == ("assistant", ["thinking", "text"])


def test_t11_drop_block_is_an_option_with_its_beta() -> None:
    """CASES 14."""
    request = built(
        reasoning="high", thinking_mismatch="drop_block", model="anthropic:claude-opus-5-5"
    )
    assert body(request)["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert request.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


@each_case(
    "foreign, kinds",
    [
        (Reasoning("hm", signature="s", origin=Origin("gemini")), ["text"]),
        (
            Reasoning(
                "hm", signature="s", origin=Origin("messages", "anthropic", model="claude-sonnet-5")
            ),
            ["text"],
        ),
        (Reasoning(encrypted_content="gAAA", origin=Origin("responses")), []),
        (
            Reasoning(redacted=True, encrypted_content="Emw", origin=Origin("messages", "bedrock")),
            [],
        ),
        (
            Reasoning(summary=["a", "b"], encrypted_content="g", origin=Origin("responses")),
            ["text"],
        ),
        (ServerToolCall("s", "web_search", "{}", origin=Origin("responses")), ["text"]),
        (Opaque("computer_call", {"type": "computer_call"}, origin=Origin("responses")), []),
        (Compaction(None, "gAAA", origin=Origin("responses")), []),
    ],
)
def test_state_of_another_origin_is_downgraded_and_reported(foreign: Any, kinds: list[str]) -> None:
    """CASES 19."""
    request = built(user("x"), foreign, user("y"), model="anthropic:claude-opus-5")
    sent = [
        block["type"]
        for turn in body(request)["messages"]
        if turn["role"] == "assistant"
        for block in turn["content"]
    ]
    assert sent == kinds
    assert [change.action for change in request.report] == ["downgraded" if kinds else "dropped"]
    assert b"gAAA" not in request.body
    assert b"Emw" not in request.body


# --- settings ---


def test_s1_sampling_is_sent_where_model_and_version_take_it() -> None:
    assert body(built(temperature=0.5, model="anthropic:claude-sonnet-4-5"))["temperature"] == 0.5
    refused = built(temperature=0.5, top_p=0.9, model="anthropic:claude-opus-5")
    assert "temperature" not in body(refused)
    assert {change.path for change in refused.report} == {"/temperature", "/top_p"}
    newer = Provider(
        "newer", ("messages",), "http://x", headers={"anthropic-version": "2026-10-21"}
    )
    assert "temperature" not in body(
        build(Prompt(input="x", temperature=0.5), "any", provider=newer)
    )


def test_s2_max_tokens_stays_within_the_limit() -> None:
    assert (
        body(built(max_output_tokens=999_999, model="anthropic:claude-sonnet-4-5"))["max_tokens"]
        == 64_000
    )


def test_s6_a_choice_without_tools_is_not_sent() -> None:
    assert "tool_choice" not in body(built(tool_choice="required"))


@pytest.mark.parametrize(
    ("choice", "sent"), [("auto", "auto"), ("required", "any"), ("none", "none"), ("f", "tool")]
)
def test_tool_choice_has_the_names_of_the_wire(choice: str, sent: str) -> None:
    assert body(built(tools=[TOOL], tool_choice=choice))["tool_choice"]["type"] == sent


def test_parallel_tools_can_be_switched_off() -> None:
    assert body(built(tools=[TOOL], parallel_tools=False))["tool_choice"] == {
        "type": "auto",
        "disable_parallel_tool_use": True,
    }


def test_function_hosted_and_free_form_tools_are_sent() -> None:
    hosted = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    tools = [
        TOOL,
        ToolSpec("web_search", native=hosted),
        ToolSpec("patch", format={"type": "text"}),
        ToolSpec("s", strict=True),
    ]
    sent = body(built(tools=tools))["tools"]
    assert sent[1] == hosted
    assert sent[2]["input_schema"]["required"] == ["input"]
    assert sent[3]["strict"] is True


def test_a_free_form_call_is_sent_as_one_string() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    assert body(built(user("x"), call, call.output("ok")))["messages"][1]["content"][0][
        "input"
    ] == {"input": "*** Begin"}


def test_output_schema_is_closed_and_reports_what_it_moved() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 3}},
        "required": ["n"],
    }
    request = built(output_schema=schema)
    sent = body(request)["output_config"]["format"]["schema"]
    assert (sent["additionalProperties"], sent["properties"]["n"]) == (
        False,
        {"type": "integer", "description": "(minimum: 3)"},
    )
    assert [change.path for change in request.report] == ["/output_schema/properties/n"]


def test_extra_is_merged_last() -> None:
    assert body(built(extra={"max_tokens": 7, "speed": "fast"})) | {
        "max_tokens": 7,
        "speed": "fast",
    } == body(built(extra={"max_tokens": 7, "speed": "fast"}))


def test_settings_have_the_names_of_the_wire() -> None:
    sent = body(built(stop=["END", " "], user_id="u", service_tier="auto", cache="auto"))
    assert (sent["stop_sequences"], sent["metadata"], sent["service_tier"]) == (
        ["END"],
        {"user_id": "u"},
        "auto",
    )
    assert sent["cache_control"] == {"type": "ephemeral"}


def test_settings_the_wire_lacks_are_reported() -> None:
    request = built(
        seed=1, n=2, logprobs=0, presence_penalty=0.1, frequency_penalty=0.1, verbosity="low"
    )
    assert {change.path for change in request.report} == {
        "/seed",
        "/n",
        "/logprobs",
        "/presence_penalty",
        "/frequency_penalty",
        "/verbosity",
    }


# --- sampling beside thinking (B2) ---

THINKERS = ["claude-sonnet-4-5", "claude-opus-4", "claude-opus-4-6", "claude-3-7-sonnet"]


@pytest.mark.parametrize("model", THINKERS)
def test_s1_sampling_is_left_out_while_claude_thinks(model: str) -> None:
    settings: Any = {"temperature": 0.5, "top_p": 0.9, "top_k": 5}
    request = built(reasoning="high", model=f"anthropic:{model}", **settings)
    assert not settings.keys() & body(request).keys()
    assert {change.path for change in request.report} >= {"/temperature", "/top_p", "/top_k"}


@pytest.mark.parametrize("model", THINKERS)
def test_s1_sampling_that_thinking_allows_is_sent(model: str) -> None:
    for name, value in (("temperature", 1), ("top_p", 0.95)):
        sent = body(built(reasoning="high", model=f"anthropic:{model}", **{name: value}))
        assert sent[name] == value


@pytest.mark.parametrize("model", THINKERS)
def test_s1_sampling_is_sent_with_thinking_off(model: str) -> None:
    sent = body(built(reasoning="off", temperature=0.5, top_k=5, model=f"anthropic:{model}"))
    assert (sent["temperature"], sent["top_k"]) == (0.5, 5)


def test_t6_adaptive_thinking_gives_way_to_a_forced_call() -> None:
    """B2: refused, or the model does not think; Claude 5 takes both."""
    forced: Any = {"reasoning": "high", "tools": [TOOL], "tool_choice": "required"}
    request = built(model="anthropic:claude-opus-4-6", **forced)
    assert "thinking" not in body(request)
    assert "where a call is forced" in reasons(request)[0]
    assert "thinking" in body(built(model="anthropic:claude-opus-5", **forced))


# --- reasoning at the end of a turn (B6) ---

CUT = FunctionCall("toolu_2", "f", '{"a', status="incomplete", origin=HERE, response_id="r1")


def test_a14_reasoning_alone_in_a_turn_is_dropped() -> None:
    """Its call was truncated, so it is not sent; the API refuses reasoning at a turn's end."""
    request = built(user("x"), SIGNED, CUT, user("y"), model="anthropic:claude-opus-5")
    assert turns(request) == [("user", ["text", "text"])]
    dropped = [
        change.path for change in request.report if "does not end with reasoning" in change.reason
    ]
    assert dropped == ["/input/1"]


def test_a14_reasoning_after_a_call_is_dropped() -> None:
    history = [user("x"), SIGNED, CALL, SIGNED, CUT, CALL.output("1"), user("y")]
    request = built(*history, tools=[TOOL], model="anthropic:claude-opus-5")
    assert turns(request) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "tool_use"]),
        ("user", ["tool_result", "text"]),
    ]
    dropped = [
        change.path for change in request.report if "does not end with reasoning" in change.reason
    ]
    assert dropped == ["/input/3"]


@pytest.mark.parametrize(
    ("model", "temperature", "sent", "dropped"),
    [
        ("claude-sonnet-4-5", 0.2, {"temperature": 0.2}, ["/top_p"]),
        ("claude-opus-4-1", 1, {"top_p": 0.9}, ["/temperature"]),
        ("claude-sonnet-4-6", 0.2, {"temperature": 0.2}, ["/top_p"]),
        ("claude-opus-4-0", 0.2, {"temperature": 0.2, "top_p": 0.9}, []),
    ],
)
def test_s1_newer_models_take_one_sampling_parameter(
    model: str, temperature: float, sent: dict[str, float], dropped: list[str]
) -> None:
    request = built(model=f"anthropic:{model}", temperature=temperature, top_p=0.9)
    values = {key: body(request)[key] for key in ("temperature", "top_p") if key in body(request)}
    assert values == sent
    assert [change.path for change in request.report] == dropped


def test_build_sends_a_version_to_servers_of_ones_own() -> None:
    """Found by the strict provider: the API answers 400 without ``anthropic-version``."""
    assert built().headers["anthropic-version"] == "2023-06-01"
    in_body = {"anthropic_version": "vertex-2023-10-16"}
    vertex = Provider("mine", wires=("messages",), base_url="http://x", overrides=in_body)
    assert "anthropic-version" not in build(Prompt(input="hi"), "m", provider=vertex).headers


def test_temperature_is_one_at_most() -> None:
    request = built(temperature=1.7)
    assert body(request)["temperature"] == 1
    assert [(change.action, change.path) for change in request.report] == [
        ("changed", "/temperature")
    ]
    assert built(temperature=1).report == []
    assert body(built(temperature=0))["temperature"] == 0
