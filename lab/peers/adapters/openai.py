"""The official SDK for Chat and Responses: `create(stream=True)` put together by hand, and the
`stream()` helpers."""

from __future__ import annotations

from typing import Any

import httpx2
import openai

from lab.peers.adapters.chunks import Chunks, response_event
from lab.peers.peer import READ, Ask, Peer, attr
from lab.peers.told import Told

MESSAGES: Any = [{"role": "user", "content": "x"}]


def client(asked: Ask) -> openai.AsyncOpenAI:
    """With the key of nobody."""
    timeout: Any = httpx2.Timeout(READ)
    return openai.AsyncOpenAI(
        api_key="k-1", base_url=f"{asked.url}/v1", max_retries=asked.retries, timeout=timeout
    )


async def chat_create(asked: Ask, told: Told) -> None:
    """Raw chunks."""
    async with client(asked) as made:
        stream = await made.chat.completions.create(model="m-1", messages=MESSAGES, stream=True)
        chunks = Chunks(told)
        try:
            async for chunk in stream:
                chunks.feed(chunk)
        finally:
            chunks.close()


async def chat_stream(asked: Ask, told: Told) -> None:
    """The helper."""
    async with (
        client(asked) as made,
        made.chat.completions.stream(model="m-1", messages=MESSAGES) as stream,
    ):
        async for event in stream:
            told.text += event.delta if event.type == "content.delta" else ""
        final = await stream.get_final_completion()
    message = final.choices[0].message
    told.text, told.stop = message.content or "", final.choices[0].finish_reason
    told.calls = [
        (attr(call, "function", "name"), attr(call, "function", "arguments"))
        for call in message.tool_calls or ()
    ]
    told.reasoning = attr(message, "reasoning_content", default="")
    told.input_tokens, told.output_tokens = (
        attr(final, "usage", "prompt_tokens"),
        attr(final, "usage", "completion_tokens"),
    )


async def responses_create(asked: Ask, told: Told) -> None:
    """Raw events: deltas as they come, calls as they end."""
    async with client(asked) as made:
        async for event in await made.responses.create(model="m-1", input="x", stream=True):
            response_event(event, told)


async def responses_stream(asked: Ask, told: Told) -> None:
    """The helper and its final response."""
    async with client(asked) as made, made.responses.stream(model="m-1", input="x") as stream:
        async for event in stream:
            response_event(event, told)
        final = await stream.get_final_response()
        told.stop = attr(final, "incomplete_details", "reason") or final.status


PEERS = (
    Peer(
        "openai create", "openai", {"chat": chat_create, "responses": responses_create}, ("openai",)
    ),
    Peer(
        "openai stream", "openai", {"chat": chat_stream, "responses": responses_stream}, ("openai",)
    ),
)
