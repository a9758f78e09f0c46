"""Dialects through the client: by model unless named, disabled by `()`, and overridable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamlib import Client, FunctionCall, Message, Prompt, ToolSpec
from streamlib.recording import Replay, from_body

TEXT = 'So. <tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
CHUNK = {
    "id": "c",
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": TEXT}, "finish_reason": "stop"}],
}
BODY = b"data: %s\n\ndata: [DONE]\n\n" % json.dumps(CHUNK).encode()
PROMPT = Prompt(
    input="x",
    tools=[ToolSpec("f", schema={"type": "object", "properties": {"a": {"type": "integer"}}})],
)


async def kinds(
    model: str, client: dict[str, Any] | None = None, **options: Any
) -> tuple[list[type], str | None]:
    async with Client(
        http=Replay(from_body(BODY)),
        base_url="http://127.0.0.1:9/v1",
        wire_api="chat",
        **(client or {}),
    ) as made:
        response = await made.respond(PROMPT, model=model, **options)
    return [type(item) for item in response.items], response.stop_reason


async def test_dialects_of_a_known_model_are_used() -> None:
    assert await kinds("custom:qwen3-32b") == ([Message, FunctionCall], "tool_calls")


async def test_no_dialects_are_used_when_disabled() -> None:
    assert await kinds("custom:qwen3-32b", dialects=()) == ([Message], "stop")


async def test_caller_may_name_dialects() -> None:
    assert await kinds("custom:grok-9", dialects=("hermes",)) == (
        [Message, FunctionCall],
        "tool_calls",
    )


async def test_dialect_table_can_be_overridden_for_a_client() -> None:
    assert await kinds("custom:qwen3-32b", {"dialects": [("qwen3", ("xai",))]}) == (
        [Message],
        "stop",
    )


async def test_unknown_dialect_error_names_similar_ones() -> None:
    with pytest.raises(ValueError, match="hermes"):
        await kinds("custom:x", dialects=("hermez",))
