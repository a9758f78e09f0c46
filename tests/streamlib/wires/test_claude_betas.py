"""Which fields of a Claude request need a beta, compared with the types of Anthropic's SDK."""

from __future__ import annotations

import importlib
import typing
from typing import Any

import pytest

from streamlib import Prompt, ToolSpec, build, parse_request
from streamlib.wires import claude_betas as betas
from tests.support.messages_builds import body

CLAUDE = "anthropic:claude-opus-5"
TABLES = (betas.FIELDS, betas.VALUES, betas.EDITS, betas.TOOLS, betas.TURNS, betas.BLOCKS)


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def header(prompt: Prompt) -> str | None:
    return build(prompt, CLAUDE).headers.get("anthropic-beta")


def edits(kind: str) -> dict[str, Any]:
    return {"context_management": {"edits": [{"type": kind}]}}


SERVERS = {"mcp_servers": [{"type": "url", "name": "a", "url": "https://a"}]}
UPDATES = {"thinking": {"type": "adaptive", "display": "updates"}}


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        (edits("clear_tool_uses_20250919"), "context-management-2025-06-27"),
        (edits("compact_20260112"), "compact-2026-01-12"),
        ({"compaction": {"type": "summarize"}}, "compact-2026-09-04"),
        (SERVERS, "mcp-client-2025-04-04"),
        ({"output_config": {"task_budget": {"total": 9}}}, "task-budgets-2026-03-13"),
        ({"speed": "fast"}, "fast-mode-2026-02-01"),
        ({"fallbacks": "default"}, "server-side-fallback-2026-07-01"),
        (UPDATES, "thinking-display-updates-2026-08-18"),
        ({"context_management": {"edits": "?"}, "mcp_servers": [], "thinking": None}, None),
        ({"container": "c"}, None),
    ],
)
def test_field_brings_its_beta(extra: dict[str, Any], expected: str | None) -> None:
    """B4: the API answers 400 to a beta field without its header."""
    assert header(Prompt("hi", extra=extra)) == expected


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"type": "computer_20251124", "name": "computer"}, "computer-use-2025-11-24"),
        ({"type": "advisor_20260301", "name": "advisor", "model": "m"}, "advisor-tool-2026-03-01"),
        ({"type": "web_search_20250305", "name": "web_search"}, None),
        ({"type": "mcp_toolset", "mcp_server_name": "a"}, "mcp-client-2025-11-20"),
        (
            {"type": "mcp_toolset", "mcp_server_name": "a", "tools": []},
            "mcp-client-2026-09-15",
        ),
    ],
)
def test_tool_brings_its_beta(tool: dict[str, Any], expected: str | None) -> None:
    raw = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    assert betas.required_betas({**raw, "tools": [tool]}) == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ({"content": "hi", "clear_at": "never"}, ["mid-conversation-system-clear-at-2026-08-21"]),
        ({"output_config": {"effort": "low"}}, ["mid-conversation-output-config-2026-07-01"]),
        ({"content": [{"type": "compaction", "content": "s"}]}, ["compact-2026-01-12"]),
        (
            {"content": [{"type": "compaction", "content": "s", "signature": "x"}]},
            ["compact-2026-09-04"],
        ),
        (
            {
                "content": [
                    {
                        "type": "tool_addition",
                        "tool": {
                            "type": "tool_definition",
                            "definition": {"type": "mcp_toolset"},
                        },
                    }
                ]
            },
            [
                "mcp-client-2026-09-15",
                "inline-tools-2026-09-15",
                "mid-conversation-tool-changes-2026-07-01",
            ],
        ),
        ({"content": [{"type": "text", "text": "hi"}, 3, {"type": ["text"]}]}, []),
    ],
)
def test_turn_brings_its_betas(turn: dict[str, Any], expected: list[str]) -> None:
    assert sorted(betas.required_betas({"messages": [turn]})) == sorted(expected)


def test_beta_of_the_caller_wins_in_its_family() -> None:
    prompt = Prompt(
        "hi",
        headers={"anthropic-beta": "mcp-client-2026-09-15, context-1m-2025-08-07"},
        extra=SERVERS,
    )
    assert header(prompt) == "mcp-client-2026-09-15,context-1m-2025-08-07"


def test_bedrock_has_betas_in_the_body() -> None:
    extra = {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}
    model = "bedrock:anthropic.claude-sonnet-4-6"
    invoke = build(Prompt("hi", extra=extra), model, wire_api="invoke")
    assert body(invoke)["anthropic_beta"] == ["context-management-2025-06-27"]
    passed_on = {"additionalModelRequestFields": extra}
    converse = build(Prompt("hi", extra=passed_on), model, wire_api="converse")
    fields = body(converse)["additionalModelRequestFields"]
    assert fields["anthropic_beta"] == ["context-management-2025-06-27"]
    for request, path in ((invoke, "invoke"), (converse, "converse")):
        decoded = parse_request(path, request.body, path=request.url)  # type: ignore[arg-type]
        assert decoded.headers == {"anthropic-beta": "context-management-2025-06-27"}


def test_betas_that_are_not_a_list_of_names_are_unchanged() -> None:
    raw = b'{"anthropic_version":"v","anthropic_beta":["a b"],"max_tokens":9,"messages":[]}'
    prompt = parse_request("invoke", raw, path="/model/anthropic.claude-x/invoke")
    assert (prompt.headers, prompt.extra) == ({}, {"anthropic_beta": ["a b"]})


def members(union: Any) -> set[str]:
    """The values of `type` in a union of the SDK's TypedDicts."""
    values: set[str] = set()
    for member in typing.get_args(union):
        # Not `is_typeddict`: the SDK's are those of typing_extensions.
        if not hasattr(member, "__required_keys__"):
            continue
        kind = typing.get_type_hints(member).get("type")
        values |= {value for value in typing.get_args(kind) if isinstance(value, str)}
    return values


def test_every_beta_of_the_tables_is_one_of_the_sdk() -> None:
    sdk = pytest.importorskip("anthropic")
    known = set(typing.get_args(typing.get_args(sdk.types.AnthropicBetaParam)[1]))
    named = {beta for table in TABLES for beta in table.values()}
    named |= {betas._INLINE_TOOLS, betas._MCP_LISTING, betas._MCP_SERVERS, betas._COMPACTION}
    assert named <= known


def test_tables_have_what_only_beta_types_have() -> None:
    pytest.importorskip("anthropic")
    from anthropic.types import content_block_param, tool_union_param
    from anthropic.types.beta import beta_content_block_param, beta_tool_union_param

    own = importlib.import_module("anthropic.types.message_create_params")
    beta = importlib.import_module("anthropic.types.beta.message_create_params")
    fields = set(typing.get_type_hints(beta.MessageCreateParamsBase))
    fields -= set(typing.get_type_hints(own.MessageCreateParamsBase))
    # The header itself, and two whose elements decide.
    assert fields - {"betas", "context_management", "mcp_servers"} <= set(betas.FIELDS)
    tools = members(beta_tool_union_param.BetaToolUnionParam)
    assert tools - members(tool_union_param.ToolUnionParam) == set(betas.TOOLS)
    blocks = members(beta_content_block_param.BetaContentBlockParam)
    assert blocks - members(content_block_param.ContentBlockParam) == set(betas.BLOCKS)


def test_hosted_tool_of_the_prompt_brings_its_beta() -> None:
    tool = ToolSpec("computer", native={"type": "computer_20251124", "name": "computer"})
    assert header(Prompt("hi", tools=[tool])) == "computer-use-2025-11-24"
