"""Anthropic: https://platform.claude.com/docs/en/api/messages."""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import THINKING_TYPE, ChatShape

PROVIDER = Provider(
    name="anthropic",
    parses_calls=True,
    aliases=("claude",),
    wires=("messages", "chat"),
    base_url="https://api.anthropic.com",
    wire_urls={"chat": "https://api.anthropic.com/v1"},
    key_env=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    auth="x-api-key",
    # The permissive version; 2026-10-21 refuses sampling parameters. `register` a provider with
    # other `headers` to use it.
    headers={"anthropic-version": "2023-06-01"},
    # The OpenAI-compatible endpoint is meant for trials: reasoning loses its signature there, so
    # none is sent back.
    chat=ChatShape(thinking=replace(THINKING_TYPE, effort=""), custom_tools=False),
)
