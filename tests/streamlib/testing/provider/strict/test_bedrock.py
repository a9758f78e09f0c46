"""Each rule of Converse and of Invoke refuses what breaks it, and nothing else."""

from __future__ import annotations

from typing import Any, Final

import pytest

from streamlib.testing.provider.strict import converse, invoke
from streamlib.testing.provider.strict.provider import RULES
from streamlib_parsers.items import JsonObject
from tests.support.cases import each_case
from tests.support.strict_cases import Case, case_ids, check_case, rule_names, signature

SONNET: Final = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
OPUS: Final = "anthropic.claude-opus-4-8"
TEXT: Final = {"text": "so"}
CALL: Final = {"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}
RESULT: Final = {"toolResult": {"toolUseId": "t1", "content": [{"text": "18"}]}}
SPEC: Final = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}
TOOLS: Final = {"tools": [SPEC]}
POINT: Final = {"cachePoint": {"type": "default"}}
BUDGET: Final = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
DOCUMENT: Final = {"document": {"name": "a", "format": "pdf", "source": {"bytes": ""}}}


def body(*turns: list[JsonObject], **fields: Any) -> JsonObject:
    """A request of these turns, the user's first."""
    messages = []
    for n, turn in enumerate(turns or ([{"text": "hi"}],)):
        messages.append({"role": ("user", "assistant")[n % 2], "content": turn})
    return {"messages": messages, **fields}


def spec(**fields: Any) -> JsonObject:
    """The configuration of one tool."""
    return {"tools": [{"toolSpec": {**SPEC["toolSpec"], **fields}}]}


def named(name: str) -> JsonObject:
    """A document of this name."""
    return {"document": {**DOCUMENT["document"], "name": name}}


def thought(text: str = "hm", issued_for: str = "hm") -> JsonObject:
    """Reasoning that the provider issued with a text."""
    issued = signature("converse", issued_for)
    return {"reasoningContent": {"reasoningText": {"text": text, "signature": issued}}}


LOOP: Final = ([TEXT], [CALL], [RESULT])
ASSISTANT_FIRST: Final = {"messages": [{"role": "assistant", "content": [TEXT]}]}
TWICE: Final = {
    "messages": [{"role": "user", "content": [TEXT]}, {"role": "user", "content": [TEXT]}]
}

CONVERSE_CASES: Final = (
    Case(converse.check_fields, {"messages": []}, body(), "at least one message"),
    Case(converse.check_fields, body(max_tokens=9), body(), "extraneous key [max_tokens]"),
    Case(
        converse.check_settings,
        body(inferenceConfig={"temperature": 1.5}),
        body(inferenceConfig={"temperature": 1}),
        "less than or equal to 1",
    ),
    Case(converse.check_roles, ASSISTANT_FIRST, body(), "must start with a user message"),
    Case(converse.check_roles, TWICE, body([TEXT, TEXT]), "must alternate"),
    Case(converse.check_roles, body([]), body([TEXT]), "is empty"),
    Case(
        converse.check_blocks,
        body([{"type": "text", "text": "hi"}]),
        body([{"text": "hi"}]),
        "exactly one known member",
    ),
    Case(
        converse.check_texts,
        body([{"text": " "}]),
        body([TEXT]),
        "The text field in the ContentBlock object at messages.0.content.0 is blank",
    ),
    Case(
        converse.check_block_roles,
        body([CALL], toolConfig=TOOLS),
        body(*LOOP, toolConfig=TOOLS),
        "only allowed in assistant",
    ),
    Case(
        converse.check_media,
        body([TEXT, named("a.pdf")]),
        body([TEXT, named("a-pdf (1)")]),
        "The file name can only contain",
    ),
    Case(
        converse.check_media,
        body([TEXT, DOCUMENT, DOCUMENT]),
        body([TEXT, DOCUMENT]),
        "duplicate document names",
    ),
    Case(
        converse.check_calls,
        body(
            [TEXT],
            [{"toolUse": {**CALL["toolUse"], "toolUseId": "a.b"}}],
            [{"toolResult": {**RESULT["toolResult"], "toolUseId": "a.b"}}],
            toolConfig=TOOLS,
        ),
        body(*LOOP, toolConfig=TOOLS),
        "regular expression pattern",
        SONNET,
    ),
    Case(
        converse.check_pairing,
        body([TEXT], [CALL], [TEXT], toolConfig=TOOLS),
        body(*LOOP, toolConfig=TOOLS),
        "Expected toolResult blocks at messages.2.content for the following Ids: t1",
    ),
    Case(
        converse.check_pairing,
        body([RESULT], toolConfig=TOOLS),
        body(*LOOP, toolConfig=TOOLS),
        "exceeds the number of toolUse blocks",
    ),
    Case(
        converse.check_call_ids,
        body(*LOOP, [CALL], [RESULT], toolConfig=TOOLS),
        body(
            *LOOP,
            [{"toolUse": {**CALL["toolUse"], "toolUseId": "t2"}}],
            [{"toolResult": {**RESULT["toolResult"], "toolUseId": "t2"}}],
            toolConfig=TOOLS,
        ),
        "Duplicate tool call found for call id t1",
    ),
    Case(
        converse.check_results,
        body(
            [TEXT],
            [CALL],
            [{"toolResult": {"toolUseId": "t1", "content": [], "status": "error"}}],
            toolConfig=TOOLS,
        ),
        body(
            [TEXT],
            [CALL],
            [{"toolResult": {"toolUseId": "t1", "content": [TEXT], "status": "error"}}],
            toolConfig=TOOLS,
        ),
        "status error and no content",
    ),
    Case(
        converse.check_tools,
        body(*LOOP),
        body(*LOOP, toolConfig=TOOLS),
        "The toolConfig field must be defined",
    ),
    Case(
        converse.check_tools,
        body(toolConfig=spec(description="")),
        body(toolConfig=spec(description="d")),
        "length greater than or equal to 1",
    ),
    Case(
        converse.check_tools,
        body(toolConfig={**TOOLS, "toolChoice": {"none": {}}}),
        body(toolConfig={**TOOLS, "toolChoice": {"auto": {}}}),
        "toolChoice",
    ),
    Case(
        converse.check_cache_points,
        body([TEXT, POINT] * 5),
        body([TEXT, POINT] * 4),
        "maximum number of cachePoint",
    ),
    Case(
        converse.check_cache_points,
        body([TEXT, DOCUMENT, POINT]),
        body([DOCUMENT, TEXT, POINT]),
        "must follow a text",
    ),
    Case(
        converse.check_sampling,
        body(inferenceConfig={"topP": 0.5}),
        body(inferenceConfig={"maxTokens": 9}),
        "`topP` is deprecated",
        OPUS,
    ),
    Case(
        converse.check_budget,
        body(additionalModelRequestFields=BUDGET, inferenceConfig={"maxTokens": 1024}),
        body(additionalModelRequestFields=BUDGET, inferenceConfig={"maxTokens": 1025}),
        "must be greater than",
        SONNET,
    ),
    Case(
        converse.check_beside_thinking,
        body(additionalModelRequestFields=BUDGET, inferenceConfig={"temperature": 0.5}),
        body(additionalModelRequestFields=BUDGET, inferenceConfig={"temperature": 1}),
        "only be set to 1",
        SONNET,
    ),
    Case(
        converse.check_beside_thinking,
        body(
            additionalModelRequestFields=BUDGET,
            toolConfig={**TOOLS, "toolChoice": {"any": {}}},
        ),
        body(
            additionalModelRequestFields=BUDGET,
            toolConfig={**TOOLS, "toolChoice": {"auto": {}}},
        ),
        "forces tool use",
        SONNET,
    ),
    Case(
        converse.check_reasoning,
        body([TEXT], [thought(text="changed"), TEXT], [TEXT]),
        body([TEXT], [thought(), TEXT], [TEXT]),
        "Invalid `signature`",
        SONNET,
    ),
    Case(
        converse.check_last_turn,
        body([TEXT], [TEXT, thought()], [TEXT]),
        body([TEXT], [thought(), TEXT], [TEXT]),
        "The final block in an assistant message",
        SONNET,
    ),
    Case(
        converse.check_last_turn,
        body([TEXT], [TEXT], inferenceConfig={"maxTokens": 9}),
        body([TEXT], [TEXT], [TEXT]),
        "does not support assistant message prefill",
        "anthropic.claude-opus-4-6-v1",
    ),
)


@each_case("case", CONVERSE_CASES)
def test_converse_rule_refuses_its_fault_only(case: Case) -> None:
    check_case("converse", case)


def test_every_rule_of_converse_has_a_case() -> None:
    assert rule_names(RULES["converse"]) == rule_names(case.rule for case in CONVERSE_CASES)


# --- Invoke: Claude's rules with Bedrock's fields; tests/…/test_messages.py has the rules ---


def claude_body(*turns: Any, **fields: Any) -> JsonObject:
    """A body of InvokeModel for Claude."""
    messages = [{"role": "user", "content": turn} for turn in turns or ("hi",)]
    common = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 4096}
    return {**common, "messages": messages, **fields}


IMAGE: Final = {"type": "image", "source": {"type": "url", "url": "https://x"}}
PNG: Final = {"type": "base64", "media_type": "image/png", "data": ""}
INVOKE_CASES: Final = (
    Case(
        invoke.check_fields,
        claude_body(model="claude"),
        claude_body(),
        "model: Extra inputs",
        SONNET,
    ),
    Case(
        invoke.check_fields,
        {"max_tokens": 9, "messages": []},
        claude_body(),
        "anthropic_version: Field required",
        SONNET,
    ),
    Case(
        invoke.check_first_role,
        {**claude_body(), "messages": [{"role": "assistant", "content": "so"}]},
        claude_body(),
        'first message must use the "user" role',
        SONNET,
    ),
    Case(
        invoke.check_media_sources,
        claude_body([IMAGE]),
        claude_body([{**IMAGE, "source": PNG}]),
        "URL sources are not supported",
        SONNET,
    ),
)


@pytest.mark.parametrize("case", INVOKE_CASES, ids=case_ids(INVOKE_CASES))
def test_invoke_rule_refuses_its_fault_only(case: Case) -> None:
    check_case("invoke", case)
