"""Together: https://docs.together.ai/reference."""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import REASONING_ENABLED, ChatShape

PROVIDER = Provider(
    name="together",
    aliases=("together-ai", "togetherai"),
    base_url="https://api.together.xyz/v1",
    other_urls=("https://api.together.ai",),
    key_env=("TOGETHER_API_KEY",),
    chat=ChatShape(
        reasoning_echo=("reasoning",), thinking=REASONING_ENABLED, top_k=True, custom_tools=False
    ),
)
