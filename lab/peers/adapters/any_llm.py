"""any-llm's `acompletion` and `aresponses`: thin over the vendors' SDKs, so their errors count as
its own. Chunks have the Chat shape."""

from __future__ import annotations

from typing import Any

from any_llm import acompletion, aresponses

from lab.peers.adapters.chunks import Chunks, response_event
from lab.peers.peer import READ, Ask, Peer
from lab.peers.told import Told

MESSAGES: Any = [{"role": "user", "content": "x"}]
PROVIDERS = {
    "messages": ("anthropic", "", {"max_retries": 0, "timeout": READ}),
    "chat": ("openai", "/v1", {"max_retries": 0, "timeout": READ}),
    "gemini": ("gemini", "", {}),
    "ollama": ("ollama", "", {"timeout": READ}),
}


async def ask(asked: Ask, told: Told) -> None:
    """Chunks of the Chat shape."""
    provider, path, options = PROVIDERS[asked.wire]
    settings = {**options, **({"max_retries": asked.retries} if "max_retries" in options else {})}
    stream: Any = await acompletion(
        model="m-1",
        provider=provider,
        messages=MESSAGES,
        api_key="k-1",
        api_base=asked.url + path,
        stream=True,
        client_args=settings,
        max_tokens=9,
    )
    chunks = Chunks(told)
    try:
        async for chunk in stream:
            chunks.feed(chunk)
            if asked.leave and told.text:
                await stream.aclose()
                break
    finally:
        chunks.close()


async def responses(asked: Ask, told: Told) -> None:
    """Events of Responses."""
    settings = {"max_retries": asked.retries, "timeout": READ}
    stream: Any = await aresponses(
        model="m-1",
        provider="openai",
        input_data="x",
        api_key="k-1",
        api_base=f"{asked.url}/v1",
        stream=True,
        client_args=settings,
    )
    async for event in stream:
        response_event(event, told)


OWN = ("any_llm", "openai", "anthropic", "google.genai", "ollama")
PEERS = (
    Peer("any-llm", "any-llm-sdk", {**dict.fromkeys(PROVIDERS, ask), "responses": responses}, OWN),
)
