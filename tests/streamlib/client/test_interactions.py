"""Stored interactions: fetched, cancelled and deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import Client, StreamError
from streamlib.client.interactions import cancel_interaction, delete_interaction, get_interaction
from tests.support.clients import KEY, MemoryTransport

BASE = "https://generativelanguage.googleapis.com/v1beta/interactions"


def responding(value: Any, status: int = 200) -> MemoryTransport:
    headers = {"content-type": "application/json"}
    return MemoryTransport([json.dumps(value).encode()], status=status, headers=headers)


def sent(memory: MemoryTransport) -> tuple[str, str, str]:
    method, url, headers, _, _ = memory.sent[0]
    return method, url, headers["x-goog-api-key"]


async def test_running_interaction_is_fetched_by_its_id() -> None:
    memory = responding({"id": "v1/a", "status": "in_progress"})
    async with Client(http=memory, api_key=KEY) as client:
        response = await get_interaction(client, "v1/a")
    assert sent(memory) == ("GET", f"{BASE}/v1%2Fa", KEY)
    assert response.error is not None
    assert (response.error.kind, response.error.detail) == (
        "truncated",
        {"status": "in_progress"},
    )


async def test_cancelled_interaction_is_reported() -> None:
    memory = responding({"id": "v1", "status": "cancelled", "steps": []})
    async with Client(http=memory, api_key=KEY) as client:
        response = await cancel_interaction(client, "v1")
    assert sent(memory) == ("POST", f"{BASE}/v1/cancel", KEY)
    assert response.error is not None
    assert response.error.kind == "cancelled"


async def test_deleted_interaction_is_gone() -> None:
    memory = responding({})
    async with Client(http=memory, api_key=KEY) as client:
        await delete_interaction(client, "v1")
    assert sent(memory) == ("DELETE", f"{BASE}/v1", KEY)


async def test_interaction_without_an_id_is_refused() -> None:
    """With `store: false` an interaction has none."""
    memory = responding({})
    async with Client(http=memory, api_key=KEY) as client:
        with pytest.raises(StreamError, match="has no id"):
            await get_interaction(client, "")
    assert memory.sent == []


async def test_refusal_of_the_server_is_raised() -> None:
    memory = responding({"error": {"code": "not_found", "message": "no"}}, 404)
    async with Client(http=memory, api_key=KEY) as client:
        with pytest.raises(StreamError) as caught:
            await delete_interaction(client, "v1")
    assert caught.value.info.kind == "not_found"
