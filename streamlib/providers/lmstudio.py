"""LM Studio, on this machine: https://lmstudio.ai/docs/developer/openai-compat."""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import ChatShape

PROVIDER = Provider(
    name="lmstudio",
    aliases=("lm-studio",),
    wires=("chat", "responses"),
    base_url="http://localhost:1234/v1",
    key_env=("LM_STUDIO_API_KEY",),
    key_optional=True,
    chat=ChatShape(top_k=True, custom_tools=False),
)
