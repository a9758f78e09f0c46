"""Perplexity: https://docs.perplexity.ai/api-reference.

It searches by itself, has no tools, and requires user and assistant to alternate and the user to
be last ("Last message must have role `user`").
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import EFFORT, ChatShape

PROVIDER = Provider(
    name="perplexity",
    parses_calls=True,
    aliases=("pplx",),
    base_url="https://api.perplexity.ai",
    key_env=("PERPLEXITY_API_KEY",),
    models_path="",
    unsupported=dict.fromkeys(("tools", "tool_choice", "parallel_tool_calls"), "it takes no tools"),
    chat=ChatShape(
        alternate=True,
        prefill=None,
        inner_system=False,
        thinking=replace(EFFORT, off=None, words={"xhigh": "high", "max": "high"}),
    ),
)
