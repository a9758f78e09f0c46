"""`client.models`: where and how each provider lists its models; errors of Google's free tier."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from streamlib import Client, Limits, ModelInfo, Provider, StreamError
from streamlib.client.model_list import models_request, read_models
from streamlib.providers import provider
from streamlib.transport.deadlines import Deadlines
from tests.support.cases import each_case
from tests.support.clients import KEY, MemoryTransport
from tests.support.provider_cases import URL_ENVIRONMENT

OPENAI = {"object": "list", "data": [{"id": "gpt-5.6", "owned_by": "openai"}, {"id": "o3"}]}


def responding(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> MemoryTransport:
    """A transport that responds with this body: bytes, or a JSON value."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return MemoryTransport(
        [body[:7], body[7:]],
        status=status,
        headers={"content-type": "application/json", **(headers or {})},
    )


async def models(
    name: str | Provider, content: Any, **options: Any
) -> tuple[list[ModelInfo], tuple[str, str, Mapping[str, str]]]:
    """The list, and method, URL and headers of its request."""
    memory = responding(content)
    async with Client(http=memory, api_key=KEY) as client:
        listed = await client.models(name, **options)
    method, url, headers, body, _ = memory.sent[0]
    assert body == b""
    assert memory.responses[0].closed
    return listed, (method, url, headers)


@each_case(
    "name, url, header",
    [
        ("openai", "https://api.openai.com/v1/models", "authorization"),
        ("anthropic", "https://api.anthropic.com/v1/models?limit=1000", "x-api-key"),
        (
            "google",
            "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000",
            "x-goog-api-key",
        ),
        ("ollama", "http://localhost:11434/api/tags", "authorization"),
        ("github", "https://models.github.ai/catalog/models", "authorization"),
        ("mistral", "https://api.mistral.ai/v1/models", "authorization"),
        ("deepseek", "https://api.deepseek.com/models", "authorization"),
        ("openrouter", "https://openrouter.ai/api/v1/models", "authorization"),
    ],
)
async def test_models_are_requested_where_the_provider_lists_them(
    name: str, url: str, header: str
) -> None:
    listed, (method, requested_url, headers) = await models(name, OPENAI)
    assert (method, requested_url) == ("GET", url)
    assert KEY in headers[header]
    assert [model.id for model in listed] == ["gpt-5.6", "o3"]
    assert listed[0].raw == OPENAI["data"][0]


async def test_model_list_follows_wire_and_base_url() -> None:
    _, (_, url, headers) = await models("openrouter", OPENAI, wire_api="messages")
    assert url == "https://openrouter.ai/api/v1/models?limit=1000"
    assert headers["anthropic-version"]
    _, (_, url, _) = await models("custom", OPENAI, base_url="http://127.0.0.1:9/v1")
    assert url == "http://127.0.0.1:9/v1/models"


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        ({"data": [{"id": "a", "type": "model"}], "has_more": False}, ["a"]),
        (
            {"models": [{"name": "models/gemini-4-argon", "displayName": "Gemini"}]},
            ["gemini-4-argon"],
        ),
        ({"models": [{"name": "qwen3:8b", "model": "qwen3:8b"}]}, ["qwen3:8b"]),
        ([{"id": "openai/gpt-4.1", "name": "OpenAI GPT-4.1"}], ["openai/gpt-4.1"]),
        ({"models": [{"slug": "gpt-5.4"}]}, ["gpt-5.4"]),
        ({"data": [{"id": ""}, {"id": 3}, "x", None, {"id": "last"}]}, ["last"]),
        ({"data": []}, []),
    ],
)
def test_every_form_of_model_list_is_read(body: Any, ids: list[str]) -> None:
    listed = read_models(json.dumps(body).encode())
    assert isinstance(listed, list)
    assert [model.id for model in listed] == ids


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{}", b'{"data": 3}', b"3", b"[" * 5000, b'{"data": {"id": "a"}}']
)
async def test_body_without_a_model_list_is_malformed(body: bytes) -> None:
    with pytest.raises(StreamError) as caught:
        await models("openai", body)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    "name", ["bedrock", "vertex", "vertex-anthropic", "openai-codex", "perplexity", "xiaomi"]
)
def test_provider_without_a_model_list_raises(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in URL_ENVIRONMENT.items():
        monkeypatch.setitem(os.environ, variable, value)
    with pytest.raises(StreamError) as caught:
        models_request(provider(name))
    assert (caught.value.kind, caught.value.code) == ("invalid_request", "models")


async def test_unknown_provider_error_names_similar_ones() -> None:
    async with Client(http=responding({})) as client:
        with pytest.raises(StreamError, match="anthropic"):
            await client.models("antropic")


async def test_model_list_without_a_key_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    memory = responding(OPENAI)
    async with Client(http=memory) as client:
        with pytest.raises(StreamError) as caught:
            await client.models("mistral")
    assert caught.value.kind == "authentication"
    assert memory.sent == []


async def test_model_list_error_shows_no_key() -> None:
    memory = responding(
        {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}},
        status=401,
    )
    async with Client(http=memory) as client:
        with pytest.raises(StreamError) as caught:
            await client.models("openai", api_key=KEY)
    assert caught.value.kind == "authentication"
    assert KEY not in f"{caught.value}{caught.value.info}"


async def test_model_list_is_limited_in_size_and_time() -> None:
    async with Client(
        http=responding({"data": [{"id": "x" * 5000}]}),
        api_key=KEY,
        limits=Limits(response_bytes=1000),
    ) as client:
        with pytest.raises(StreamError) as caught:
            await client.models("openai")
    assert caught.value.kind == "limit_exceeded"
    silent = MemoryTransport([b'{"data"', 60.0], headers={"content-type": "application/json"})
    with anyio.fail_after(10):
        async with Client(
            http=silent, api_key=KEY, deadlines=Deadlines(first_event=0.05, first_byte=0.05)
        ) as client:
            with pytest.raises(StreamError) as caught:
                await client.models("openai")
    assert caught.value.kind == "stalled"
    assert silent.responses[0].closed


async def test_closed_client_requests_no_models() -> None:
    client = Client(http=responding(OPENAI))
    await client.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await client.models("openai")


# --- Google's free tier ---


def exhausted(quota_id: str, value: str) -> dict[str, Any]:
    """A 429 as Google writes it."""
    violation = {
        "quotaMetric": "generativelanguage.googleapis.com/requests",
        "quotaId": quota_id,
        "quotaValue": value,
    }
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"},
    ]
    return {
        "error": {
            "code": 429,
            "message": "You exceeded your current quota.",
            "status": "RESOURCE_EXHAUSTED",
            "details": details,
        }
    }


async def refused(body: Any, headers: Mapping[str, str] | None = None) -> StreamError:
    """The error that a 429 with this body raises."""
    async with Client(http=responding(body, 429, headers), api_key=KEY) as client:
        with pytest.raises(StreamError) as caught:
            await client.respond("hi", "google:gemini-3.5-flash")
    return caught.value


async def test_daily_limit_of_the_free_tier_is_explained() -> None:
    error = await refused(exhausted("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "250"))
    assert (error.kind, error.retryable) == ("quota_exhausted", False)
    assert "free tier" in str(error)
    assert "billing" in str(error)
    assert "midnight Pacific" in str(error)


async def test_small_daily_limit_means_the_free_tier() -> None:
    error = await refused(exhausted("GenerateRequestsPerDayPerProjectPerModel", "1000"))
    assert "free tier" in str(error)
    paid = await refused(exhausted("GenerateRequestsPerDayPerProjectPerModel", "1001"))
    assert paid.kind == "quota_exhausted"
    assert "free tier" not in str(paid)


@pytest.mark.parametrize(
    ("limit", "free"), [("1000", True), ("250", True), ("1001", False), ("10000", False)]
)
async def test_daily_limit_in_headers_shows_the_free_tier(limit: str, free: bool) -> None:
    headers = {"x-ratelimit-limit-requests-per-day": limit, "retry-after": "999"}
    error = await refused(
        {"error": {"code": 429, "message": "Too many.", "status": "RESOURCE_EXHAUSTED"}}, headers
    )
    assert ("free tier" in str(error)) is free
