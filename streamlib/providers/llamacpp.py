"""llama.cpp's server.

https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md

Start it with `--jinja` for tools.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import CONTINUE_FINAL, TEMPLATE_ENABLE_THINKING, ChatShape

PROVIDER = Provider(
    name="llamacpp",
    aliases=("llama.cpp", "llama-cpp", "llama-server"),
    wires=("chat", "messages", "responses"),
    base_url="http://127.0.0.1:8080/v1",
    key_optional=True,
    headers={"anthropic-version": "2023-06-01"},  # Messages requires it, the other wires ignore it
    unsigned_thinking=True,
    chat=ChatShape(
        reasoning_echo=("reasoning_content",),
        thinking=TEMPLATE_ENABLE_THINKING,
        top_k=True,
        custom_tools=False,
        prefill_body=CONTINUE_FINAL,
    ),
)
