"""GitHub Models: https://docs.github.com/en/rest/models/inference.

A model is `github:openai/gpt-4.1`.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import ChatShape

PROVIDER = Provider(
    name="github",
    parses_calls=True,
    aliases=("github-models",),
    base_url="https://models.github.ai/inference",
    key_env=("GITHUB_TOKEN",),
    models_path="https://models.github.ai/catalog/models",
    chat=ChatShape(custom_tools=False),
)
