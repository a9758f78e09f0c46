"""Qwen on Alibaba Cloud (DashScope, Model Studio).

https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope

Further switches, such as ``preserve_thinking``, are set with `extra`.
"""

from __future__ import annotations

from typing import Final

from streamlib.providers import Provider
from streamlib.providers.shapes import ENABLE_THINKING, ChatShape

QWEN: Final = ChatShape(
    reasoning_echo=("reasoning_content",),
    thinking=ENABLE_THINKING,
    assistant_content="omit",  # it refuses an empty text beside calls
    cache_control=True,
    top_k=True,
    custom_tools=False,
    prefill="partial",
)

PROVIDER = Provider(
    name="qwen",
    parses_calls=True,
    aliases=("dashscope", "alibaba"),
    base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    other_urls=(
        "https://dashscope.aliyuncs.com",
        "https://dashscope-us.aliyuncs.com",
        "https://coding-intl.dashscope.aliyuncs.com",
    ),
    key_env=("DASHSCOPE_API_KEY", "ALIBABA_CODING_PLAN_API_KEY"),
    chat=QWEN,
)
