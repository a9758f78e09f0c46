"""The official SDK for Gemini."""

from __future__ import annotations

import base64
from typing import Any

from google import genai
from google.genai import types

from lab.peers.peer import READ, Ask, Peer, attr, keep
from lab.peers.told import Told


async def ask(asked: Ask, told: Told) -> None:
    """The asynchronous stream, its parts one by one."""
    options = types.HttpOptions(base_url=asked.url, timeout=int(READ * 1000))
    client = genai.Client(api_key="k-1", http_options=options)
    try:
        async for chunk in await client.aio.models.generate_content_stream(
            model="m-1", contents="x"
        ):
            read(chunk, told)
    finally:
        await client.aio.aclose()


def read(chunk: Any, told: Told) -> None:
    """One chunk. A prompt that was blocked is told in its feedback."""
    told.stop = word(attr(chunk, "prompt_feedback", "block_reason")) or told.stop
    for candidate in attr(chunk, "candidates", default=()):
        told.stop = word(attr(candidate, "finish_reason")) or told.stop
        for part in attr(candidate, "content", "parts", default=()):
            signature = attr(part, "thought_signature")
            told.signatures += [base64.b64encode(signature).decode()] if signature else []
            if attr(part, "function_call"):
                told.calls.append((part.function_call.name, part.function_call.args))
                keep(told, "call")
            elif attr(part, "thought"):
                told.reasoning += part.text or ""
                keep(told, "reasoning")
            else:
                told.text += part.text or ""


def word(value: Any) -> str | None:
    """An enum's name."""
    return None if value is None else str(getattr(value, "name", value)).lower()


PEERS = (Peer("google-genai", "google-genai", {"gemini": ask}, ("google.genai",)),)
