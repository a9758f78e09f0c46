"""OpenAI: https://developers.openai.com/api/reference."""

from __future__ import annotations

from typing import Final

from streamlib.providers import Provider
from streamlib.providers.shapes import ChatShape
from streamlib.providers.websocket import WebSocketSettings

OPENAI: Final = ChatShape(
    developer_role=True,
    # "string too long. Expected a string with maximum length 40" (camel-ai/camel#2215).
    longest_call_id=40,
    max_tokens="max_completion_tokens",  # its thinking models refuse `max_tokens`
    stop_limit=4,  # API reference, `stop`
    strict_schemas=True,
    user="safety_identifier",
    conversation="prompt_cache_key",
)
"""OpenAI's own Chat Completions. It hides reasoning, so none is sent back."""

PROVIDER = Provider(
    name="openai",
    parses_calls=True,
    wires=("responses", "chat"),
    base_url="https://api.openai.com/v1",
    key_env=("OPENAI_API_KEY",),
    unsupported_when_thinking={"stop": "its thinking models refuse it"},
    chat=OPENAI,
    # Guide "WebSocket mode": limits, lanes (`stream_id`), steering.
    websocket=WebSocketSettings(lanes=32, in_flight=16, steers=True),
)
