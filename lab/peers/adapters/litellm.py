"""litellm's `acompletion` and `aresponses`, over each wire it speaks; its chunks have the Chat
shape.

Never 1.82.7 or 1.82.8: those were malicious.
"""

from __future__ import annotations

from typing import Any

import litellm

from lab.peers.adapters.chunks import Chunks, response_event
from lab.peers.peer import READ, Ask, Peer
from lab.peers.told import Told

litellm.suppress_debug_info = True
litellm.telemetry = False
MESSAGES = [{"role": "user", "content": "x"}]
MODELS: dict[str, tuple[str, str]] = {
    "messages": ("anthropic/claude-sonnet-4-5", ""),
    "chat": ("openai/gpt-4o", "/v1"),
    "gemini": ("gemini/gemini-2.5-flash", ""),
    "converse": ("bedrock/converse/us.amazon.nova-lite-v1:0", ""),
    "ollama": ("ollama_chat/llama3", ""),
}


async def ask(asked: Ask, told: Told) -> None:
    """Chunks of the Chat shape."""
    model, path = MODELS[asked.wire]
    options: dict[str, Any] = {
        "api_base": asked.url + path,
        "api_key": "k-1",
        "stream_options": {"include_usage": True},
    }
    if asked.wire == "converse":
        keys = {
            "aws_access_key_id": "AK",
            "aws_secret_access_key": "s",
            "aws_region_name": "us-east-1",
        }
        options = {"aws_bedrock_runtime_endpoint": asked.url, **keys}
    stream: Any = await litellm.acompletion(
        model=model,
        messages=MESSAGES,
        stream=True,
        timeout=READ,
        num_retries=asked.retries,
        **options,
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
    options: dict[str, Any] = {
        "api_base": f"{asked.url}/v1",
        "api_key": "k-1",
        "timeout": READ,
        "num_retries": asked.retries,
    }
    stream: Any = await litellm.aresponses(model="openai/gpt-4o", input="x", stream=True, **options)
    async for event in stream:
        response_event(event, told)


async def replay(asked: Ask, told: Told) -> None:
    """Two turns on Messages: chunks built into a message with litellm's own function, and sent
    back."""
    turns: list[Any] = [*MESSAGES]
    tools = [
        {
            "type": "function",
            "function": {"name": name, "parameters": {"type": "object", "properties": {}}},
        }
        for name in ("f", "g")
    ]
    options: dict[str, Any] = {
        "api_base": asked.url,
        "api_key": "k-1",
        "tools": tools,
        "max_tokens": 4000,
        "timeout": READ,
    }
    for _ in range(2):
        thinking = {"type": "enabled", "budget_tokens": 1024}
        stream: Any = await litellm.acompletion(
            model=MODELS["messages"][0], messages=turns, stream=True, thinking=thinking, **options
        )
        chunks = [chunk async for chunk in stream]
        built: Any = litellm.stream_chunk_builder(chunks, messages=turns)
        message = built.choices[0].message
        calls = message.tool_calls or ()
        turns += [
            message.model_dump(),
            *({"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in calls),
        ]


PEERS = (
    Peer(
        "litellm",
        "litellm",
        {**dict.fromkeys(MODELS, ask), "responses": responses},
        ("litellm",),
        replay,
    ),
)
