"""SignedPart state of providers in the metadata that the AI SDK keeps with parts of a message.

``useChat`` has it if the page's server is the AI SDK's own; this library leaves it on the server.

Wire source: ``providerMetadata`` of the npm packages ``@ai-sdk/anthropic``, ``@ai-sdk/openai``,
``@ai-sdk/google`` and ``@ai-sdk/amazon-bedrock``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from streamlib_parsers.items import JsonObject, Origin, Reasoning

ORIGINS: Final[dict[str, Origin]] = {
    "anthropic": Origin("messages", "anthropic"),
    "bedrock": Origin("converse", "bedrock"),
    "google": Origin("gemini", "google"),
    "vertex": Origin("gemini", "vertex"),
    "openai": Origin("responses", "openai"),
    "azure": Origin("responses", "azure"),
}
"""Origins by the SDK's names of providers."""

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


def merged_reasoning(parts: Sequence[Reasoning]) -> Reasoning:
    """Joins the parts of one item, one for each paragraph of its summary, to the item."""
    summary: list[str] = []
    encrypted: str | None = None
    for part in parts:
        summary += part.summary
        encrypted = part.encrypted_content or encrypted
    return replace(parts[0], summary=tuple(summary), encrypted_content=encrypted)


def _of_providers(metadata: JsonObject | None) -> Iterator[tuple[Origin, JsonObject]]:
    for name, values in (metadata or {}).items():
        origin = ORIGINS.get(name)
        if origin is not None and isinstance(values, dict):
            yield origin, values
