"""The strict provider's record of the signatures and responses that it issued.

A signature is base64 of a record and of its HMAC. The HMAC covers the content that was signed, so a
changed text, a signature of another provider, or one of another wire is not valid.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Any, Final

import msgspec
from msgspec import Struct

from streamlib_parsers.items import JsonObject, WireApi

MAC_BYTES: Final = 32
"""Bytes of HMAC-SHA256."""

SERVICES: Final[dict[WireApi, str]] = {"invoke": "converse"}
"""Wire -> the wire whose signatures its service also accepts (Bedrock)."""


class Signed(Struct, frozen=True, array_like=True):
    """Contents of a signature: which item of which response was signed.

    Attributes:
        response_id: id of the response that contains the item.
        index: number of the item among the signed items of the response, from 0.
        count: number of signed items of the response.
    """

    response_id: str
    index: int
    count: int


class LedgerResponse(Struct, frozen=True):
    """A response that the service stores (`store` of Responses).

    Attributes:
        items: the conversation up to its end: the items of the input, then those of the output.
    """

    items: tuple[JsonObject, ...]


class Ledger:
    """Signs what the provider sends, and recognizes it in later requests.

    Attributes:
        stored: the stored responses by their id.
        reasoning_before: id of an item -> id of the reasoning that produced it.
        cached: name of cached content -> the model that it was created for (Gemini).
    """

    def __init__(self, account: str = "loopback") -> None:
        self.stored: dict[str, LedgerResponse] = {}
        self.reasoning_before: dict[str, str] = {}
        self.cached: dict[str, str] = {}
        self._key = hashlib.sha256(f"streamlib strict {account}".encode()).digest()
        """Key of all HMACs. It is made from the account, so signatures stay valid between runs."""
        self._responses = 0
        """Number of responses so far; part of each response's id."""

    def next_number(self) -> int:
        """The number of the next response, counted from 1."""
        self._responses += 1
        return self._responses

    def sign(self, wire_api: WireApi, record: Signed, content: str) -> str:
        """The signature of an item's content on a wire."""
        payload = msgspec.json.encode(record)
        return base64.b64encode(payload + self._mac(wire_api, payload, content)).decode()

    def read(self, wire_api: WireApi, signature: Any, content: str) -> Signed | None:
        """The contents of a signature; None if this provider did not sign this content with it."""
        if not isinstance(signature, str):
            return None
        try:
            # Google's SDK writes URL-safe base64, which proto3's JSON accepts too.
            raw = base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError):
            return None
        payload, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(wire_api, payload, content)):
            return None
        return msgspec.json.decode(payload, type=Signed)

    def _mac(self, wire_api: WireApi, payload: bytes, content: str) -> bytes:
        text = content.encode("utf-8", "surrogatepass")
        service = SERVICES.get(wire_api, wire_api)
        message = b"\0".join((service.encode(), payload, text))
        return hmac.new(self._key, message, hashlib.sha256).digest()
