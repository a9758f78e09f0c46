"""What certain SDKs, recognized by their `user-agent`, need in a stream beyond their wire."""

from __future__ import annotations

from typing import Any, Final

from streamlib_parsers.items import WireApi

MISTRAL_AGENT: Final = "mistral-client-"
"""Beginning of ``mistral-client-python/3.7.0``."""


def encoder_options(wire_api: WireApi, user_agent: str) -> dict[str, Any]:
    """The options of `encoder` for a client.

    Mistral sends a call in one delta, so its SDK refuses a delta of a call without a name.
    """
    if wire_api == "chat" and user_agent.startswith(MISTRAL_AGENT):
        return {"names_in_deltas": True}
    return {}
