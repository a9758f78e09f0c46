"""Dialects through the client: chosen by the model where nobody names one, off where the caller says so, and yours to override."""

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


async def test_a_model_known_to_write_calls_as_text_gives_calls() -> None:
    assert await kinds("custom:qwen3-32b") == ([Message, FunctionCall], "tool_calls")


async def test_none_are_used_where_the_caller_says_so() -> None:
    assert await kinds("custom:qwen3-32b", dialects=()) == ([Message], "stop")


async def test_a_caller_names_them() -> None:
    assert await kinds("custom:grok-9", dialects=("hermes",)) == (
        [Message, FunctionCall],
        "tool_calls",
    )


async def test_the_table_can_be_overridden_for_a_client() -> None:
    assert await kinds("custom:qwen3-32b", {"dialects": [("qwen3", ("xai",))]}) == (
        [Message],
        "stop",
    )


async def test_an_unknown_name_is_an_error_with_near_ones() -> None:
    with pytest.raises(ValueError, match="hermes"):
        await kinds("custom:x", dialects=("hermez",))
