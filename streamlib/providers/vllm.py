"""vLLM's server: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html.

Start it with `--enable-auto-tool-choice --tool-call-parser … --reasoning-parser …`. The switch for
thinking depends on the model's chat template; Kimi K2 was trained on call ids that count.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import (
    CONTINUE_FINAL,
    TEMPLATE_ENABLE_THINKING,
    TEMPLATE_THINKING,
    ChatShape,
)

SHAPE = ChatShape(
    reasoning_echo=("reasoning",),
    thinking=TEMPLATE_ENABLE_THINKING,
    top_k=True,
    custom_tools=False,
    prefill_body=CONTINUE_FINAL,
)

PROVIDER = Provider(
    name="vllm",
    wires=("chat", "responses", "messages"),
    base_url="http://localhost:8000/v1",
    key_env=("VLLM_API_KEY",),
    key_optional=True,
    headers={"anthropic-version": "2023-06-01"},  # Messages requires it, the other wires ignore it
    unsigned_thinking=True,
    chat=SHAPE,
    model_overrides={
        "deepseek": {"chat": replace(SHAPE, thinking=TEMPLATE_THINKING)},
        "kimi": {
            "chat": replace(SHAPE, thinking=TEMPLATE_THINKING, call_id="functions.{name}:{n}")
        },
    },
)
