"""Gemini's Developer API (AI Studio): https://ai.google.dev/api.

Its Chat Completions are on the same host.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.shapes import GOOGLE, ChatShape

VERTEX_ONLY = "only Vertex AI accepts it"

ONLY_INTERACTIONS = {"wires": ("interactions",)}

PROVIDER = Provider(
    name="google",
    parses_calls=True,
    aliases=("gemini",),
    wires=("gemini", "interactions", "chat"),
    # v1 does not know the model names that end with `-latest`.
    base_url="https://generativelanguage.googleapis.com/v1beta",
    wire_urls={"chat": "https://generativelanguage.googleapis.com/v1beta/openai"},
    key_env=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    auth="x-goog-api-key",
    unsupported=dict.fromkeys(("labels", "displayName", "modelArmorConfig"), VERTEX_ONLY),
    chat=ChatShape(thinking=GOOGLE, custom_tools=False),
    # Agents, and models beyond the main line (ai.google.dev, "Migrating to the Interactions API").
    model_overrides={
        "antigravity-": ONLY_INTERACTIONS,
        "code-mender": ONLY_INTERACTIONS,
        "deep-research-": ONLY_INTERACTIONS,
        "gemini-omni-": ONLY_INTERACTIONS,
    },
)
