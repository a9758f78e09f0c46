"""Codex in front of other wires: its hosted tools and namespaces (B1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from streamlib import (
    FunctionCall,
    ToolSpec,
    Usage,
    build,
    encoder,
    parse_body,
    parse_request,
    parser,
)
from streamlib.testing.provider.strict import StrictProvider
from streamlib_parsers.accumulate import accumulate
from streamlib_parsers.assembler import EventAssembler
from streamlib_parsers.hosted_tools import HOSTED_NAMES
from streamlib_parsers.items import Origin, WireApi
from streamlib_parsers.limits import LIMITS
from tests.support.gateways import (
    ProviderResponse,
    Upstream,
    rule,
    serving,
    stream_or_body,
    stream_response,
)

READ: Final = {
    "type": "function",
    "name": "read",
    "description": "Reads a file.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
}
PATCH: Final = {"type": "custom", "description": "Free text.", "format": {"type": "text"}}
TOOLS: Final = [
    {**READ, "name": "exec_command"},
    {**PATCH, "name": "apply_patch"},
    {"type": "namespace", "name": "mcp__fs__", "description": "Files.", "tools": [READ]},
    {
        "type": "namespace",
        "name": "notes",
        "description": "Notes.",
        "tools": [{**PATCH, "name": "write"}],
    },
    {"type": "web_search", "external_web_access": True, "search_context_size": "low"},
    {"type": "image_generation", "output_format": "png"},
]
REQUEST: Final[dict[str, Any]] = {
    "model": "gpt-6-codex",
    "instructions": "You are a coding agent.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
    ],
    "tools": TOOLS,
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "low", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "thread-1",
}
SEARCH: Final[dict[str, dict[str, Any] | None]] = {
    "messages": {"type": "web_search_20250305", "name": "web_search"},
    "chat": None,
    "gemini": {"googleSearch": {}},
    "interactions": {"type": "google_search"},
    "converse": None,
    "ollama": None,
    "cohere": None,
}
FOREIGN: Final = {
    "namespace",
    "image_generation",
    "external_web_access",
    "search_context_size",
    "web_search_preview",
}
"""Keys and types that only Responses has."""

STORES: Final = {"file_search": ["s_1"]}
"""File search needs them."""

each_upstream = pytest.mark.parametrize("wire", list(SEARCH))


def words(value: Any) -> Iterator[str]:
    """All keys and texts of a value."""
    if isinstance(value, dict):
        for key, element in value.items():
            yield key
            yield from words(element)
    elif isinstance(value, list):
        for element in value:
            yield from words(element)
    elif isinstance(value, str):
        yield value


def calls_response(wire: WireApi) -> ProviderResponse:
    """A response that calls a tool of each namespace by its flat name."""
    assembler = EventAssembler(LIMITS, Origin(wire), lambda n: f"call_{n}")
    assembler.identify("resp_1", "model-1")
    calls = {"mcp__fs__read": '{"path":"a.py"}', "notes__write": '{"input":"remember"}'}
    for number, (name, arguments) in enumerate(calls.items()):
        call = assembler.open(FunctionCall(f"call_{number}", name))
        assembler.arguments(call, arguments)
        assembler.close(call)
    assembler.usage(Usage(input_tokens=12, output_tokens=34))
    assembler.complete("tool_calls")
    encode = encoder(wire, model="model-1")
    chunks = [encode.feed(event) for event in assembler.take()]
    return stream_response(wire, *chunks, encode.close())


async def exchange(
    wire: WireApi, *, stream: bool = True, tools: Any = TOOLS, **changes: Any
) -> tuple[Upstream, Any]:
    """Sends Codex's request; returns what the upstream got, and the response."""
    upstream = Upstream(calls_response(wire))
    body = msgspec.json.encode({**REQUEST, "tools": tools, "stream": stream, **changes})
    async with serving(upstream, rule(wire)) as client:
        response = await client.post(
            "/v1/responses", content=body, headers={"content-type": "application/json"}
        )
    return upstream, response


@each_upstream
async def test_upstream_gets_no_words_of_responses(wire: WireApi) -> None:
    """B1: `web_search`, `image_generation` and `namespace` objects reached every upstream."""
    upstream, response = await exchange(wire)
    assert response.status_code == 200
    body = upstream.body()
    sent = set(words(body))
    assert not sent & FOREIGN
    assert {"mcp__fs__read", "notes__write", "exec_command", "apply_patch"} <= sent
    found = [tool for tool in body.get("tools") or () if tool == SEARCH[wire]]
    assert len(found) == (SEARCH[wire] is not None)
    assert "dropped=" in response.headers["x-streamlib-report"]


@each_upstream
@stream_or_body
async def test_client_gets_namespace_and_name(wire: WireApi, stream: bool) -> None:
    """B1: agents find a tool by both, and answer `unsupported call` to a flat name."""
    _, response = await exchange(wire, stream=stream)
    if stream:
        stream_parser = parser("responses")
        events = [*stream_parser.feed(response.content), *stream_parser.close()]
    else:
        events = parse_body("responses", response.content)
    read, write = accumulate(events).calls
    assert isinstance(read, FunctionCall)
    assert (read.namespace, read.name, read.arguments) == ("mcp__fs__", "read", '{"path":"a.py"}')
    assert (write.namespace, write.name, getattr(write, "input", "")) == (
        "notes",
        "write",
        "remember",
    )


@each_upstream
async def test_history_goes_up_under_flat_names(wire: WireApi) -> None:
    call = {
        "type": "function_call",
        "call_id": "call_0",
        "namespace": "mcp__fs__",
        "name": "read",
        "arguments": '{"path":"a.py"}',
    }
    output = {"type": "function_call_output", "call_id": "call_0", "output": "text"}
    upstream, _ = await exchange(wire, input=[*REQUEST["input"], call, output])
    names = [word for word in words(upstream.body()) if word == "mcp__fs__read"]
    assert len(names) >= 2
    assert "namespace" not in set(words(upstream.body()))


@pytest.mark.parametrize("wire", ["messages", "gemini"])
async def test_search_without_live_access_is_left_out(wire: WireApi) -> None:
    """Codex searches a cache by default: no other wire can, and a live search was not allowed."""
    tools = [READ, {"type": "web_search", "external_web_access": False}]
    upstream, _ = await exchange(wire, tools=tools)
    sent = {word for word in words(upstream.body()) if "earch" in word}
    assert (sent, len(upstream.body()["tools"])) == (set(), 1)


async def test_lost_restriction_is_the_clients_error() -> None:
    search = {"type": "web_search", "filters": {"allowed_domains": ["iana.org"]}}
    upstream, response = await exchange("gemini", tools=[search])
    assert upstream.requests == []
    assert response.status_code == 400
    assert "allowed_domains" in response.json()["error"]["message"]
    upstream, response = await exchange("messages", tools=[search])
    assert upstream.body()["tools"] == [{**SEARCH["messages"], "allowed_domains": ["iana.org"]}]  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("wire", "model"),
    [
        ("messages", "anthropic:claude-opus-5"),
        ("responses", "openai:gpt-6"),
        ("chat", "openai:gpt-6"),
        ("gemini", "google:gemini-3-pro"),
        ("converse", "bedrock:anthropic.claude-opus-5"),
        ("converse", "bedrock:amazon.nova-2-lite-v1:0"),
        ("ollama", "ollama:qwen3"),
    ],
)
def test_strict_provider_takes_what_codex_offers(wire: WireApi, model: str) -> None:
    prompt = parse_request("responses", msgspec.json.encode(REQUEST))
    for name in HOSTED_NAMES:
        tools = [*prompt.tools, ToolSpec.hosted(name, stores=STORES.get(name, ()))]
        prompt_with_tool = msgspec.structs.replace(prompt, tools=tools)
        request = build(prompt_with_tool, model, wire_api=wire, base_url="http://x.test/v1")
        name_in_path = model.partition(":")[2]
        assert StrictProvider().check(wire, request.body, request.headers, name_in_path) is None, (
            name
        )


async def test_responses_upstream_gets_the_tools_as_they_are() -> None:
    upstream, _ = await exchange("responses")
    assert upstream.body()["tools"] == TOOLS
