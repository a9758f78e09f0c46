"""Google's two hosts: which key is sent to which, and the address of every location."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from streamlib import Prompt, StreamError, ToolSpec, build
from streamlib.client.auth import KeyStore
from streamlib.providers import provider

NOW = datetime(2026, 11, 22, tzinfo=UTC)
KEYS = {"GOOGLE_API_KEY": "first", "GEMINI_API_KEY": "second", "GOOGLE_OAUTH_ACCESS_TOKEN": "token"}


async def headers(model: str, environ: dict[str, str], **options: str) -> dict[str, str]:
    request = build(Prompt(input="x"), model, **options)  # type: ignore[arg-type]
    stamp = await KeyStore(environ=environ).stamp(request, provider(model.partition(":")[0]), NOW)
    return dict(stamp.headers)


async def test_developer_api_key_is_the_first_variables() -> None:
    assert await headers("google:gemini-3.5-flash", KEYS) == {"x-goog-api-key": "first"}
    assert await headers("gemini:gemini-3.5-flash", {"GEMINI_API_KEY": "second"}) == {
        "x-goog-api-key": "second"
    }


@pytest.mark.parametrize("location", ["us-east5", "europe-west4", "global"])
async def test_token_is_sent_to_every_region_of_vertex(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", location)
    for model in ("vertex:gemini-3.5-flash", "vertex-anthropic:claude-opus-5"):
        assert await headers(model, KEYS) == {"authorization": "Bearer token"}


async def test_token_is_not_sent_to_other_hosts() -> None:
    with pytest.raises(StreamError) as caught:
        await headers("vertex:gemini-3.5-flash", KEYS, base_url="https://evil.example/v1")
    assert caught.value.kind == "authentication"


def test_chat_is_on_the_same_host() -> None:
    request = build(Prompt(input="x", reasoning="low"), "google:gemini-3.5-flash", wire_api="chat")
    assert request.url == "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"
    assert b'"reasoning_effort":"low"' in request.body


def test_claude_on_vertex_has_no_model_in_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_CLOUD_REGION", "us-east5")
    request = build(
        Prompt(input="x", tools=[ToolSpec("f")]), "vertex-anthropic:claude-opus-5", strict=True
    )
    assert (
        b'"model"' in request.body,
        b'"anthropic_version":"vertex-2023-10-16"' in request.body,
    ) == (False, True)
    assert "anthropic-version" not in request.headers
