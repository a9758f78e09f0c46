"""OpenAI: https://developers.openai.com/api/reference."""

from __future__ import annotations

from streamlib.providers import Provider

PROVIDER = Provider(
    name="openai",
    wires=("responses", "chat"),
    base_url="https://api.openai.com/v1",
    key_env=("OPENAI_API_KEY",),
)
