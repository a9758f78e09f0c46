"""The Qwen portal, behind Qwen's own plans.

The key is the plan's access token (`api_key=` accepts a function that fetches it). Content is
always a list here, the system message carries a cache marker, and images are read in full
resolution.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.qwen import QWEN

PROVIDER = Provider(
    name="qwen-portal",
    parses_calls=True,
    aliases=("qwen-oauth",),
    base_url="https://portal.qwen.ai/v1",
    key_env=("QWEN_API_KEY",),
    prepare=("mark_system",),
    chat=replace(
        QWEN,
        content="parts",
        defaults={"max_tokens": 65_536, "vl_high_resolution_images": True},
        conversation="metadata.sessionId",
    ),
)
