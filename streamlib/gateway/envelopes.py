"""An envelope: an item of the model's wire, written as one opaque text that any client's wire can store and give back.

    sealed(item, 2)   ->  "c3RyZWFtbGliLzE6eyJhdCI6Mi…"        base64 of `streamlib/1:` and JSON: the item, and its place in the answer
    opened(text)      ->  Sealed(2, item), or None for anything that is no envelope

It is the client's to keep, and says nothing that the client could not send anyway: no key, no address (the endpoint and the account of
the origin are there as digests, only to be compared), and nothing in it decides where a request goes. It is not compressed: what a
client sends never unpacks to more than it sent.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from streamlib_parsers.items import (
    Compaction,
    CustomToolCall,
    FunctionCall,
    Message,
    Opaque,
    Origin,
    Reasoning,
    ResponseItem,
    ServerToolCall,
    ServerToolResult,
)

MAGIC: Final = b"streamlib/1:"
"""Twelve bytes: their base64 ends where that of the JSON begins."""
PREFIX: Final = base64.b64encode(MAGIC).decode("ascii")
LONGEST: Final = 8 << 20
"""Characters of one envelope. An answer's item is far smaller; what is longer is left to the client's wire."""
MADE_BY_MODELS: Final = (
    Reasoning,
    Message,
    FunctionCall,
    CustomToolCall,
    ServerToolCall,
    ServerToolResult,
    Compaction,
    Opaque,
)


class Envelope(Struct, frozen=True):
    """What an envelope holds. at: the item's place among the items of its answer."""

    at: int
    item: ResponseItem


def seal(item: ResponseItem, at: int) -> str:
    """The envelope of an item. URL-safe letters: some clients change the alphabet, and both are read back."""
    shown = msgspec.structs.replace(item, origin=hash_origin(item.origin), response_id=None)
    return base64.urlsafe_b64encode(MAGIC + msgspec.json.encode(Envelope(at, shown))).decode(
        "ascii"
    )


def is_envelope(text: object) -> bool:
    """Whether a text looks like an envelope; only opening it tells."""
    return isinstance(text, str) and text.startswith(PREFIX) and len(text) <= LONGEST


def open_envelope(text: str) -> Envelope | None:
    """What is in it; None where it was forged, cut or changed: then it is just some text of the client's."""
    try:
        letters = text.translate(STANDARD)
        raw = base64.b64decode(letters + "=" * (-len(letters) % 4), validate=True)
        found = msgspec.json.decode(raw.removeprefix(MAGIC), type=Envelope)
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError):
        return None
    item = found.item
    right = (
        isinstance(item, MADE_BY_MODELS)
        and found.at >= 0
        and not (isinstance(item, Message) and item.role != "assistant")
    )
    return found if right else None


STANDARD: Final = str.maketrans("-_", "+/")


def hash_origin(origin: Origin | None) -> Origin | None:
    """The origin without what is nobody's business: comparable, not readable."""
    if origin is None:
        return None
    return msgspec.structs.replace(
        origin, endpoint=_digest(origin.endpoint), account=_digest(origin.account)
    )


def _digest(text: str | None) -> str | None:
    return None if text is None else f"sha256:{sha256(text.encode()).hexdigest()[:16]}"


def hashed_origins(origins: Iterable[Origin]) -> Mapping[Origin | None, Origin]:
    """Disguised origin -> the origin, for those that a request may go to."""
    return {hash_origin(origin): origin for origin in origins}
