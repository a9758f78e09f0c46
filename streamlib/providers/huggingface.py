"""Hugging Face's router: https://huggingface.co/docs/inference-providers.

A model is `huggingface:org/name`, or `huggingface:org/name:provider`.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import ChatShape

PROVIDER = Provider(
    name="huggingface",
    aliases=("hf",),
    base_url="https://router.huggingface.co/v1",
    key_env=("HF_TOKEN",),
    chat=ChatShape(custom_tools=False),
)
