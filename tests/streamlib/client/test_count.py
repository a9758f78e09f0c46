"""How many tokens a prompt has: asked of the provider, anchored on a response, or estimated."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from streamlib import (
    Client,
    FunctionCall,
    History,
    Message,
    Origin,
    Prompt,
    Response,
    ResponseItem,
    StreamError,
    SyncClient,
    Text,
    ToolSpec,
    Usage,
    user,
)
from streamlib.history import PromptTokens
from tests.support.clients import MemoryTransport

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
PROMPT = Prompt(
    "Where?",
    instructions="Be brief.",
    tools=[ToolSpec("weather", "Weather.", SCHEMA)],
    output_schema=SCHEMA,
    max_output_tokens=50,
    temperature=0.5,
)


def client_of(*bodies: bytes, status: int = 200) -> tuple[Client, MemoryTransport]:
    transport = MemoryTransport(*[[body] for body in bodies], status=status)
    keys = {"anthropic": "k", "openai": "k", "google": "k", "vertex": "k"}
    return Client(http=transport, api_key=keys), transport


def sent(transport: MemoryTransport) -> tuple[str, Any]:
    [(_, url, _, body, _)] = transport.sent
    return url, json.loads(body)


@pytest.mark.parametrize(
    ("model", "body", "path", "keys"),
    [
        (
            "anthropic:claude-opus-4-5",
            b'{"input_tokens":42}',
            "/v1/messages/count_tokens",
            {"model", "messages", "system", "tools", "output_config"},
        ),
        (
            "openai:gpt-5",
            b'{"object":"response.input_tokens","input_tokens":42}',
            "/v1/responses/input_tokens",
            {"model", "input", "instructions", "tools", "text"},
        ),
        (
            "google:gemini-3-pro",
            b'{"totalTokens":42}',
            "/models/gemini-3-pro:countTokens",
            {"generateContentRequest"},
        ),
    ],
)
async def test_provider_counts_what_is_part_of_the_input(
    model: str, body: bytes, path: str, keys: set[str]
) -> None:
    client, transport = client_of(body)
    wire_api: Any = "responses" if model.startswith("openai") else None
    async with client:
        tokens = await client.count(PROMPT, model, wire_api=wire_api)
    assert tokens == PromptTokens(42, "counted")
    url, request = sent(transport)
    assert url.endswith(path)
    assert set(request) == keys
    assert "city" in json.dumps(request)  # the schema is counted too


async def test_count_of_agents_keeps_the_query_of_the_url() -> None:
    client, transport = client_of(b'{"object":"response.input_tokens","input_tokens":42}')
    prompt = Prompt("hi", extra={"multi_agent": {"enabled": True}})
    async with client:
        await client.count(prompt, "openai:gpt-5", wire_api="responses")
    url, _ = sent(transport)
    assert url.endswith("/v1/responses/input_tokens?beta=true")


async def test_vertex_counts_at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "europe-west4")
    client, transport = client_of(b'{"totalTokens":42}')
    async with client:
        assert (await client.count(PROMPT, "vertex:gemini-3-pro")).tokens == 42
    url, request = sent(transport)
    assert url.endswith("/publishers/google/models/gemini-3-pro:countTokens")
    assert set(request) == {"contents", "systemInstruction", "tools", "generationConfig"}


@pytest.mark.parametrize("wire_api", ["converse", "invoke"])
async def test_bedrock_counts_the_request_inside(
    wire_api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "k")
    client, transport = client_of(b'{"inputTokens":42}')
    model = "bedrock:anthropic.claude-opus-4-8"
    async with client:
        assert (await client.count(PROMPT, model, wire_api=wire_api)).tokens == 42
    url, request = sent(transport)
    assert url.endswith("/model/anthropic.claude-opus-4-8/count-tokens")
    inside = request["input"]
    if wire_api == "converse":
        assert {"messages", "system", "toolConfig"} <= set(inside["converse"])
        assert "inferenceConfig" not in inside["converse"]
    else:
        assert b'"weather"' in base64.b64decode(inside["invokeModel"]["body"])


def test_sync_client_counts() -> None:
    transport = MemoryTransport([b'{"input_tokens":42}'])
    with SyncClient(http=transport, api_key="k") as client:
        assert client.count(PROMPT, "anthropic:claude-opus-4-5").source == "counted"
        assert client.count("hi", MODEL).source == "estimated"


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_model_without_the_endpoint_is_estimated(status: int) -> None:
    client, _ = client_of(b'{"message":"no such route"}', status=status)
    async with client:
        tokens = await client.count(PROMPT, "anthropic:claude-opus-4-5")
    assert tokens.source == "estimated"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, b'{"error":{"message":"bad"}}', "invalid_request"),
        (401, b"{}", "authentication"),
        (200, b"{}", "malformed"),
        (200, b'{"input_tokens":"many"}', "malformed"),
        (200, b"<html>", "malformed"),
    ],
    ids=["refused", "key", "no number", "text", "page"],
)
async def test_refused_count_is_an_error(status: int, body: bytes, kind: str) -> None:
    client, _ = client_of(body, status=status)
    async with client:
        with pytest.raises(StreamError) as caught:
            await client.count(PROMPT, "anthropic:claude-opus-4-5")
    assert caught.value.info.kind == kind


# --- anchored ---

MODEL = "groq:llama-4"
ORIGIN = Origin("chat", "groq", "https://api.groq.com/openai/v1", "llama-4")


def responded(text: str = "hello", *, origin: Origin = ORIGIN) -> Response:
    items = (Message("assistant", (Text(text),), origin=origin, response_id="r1"),)
    return Response("r1", "m", "completed", items, usage=Usage(1000, 20))


async def test_newest_response_of_a_history_anchors() -> None:
    client, transport = client_of()
    history = History([user("a long story")]).add(responded())
    history.append(user("x" * 400))
    async with client:
        anchored = await client.count(Prompt(history, tools=PROMPT.tools), MODEL)
        assert anchored.source == "anchored"
        assert 1020 + 100 <= anchored.tokens < 1020 + 130
        # The history of another program, with its newest response beside it.
        assert await client.count(list(history), MODEL, last=responded()) == anchored
        assert (await client.count(history, MODEL, estimate=lambda items: 7)).tokens == 1027
    assert transport.sent == []


@pytest.mark.parametrize(
    "change",
    [
        lambda history: history.insert(0, user("before")),
        lambda history: history.pop(1),
        lambda history: history.clear(),
        lambda history: history.__setitem__(1, Message("assistant", (Text("other"),))),
    ],
    ids=["inserted", "removed", "cleared", "replaced"],
)
async def test_edited_history_is_estimated(change: Any) -> None:
    client, _ = client_of()
    history = History([user("a long story")]).add(responded())
    change(history)
    async with client:
        assert (await client.count(history, MODEL)).source == "estimated"


async def test_response_of_another_target_is_no_anchor() -> None:
    client, _ = client_of()
    other = responded(origin=Origin("chat", "groq", "https://api.groq.com/openai/v1", "llama-3"))
    async with client:
        tokens = await client.count(History([user("a")]).add(other), MODEL)
        bare = Response("r1", "m", "completed", responded().items)
        assert (await client.count([user("a"), *bare.items], MODEL, last=bare)).source == (
            "estimated"
        )
    assert tokens.source == "estimated"


async def test_reasoning_that_is_not_sent_back_is_no_input() -> None:
    client, _ = client_of()
    usage = Usage(1000, 520, reasoning_output_tokens=500)
    response = Response("r1", "m", "completed", responded().items, usage=usage)
    async with client:
        tokens = await client.count(History([user("a")]).add(response), MODEL)
    assert tokens == PromptTokens(1020, "anchored")


# --- estimated ---


async def test_estimate_may_be_the_callers() -> None:
    client, _ = client_of()
    async with client:
        assert await client.count([user("a")], MODEL, estimate=lambda items: 5) == PromptTokens(
            5, "estimated"
        )
        with pytest.raises(TypeError, match="must return an int"):
            await client.count([user("a")], MODEL, estimate=lambda items: 2.5)  # type: ignore[arg-type, return-value]


async def test_estimate_has_all_that_is_sent() -> None:
    client, _ = client_of()
    call = FunctionCall("c", "f", '{"a":"' + "x" * 400 + '"}')
    async with client:
        small = (await client.count("hi", MODEL)).tokens
        assert (await client.count(Prompt("hi", instructions="y" * 400), MODEL)).tokens > small + 90
        history: list[ResponseItem] = [user("hi"), call, call.output("z" * 400)]
        assert (await client.count(history, MODEL)).tokens > small + 190
        assert (await client.count(PROMPT, MODEL)).tokens > small + 300


async def test_closed_client_counts_nothing() -> None:
    client, _ = client_of()
    await client.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await client.count("hi", MODEL)
