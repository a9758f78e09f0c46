"""Tools, thinking and other settings of Converse requests, by family of models."""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib import (
    CustomToolCall,
    ReasoningOptions,
    ToolSpec,
    user,
)
from streamlib.providers.models import Traits, traits
from tests.support.cases import each_case
from tests.support.converse_builds import (
    CALL,
    CLAUDE,
    LLAMA,
    NEWEST,
    NOVA,
    NOVA_2,
    REPLY,
    SIGNED,
    TOOL,
    body,
    built,
    fields,
    reasons,
    turns,
)

# --- tools ---


@each_case(
    "model, tool_choice, sent",
    [
        (CLAUDE, "auto", {"auto": {}}),
        (CLAUDE, "required", {"any": {}}),
        (CLAUDE, "f", {"tool": {"name": "f"}}),
        (NOVA, "f", {"tool": {"name": "f"}}),
        ("mistral.mistral-large-2407-v1:0", "f", {"any": {}}),
        (LLAMA, "f", {"auto": {}}),
        (LLAMA, "required", {"auto": {}}),
        ("cohere.command-r-v1:0", "required", None),
        ("us.anthropic.claude-opus-5-5", "required", {"auto": {}}),
    ],
)
def test_b17_tool_choice_has_the_form_each_family_takes(
    model: str, tool_choice: str, sent: Any
) -> None:
    request = built(tools=[TOOL], tool_choice=tool_choice, model=model)
    assert body(request)["toolConfig"].get("toolChoice") == sent
    requested = {"auto": {"auto": {}}, "required": {"any": {}}}.get(
        tool_choice, {"tool": {"name": "f"}}
    )
    assert bool(request.report) == (sent != requested)


def test_b16_none_is_sent_to_claude_as_a_model_field() -> None:
    request = built(tools=[TOOL], tool_choice="none")
    assert body(request)["toolConfig"].keys() == {"tools"}
    assert fields(request) == {"tool_choice": {"type": "none"}}
    other = built(tools=[TOOL], tool_choice="none", model=NOVA)
    assert body(other)["toolConfig"].keys() == {"tools"}
    assert "no choice none" in reasons(other)[0]


def test_parallel_calls_can_be_switched_off_for_claude() -> None:
    request = built(tools=[TOOL], tool_choice="f", parallel_tools=False)
    assert fields(request)["tool_choice"] == {
        "type": "tool",
        "name": "f",
        "disable_parallel_tool_use": True,
    }
    assert "toolChoice" not in body(request)["toolConfig"]
    assert built(tools=[TOOL], parallel_tools=False, model=NOVA).report[0].path == "/parallel_tools"


def test_a_choice_without_tools_is_not_sent() -> None:
    assert "toolConfig" not in body(built(tool_choice="required"))


def test_hosted_tools_are_sent_where_their_family_reads_them() -> None:
    system = ToolSpec("nova_grounding", native={"systemTool": {"name": "nova_grounding"}})
    assert (
        body(built(tools=[system, TOOL], model=NOVA_2))["toolConfig"]["tools"][0] == system.native
    )
    computer = ToolSpec("computer", native={"type": "computer_20250124", "name": "computer"})
    assert fields(built(tools=[computer, TOOL]))["tools"] == [computer.native]
    assert built(tools=[computer, TOOL], model=NOVA).report[0].path == "/tools/0"


def test_a_free_form_tool_and_call_take_one_string() -> None:
    call = CustomToolCall("c", "patch", "*** Begin")
    sent = body(
        built(
            user("x"), call, call.output("ok"), tools=[ToolSpec("patch", format={"type": "text"})]
        )
    )
    assert sent["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"]["required"] == [
        "input"
    ]
    assert sent["messages"][1]["content"][0]["toolUse"]["input"] == {"input": "*** Begin"}


# --- thinking ---


@each_case(
    "model, reasoning, sent",
    [
        (CLAUDE, "medium", {"thinking": {"type": "enabled", "budget_tokens": 10_000}}),
        (NEWEST, "high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        (NEWEST, "off", {"thinking": {"type": "disabled"}}),
        ("us.anthropic.claude-fable-5", "off", {}),
        (NEWEST, ReasoningOptions(effort="low", display="summarized"), None),
        (NOVA_2, "high", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
        (NOVA_2, 3000, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}}),
        (NOVA_2, "off", {"reasoningConfig": {"type": "disabled"}}),
        (NOVA, "high", {}),
        ("openai.gpt-oss-120b-1:0", "low", {"reasoning_effort": "low"}),
        ("us.openai.gpt-5.2", "high", {"reasoning": {"effort": "high"}}),
        ("qwen.qwen3-32b-v1:0", "high", {"reasoning_config": "high"}),
        (LLAMA, "high", {}),
    ],
)
def test_b22_thinking_has_the_form_each_family_takes(model: str, reasoning: Any, sent: Any) -> None:
    request = built(reasoning=reasoning, model=model)
    expected = {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "low"},
    }
    assert fields(request) == (expected if sent is None else sent)
    # tokens for a level, a level for tokens, or nothing at all
    is_changed = reasoning == 3000 or (model, reasoning) == (CLAUDE, "medium")
    assert bool(request.report) == (sent == {} or is_changed)


def test_t1_max_tokens_is_raised_above_the_budget_if_set() -> None:
    request = built(reasoning=4000, max_output_tokens=100)
    assert (fields(request)["thinking"]["budget_tokens"], body(request)["inferenceConfig"]) == (
        4000,
        {"maxTokens": 4100},
    )
    assert "inferenceConfig" not in body(built(reasoning=4000))


def test_t6_t8_thinking_is_off_when_a_call_or_turn_forbids_it() -> None:
    assert "thinking" not in fields(built(reasoning="high", tools=[TOOL], tool_choice="required"))
    assert "thinking" not in fields(
        built(user("x"), CALL, CALL.output("1"), reasoning="high", tools=[TOOL])
    )
    assert "thinking" in fields(
        built(user("x"), SIGNED, CALL, CALL.output("1"), reasoning="high", tools=[TOOL])
    )


def test_t8b_last_turn_has_no_reasoning_when_thinking_is_off() -> None:
    request = built(user("x"), SIGNED, REPLY, reasoning="off")
    assert turns(request)[-1] == ("assistant", ["text"])
    assert [change.breaks_prefix for change in request.report] == [True]


def test_t11_drop_block_is_an_option_with_its_beta_in_the_body() -> None:
    sent = fields(
        built(
            reasoning="high", thinking_mismatch="drop_block", model="us.anthropic.claude-opus-5-5"
        )
    )
    assert sent["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert sent["anthropic_beta"] == ["thinking-binding-controls-2026-08-01"]


def test_response_fields_are_requested_when_needed() -> None:
    """Thinking tokens and the stop sequence."""
    sent = body(built(reasoning="low", stop=["END"]))["additionalModelResponseFieldPaths"]
    assert sent == ["/stop_sequence", "/delta/stop_sequence", "/usage/output_tokens_details"]
    assert "additionalModelResponseFieldPaths" not in body(built())
    assert "additionalModelResponseFieldPaths" not in body(built(stop=["END"], model=NOVA))


def test_an_unknown_name_is_claude_if_its_traits_say_so() -> None:
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"
    unknown = built(reasoning="high", model=arn)
    assert fields(unknown) == {}
    assert unknown.report[0].path == "/reasoning"
    known = built(
        reasoning="high", model=arn, models={arn: Traits(thinking=("adaptive",), efforts=("high",))}
    )
    assert fields(known)["thinking"] == {"type": "adaptive"}


# --- settings ---


def test_nothing_is_sent_that_the_prompt_does_not_set() -> None:
    request = built()
    assert body(request) == {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
    assert request.report == []


def test_settings_have_the_names_of_the_wire() -> None:
    request = built(
        max_output_tokens=9,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        models={CLAUDE: msgspec.structs.replace(traits(CLAUDE), both_samplings=True)},
        stop=["END", " "],
        metadata={"team": "a"},
        service_tier="flex",
    )
    sent = body(request)
    assert sent["inferenceConfig"] == {
        "maxTokens": 9,
        "temperature": 0.5,
        "topP": 0.9,
        "stopSequences": ["END"],
    }
    assert (sent["requestMetadata"], sent["serviceTier"], fields(request)) == (
        {"team": "a"},
        {"type": "flex"},
        {"top_k": 4},
    )
    assert fields(built(top_k=4, model=NOVA)) == {"inferenceConfig": {"topK": 4}}


def test_b23_temperature_stays_between_0_and_1() -> None:
    request = built(temperature=1.7)
    assert body(request)["inferenceConfig"] == {"temperature": 1.0}
    assert "between 0 and 1" in reasons(request)[0]


def test_s1_sampling_is_sent_where_the_model_takes_it() -> None:
    refused = built(temperature=0.5, top_p=0.9, top_k=3, model=NEWEST)
    assert body(refused).keys() == {"messages"}
    assert {change.path for change in refused.report} == {"/temperature", "/top_p", "/top_k"}


def test_s2_max_tokens_stays_within_the_limit() -> None:
    assert body(built(max_output_tokens=999_999))["inferenceConfig"] == {"maxTokens": 64_000}


def test_output_schema_is_json_text() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 3}},
        "required": ["n"],
    }
    request = built(output_schema=schema)
    definition = body(request)["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    sent = msgspec.json.decode(definition["schema"])
    assert (sent["additionalProperties"], sent["properties"]["n"]) == (
        False,
        {"type": "integer", "description": "(minimum: 3)"},
    )
    other = built(output_schema=schema, model="qwen.qwen3-32b-v1:0")
    assert (
        msgspec.json.decode(
            body(other)["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]
        )
        == schema
    )


def test_metadata_that_bedrock_refuses_is_dropped() -> None:
    request = built(metadata={"ok": "1", "bad": "{}", **{f"k{n}": "v" for n in range(20)}})
    assert len(body(request)["requestMetadata"]) == 16
    assert "/metadata/bad" in {change.path for change in request.report}


def test_settings_the_wire_lacks_are_reported() -> None:
    settings = {
        "seed": 1,
        "n": 2,
        "logprobs": 0,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.1,
        "verbosity": "low",
        "user_id": "u",
    }
    request = built(**settings, service_tier="auto")
    assert {change.path for change in request.report} == {
        *(f"/{name}" for name in settings),
        "/service_tier",
    }
    assert body(request).keys() == {"messages"}


def test_extra_is_merged_into_the_body() -> None:
    guardrail = {"guardrailIdentifier": "abc123", "guardrailVersion": "DRAFT"}
    beta = {"anthropic_beta": ["context-1m-2025-08-07"]}
    request = built(
        reasoning="low",
        extra={
            "guardrailConfig": guardrail,
            "additionalModelRequestFields": beta,
            "performanceConfig": {"latency": "optimized"},
        },
    )
    sent = body(request)
    assert (sent["guardrailConfig"], sent["performanceConfig"]) == (
        guardrail,
        {"latency": "optimized"},
    )
    assert fields(request) == {"thinking": {"type": "enabled", "budget_tokens": 2048}, **beta}


def test_s1_sampling_is_left_out_while_claude_thinks() -> None:
    """B2: Claude refuses it beside thinking."""
    request = built(temperature=0.5, top_p=0.9, top_k=3, reasoning="high", model=CLAUDE)
    sent = body(request)
    assert "inferenceConfig" not in sent
    assert "top_k" not in sent["additionalModelRequestFields"]
    assert {change.path for change in request.report} >= {"/temperature", "/top_p", "/top_k"}


def test_s1_sampling_that_thinking_allows_is_sent() -> None:
    for name, key, value in (("temperature", "temperature", 1), ("top_p", "topP", 0.95)):
        sent = body(built(**{name: value}, reasoning="high", model=CLAUDE))
        assert sent["inferenceConfig"][key] == value


def test_a14_no_turn_ends_with_reasoning() -> None:
    """B6: its call was truncated, so it is not sent; Claude refuses reasoning at a turn's end."""
    cut = msgspec.structs.replace(CALL, call_id="tooluse_2", status="incomplete")
    history = [user("x"), SIGNED, CALL, SIGNED, cut, CALL.output("1"), user("y")]
    request = built(*history, tools=[TOOL], model=CLAUDE)
    assert turns(request) == [
        ("user", ["text"]),
        ("assistant", ["reasoningContent", "toolUse"]),
        ("user", ["toolResult", "text"]),
    ]
    assert any("does not end with reasoning" in reason for reason in reasons(request))
    alone = built(user("x"), SIGNED, cut, user("y"), model=CLAUDE)
    assert turns(alone) == [("user", ["text", "text"])]


def test_s1_newer_claude_takes_one_sampling_parameter() -> None:
    request = built(model="us.anthropic.claude-sonnet-4-5-v1:0", temperature=0.2, top_p=0.9)
    assert body(request)["inferenceConfig"] == {"temperature": 0.2}
    assert [change.path for change in request.report] == ["/top_p"]
