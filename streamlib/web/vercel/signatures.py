"""SignedPart state of providers in the metadata that the AI SDK keeps with parts of a message.

``useChat`` has it if the page's server is the AI SDK's own; this library leaves it on the server.

Wire source: ``providerMetadata`` of the npm packages ``@ai-sdk/anthropic``, ``@ai-sdk/openai``,
``@ai-sdk/google`` and ``@ai-sdk/amazon-bedrock``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from streamlib.request.origins import name_of
from streamlib_parsers.items import JsonObject, Origin, Reasoning, ResponseItem

ORIGINS: Final[dict[str, Origin]] = {
    "anthropic": Origin("messages", "anthropic"),
    "bedrock": Origin("converse", "bedrock"),
    "google": Origin("gemini", "google"),
    "vertex": Origin("gemini", "vertex"),
    "google-gla": Origin("gemini", "google"),
    "google-vertex": Origin("gemini", "vertex"),
    "openai": Origin("responses", "openai"),
    "azure": Origin("responses", "azure"),
}
"""Origins by the SDK's names of providers."""

PYDANTIC_AI: Final = "pydantic_ai"
"""The name under which pydantic-ai keeps the state of any provider in UI messages."""

SIGNATURES: Final = ("signature", "thoughtSignature")


class SignedPart(NamedTuple):
    """A signature, and where it was made."""

    signature: str | None = None
    origin: Origin | None = None


def signed_state(metadata: JsonObject | None) -> SignedPart:
    """The signature in the metadata of a text or a call, if there is one."""
    for origin, values in _of_providers(metadata):
        for key in SIGNATURES:
            value = values.get(key)
            if isinstance(value, str) and value:
                return SignedPart(value, origin)
    return SignedPart()


def signed_reasoning(text: str, metadata: JsonObject | None) -> Reasoning | None:
    """Reasoning with the state that its provider wants back; None if there is none.

    An item of OpenAI's without state may get it from a further part with the same id.
    """
    for origin, values in _of_providers(metadata):
        if origin.wire_api == "responses":
            item_id = values.get("itemId")
            encrypted = values.get("reasoningEncryptedContent")
            if isinstance(item_id, str) and item_id:
                return Reasoning(
                    id=item_id,
                    summary=(text,) if text else (),
                    encrypted_content=encrypted if isinstance(encrypted, str) else None,
                    origin=origin,
                )
            continue
        redacted = values.get("redactedData")
        if isinstance(redacted, str) and redacted:
            return Reasoning(encrypted_content=redacted, redacted=True, origin=origin)
    signed = signed_state(metadata)
    if signed.signature is None:
        return None
    return Reasoning(content=text, signature=signed.signature, origin=signed.origin)


def provider_metadata(item: ResponseItem) -> JsonObject:
    """The metadata from which the functions above read the item's state; {} if there is none.

    Also {} for state of a provider that the SDK has no name for.
    """
    name = name_of(item.origin, ORIGINS)
    values: JsonObject = {}
    if isinstance(item, Reasoning) and name is not None:
        values = _reasoning_state(item, ORIGINS[name])
    elif item.signature:
        values = {_signature_key(item.origin): item.signature}
    if name is None or not values:
        return {}
    return {name: values}


def _signature_key(origin: Origin | None) -> str:
    if origin is not None and origin.wire_api == "gemini":
        return "thoughtSignature"
    return "signature"


def _reasoning_state(item: Reasoning, origin: Origin) -> JsonObject:
    values: JsonObject = {}
    if origin.wire_api == "responses":
        # Without an id the SDK drops the state, and so does the reader above.
        values["itemId"] = item.id or "rs_0"
        if item.encrypted_content:
            values["reasoningEncryptedContent"] = item.encrypted_content
    elif item.encrypted_content:
        values["redactedData"] = item.encrypted_content
    elif item.signature:
        values[_signature_key(origin)] = item.signature
    return values


def merged_reasoning(parts: Sequence[Reasoning]) -> Reasoning:
    """Joins the parts of one item, one for each paragraph of its summary, to the item."""
    summary: list[str] = []
    encrypted: str | None = None
    for part in parts:
        summary += part.summary
        encrypted = part.encrypted_content or encrypted
    return replace(parts[0], summary=tuple(summary), encrypted_content=encrypted)


def _of_providers(metadata: JsonObject | None) -> Iterator[tuple[Origin, JsonObject]]:
    for key, values in (metadata or {}).items():
        if not isinstance(values, dict):
            continue
        name, state = key, values
        if key == PYDANTIC_AI:
            # One field for all providers; of OpenAI it is the encrypted content.
            name, encrypted = str(values.get("provider_name")), values.get("signature")
            state = {**values, "reasoningEncryptedContent": encrypted, "itemId": values.get("id")}
        origin = ORIGINS.get(name)
        if origin is not None:
            yield origin, state
