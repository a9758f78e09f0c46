"""Cerebras: https://inference-docs.cerebras.ai/api-reference.

The requested output limit counts against the tokens per minute in advance.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import EFFORT, ChatShape, Thinking

SHAPE = ChatShape(
    max_tokens="max_completion_tokens",
    bare_messages=True,
    reasoning_echo=("think_tags",),
    custom_tools=False,
)
GPT_OSS = replace(EFFORT, off=None, words={"minimal": "low", "xhigh": "high", "max": "high"})
GLM = Thinking(
    on={"disable_reasoning": False, "clear_thinking": False}, off={"disable_reasoning": True}
)

PROVIDER = Provider(
    name="cerebras",
    parses_calls=True,
    base_url="https://api.cerebras.ai/v1",
    key_env=("CEREBRAS_API_KEY",),
    unsupported=dict.fromkeys(("presence_penalty", "frequency_penalty"), "it has none"),
    chat=SHAPE,
    model_overrides={
        "gpt-oss": {"chat": replace(SHAPE, thinking=GPT_OSS, reasoning_echo=("reasoning",))},
        "zai-glm": {"chat": replace(SHAPE, thinking=GLM)},
    },
)
