"""Mistral: https://docs.mistral.ai/api.

It answers 422 to every unknown key, in messages too. Its own fields (``guardrails``,
``prompt_mode``, ``safe_prompt``, ``prediction``, ``min_tokens``) are for `Prompt.extra`. Fields:
mistralai 3.7.0, ``ChatCompletionStreamRequest``; Responses, ``/v1/responses``, in the same SDK.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.names import Charset
from streamlib.providers.shapes import EFFORT, ChatShape

UNKNOWN = "it refuses unknown fields"

PROVIDER = Provider(
    name="mistral",
    parses_calls=True,
    aliases=("mistralai",),
    wires=("chat", "responses"),
    base_url="https://api.mistral.ai/v1",
    key_env=("MISTRAL_API_KEY",),
    unsupported={"verbosity": UNKNOWN},
    rename={"seed": "random_seed"},
    call_ids=Charset("a-zA-Z0-9", longest=9, shortest=9),  # exactly nine characters
    chat=ChatShape(
        tool_then_user=False,
        prefill="prefix",
        bare_messages=True,
        reasoning_echo=("thinking_parts",),
        # It has the levels `high` and `none` only.
        thinking=replace(
            EFFORT, words=dict.fromkeys(("minimal", "low", "medium", "xhigh", "max"), "high")
        ),
        tool_choices={"required": "any"},
        stream_usage=False,
        custom_tools=False,
        user="",
        document_urls=True,
        top_k=True,
        conversation="prompt_cache_key",
    ),
)
