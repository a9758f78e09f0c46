"""MiniMax: https://platform.minimax.io/docs/api-reference.

Reasoning is sent apart from the text (`reasoning_split`) and should be sent back complete:
responses get worse without it. M2 cannot stop thinking; M3 can, and M3.1 has levels.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import EFFORT, ChatShape, Thinking

PLAIN = ChatShape(
    max_tokens="max_completion_tokens",
    reasoning_echo=("reasoning_details", "think_tags"),
    thinking=None,
    tool_choices=dict.fromkeys(("auto", "required", "none", "tool"), ""),
    custom_tools=False,
)
M2 = replace(PLAIN, defaults={"reasoning_split": True})
M3 = replace(
    M2,
    thinking=Thinking(
        on={"thinking": {"type": "adaptive"}}, off={"thinking": {"type": "disabled"}}
    ),
)

PROVIDER = Provider(
    name="minimax",
    parses_calls=True,
    wires=("chat", "messages"),
    base_url="https://api.minimax.io/v1",
    wire_urls={"messages": "https://api.minimax.io/anthropic"},
    unsigned_thinking=True,
    key_env=("MINIMAX_API_KEY",),
    headers={"anthropic-version": "2023-06-01"},  # Messages requires it, Chat ignores it
    prepare=("drop_strict",),
    chat=PLAIN,
    model_overrides={
        "minimax-m2": {"chat": M2},
        "minimax-m3": {"chat": M3},
        "minimax-m3.1": {"chat": replace(PLAIN, thinking=replace(EFFORT, off=None))},
    },
)
