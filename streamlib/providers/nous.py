"""Nous Portal: https://portal.nousresearch.com.

Requests carry tags that name the product that sends them; `extra={"tags": ["product=yours"]}` names
yours. Routing is the portal's own: it refuses OpenRouter's `provider`. Where thinking cannot be
switched off, the lowest level is requested.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import REASONING_OBJECT, ChatShape

PROVIDER = Provider(
    name="nous",
    aliases=("nous-portal",),
    base_url="https://inference-api.nousresearch.com/v1",
    key_env=("NOUS_API_KEY",),
    defaults={"tags": ["product=streamlib"]},
    chat=ChatShape(
        reasoning_echo=("reasoning_details", "reasoning"),
        thinking=replace(REASONING_OBJECT, off=None, words={}),
        conversation="session_id",
        custom_tools=False,
    ),
)
