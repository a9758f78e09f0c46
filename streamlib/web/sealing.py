"""Sealed state: what only a model's provider reads, kept by a page that can neither read nor change
it.

    asked = parse_ui_request("vercel", body, tools=TOOLS, seal=Seal(KEY, user))
    StreamResponse(run, asked.encoder())    # signatures go to the page, and come back

A page that sends its whole conversation has the only copy: without its signatures no provider takes
reasoning back. So the item goes to the page as one text: encrypted, and authenticated together with
the user, so that no other user can send it. Both are built on the standard library: the key stream
is SHAKE-256 over key and nonce, the tag HMAC-SHA-256 over user, nonce and ciphertext.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from streamlib_parsers.items import (
    CustomToolCall,
    FunctionCall,
    Message,
    Reasoning,
    ResponseItem,
)

PREFIX: Final = "streamlib-sealed-1."
"""Begins each sealed text, so that it is never taken for a provider's own signature."""

MAX_CHARACTERS: Final = 8 << 20
"""Characters of one sealed text: encrypted reasoning of a long response is far smaller."""

MIN_KEY_BYTES: Final = 16
NONCE_BYTES: Final = 16
TAG_BYTES: Final = 32

SEALED_KINDS: Final = (Reasoning, Message, FunctionCall, CustomToolCall)
"""Items that are sealed. Results of a provider's own tools go to every model as text."""

# Typed Any, because type checkers accept only classes as this argument, not unions.
_ITEM: Final[Any] = msgspec.json.Decoder(ResponseItem)


class Seal:
    """Seals items for one user, and opens what was sealed for that user.

    Args:
        key: a secret of your servers, at least 16 bytes (`secrets.token_urlsafe(32)`); all servers
            of a page have the same. Several: the first seals, each of them opens, so that a key can
            be replaced.
        user: whoever is signed in: what was sealed for another user is not opened.

    Raises:
        ValueError: a key is too short.
    """

    def __init__(self, key: str | bytes | Sequence[str | bytes], user: str) -> None:
        keys = [key] if isinstance(key, (str, bytes)) else list(key)
        self._keys: list[tuple[bytes, bytes]] = []
        """For each key one that encrypts and one that authenticates."""
        for each in keys:
            secret = each.encode() if isinstance(each, str) else each
            if len(secret) < MIN_KEY_BYTES:
                raise ValueError(f"a key has at least {MIN_KEY_BYTES} bytes")
            encrypting = hmac.digest(secret, b"streamlib seal: encrypt", "sha256")
            authenticating = hmac.digest(secret, b"streamlib seal: authenticate", "sha256")
            self._keys.append((encrypting, authenticating))
        if not self._keys:
            raise ValueError("a seal needs a key")
        self._user = hashlib.sha256(user.encode("utf-8", "surrogatepass")).digest()

    def close(self, item: ResponseItem) -> str | None:
        """The item as a text for the page; None for a kind that is not sealed."""
        if not isinstance(item, SEALED_KINDS):
            return None
        encrypting, authenticating = self._keys[0]
        nonce = secrets.token_bytes(NONCE_BYTES)
        hidden = _encrypted(msgspec.json.encode(item), encrypting, nonce)
        tag = hmac.digest(authenticating, self._user + nonce + hidden, "sha256")
        return PREFIX + base64.urlsafe_b64encode(nonce + tag + hidden).decode("ascii")

    def open(self, text: str) -> ResponseItem | None:
        """The item of a sealed text; None if it was changed, or sealed with other keys or users."""
        if not is_sealed(text) or len(text) > MAX_CHARACTERS:
            return None
        try:
            raw = base64.urlsafe_b64decode(text.removeprefix(PREFIX))
        except (binascii.Error, ValueError):
            return None
        nonce, rest = raw[:NONCE_BYTES], raw[NONCE_BYTES:]
        tag, hidden = rest[:TAG_BYTES], rest[TAG_BYTES:]
        for encrypting, authenticating in self._keys:
            expected = hmac.digest(authenticating, self._user + nonce + hidden, "sha256")
            if hmac.compare_digest(tag, expected):
                return _item_of(_encrypted(hidden, encrypting, nonce))
        return None


def is_sealed(text: str) -> bool:
    """Whether a text claims to be sealed; only `Seal.open` knows."""
    return text.startswith(PREFIX)


def _encrypted(data: bytes, key: bytes, nonce: bytes) -> bytes:
    """The data xor a stream of key and nonce: the same encrypts and decrypts."""
    stream = hashlib.shake_256(key + nonce).digest(len(data))
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(data), "big")


def _item_of(data: bytes) -> ResponseItem | None:
    """The item in opened data; None for the form of another version."""
    try:
        item: ResponseItem = _ITEM.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return item
