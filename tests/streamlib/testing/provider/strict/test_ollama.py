"""Each rule of Ollama refuses what breaks it, and takes the same request without the fault."""

from __future__ import annotations

from typing import Any, Final

from streamlib.testing.provider.strict import ollama
from streamlib.testing.provider.strict.provider import RULES
from streamlib_parsers.items import JsonObject
from tests.support.cases import each_case
from tests.support.strict_cases import Case, check_case, rule_names

HELLO: Final = {"role": "user", "content": "hi"}
TOOL: Final = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def body(*messages: JsonObject, **fields: Any) -> JsonObject:
    """A request."""
    return {"model": "qwen3:4b", "messages": [HELLO, *messages], **fields}


def calling(arguments: Any, **fields: Any) -> JsonObject:
    """A message with a call."""
    function = {"name": "f", "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{**fields, "function": function}]}


CASES: Final = (
    Case(ollama.check_model, {"messages": []}, body(), "model is required"),
    Case(
        ollama.check_messages,
        body({"role": "user", "content": [{"type": "text", "text": "hi"}]}),
        body(HELLO),
        "cannot unmarshal array into Go struct field ChatRequest.messages.content",
    ),
    Case(
        ollama.check_messages,
        body(calling("{}")),
        body(calling({})),
        "cannot unmarshal string",
    ),
    Case(
        ollama.check_messages,
        body({**HELLO, "images": ["https://x"]}),
        body({**HELLO, "images": ["aGk="]}),
        "illegal base64",
    ),
    Case(
        ollama.check_call_ids,
        body(calling({}, id="c"), calling({}, id="c")),
        body(calling({}), calling({})),
        "Duplicate tool call found for call id c",
    ),
    Case(
        ollama.check_tools,
        body(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
        body(tools=[TOOL]),
        "only tools of type function",
    ),
    Case(ollama.check_think, body(think="xhigh"), body(think="high"), "invalid think value"),
    Case(
        ollama.check_options,
        body(options={"num_predict": "9"}),
        body(options={"num_predict": 9}),
        "must be of type integer",
    ),
)


@each_case("case", CASES)
def test_rule_refuses_its_fault_and_nothing_else(case: Case) -> None:
    check_case("ollama", case)


def test_every_rule_has_a_case() -> None:
    assert rule_names(RULES["ollama"]) == rule_names(case.rule for case in CASES)
