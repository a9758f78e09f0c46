"""Headers of one request: `Prompt.headers` and `Client.stream(headers=…)`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamlib import Client, Prompt, StreamError, build, parse_request
from streamlib.providers import provider
from tests.support.clients import KEY, MemoryTransport
from tests.support.gateways import weather_chunks

CLAUDE = "anthropic:claude-opus-4-6"
BEDROCK = "bedrock:anthropic.claude-sonnet-4-6"


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def body(request: Any) -> dict[str, Any]:
    return msgspec.json.decode(request.body)  # type: ignore[no-any-return]


def test_headers_are_sent_only_with_their_request() -> None:
    """B4: a beta header needed a provider of one's own."""
    request = build(Prompt("hi", headers={"X-Trace": "7"}), CLAUDE)
    assert request.headers["x-trace"] == "7"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.report == []
    assert "x-trace" not in build(Prompt("hi"), CLAUDE).headers


def test_header_wins_over_the_providers_own() -> None:
    headers = {"anthropic-version": "2026-10-21"}
    request = build(Prompt("hi", temperature=0.5, headers=headers), CLAUDE)
    assert request.headers["anthropic-version"] == "2026-10-21"
    # The version that is sent decides what the body may have.
    assert "temperature" not in body(request)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "proxy-authorization",
        "X-API-Key",
        "x-goog-api-key",
        "api-key",
        "apikey",
        "ocp-apim-subscription-key",
        "cookie",
        "set-cookie",
        "x-amz-security-token",
        "x-auth-token",
        "helicone-auth",
        "x-secret",
        "x-key",
        "anthropic-key",
        "x-openai-key",
        "x-private-key",
        "cf-access-jwt-assertion",
    ],
)
def test_key_is_refused(name: str) -> None:
    with pytest.raises(StreamError) as caught:
        Prompt("hi", headers={name: "canary-1"})
    assert (caught.value.kind, caught.value.code) == ("invalid_request", "headers")
    assert "api_key=" in caught.value.message
    assert "canary-1" not in caught.value.message


@pytest.mark.parametrize("name", ["idempotency-key", "x-cache-key", "x-session-affinity-key"])
def test_key_that_only_names_something_is_sent(name: str) -> None:
    assert build(Prompt("hi", headers={name: "1"}), CLAUDE).headers[name] == "1"


@pytest.mark.parametrize(
    "headers",
    [
        {"x-a": "Bearer canary-1"},
        {"x-a": "canary-1\r\nx-b: 1"},
        {"x-a": "canary-1\n"},
        {"x-a": ""},
        {"x-a": "canary-1 é"},
        {"x a": "canary-1"},
        {"x-a:": "canary-1"},
        {"": "canary-1"},
        {"x-a": "1", "X-A": "2"},
        {"host": "canary-1"},
        {"content-length": "1"},
        {"transfer-encoding": "chunked"},
    ],
)
def test_header_that_may_not_be_set_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(StreamError) as caught:
        Prompt("hi", headers=headers)
    assert caught.value.code == "headers"
    assert "canary-1" not in caught.value.message


@pytest.mark.parametrize("headers", ["x-a: 1", [("x-a", "1")], {"x-a": 1}, {b"x-a": "1"}])
def test_headers_of_another_type_are_a_type_error(headers: Any) -> None:
    with pytest.raises(TypeError, match="headers is a dict of texts"):
        Prompt("hi", headers=headers)


async def test_stream_takes_headers() -> None:
    transport = MemoryTransport(weather_chunks("messages"))
    async with Client(http=transport, api_key=KEY) as client:
        await client.respond(
            Prompt("hi", headers={"x-a": "1", "x-b": "1"}), CLAUDE, headers={"X-B": "2"}
        )
        request = build("hi", CLAUDE)
        await client.respond(request, headers={"x-c": "3"})
        with pytest.raises(StreamError, match="api_key="):
            client.stream("hi", CLAUDE, headers={"x-api-key": "canary-1"})
    sent = [dict(headers) for _, _, headers, _, _ in transport.sent]
    assert (sent[0]["x-a"], sent[0]["x-b"]) == ("1", "2")
    assert sent[1]["x-c"] == "3"
    assert "x-a" not in sent[1]
    assert "x-c" not in request.headers


def test_betas_are_joined_with_the_providers() -> None:
    ours = provider("anthropic")
    ours = msgspec.structs.replace(ours, headers={**ours.headers, "anthropic-beta": "a-1, b-1"})
    prompt = Prompt("hi", headers={"anthropic-beta": "b-1,c-1"})
    request = build(prompt, "claude-opus-4-6", provider=ours)
    assert request.headers["anthropic-beta"] == "a-1,b-1,c-1"


def test_betas_of_a_route_are_joined_in_any_case() -> None:
    """A provider's `Anthropic-Beta` was lost as soon as a field needed a beta of its own."""
    ours = provider("anthropic")
    ours = msgspec.structs.replace(ours, headers={**ours.headers, "Anthropic-Beta": "a-1"})
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    prompt = Prompt("hi", extra={"context_management": edits})
    request = build(prompt, "claude-opus-4-6", provider=ours)
    sent = {name: value for name, value in request.headers.items() if "beta" in name.lower()}
    assert sent == {"anthropic-beta": "a-1,context-management-2025-06-27"}


@pytest.mark.parametrize("is_built", [False, True], ids=["prompt", "request"])
async def test_betas_of_a_stream_join_those_of_its_prompt(is_built: bool) -> None:
    """They replaced them: with a request, those that its fields need, too."""
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    prompt = Prompt("hi", headers={"anthropic-beta": "a-1"}, extra={"context_management": edits})
    sent: Any = build(prompt, CLAUDE) if is_built else prompt
    async with Client(http=MemoryTransport(b""), api_key=KEY) as client:
        stream = client.stream(sent, CLAUDE, headers={"Anthropic-Beta": "b-1,a-1"})
    betas = stream.request.headers["anthropic-beta"].split(",")
    assert sorted(betas) == ["a-1", "b-1", "context-management-2025-06-27"]


@pytest.mark.parametrize("wire_api", ["invoke", "converse"])
def test_betas_are_in_the_body_on_bedrock(wire_api: Any) -> None:
    prompt = Prompt("hi", headers={"anthropic-beta": "context-1m-2025-08-07"})
    request = build(prompt, BEDROCK, wire_api=wire_api)
    assert "anthropic-beta" not in request.headers
    sent = body(request)
    if wire_api == "converse":
        sent = sent["additionalModelRequestFields"]
    assert sent["anthropic_beta"] == ["context-1m-2025-08-07"]
    assert request.report == []


@pytest.mark.parametrize(
    ("model", "wire_api"),
    [
        ("bedrock:amazon.nova-pro-v1:0", "converse"),
        ("bedrock:amazon.nova-pro-v1:0", "invoke"),
        ("bedrock:openai.gpt-oss-20b-1:0", "invoke"),
        ("openai:gpt-5", "responses"),
        ("google:gemini-3-pro", "gemini"),
    ],
)
def test_betas_for_no_claude_are_reported(model: str, wire_api: Any) -> None:
    prompt = Prompt("hi", headers={"anthropic-beta": "context-1m-2025-08-07"})
    request = build(prompt, model, wire_api=wire_api)
    assert "context-1m" not in str(request.headers) + str(request.body)
    assert [change.path for change in request.report] == ["/headers/anthropic-beta"]


def test_betas_of_a_decoded_request_are_kept() -> None:
    raw = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
    headers = {"Anthropic-Beta": "a-1,b-1", "x-api-key": "k", "user-agent": "x"}
    prompt = parse_request("messages", raw, headers=headers)
    assert prompt.headers == {"anthropic-beta": "a-1,b-1"}
    with pytest.raises(StreamError, match="headers"):
        parse_request("messages", raw, headers={"anthropic-beta": "a\nb"})
