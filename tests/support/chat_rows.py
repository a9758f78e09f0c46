"""Rows of the tables of deviations: a stream, and the values expected of its response."""

from __future__ import annotations

from typing import Any

import pytest

from streamlib_parsers import CustomToolCall, FunctionCall, ResponseEvent, accumulate
from tests.support.chat_streams import (
    Json,
    notice_codes,
    sse,
)

GENERATED_ID = "call_0"
"""The first id that the parser generates."""


def _arguments_of(item: FunctionCall | CustomToolCall) -> str:
    if isinstance(item, FunctionCall):
        return item.arguments
    return item.input


def summary(events: list[ResponseEvent]) -> Json:
    """The values that a row may expect."""
    response = accumulate(events)
    every_call = [
        item for item in response.items if isinstance(item, (FunctionCall, CustomToolCall))
    ]
    usage = None
    if response.usage is not None:
        usage = (response.usage.input_tokens, response.usage.output_tokens)
    return {
        "text": response.text,
        "reasoning": response.reasoning,
        "refusal": response.refusal,
        "calls": [(item.call_id, item.name, _arguments_of(item)) for item in every_call],
        "callable_ids": [call.call_id for call in response.calls],
        "stop": response.stop_reason,
        "native": response.native_stop_reason,
        "usage": usage,
        "error": response.error.kind if response.error else None,
        "notices": notice_codes(events),
        "metadata": response.metadata,
        "id": response.response_id,
        "model": response.model,
    }


NOTHING = {
    "text": "",
    "reasoning": "",
    "refusal": "",
    "calls": [],
    "error": None,
    "notices": [],
    "metadata": {},
    "id": "c1",
    "model": "m",
}
"""The values that a row expects unless it sets another."""


def row(name: str, *chunks: Any, done: str | None = "[DONE]", **expected: Any) -> Any:
    return pytest.param(sse(*chunks, done=done), expected, id=name)
