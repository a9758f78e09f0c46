"""SambaNova: https://docs.sambanova.ai/docs/en/api-reference.

It refuses unknown keys, in messages too.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import TEMPLATE_ENABLE_THINKING, ChatShape

PROVIDER = Provider(
    name="sambanova",
    base_url="https://api.sambanova.ai/v1",
    key_env=("SAMBANOVA_API_KEY",),
    chat=ChatShape(bare_messages=True, thinking=TEMPLATE_ENABLE_THINKING, custom_tools=False),
)
