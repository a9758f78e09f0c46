"""Azure OpenAI, its v1 API.

https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle

`base_url` is `https://RESOURCE.openai.azure.com/openai/v1` (or
`…services.ai.azure.com/openai/v1`). A model is the name of a deployment, so nothing is known of
what it accepts.
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.openai import OPENAI
from streamlib.providers.websocket import WebSocketSettings

PROVIDER = Provider(
    name="azure",
    parses_calls=True,
    aliases=("azure-openai",),
    wires=("responses", "chat"),
    key_env=("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
    auth="api-key",
    # Unlike OpenAI it requires the ids of encrypted reasoning, and knows only those of stored
    # responses. `extra={"store": False}` overrides it.
    defaults={"store": True},
    chat=OPENAI,
    # https://learn.microsoft.com/azure/foundry/openai/how-to/websockets: one turn at a time.
    websocket=WebSocketSettings(),
)
