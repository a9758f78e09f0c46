"""SGLang's server: https://docs.sglang.io.

The key of its reasoning differs from vLLM's; chat templates and Kimi's ids are the same.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import TEMPLATE_ENABLE_THINKING, TEMPLATE_THINKING, ChatShape

SHAPE = ChatShape(
    reasoning_echo=("reasoning_content",),
    thinking=TEMPLATE_ENABLE_THINKING,
    top_k=True,
    custom_tools=False,
    # without it the last message is ended and another one begun
    prefill_body={"continue_final_message": True},
)

PROVIDER = Provider(
    name="sglang",
    wires=("chat", "responses"),
    base_url="http://localhost:30000/v1",
    key_optional=True,
    unsigned_thinking=True,
    chat=SHAPE,
    model_overrides={
        "deepseek": {"chat": replace(SHAPE, thinking=TEMPLATE_THINKING)},
        "kimi": {
            "chat": replace(SHAPE, thinking=TEMPLATE_THINKING, call_id="functions.{name}:{n}")
        },
    },
)
