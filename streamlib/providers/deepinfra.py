"""DeepInfra: https://docs.deepinfra.com."""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import ChatShape

PROVIDER = Provider(
    name="deepinfra",
    base_url="https://api.deepinfra.com/v1/openai",
    key_env=("DEEPINFRA_API_KEY",),
    chat=ChatShape(top_k=True, custom_tools=False),
)
