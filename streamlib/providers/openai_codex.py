"""The Responses API behind ChatGPT plans.

The key is the plan's access token, `account` the ChatGPT account id. No other product's identity is
sent: ``originator``, `User-Agent` and instructions are the caller's own (`headers`,
`instructions`).
"""

from __future__ import annotations

from streamlib.providers import Provider
from streamlib.providers.websocket import WebSocketSettings

NOT_HERE = "the ChatGPT backend refuses it"

PROVIDER = Provider(
    name="openai-codex",
    parses_calls=True,
    aliases=("codex", "chatgpt"),
    wires=("responses",),
    base_url="https://chatgpt.com/backend-api/codex",
    key_env=("OPENAI_CODEX_ACCESS_TOKEN",),
    models_path="",  # its list depends on the version of another product
    account_header="ChatGPT-Account-ID",
    unsupported=dict.fromkeys(
        (
            "max_output_tokens",
            "temperature",
            "top_p",
            "top_logprobs",
            "metadata",
            "safety_identifier",
        ),
        NOT_HERE,
    ),
    roles={"system": "developer"},
    defaults={"instructions": "You are a helpful assistant."},
    overrides={"store": False, "stream": True},
    # Its own version of the protocol; lanes and steering are not known to work there.
    websocket=WebSocketSettings(headers={"openai-beta": "responses_websockets=2026-02-06"}),
)
