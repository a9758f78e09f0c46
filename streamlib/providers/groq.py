"""Groq: https://console.groq.com/docs/api-reference."""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import EFFORT, ChatShape, Thinking

SHAPE = ChatShape(
    max_tokens="max_completion_tokens", thinking=None, bare_messages=True, custom_tools=False
)
GPT_OSS = replace(EFFORT, off=None, words={"minimal": "low", "xhigh": "high", "max": "high"})
QWEN = Thinking(
    on={"reasoning_effort": "default", "reasoning_format": "parsed"},
    off={"reasoning_effort": "none"},
)

PROVIDER = Provider(
    name="groq",
    parses_calls=True,
    base_url="https://api.groq.com/openai/v1",
    key_env=("GROQ_API_KEY",),
    unsupported={
        "n": "it gives one choice",
        **dict.fromkeys(("logprobs", "top_logprobs", "logit_bias"), "it has none"),
    },
    chat=SHAPE,
    model_overrides={
        "gpt-oss": {"chat": replace(SHAPE, thinking=GPT_OSS, reasoning_echo=("reasoning",))},
        "qwen": {"chat": replace(SHAPE, thinking=QWEN)},
    },
)
