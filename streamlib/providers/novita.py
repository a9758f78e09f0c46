"""Novita: https://novita.ai/docs/api-reference/model-apis-llm-create-chat-completion."""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import ENABLE_THINKING, ChatShape

PROVIDER = Provider(
    name="novita",
    base_url="https://api.novita.ai/openai/v1",
    key_env=("NOVITA_API_KEY",),
    defaults={"separate_reasoning": True},  # reasoning apart from the text
    chat=ChatShape(thinking=replace(ENABLE_THINKING, budget=""), top_k=True, custom_tools=False),
)
