"""Each rule of Messages refuses what breaks it, and takes the same request without the fault."""

from __future__ import annotations

from typing import Any, Final

from streamlib.testing.provider.strict import messages as content
from streamlib.testing.provider.strict import messages_thinking as thinking
from streamlib.testing.provider.strict import messages_tools as tools
from streamlib.testing.provider.strict.provider import RULES
from streamlib_parsers.items import JsonObject
from tests.support.cases import each_case
from tests.support.strict_cases import Case, check_case, rule_names, signature

VERSION: Final = {"anthropic-version": "2023-06-01"}
SONNET: Final = "claude-sonnet-4-5"
OPUS: Final = "claude-opus-5"
SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
TOOL: Final = {"name": "f", "input_schema": SCHEMA}
BUDGET: Final = {"type": "enabled", "budget_tokens": 1024}
CALL: Final = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
RESULT: Final = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18"}
TEXT: Final = {"type": "text", "text": "so"}
MARK: Final = {"type": "ephemeral"}


def body(*turns: Any, **fields: Any) -> JsonObject:
    """A request of these turns, the user's first; a text is a turn of one text."""
    messages = []
    for n, turn in enumerate(turns or ("hi",)):
        messages.append({"role": ("user", "assistant")[n % 2], "content": turn})
    return {"model": SONNET, "max_tokens": 4096, "messages": messages, **fields}


def thought(text: str = "hm", *, index: int = 0, count: int = 1) -> JsonObject:
    """A thinking block that the provider issued."""
    issued = signature("messages", text, index=index, count=count)
    return {"type": "thinking", "thinking": text, "signature": issued}


def marked(**mark: Any) -> JsonObject:
    """A text with a cache mark."""
    return {**TEXT, "cache_control": {**MARK, **mark}}


def system(text: str) -> JsonObject:
    """A system message."""
    return {"role": "system", "content": text}


def with_system(*, first: bool) -> JsonObject:
    """A request with a system message at its start or at its end."""
    request = body("hi", model=OPUS)
    place = 0 if first else 1
    request["messages"].insert(place, system("be brief"))
    return request


LOOP: Final = ("hi", [CALL], [RESULT])
SERVER_CALL: Final = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {},
}
SERVER_RESULT: Final = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [],
}
STRICT_SCHEMA: Final = {**SCHEMA, "additionalProperties": False}

CONTENT_CASES: Final = (
    Case(content.check_version, body(), body(), "anthropic-version", "", {}, VERSION),
    Case(
        content.check_beta_names,
        body(),
        body(),
        "Unexpected value(s)",
        "",
        {**VERSION, "anthropic-beta": "no such beta"},
        {**VERSION, "anthropic-beta": "claude-code-20250219,effort-2025-11-24"},
    ),
    Case(content.check_fields, body(user="me"), body(metadata={"user_id": "me"}), "user: Extra"),
    Case(content.check_fields, {"model": SONNET, "messages": []}, body(), "max_tokens: Field"),
    Case(
        content.check_fields,
        body(mcp_servers=[]),
        body(mcp_servers=[]),
        "mcp_servers: Extra inputs",
        "",
        VERSION,
        {**VERSION, "anthropic-beta": "mcp-client-2025-11-20"},
    ),
    Case(
        content.check_beta_values,
        body(output_config={"task_budget": {"type": "tokens", "total": 9}}),
        body(),
        "output_config.task_budget: Extra",
    ),
    Case(content.check_max_tokens, body(max_tokens="9"), body(max_tokens=9), "valid integer"),
    Case(
        content.check_stop_sequences,
        body(stop_sequences=["\n"]),
        body(stop_sequences=["END"]),
        "non-whitespace",
    ),
    Case(content.check_roles, body(messages=[]), body(), "at least one message"),
    Case(
        content.check_roles,
        body(messages=[{"role": "model", "content": "hi"}]),
        body(messages=[{"role": "assistant", "content": "hi"}]),
        "Input should be 'user' or 'assistant'",
    ),
    Case(
        content.check_system_places,
        with_system(first=True),
        with_system(first=False),
        "use the top-level 'system' parameter",
    ),
    Case(content.check_content, body([]), body([TEXT]), "non-empty content"),
    Case(
        content.check_blocks,
        body("hi", [{**CALL, "index": 0}], [RESULT]),
        body(*LOOP),
        "tool_use.index: Extra inputs",
    ),
    Case(
        content.check_blocks,
        body([{"type": "input_text", "text": "hi"}]),
        body([TEXT]),
        "Input tag 'input_text'",
    ),
    Case(
        content.check_texts,
        body([{"type": "text", "text": " "}]),
        body([TEXT]),
        "must contain non-whitespace",
    ),
    Case(content.check_block_roles, body([CALL]), body(*LOOP), "only be in `assistant`"),
    Case(
        content.check_media,
        body([{"type": "image", "source": {"type": "base64", "media_type": "image/bmp"}}]),
        body([{"type": "image", "source": {"type": "base64", "media_type": "image/png"}}]),
        "media_type",
    ),
    Case(
        content.check_call_ids,
        body("hi", [{**CALL, "id": "a b"}], [{**RESULT, "tool_use_id": "a b"}]),
        body(*LOOP),
        "should match pattern",
    ),
    Case(
        content.check_call_ids,
        body("hi", [{**CALL, "input": "{}"}], [RESULT]),
        body(*LOOP),
        "valid dictionary",
    ),
    Case(content.check_pairing, body("hi", [CALL], "so"), body(*LOOP), "without `tool_result`"),
    Case(content.check_pairing, body([RESULT]), body(*LOOP), "unexpected `tool_use_id`"),
    Case(content.check_pairing, body("hi", [CALL], [TEXT, RESULT]), body(*LOOP), "without"),
    Case(
        content.check_server_tools,
        body("hi", [SERVER_CALL, TEXT], "and?"),
        body("hi", [SERVER_CALL, SERVER_RESULT, TEXT], "and?"),
        "without a corresponding",
    ),
)
TOOL_CASES: Final = (
    Case(
        tools.check_tools,
        body(tools=[{"type": "web_search", "name": "web_search"}]),
        body(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
        "Input tag 'web_search'",
    ),
    Case(
        tools.check_tools,
        body(tools=[{**TOOL, "parameters": {}}]),
        body(tools=[TOOL]),
        "tools.0.custom.parameters: Extra",
    ),
    Case(
        tools.check_tools,
        body(tools=[{**TOOL, "name": "a.b"}]),
        body(tools=[TOOL]),
        "should match pattern",
    ),
    Case(tools.check_tools, body(tools=[TOOL, TOOL]), body(tools=[TOOL]), "must be unique"),
    Case(
        tools.check_tools,
        body(tools=[{**TOOL, "strict": True}]),
        body(tools=[{**TOOL, "strict": True, "input_schema": STRICT_SCHEMA}]),
        "'additionalProperties' must be",
    ),
    Case(
        tools.check_tools,
        body(tools=[{"type": "mcp_toolset", "mcp_server_name": "s"}]),
        body(tools=[{"type": "mcp_toolset", "mcp_server_name": "s"}, TOOL]),
        "Input tag 'mcp_toolset'",
        "",
        VERSION,
        {**VERSION, "anthropic-beta": "mcp-client-2025-11-20"},
    ),
    Case(
        tools.check_output_format,
        body(output_config={"format": {"type": "json_schema", "schema": SCHEMA}}),
        body(output_config={"format": {"type": "json_schema", "schema": STRICT_SCHEMA}}),
        "'additionalProperties' must be",
    ),
    Case(
        tools.check_tool_choice,
        body(tool_choice={"type": "auto"}),
        body(tool_choice={"type": "auto"}, tools=[TOOL]),
        "while providing tools",
    ),
    Case(
        tools.check_tool_choice,
        body(tool_choice={"type": "tool", "name": "g"}, tools=[TOOL]),
        body(tool_choice={"type": "tool", "name": "f"}, tools=[TOOL]),
        "not found",
    ),
    Case(
        tools.check_forced_choice,
        body(model="claude-opus-5-5", tool_choice={"type": "any"}, tools=[TOOL]),
        body(model="claude-opus-5-5", tool_choice={"type": "auto"}, tools=[TOOL]),
        "not supported on this model",
    ),
    Case(
        tools.check_cache_marks,
        body([marked() for _ in range(5)]),
        body([marked() for _ in range(4)]),
        "A maximum of 4 blocks",
    ),
    Case(
        tools.check_cache_marks,
        body([marked(ttl="5m"), marked(ttl="1h")]),
        body([marked(ttl="1h"), marked(ttl="5m")]),
        "must not come after",
    ),
    Case(
        tools.check_deferred,
        body(tools=[{**TOOL, "defer_loading": True}]),
        body(tools=[{**TOOL, "defer_loading": True}, {**TOOL, "name": "g"}]),
        "at least one tool",
    ),
)
THINKING_CASES: Final = (
    Case(
        thinking.check_thinking_form,
        body(model=OPUS, thinking=BUDGET),
        body(model=OPUS, thinking={"type": "adaptive"}),
        "not supported for this model",
    ),
    Case(
        thinking.check_budget,
        body(thinking={**BUDGET, "budget_tokens": 512}),
        body(thinking=BUDGET),
        "greater than or equal to 1024",
    ),
    Case(
        thinking.check_budget,
        body(thinking=BUDGET, max_tokens=1024),
        body(thinking=BUDGET, max_tokens=1025),
        "must be greater than",
    ),
    Case(
        thinking.check_output_limit,
        body(max_tokens=64_001),
        body(max_tokens=64_000),
        "maximum allowed number of output",
    ),
    Case(
        thinking.check_effort,
        body(model="claude-opus-4-5", output_config={"effort": "max"}),
        body(model="claude-opus-4-5", output_config={"effort": "high"}),
        "'max' is not supported",
    ),
    Case(
        thinking.check_sampling,
        body(model=OPUS, temperature=0.5),
        body(temperature=0.5),
        "`temperature` is deprecated",
    ),
    Case(
        thinking.check_sampling,
        body(temperature=1),
        body(temperature=1),
        "temperature: Extra inputs",
        "",
        {"anthropic-version": "2026-10-21"},
        VERSION,
    ),
    Case(
        thinking.check_sampling_beside_thinking,
        body(thinking=BUDGET, temperature=0.5),
        body(thinking=BUDGET, temperature=1),
        "only be set to 1",
    ),
    Case(
        thinking.check_sampling_beside_thinking,
        body(thinking=BUDGET, top_k=5),
        body(thinking=BUDGET, top_p=0.95),
        "`top_k` must be unset",
    ),
    Case(
        thinking.check_choice_beside_thinking,
        body(thinking=BUDGET, tools=[TOOL], tool_choice={"type": "any"}),
        body(thinking=BUDGET, tools=[TOOL], tool_choice={"type": "auto"}),
        "forces tool use",
    ),
    Case(
        thinking.check_prefill,
        body("hi", "so", model=OPUS),
        body("hi", "so"),
        "does not support assistant message prefill",
    ),
    Case(thinking.check_prefill, body("hi", "so "), body("hi", "so"), "trailing whitespace"),
    Case(
        thinking.check_final_thinking,
        body("hi", [TEXT, thought()], "and?"),
        body("hi", [thought(), TEXT], "and?"),
        "The final block in an assistant message cannot be `thinking`",
    ),
    Case(
        thinking.check_thinking_first,
        body(*LOOP, thinking=BUDGET),
        body("hi", [thought(), CALL], [RESULT], thinking=BUDGET),
        "Expected `thinking` or `redacted_thinking`",
    ),
    Case(
        thinking.check_thinking_off,
        body("hi", [thought(), TEXT], thinking={"type": "disabled"}),
        body("hi", [TEXT], thinking={"type": "disabled"}),
        "When thinking is disabled",
    ),
    Case(
        thinking.check_signatures,
        body("hi", [{**thought(), "thinking": "changed"}, CALL], [RESULT]),
        body("hi", [thought(), CALL], [RESULT]),
        "Invalid `signature` in `thinking` block",
    ),
    Case(
        thinking.check_signatures,
        body("hi", [{**thought(), "signature": "EqQB"}, TEXT], "and?"),
        body("hi", [thought(), TEXT], "and?"),
        "Invalid `signature` in `thinking` block",
    ),
    Case(
        thinking.check_latest_blocks,
        body("hi", [thought(index=0, count=2), CALL], [RESULT]),
        body("hi", [thought(index=0, count=2), thought(index=1, count=2), CALL], [RESULT]),
        "cannot be modified",
    ),
)
CASES: Final = (*CONTENT_CASES, *TOOL_CASES, *THINKING_CASES)


@each_case("case", CASES)
def test_rule_refuses_its_fault_and_nothing_else(case: Case) -> None:
    check_case("messages", with_version(case))


def with_version(case: Case) -> Case:
    """The case with the header that every request needs, unless it is about headers."""
    if case.headers or case.accepted_headers is not None:
        return case
    return Case(case.rule, case.refused, case.accepted, case.message, case.model, VERSION)


def test_every_rule_has_a_case() -> None:
    assert rule_names(RULES["messages"]) == rule_names(case.rule for case in CASES)
