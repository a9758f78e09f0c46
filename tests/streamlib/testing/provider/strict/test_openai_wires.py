"""Each rule of Responses and of Chat refuses what breaks it, and nothing else."""

from __future__ import annotations

from typing import Any, Final

import pytest

from streamlib.testing.provider.strict import chat, chat_signatures, responses
from streamlib.testing.provider.strict.ledger import LedgerResponse
from streamlib.testing.provider.strict.provider import RULES
from streamlib_parsers.items import JsonObject
from tests.support.cases import each_case
from tests.support.strict_cases import (
    LEDGER,
    Case,
    case_ids,
    check_case,
    rule_names,
    signature,
)

GPT: Final = "gpt-5.5"
SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}}
STRICT_SCHEMA: Final = {**SCHEMA, "required": ["a"], "additionalProperties": False}
CLOSED_SCHEMA: Final = {"type": "object", "additionalProperties": False}


def list_of(items: Any) -> JsonObject:
    """A strict schema with an array; None: an array without ``items``."""
    array = {"type": "array"} if items is None else {"type": "array", "items": items}
    return {**STRICT_SCHEMA, "properties": {"a": array}}


# --- Responses ---

CALL: Final = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT: Final = {"type": "function_call_output", "call_id": "c1", "output": "18"}
CUSTOM: Final = {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "x"}
CUSTOM_OUTPUT: Final = {"type": "custom_tool_call_output", "call_id": "c1", "output": "18"}
TOOL: Final = {"type": "function", "name": "f", "parameters": SCHEMA}
HELLO: Final = {"role": "user", "content": "hi"}
ASSISTANT: Final = {
    "role": "assistant",
    "content": [{"type": "output_text", "text": "so"}],
}


def responses_body(*items: JsonObject, **fields: Any) -> JsonObject:
    """A request of Responses."""
    return {"model": GPT, "input": [HELLO, *items], **fields}


def reasoning(**fields: Any) -> JsonObject:
    """A reasoning item that the provider issued."""
    encrypted_content = signature("responses", "")
    return {
        "type": "reasoning",
        "summary": [],
        "encrypted_content": encrypted_content,
        **fields,
    }


LEDGER.stored["resp_stored"] = LedgerResponse(({"type": "message", "id": "msg_stored", **HELLO},))
LEDGER.reasoning_before["fc_after"] = "rs_before"

RESPONSES_CASES: Final = (
    Case(
        responses.check_background,
        responses_body(background=True, store=False),
        responses_body(background=True, store=True),
        "requires 'store'",
    ),
    Case(
        responses.check_fields,
        responses_body(max_tokens=9),
        responses_body(max_output_tokens=9),
        "Unknown parameter: 'max_tokens'",
    ),
    Case(responses.check_fields, {"model": GPT, "input": []}, responses_body(), "empty array"),
    Case(
        responses.check_previous_response,
        responses_body(previous_response_id="resp_other"),
        responses_body(previous_response_id="resp_stored"),
        "Previous response with id 'resp_other' not found",
    ),
    Case(
        responses.check_items,
        responses_body({**reasoning(), "status": "completed"}, CALL, OUTPUT),
        responses_body(reasoning(), CALL, OUTPUT),
        "Unknown parameter: 'input[1].status'",
    ),
    Case(
        responses.check_items,
        responses_body({**CUSTOM, "state": "completed"}, CUSTOM_OUTPUT),
        responses_body({**CUSTOM, "status": "completed"}, CUSTOM_OUTPUT),
        "Unknown parameter: 'input[1].state'",
    ),
    Case(
        responses.check_items,
        responses_body({"type": "tool_use"}),
        responses_body(),
        "Invalid value: 'tool_use'",
    ),
    Case(
        responses.check_contents,
        responses_body({**ASSISTANT, "content": [{"type": "input_text", "text": "so"}]}),
        responses_body(ASSISTANT),
        "Invalid value: 'input_text'. Supported values are: 'output_text', and 'refusal'",
    ),
    Case(
        responses.check_calls,
        responses_body({**CALL, "call_id": "c" * 65}, {**OUTPUT, "call_id": "c" * 65}),
        responses_body(CALL, OUTPUT),
        "string too long",
    ),
    Case(
        responses.check_calls,
        responses_body({**CALL, "arguments": {}}, OUTPUT),
        responses_body(CALL, OUTPUT),
        "Invalid type for 'input[1].arguments'",
    ),
    Case(
        responses.check_ids,
        responses_body({**CALL, "id": "call_1"}, OUTPUT),
        responses_body({**CALL, "id": "fc_1"}, OUTPUT),
        "Expected an ID that begins with 'fc'",
    ),
    Case(
        responses.check_ids,
        responses_body({**CALL, "id": "fc_" + "x" * 62}, OUTPUT),
        responses_body({**CALL, "id": "fc_" + "x" * 61}, OUTPUT),
        "maximum length 64",
    ),
    Case(
        responses.check_ids,
        responses_body({**ASSISTANT, "id": "msg_1"}, {**ASSISTANT, "id": "msg_1"}),
        responses_body({**ASSISTANT, "id": "msg_1"}, {**ASSISTANT, "id": "msg_2"}),
        "Duplicate item",
    ),
    Case(
        responses.check_stored_items,
        responses_body({"type": "item_reference", "id": "rs_1"}),
        responses_body({"type": "item_reference", "id": "msg_stored"}),
        "Item with id 'rs_1' not found",
    ),
    Case(
        responses.check_stored_items,
        responses_body({"type": "reasoning", "id": "rs_1", "summary": []}, CALL, OUTPUT),
        responses_body(reasoning(id="rs_1"), CALL, OUTPUT),
        "Items are not persisted",
    ),
    Case(
        responses.check_encrypted_content,
        responses_body(reasoning(encrypted_content="gAAAAx=="), CALL, OUTPUT),
        responses_body(reasoning(), CALL, OUTPUT),
        "could not be verified",
    ),
    Case(
        responses.check_reasoning_places,
        responses_body(reasoning(), HELLO),
        responses_body(reasoning(), ASSISTANT, HELLO),
        "without its required following item",
    ),
    Case(
        responses.check_reasoning_places,
        responses_body({**CALL, "id": "fc_after"}, OUTPUT),
        responses_body(reasoning(id="rs_before"), {**CALL, "id": "fc_after"}, OUTPUT),
        "without its required 'reasoning' item: 'rs_before'",
    ),
    Case(
        responses.check_pairing,
        responses_body(CALL),
        responses_body(CALL, OUTPUT),
        "No tool output found for function call c1",
    ),
    Case(
        responses.check_pairing,
        responses_body(OUTPUT),
        responses_body(CALL, OUTPUT),
        "No tool call found for function call output with call_id c1",
    ),
    Case(
        responses.check_tools,
        responses_body(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
        responses_body(tools=[{"type": "web_search"}]),
        "Invalid value: 'web_search_20250305'",
    ),
    Case(
        responses.check_tools,
        responses_body(tools=[{**TOOL, "strict": True}]),
        responses_body(tools=[{**TOOL, "strict": True, "parameters": STRICT_SCHEMA}]),
        "'additionalProperties' is required",
    ),
    Case(
        responses.check_tools,
        responses_body(tools=[{"type": "function", "function": {"name": "f"}}]),
        responses_body(tools=[TOOL]),
        "Unknown parameter: 'tools[0].function'",
    ),
    Case(
        responses.check_tool_choice,
        responses_body(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "f"}}),
        responses_body(tools=[TOOL], tool_choice={"type": "function", "name": "f"}),
        "Unknown parameter: 'tool_choice.function'",
    ),
    Case(
        responses.check_settings,
        responses_body(temperature=0.5),
        responses_body(temperature=0.5, reasoning={"effort": "none"}),
        "'temperature' is not supported with this model",
    ),
    Case(
        responses.check_settings,
        responses_body(reasoning={"effort": "minimal"}),
        responses_body(reasoning={"effort": "low"}),
        "Unsupported value: 'minimal'",
    ),
)


@each_case("case", RESPONSES_CASES)
def test_responses_rule_refuses_its_fault_only(case: Case) -> None:
    check_case("responses", case)


# --- Chat ---

CHAT_CALL: Final = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT_OUTPUT: Final = {"role": "tool", "tool_call_id": "c1", "content": "18"}
CHAT_TOOL: Final = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}


def chat_body(*messages: JsonObject, **fields: Any) -> JsonObject:
    """A request of Chat."""
    return {"model": GPT, "messages": [HELLO, *messages], **fields}


def calling(**fields: Any) -> JsonObject:
    """An assistant message with a call."""
    return {"role": "assistant", "content": None, "tool_calls": [{**CHAT_CALL, **fields}]}


def chat_tool(**fields: Any) -> JsonObject:
    """A tool of Chat, with fields of its function."""
    return {"type": "function", "function": {**CHAT_TOOL["function"], **fields}}  # type: ignore[dict-item]


def output_format(schema: JsonObject) -> JsonObject:
    """A strict output format."""
    inner = {"name": "x", "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": inner}


CHAT_CASES: Final = (
    Case(
        chat.check_fields,
        chat_body(reasoning={"effort": "low"}),
        chat_body(reasoning_effort="low"),
        "Unknown parameter: 'reasoning'",
    ),
    Case(
        chat.check_messages,
        chat_body({"role": "assistant", "content": "so", "reasoning_content": "hm"}),
        chat_body({"role": "assistant", "content": "so"}),
        "Unknown parameter: 'messages[1].reasoning_content'",
    ),
    Case(
        chat.check_messages,
        chat_body({"role": "assistant", "content": None}),
        chat_body({"role": "assistant", "content": ""}),
        "expected a string, got null",
    ),
    Case(
        chat.check_messages,
        chat_body(calling(), {**CHAT_OUTPUT, "content": [{"type": "image_url"}]}),
        chat_body(calling(), {**CHAT_OUTPUT, "content": [{"type": "text", "text": "18"}]}),
        "Invalid value: 'image_url'",
    ),
    Case(
        chat.check_calls,
        chat_body(calling(id="c" * 41), {**CHAT_OUTPUT, "tool_call_id": "c" * 41}),
        chat_body(calling(), CHAT_OUTPUT),
        "maximum length 40",
    ),
    Case(
        chat.check_calls,
        chat_body(calling(extra_content={}), CHAT_OUTPUT),
        chat_body(calling(), CHAT_OUTPUT),
        "Unknown parameter: 'messages[1].tool_calls[0].extra_content'",
    ),
    Case(
        chat.check_pairing,
        chat_body(calling(), HELLO, CHAT_OUTPUT),
        chat_body(calling(), CHAT_OUTPUT, HELLO),
        "must be followed by tool messages",
    ),
    Case(
        chat.check_pairing,
        chat_body(CHAT_OUTPUT),
        chat_body(calling(), CHAT_OUTPUT),
        "must be a response to a preceeding message",
    ),
    Case(
        chat.check_call_ids,
        chat_body(calling(), CHAT_OUTPUT, calling(), CHAT_OUTPUT),
        chat_body(calling(), CHAT_OUTPUT),
        "Duplicate tool call found for call id c1",
    ),
    Case(
        chat.check_tools,
        chat_body(tools=[{"type": "web_search"}]),
        chat_body(tools=[CHAT_TOOL]),
        "Invalid value: 'web_search'",
    ),
    Case(
        chat.check_tools,
        chat_body(tools=[chat_tool(name="a.b")]),
        chat_body(tools=[CHAT_TOOL]),
        "does not match pattern",
    ),
    Case(
        chat.check_tools,
        chat_body(tools=[chat_tool(strict=True)]),
        chat_body(tools=[chat_tool(strict=True, parameters=STRICT_SCHEMA)]),
        "'additionalProperties' is required",
    ),
    Case(  # an object without properties
        chat.check_tools,
        chat_body(tools=[chat_tool(strict=True, parameters={"type": "object"})]),
        chat_body(tools=[chat_tool(strict=True, parameters=CLOSED_SCHEMA)]),
        "'additionalProperties' is required",
    ),
    Case(  # properties without a type
        chat.check_response_format,
        chat_body(response_format=output_format({"properties": {}})),
        chat_body(response_format=output_format(CLOSED_SCHEMA)),
        "'additionalProperties' is required",
    ),
    Case(  # a property of any type
        chat.check_response_format,
        chat_body(response_format=output_format({**STRICT_SCHEMA, "properties": {"a": {}}})),
        chat_body(response_format=output_format(STRICT_SCHEMA)),
        "In context=(.properties.a), schema must have a 'type' key.",
    ),
    Case(  # items of any type
        chat.check_response_format,
        chat_body(response_format=output_format(list_of(True))),
        chat_body(response_format=output_format(list_of({"type": "string"}))),
        "In context=(.properties.a.items), schema must have a 'type' key.",
    ),
    Case(  # an array of any type
        chat.check_response_format,
        chat_body(response_format=output_format(list_of(None))),
        chat_body(response_format=output_format(list_of({"type": "string"}))),
        "In context=(.properties.a), array schema missing items.",
    ),
    Case(
        chat.check_tool_choice,
        chat_body(tool_choice="auto"),
        chat_body(tool_choice="auto", tools=[CHAT_TOOL]),
        "only allowed when 'tools'",
    ),
    Case(
        chat.check_settings,
        chat_body(max_tokens=9),
        chat_body(max_completion_tokens=9),
        "Use 'max_completion_tokens' instead",
    ),
    Case(
        chat.check_settings,
        chat_body(stream_options={"include_usage": True}),
        chat_body(stream_options={"include_usage": True}, stream=True),
        "only allowed when 'stream'",
    ),
    Case(
        chat.check_response_format,
        chat_body(response_format=output_format(SCHEMA)),
        chat_body(response_format=output_format(STRICT_SCHEMA)),
        "'additionalProperties' is required",
    ),
)


# --- Chat of servers that sign ---

CLAUDE: Final = "anthropic/claude-sonnet-4.5"
GEMINI: Final = "gemini-3.5-flash"


def thinking(text: str) -> JsonObject:
    """A message of OpenRouter's Claude, with the signature of another text."""
    signed = {"type": "reasoning.text", "text": text, "signature": signature("chat", "Hm.")}
    return {"role": "assistant", "content": "so", "reasoning": text, "reasoning_details": [signed]}


def signed_call(signed_name: str | None) -> JsonObject:
    """A message of Google's Gemini whose call `f` has the signature of another name."""
    call = calling()["tool_calls"][0]
    if signed_name is not None:
        google = {"thought_signature": signature("chat", signed_name)}
        call = {**call, "extra_content": {"google": google}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def signing_body(model: str, *messages: JsonObject) -> JsonObject:
    """A request of Chat for a model of a server that signs."""
    return {**chat_body(*messages), "model": model}


SIGNED_CHAT_CASES: Final = (
    Case(
        chat_signatures.check_reasoning_details,
        signing_body(CLAUDE, thinking("Hmm.")),
        signing_body(CLAUDE, thinking("Hm.")),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    Case(
        chat_signatures.check_call_signatures,
        signing_body(GEMINI, signed_call(None), CHAT_OUTPUT),
        signing_body(GEMINI, signed_call("f"), CHAT_OUTPUT),
        "missing a thought_signature",
    ),
    Case(
        chat_signatures.check_call_signatures,
        signing_body(GEMINI, signed_call("g"), CHAT_OUTPUT),
        signing_body(GEMINI, signed_call(None), CHAT_OUTPUT, HELLO),
        "Thought signature is not valid",
    ),
    Case(
        chat.check_messages,
        chat_body(thinking("Hm.")),
        signing_body(CLAUDE, thinking("Hm.")),
        "Unknown parameter: 'messages[1].reasoning'",
    ),
    Case(
        chat.check_calls,
        chat_body(signed_call("f"), CHAT_OUTPUT),
        signing_body(GEMINI, signed_call("f"), CHAT_OUTPUT),
        "Unknown parameter: 'messages[1].tool_calls[0].extra_content'",
    ),
    Case(
        chat.check_fields,
        chat_body(reasoning={"effort": "low"}),
        {**signing_body(CLAUDE), "reasoning": {"effort": "low"}},
        "Unknown parameter: 'reasoning'",
    ),
)


@pytest.mark.parametrize("case", SIGNED_CHAT_CASES, ids=case_ids(SIGNED_CHAT_CASES))
def test_rule_of_signed_chat_refuses_its_fault_only(case: Case) -> None:
    check_case("chat", case)


@each_case("case", CHAT_CASES)
def test_chat_rule_refuses_its_fault_only(case: Case) -> None:
    check_case("chat", case)


def test_every_rule_has_a_case() -> None:
    for rules, cases in (
        (RULES["responses"], RESPONSES_CASES),
        (RULES["chat"], (*CHAT_CASES, *SIGNED_CHAT_CASES)),
    ):
        assert rule_names(rules) == rule_names(case.rule for case in cases)
