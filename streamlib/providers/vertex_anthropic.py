"""Claude on Vertex AI: Messages, with the model in the URL.

https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai

A provider of its own, because a provider's values are valid for all its wires. Project, location
and token are those of `vertex`.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.vertex import TOKENS, URL_REPLACEMENTS, URL_VARIABLES

PROVIDER = Provider(
    name="vertex-anthropic",
    parses_calls=True,
    aliases=("vertex-claude",),
    wires=("messages",),
    base_url="https://aiplatform.googleapis.com",
    wire_urls={
        "messages": (
            "https://{location}-aiplatform.googleapis.com/v1"
            "/projects/{project}/locations/{location}/publishers/anthropic/models"
        )
    },
    key_env=TOKENS,
    url_variables=URL_VARIABLES,
    url_replacements=URL_REPLACEMENTS,
    models_path="",
    paths={"messages": "/{model}:streamRawPredict"},
    fields_in_url=("model",),
    overrides={"anthropic_version": "vertex-2023-10-16"},
)
