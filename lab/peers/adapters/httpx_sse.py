"""httpx-sse reads events and no more; its user adds up the JSON of each. Asked for cases of framing
alone."""

from __future__ import annotations

import json

import httpx
from httpx_sse import aconnect_sse

from lab.peers.adapters.chunks import Chunks
from lab.peers.peer import READ, Ask, Peer
from lab.peers.told import Told


async def ask(asked: Ask, told: Told) -> None:
    """As its README reads a stream."""
    chunks = Chunks(told)
    async with (
        httpx.AsyncClient(timeout=READ) as client,
        aconnect_sse(client, "POST", f"{asked.url}/v1/chat/completions", json={}) as source,
    ):
        try:
            async for event in source.aiter_sse():
                if event.data == "[DONE]":
                    break
                chunks.feed(json.loads(event.data))
        finally:
            chunks.close()


PEERS = (Peer("httpx-sse", "httpx-sse", {"chat": ask}, ("httpx_sse", "httpx"), framing=True),)
