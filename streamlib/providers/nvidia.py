"""NVIDIA's hosted NIM: https://docs.api.nvidia.com/nim/reference.

Its default limit of output is small, so 16,384 tokens are requested. The switch for thinking
depends on the model's chat template.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import (
    EFFORT,
    TEMPLATE_ENABLE_THINKING,
    TEMPLATE_THINKING,
    ChatShape,
)

LEVELS = {"minimal": "low", "xhigh": "high", "max": "high"}
LEVEL = "chat_template_kwargs.reasoning_effort"
SHAPE = ChatShape(
    thinking=replace(TEMPLATE_ENABLE_THINKING, effort=LEVEL, words=LEVELS),
    bare_messages=True,
    custom_tools=False,
)
# Templates of DeepSeek and Kimi name the switch `thinking`.
BY_THINKING = {
    "chat": replace(SHAPE, thinking=replace(TEMPLATE_THINKING, effort=LEVEL, words=LEVELS))
}

PROVIDER = Provider(
    name="nvidia",
    aliases=("nim", "nvidia-nim"),
    base_url="https://integrate.api.nvidia.com/v1",
    key_env=("NVIDIA_API_KEY",),
    defaults={"max_tokens": 16_384},
    chat=SHAPE,
    model_overrides={
        "deepseek-": BY_THINKING,
        "kimi-": BY_THINKING,
        "gpt-oss": {"chat": replace(SHAPE, thinking=replace(EFFORT, off=None, words=LEVELS))},
    },
)
