"""Betas of a client's request: they go to Anthropic, and to nobody else."""

from __future__ import annotations

import pytest

from streamlib import Prompt
from streamlib.client.retry import NO_RETRY
from streamlib.gateway import RouteRule
from streamlib_parsers.errors import ErrorInfo
from tests.support.gateways import (
    Upstream,
    error_response,
    rule,
    send,
    serving,
    stream_response,
    weather_chunks,
    weather_response,
)

BETAS = "context-1m-2025-08-07,claude-code-20250219"
EDITS = {"edits": [{"type": "clear_tool_uses_20250919"}]}
PROMPT = Prompt("hi", extra={"context_management": EDITS})


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k-1")
    monkeypatch.setenv("OPENROUTER_API_KEY", "k-2")


async def test_betas_of_a_client_go_to_anthropic() -> None:
    """B4: with the field of the body that needs one."""
    upstream = Upstream(weather_response("messages"))
    route = RouteRule("*", "anthropic:claude-opus-5", headers={"anthropic-beta": "of-the-route"})
    async with serving(upstream, route) as client:
        await send(client, "messages", PROMPT, anthropic_beta=BETAS)
    sent = upstream.requests[0].headers["anthropic-beta"].split(",")
    assert sent == ["of-the-route", *BETAS.split(","), "context-management-2025-06-27"]
    assert upstream.body()["context_management"] == EDITS


async def test_betas_of_a_client_go_to_nobody_else() -> None:
    overloaded = error_response("messages", 529, ErrorInfo("overloaded", "later"))
    chat = stream_response("chat", *weather_chunks("chat"))
    upstream = Upstream(overloaded, chat)
    route = RouteRule("*", ("anthropic:claude-opus-5", "openrouter:x/y"))
    async with serving(upstream, route, client={"retry": NO_RETRY}) as client:
        await send(client, "messages", PROMPT, anthropic_beta=BETAS)
    assert "context-1m" in str(upstream.requests[0].headers)
    assert "anthropic-beta" not in upstream.requests[1].headers


async def test_another_server_of_the_wire_gets_no_betas_of_a_client() -> None:
    upstream = Upstream(weather_response("messages"))
    async with serving(upstream, rule("messages")) as client:
        await send(client, "messages", PROMPT, anthropic_beta=BETAS)
    # The field of the body needs its beta wherever it goes.
    assert upstream.requests[0].headers["anthropic-beta"] == "context-management-2025-06-27"


async def test_betas_with_control_characters_are_refused() -> None:
    async with serving(Upstream(), RouteRule("*", "anthropic:claude-opus-5")) as client:
        response = await send(client, "messages", Prompt("hi"), anthropic_beta="a\x01b")
    assert response.status_code == 400
