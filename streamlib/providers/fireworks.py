"""Fireworks: https://docs.fireworks.ai/api-reference.

A model is `fireworks:accounts/fireworks/models/…`. How long reasoning is retained is set with
`extra={"reasoning_history": "preserved"}`.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import ChatShape

PROVIDER = Provider(
    name="fireworks",
    aliases=("fireworks-ai",),
    base_url="https://api.fireworks.ai/inference/v1",
    key_env=("FIREWORKS_API_KEY",),
    chat=ChatShape(
        reasoning_echo=("reasoning_content",), bare_messages=True, top_k=True, custom_tools=False
    ),
)
