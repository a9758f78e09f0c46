"""Each rule of Cohere refuses what breaks it, and takes the same request without the fault."""

from __future__ import annotations

from typing import Any, Final

from streamlib.testing.provider.strict import cohere
from streamlib.testing.provider.strict.provider import RULES
from streamlib_parsers.items import JsonObject
from tests.support.cases import each_case
from tests.support.strict_cases import Case, check_case, rule_names

HELLO: Final = {"role": "user", "content": "hi"}
CALL: Final = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLING: Final = {"role": "assistant", "tool_calls": [CALL]}
RESULT: Final = {"role": "tool", "tool_call_id": "c", "content": "1"}
IMAGE: Final = {"type": "image_url", "image_url": {"url": "https://o.test/a.png"}}


def body(*messages: JsonObject, **fields: Any) -> JsonObject:
    return {"model": "command-a-reasoning-08-2025", "messages": [HELLO, *messages], **fields}


def tool(**function: Any) -> JsonObject:
    return {"type": "function", "function": {"name": "f", **function}}


CASES: Final = (
    Case(cohere.check_fields, body(top_p=0.5), body(p=0.5), "parameter 'top_p'"),
    Case(cohere.check_fields, {"model": "m"}, body(), "messages is required"),
    Case(cohere.check_fields, {"model": "m", "messages": []}, body(), "must not be empty"),
    Case(
        cohere.check_messages,
        body({"role": "developer", "content": "x"}),
        body({"role": "system", "content": "x"}),
        "unknown role",
    ),
    Case(
        cohere.check_messages,
        body({"role": "assistant", "content": "x", "name": "n"}),
        body({"role": "assistant", "content": "x"}),
        "unknown field 'name'",
    ),
    Case(
        cohere.check_messages,
        body({"role": "assistant", "tool_plan": "x"}),
        body({**CALLING, "tool_plan": "x"}, RESULT),
        "content or tool_calls is required",
    ),
    Case(
        cohere.check_messages,
        body(CALLING, {**RESULT, "content": [IMAGE]}),
        body({"role": "user", "content": [IMAGE]}),
        "a tool message has no content of type 'image_url'",
    ),
    Case(
        cohere.check_messages,
        body({"role": "user", "content": [{"type": "text", "text": ""}]}),
        body({"role": "user", "content": [{"type": "text", "text": "x"}]}),
        "must not be empty",
    ),
    Case(
        cohere.check_call_ids,
        body(CALLING, RESULT, CALLING, RESULT),
        body(CALLING, RESULT),
        "Duplicate tool call found for call id c",
    ),
    Case(cohere.check_pairs, body(RESULT), body(CALLING, RESULT), "of no tool call"),
    Case(cohere.check_pairs, body(CALLING, HELLO), body(CALLING, RESULT), "did not have response"),
    Case(
        cohere.check_tools,
        body(tools=[tool()]),
        body(tools=[tool(parameters={"type": "object"})]),
        "parameters is required",
    ),
    Case(
        cohere.check_tools,
        body(tools=[tool(parameters={})], tool_choice="f"),
        body(tools=[tool(parameters={})], tool_choice="REQUIRED"),
        "not one of REQUIRED, NONE",
    ),
    Case(
        cohere.check_settings,
        body(thinking={"type": "high"}),
        body(thinking={"type": "enabled", "token_budget": 1024}),
        "thinking.type",
    ),
    Case(cohere.check_settings, body(p=1.0), body(p=0.99), "p is out of range"),
)


@each_case("case", CASES)
def test_rule_refuses_what_breaks_it(case: Case) -> None:
    check_case("cohere", case)


def test_every_rule_has_a_case() -> None:
    assert rule_names(RULES["cohere"]) == rule_names(case.rule for case in CASES)
