"""An envelope: an item of the model's wire, encoded as one opaque text that any client's wire can
store and send back.

    seal(item, 2)         -> "c3RyZWFtbGliLzE6eyJhdCI6Mi…"   base64 of `streamlib/1:` and JSON
    open_envelope(text)   -> SealedItem(2, item), or None for any text that is not an envelope

The client stores it. It reveals nothing that the client could not send itself: no key, no address
(the endpoint and the account of the origin are hashes, only to be compared), and nothing in it
decides where a request goes. It is not compressed, so that what a client sends never unpacks to
more than it sent.
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
    BUILT_IN_CALLS,
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
"""Twelve bytes, a multiple of three: their base64 ends where that of the JSON begins."""

PREFIX: Final = base64.b64encode(MAGIC).decode("ascii")

MAX_CHARACTERS: Final = 8 << 20
"""Characters of one envelope. An item of a response is far smaller; what is longer is treated as
the client's own text."""

MADE_BY_MODELS: Final = (
    Reasoning,
    Message,
    FunctionCall,
    CustomToolCall,
    ServerToolCall,
    ServerToolResult,
    Compaction,
    Opaque,
    *BUILT_IN_CALLS,
)

_TO_STANDARD_ALPHABET: Final = str.maketrans("-_", "+/")


class SealedItem(Struct, frozen=True):
    """The content of an envelope.

    Attributes:
        index: the item's index in its response.
        item: the item, its origin hashed.
    """

    # Envelopes are in the histories that clients store: their keys do not change.
    index: int = msgspec.field(name="at")
    item: ResponseItem = msgspec.field()


def seal(item: ResponseItem, index: int) -> str:
    """The envelope of an item.

    The text has the URL-safe alphabet: some clients convert base64 to it. Both are read back.
    """
    content = MAGIC + msgspec.json.encode(envelope_of(item, index))
    return base64.urlsafe_b64encode(content).decode("ascii")


def envelope_of(item: ResponseItem, index: int) -> SealedItem:
    """The item of a response as an envelope holds it."""
    # `accumulate` sets `response_id`; `restore_history` numbers turns instead.
    item = msgspec.structs.replace(item, origin=hash_origin(item.origin), response_id=None)
    return SealedItem(index, item)


def is_envelope(text: object) -> bool:
    """Whether a value looks like an envelope; only `open_envelope` knows."""
    return isinstance(text, str) and text.startswith(PREFIX) and len(text) <= MAX_CHARACTERS


def open_envelope(text: str) -> SealedItem | None:
    """The content of an envelope.

    None where it was forged, truncated or changed: then it is just some text of the client's.
    """
    try:
        base64_text = text.translate(_TO_STANDARD_ALPHABET)
        # Some clients strip the padding.
        padding = "=" * (-len(base64_text) % 4)
        raw = base64.b64decode(base64_text + padding, validate=True)
        envelope = msgspec.json.decode(raw.removeprefix(MAGIC), type=SealedItem)
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError):
        return None
    if not is_made_by_model(envelope):
        return None
    return envelope


def is_made_by_model(envelope: SealedItem) -> bool:
    """Whether an envelope holds what a model makes; any other was forged."""
    item = envelope.item
    if envelope.index < 0 or not isinstance(item, MADE_BY_MODELS):
        return False
    # No model writes a message of the user or the system.
    return not isinstance(item, Message) or item.role == "assistant"


def hash_origin(origin: Origin | None) -> Origin | None:
    """The origin with its endpoint and account hashed: comparable, not readable."""
    if origin is None:
        return None
    return msgspec.structs.replace(
        origin, endpoint=_digest(origin.endpoint), account=_digest(origin.account)
    )


def _digest(text: str | None) -> str | None:
    if text is None:
        return None
    # 64 bits: compared with the few targets of one route only.
    return f"sha256:{sha256(text.encode()).hexdigest()[:16]}"


def hashed_origins(origins: Iterable[Origin]) -> Mapping[Origin | None, Origin]:
    """Hashed origin -> the origin, for those that a request may go to."""
    return {hash_origin(origin): origin for origin in origins}
