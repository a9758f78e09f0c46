"""Xiaomi's MiMo: https://platform.xiaomimimo.com.

A tool message is one text; its list of models answers 401 to every key.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import THINKING_TYPE, ChatShape

PROVIDER = Provider(
    name="xiaomi",
    parses_calls=True,
    aliases=("mimo", "xiaomi-mimo"),
    base_url="https://api.xiaomimimo.com/v1",
    key_env=("XIAOMI_API_KEY", "MIMO_API_KEY"),
    models_path="",
    chat=ChatShape(
        reasoning_echo=("reasoning_content",),
        thinking=replace(THINKING_TYPE, effort="", budget=""),
        output="json_object",
        custom_tools=False,
    ),
)
