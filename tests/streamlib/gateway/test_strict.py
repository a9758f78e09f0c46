"""Every client's wire in front of the strict provider of every wire: no request is refused.

The provider signs what it gives out and knows it again, so state that an envelope loses or changes
is a refusal here.
"""

from __future__ import annotations

import msgspec
import pytest

from streamlib import FunctionCall, Image, Message, Prompt, Reasoning, Text, ToolSpec, WireApi, user
from streamlib.gateway import RouteRule
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.testing import Behaviour, running
from tests.support.gateways import CLIENTS, read, send, serving
from tests.support.loops import asyncio_alone

MODELS: dict[WireApi, str] = {
    "messages": "anthropic:claude-sonnet-4-5",
    "responses": "openai:gpt-5.5",
    "chat": "openai:gpt-5.5",
    "gemini": "google:gemini-3.5-flash",
    "interactions": "google:gemini-3.5-flash",
    "converse": "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0",
    "invoke": "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0",
    "ollama": "ollama:qwen3:4b",
    "cohere": "cohere:command-a-reasoning-08-2025",
}
SIGNING = ("openrouter:anthropic/claude-sonnet-4.5", "google:gemini-3.5-flash")
"""Models whose servers sign on Chat."""
WEATHER = ToolSpec(
    "weather",
    "Weather of a place.",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)
PIXEL = Image("iVBORw0KGgo=", media_type="image/png")
CALLING = (
    Reasoning("Three places."),
    Message("assistant", (Text("I look."),)),
    FunctionCall("", "weather", '{"place":"Riga"}'),
    FunctionCall("", "weather", '{"place":"Köln"}'),
    FunctionCall("", "weather", '{"place":"Oslo"}'),
)
FINAL = (Reasoning("Now I know."), Message("assistant", (Text("Sunny."),)))
KEYS = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    for name in KEYS:
        monkeypatch.setenv(name, "dummy")


@asyncio_alone
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_no_request_of_a_conversation_is_refused(client: WireApi, model: WireApi) -> None:
    await converse(client, model, MODELS[model])


@asyncio_alone
@pytest.mark.parametrize("name", SIGNING)
@pytest.mark.parametrize("client", CLIENTS)
async def test_no_request_of_signed_chat_is_refused(client: WireApi, name: str) -> None:
    """With a key, as SDKs send one: Chat's parser learns of a call's signature at the call's end,
    and clients of Messages and Responses leave out reasoning at the end of a turn."""
    await converse(client, "chat", name, x_api_key="any-key")


async def converse(client: WireApi, model: WireApi, name: str, **headers: str) -> None:
    """Four turns of a client, with the model of a route."""
    prompt = Prompt(
        input=[user("Weather in all three?", PIXEL)],
        instructions="Be brief.",
        tools=[WEATHER],
        max_output_tokens=4000,
        reasoning="low",
    )
    async with running(Behaviour(strict=True, turns=(CALLING, FINAL))) as url:
        base_url = url + WIRE_SPECS[model].root_path
        route = RouteRule("*", name, wire_api=model, base_url=base_url)
        async with serving(None, route) as http:
            for turn in range(4):
                reply = await send(http, client, prompt, **headers)
                assert reply.status_code == 200, reply.text
                response = read(client, reply)
                assert response.error is None
                assert len(response.calls) == (3, 0)[turn % 2]
                items = [*prompt.items, *response.items]
                for n, call in enumerate(response.calls):
                    assert isinstance(call, FunctionCall)
                    items.append(call.output("no such place" if n else "sunny", is_error=n > 0))
                if not response.calls:
                    items.append(user("And tomorrow?"))
                prompt = msgspec.structs.replace(prompt, input=tuple(items))
