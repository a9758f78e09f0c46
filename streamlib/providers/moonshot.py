"""Moonshot, the makers of Kimi: https://platform.kimi.ai/docs/api/chat.

Kimi has one temperature and refuses every other. While it thinks, it requires its reasoning beside
calls in the history. `thinking` and `reasoning_effort` exclude each other: K3 has levels and always
thinks, earlier models have the switch. An assistant message that ends the request is
continued with `partial` (https://platform.kimi.ai/docs/api/partial).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import EFFORT, THINKING_TYPE, ChatShape

PLAIN = ChatShape(
    prefill="partial",
    max_tokens="max_completion_tokens",
    tool_choices={"required": ""},
    thinking=None,
    custom_tools=False,
)
KIMI = replace(
    PLAIN,
    reasoning_echo=("reasoning_content",),
    echo_filler="",
    thinking=replace(THINKING_TYPE, effort="", budget=""),
)
ONE_VALUE = dict.fromkeys(
    ("temperature", "top_p", "n", "presence_penalty", "frequency_penalty"),
    "Kimi has one value for it",
)

K2: dict[str, Any] = {"chat": KIMI, "unsupported": ONE_VALUE}
K3: dict[str, Any] = {
    "chat": replace(KIMI, thinking=replace(EFFORT, off=None)),
    "unsupported": ONE_VALUE,
}

PROVIDER = Provider(
    name="moonshot",
    parses_calls=True,
    aliases=("kimi", "moonshotai"),
    wires=("chat", "messages"),
    base_url="https://api.moonshot.ai/v1",
    wire_urls={"messages": "https://api.moonshot.ai/anthropic"},
    unsigned_thinking=True,
    key_env=("MOONSHOT_API_KEY", "KIMI_API_KEY"),
    headers={"anthropic-version": "2023-06-01"},  # Messages requires it, Chat ignores it
    prepare=("drop_strict", "type_schemas"),
    chat=PLAIN,
    model_overrides={"kimi-": K2, "kimi-k3": K3},
)
