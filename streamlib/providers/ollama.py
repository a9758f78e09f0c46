"""Ollama: https://docs.ollama.com/api.

The native /api/chat is the default: the compatible endpoints cannot set `num_ctx`. A hosted Ollama
is `base_url="https://ollama.com"` with `OLLAMA_API_KEY`. The context window is small unless the
model's file or `extra={"options": {"num_ctx": 32768}}` sets another.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import EFFORT, ChatShape

PROVIDER = Provider(
    name="ollama",
    wires=("ollama", "chat", "responses", "messages"),
    base_url="http://localhost:11434",
    wire_urls={"chat": "http://localhost:11434/v1", "responses": "http://localhost:11434/v1"},
    key_env=("OLLAMA_API_KEY",),
    key_optional=True,
    unsigned_thinking=True,
    chat=ChatShape(
        reasoning_echo=("reasoning",),
        thinking=replace(EFFORT, words={"minimal": "low", "xhigh": "high"}),
        tool_choices={"required": "", "none": "", "tool": ""},
        custom_tools=False,
    ),
)
