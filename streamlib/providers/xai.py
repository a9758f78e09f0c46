"""xAI: https://docs.x.ai/docs/api-reference.

The header keeps a conversation at the server that has its cache. Reasoning is hidden in Chat; in
Responses it is encrypted and sent back. Grok 4 thinks or not by its name; grok-3-mini and models
from 4.3 on have levels.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import ChatShape
from streamlib.providers.websocket import WebSocketSettings

SHAPE = ChatShape(custom_tools=False)
NO_LEVEL = {"chat": replace(SHAPE, thinking=None)}
NOT_THINKING = "its thinking models refuse it"

PROVIDER = Provider(
    name="xai",
    aliases=("grok", "x-ai"),
    wires=("chat", "responses"),
    base_url="https://api.x.ai/v1",
    key_env=("XAI_API_KEY",),
    conversation_header="x-grok-conv-id",
    unsupported={"service_tier": "it refuses it"},
    unsupported_when_thinking=dict.fromkeys(
        ("stop", "presence_penalty", "frequency_penalty"), NOT_THINKING
    ),
    chat=SHAPE,
    # https://docs.x.ai/developers/advanced-api-usage/websocket-mode: no lanes, no steering.
    websocket=WebSocketSettings(),
    model_overrides={
        "grok-3-mini": {},
        "grok-4": NO_LEVEL,
        "grok-4.": {},
        "grok-4.20-": NO_LEVEL,
        "grok-code": NO_LEVEL,
    },
)
