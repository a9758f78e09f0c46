"""DeepSeek: https://api-docs.deepseek.com.

Its models think unless switched off, and then require all reasoning in the history once tools were
called: 400 without `reasoning_content`. An empty one is refused, a space is not. An assistant
message that ends the request is continued with `prefix` (its guide "Chat Prefix Completion", which
asks for `base_url="https://api.deepseek.com/beta"`).
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import THINKING_TYPE, ChatShape

SHAPE = ChatShape(
    reasoning_echo=("reasoning_content",),
    echo_filler=" ",
    prefill="prefix",
    thinking=replace(THINKING_TYPE, budget=""),
    output="json_object",
    custom_tools=False,
)
WITHOUT_EFFECT = "without effect while it thinks"

PROVIDER = Provider(
    name="deepseek",
    parses_calls=True,
    wires=("chat", "responses", "messages"),
    base_url="https://api.deepseek.com",
    wire_urls={"messages": "https://api.deepseek.com/anthropic"},
    unsigned_thinking=True,
    key_env=("DEEPSEEK_API_KEY",),
    headers={"anthropic-version": "2023-06-01"},  # Messages requires it, the other wires ignore it
    unsupported_when_thinking=dict.fromkeys(
        ("temperature", "presence_penalty", "frequency_penalty"), WITHOUT_EFFECT
    ),
    chat=SHAPE,
    model_overrides={"deepseek-chat": {"chat": replace(SHAPE, echo_filler=None)}},
)
