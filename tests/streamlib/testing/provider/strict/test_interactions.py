"""Each rule of Interactions refuses what breaks it, and takes the same request without the
fault."""

from __future__ import annotations

from typing import Any, Final

from streamlib.testing.provider.strict import interactions
from streamlib.testing.provider.strict.ledger import Ledger, Signed
from streamlib.testing.provider.strict.provider import RULES
from streamlib_parsers.items import JsonObject
from tests.support.cases import each_case
from tests.support.strict_cases import Case, check_case, rule_names

HELLO: Final = {"type": "user_input", "content": [{"type": "text", "text": "hi"}]}
CALL: Final = {"type": "function_call", "id": "c", "name": "f", "arguments": {}}
RESULT: Final = {"type": "function_result", "call_id": "c", "result": "1"}
SIGNATURE: Final = Ledger().sign("interactions", Signed("r", 0, 1), "")
THOUGHT: Final = {"type": "thought", "signature": SIGNATURE}


def body(*steps: JsonObject, **fields: Any) -> JsonObject:
    """A request to a model that wants signatures."""
    return {"model": "gemini-3.5-flash", "input": [HELLO, *steps], **fields}


def declaring(**parameters: Any) -> JsonObject:
    return body(tools=[{"type": "function", "name": "f", "parameters": parameters}])


CASES: Final = (
    Case(interactions.check_fields, body(contents=[]), body(), "Unknown parameter 'contents'"),
    Case(interactions.check_fields, body(agent="a"), body(), "one of model and agent"),
    Case(
        interactions.check_agent,
        {"agent": "a", "input": "hi", "generation_config": {}},
        {"agent": "a", "input": "hi"},
        "not supported for agents",
    ),
    Case(
        interactions.check_background,
        body(background=True, store=False),
        body(background=True, store=True),
        "requires store",
    ),
    Case(interactions.check_steps, {"model": "m"}, {"model": "m", "input": "hi"}, "input is"),
    Case(
        interactions.check_steps,
        body({"type": "function_call", "id": "c"}),
        body(THOUGHT, CALL, RESULT),
        "name is required",
    ),
    Case(
        interactions.check_steps,
        body({"type": "user_input", "content": [{"type": "text", "text": ""}]}),
        body(),
        "must not be empty",
    ),
    Case(
        interactions.check_call_ids,
        body(THOUGHT, CALL, RESULT, THOUGHT, CALL, RESULT),
        body(THOUGHT, CALL, RESULT),
        "Duplicate tool call found for call id c",
    ),
    Case(interactions.check_pairs, body(RESULT), body(THOUGHT, CALL, RESULT), "No function call"),
    Case(
        interactions.check_pairs,
        body(THOUGHT, CALL, HELLO),
        body(THOUGHT, CALL, RESULT, HELLO),
        "has no result",
    ),
    Case(
        interactions.check_signatures,
        body({"type": "thought", "signature": ""}),
        body(THOUGHT),
        "needs its signature",
    ),
    Case(
        interactions.check_signatures,
        body({"type": "thought", "signature": "c2ln"}),
        body(THOUGHT),
        "signature is not valid",
    ),
    Case(
        interactions.check_signed_calls,
        body(CALL, RESULT),
        body(THOUGHT, CALL, RESULT),
        "missing a thought_signature",
    ),
    Case(  # nothing is before it
        interactions.check_signed_calls,
        {**body(), "input": [CALL, RESULT]},
        {**body(), "input": [THOUGHT, CALL, RESULT]},
        "missing a thought_signature: input[0]",
    ),
    Case(
        interactions.check_settings,
        body(generation_config={"top_k": 1}),
        body(generation_config={"top_p": 0.5}),
        "generation_config.top_k",
    ),
    Case(
        interactions.check_settings,
        body(generation_config={"thinking_level": "max"}),
        body(generation_config={"thinking_level": "high"}),
        "Thinking level max",
    ),
    Case(
        interactions.check_tools,
        declaring(type="object", required=[]),
        declaring(type="object"),
        "required: must not be empty",
    ),
    Case(
        interactions.check_tools,
        body(tools=[{"googleSearch": {}}]),
        body(tools=[{"type": "google_search"}]),
        "unknown tool type",
    ),
)


@each_case("case", CASES)
def test_rule_refuses_what_breaks_it(case: Case) -> None:
    check_case("interactions", case)


def test_every_rule_has_a_case() -> None:
    assert rule_names(RULES["interactions"]) == rule_names(case.rule for case in CASES)
