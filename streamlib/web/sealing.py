"""Sealed state: what only a model's provider reads, kept by a page that can neither read nor change
it.

    asked = parse_ui_request("vercel", body, tools=TOOLS, seal=Seal(KEY, user))
    StreamResponse(run, asked.encoder())    # signatures go to the page, and come back

A page that sends its whole conversation has the only copy: without its signatures no provider takes
reasoning back. So the item goes to the page as one text: encrypted, and authenticated together with
the user, so that no other user can send it (AES-256-GCM of the package cryptography, extra `seal`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
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
from streamlib_parsers.json_text import DECODE_ERRORS

PREFIX: Final = "streamlib-sealed-1."
"""Begins each sealed text, so that it is never taken for a provider's own signature."""

MAX_CHARACTERS: Final = 8 << 20
"""Characters of one sealed text: encrypted reasoning of a long response is far smaller."""

MIN_KEY_BYTES: Final = 16
NONCE_BYTES: Final = 12
"""Of AES-GCM. It is random: one key may seal four thousand million items."""

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
        TypeError: the user is no text.
        ValueError: a key is too short.
        ModuleNotFoundError: the extra `seal` is not installed.
    """

    def __init__(self, key: str | bytes | Sequence[str | bytes], user: str) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "Seal needs the package cryptography: pip install 'streamlib[seal]'"
            ) from None
        self._broken = InvalidTag
        self._ciphers: list[AESGCM] = []
        """One for each key; the first seals."""
        for each in [key] if isinstance(key, (str, bytes)) else key or ():
            secret = each.encode() if isinstance(each, str) else each
            if len(secret) < MIN_KEY_BYTES:
                raise ValueError(f"a key has at least {MIN_KEY_BYTES} bytes")
            # Of a length that the cipher takes.
            self._ciphers.append(AESGCM(hashlib.sha256(b"streamlib seal: " + secret).digest()))
        if not self._ciphers:
            raise ValueError("a seal needs a key")
        if not isinstance(user, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"the user of a seal is a text, not {user!r:.100}: write str(…)")
        self._user = hashlib.sha256(user.encode("utf-8", "surrogatepass")).digest()

    def close(self, item: ResponseItem) -> str | None:
        """The item as a text for the page; None for a kind that is not sealed."""
        if not isinstance(item, SEALED_KINDS):
            return None
        nonce = secrets.token_bytes(NONCE_BYTES)
        hidden = self._ciphers[0].encrypt(nonce, msgspec.json.encode(item), self._user)
        return PREFIX + base64.urlsafe_b64encode(nonce + hidden).decode("ascii")

    def open(self, text: str) -> ResponseItem | None:
        """The item of a sealed text; None if it was changed, or sealed with other keys or users."""
        if not is_sealed(text) or len(text) > MAX_CHARACTERS:
            return None
        try:
            raw = base64.urlsafe_b64decode(text.removeprefix(PREFIX))
        except (binascii.Error, ValueError):
            return None
        nonce, hidden = raw[:NONCE_BYTES], raw[NONCE_BYTES:]
        for cipher in self._ciphers:
            try:
                return _item_of(cipher.decrypt(nonce, hidden, self._user))
            except (self._broken, ValueError):  # ValueError: the nonce or the tag is cut
                continue
        return None


def is_sealed(text: str) -> bool:
    """Whether a text claims to be sealed; only `Seal.open` knows."""
    return text.startswith(PREFIX)


def _item_of(data: bytes) -> ResponseItem | None:
    """The item in opened data; None for the form of another version."""
    try:
        item: ResponseItem = _ITEM.decode(data)
    except DECODE_ERRORS:
        return None
    return item
