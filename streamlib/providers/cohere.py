"""Cohere: https://docs.cohere.com/reference/chat.

Documents, citation modes and safety modes are fields of its own wire, for `Prompt.extra`. Its
compatibility API (https://docs.cohere.com/docs/compatibility-api) has neither these nor citations.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import EFFORT, ChatShape

NOT_COMPATIBLE = "Cohere's compatibility API has no such field"

PROVIDER = Provider(
    name="cohere",
    parses_calls=True,
    wires=("cohere", "chat"),
    base_url="https://api.cohere.com",
    wire_urls={"chat": "https://api.cohere.ai/compatibility/v1"},
    key_env=("CO_API_KEY", "COHERE_API_KEY"),
    unsupported=dict.fromkeys(
        ("n", "top_logprobs", "metadata", "service_tier", "parallel_tool_calls", "verbosity"),
        NOT_COMPATIBLE,
    ),
    chat=ChatShape(
        thinking=EFFORT,
        custom_tools=False,
        # It answers 400 to `stream_options`.
        stream_usage=False,
        user="",
    ),
)
