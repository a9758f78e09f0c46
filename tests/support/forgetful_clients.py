"""Clients that drop state which only the model can read, and responses with such state."""

from __future__ import annotations

from typing import Final

import msgspec

from streamlib import OutputItemDone, Prompt, Reasoning, ResponseItem, encoder
from streamlib_parsers.items import WireApi
from tests.support.gateways import SIGNED, ProviderResponse, stream_response, weather_events

KEY: Final = {"authorization": "Bearer ada"}
"""Headers of a client."""


def forgetful(prompt: Prompt) -> Prompt:
    """The request of a client that keeps only texts, calls and their outputs."""
    items: list[ResponseItem] = []
    for item in prompt.items:
        if isinstance(item, Reasoning):
            continue
        items.append(msgspec.structs.replace(item, signature=None, native=None, origin=None))
    return msgspec.structs.replace(prompt, input=tuple(items))


def reasoning_as_text(prompt: Prompt) -> Prompt:
    """The request of a client that also keeps the text of reasoning, but none of its state."""
    items: list[ResponseItem] = []
    for item in prompt.items:
        text = msgspec.structs.replace(item, signature=None, native=None, origin=None)
        if isinstance(text, Reasoning):
            text = msgspec.structs.replace(text, encrypted_content=None)
        items.append(text)
    return msgspec.structs.replace(prompt, input=tuple(items))


def signed_response(wire: WireApi, signature: str = SIGNED) -> ProviderResponse:
    """The usual response, whose reasoning has this signature."""
    encode = encoder(wire, model="model-1")
    chunks: list[bytes] = []
    field = "signature"
    if wire == "responses":
        field = "encrypted_content"
    state: dict[str, str | None] = {"signature": None, field: signature}
    for event in weather_events(wire):
        signed = event
        if isinstance(event, OutputItemDone) and isinstance(event.item, Reasoning):
            item = msgspec.structs.replace(event.item, **state)
            signed = msgspec.structs.replace(event, item=item)
        chunks.append(encode.feed(signed))
    return stream_response(wire, *filter(None, [*chunks, encode.close()]))
