"""OpenRouter: https://openrouter.ai/docs/api-reference/overview.

Upstream providers are chosen with `extra={"provider": {"order": […], "allow_fallbacks": False}}`,
further models with `models`, plugins with ``plugins``. Reasoning of every upstream is sent back
unmodified, with its signatures, as `reasoning_details`.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import REASONING_OBJECT, ChatShape

PROVIDER = Provider(
    name="openrouter",
    wires=("chat", "responses", "messages"),
    base_url="https://openrouter.ai/api/v1",
    key_env=("OPENROUTER_API_KEY",),
    headers={"anthropic-version": "2023-06-01"},  # Messages requires it, the other wires ignore it
    chat=ChatShape(
        reasoning_echo=("reasoning_details", "reasoning"),
        thinking=REASONING_OBJECT,
        cache_control=True,
        conversation="session_id",
        top_k=True,
        custom_tools=False,
    ),
    model_overrides={"x-ai/grok": {"conversation_header": "x-grok-conv-id"}},
)
