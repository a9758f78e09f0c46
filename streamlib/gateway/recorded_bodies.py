"""Bodies that may be recorded: keys are masked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from streamlib.recording import Chunk
from streamlib.request.headers import is_key_header
from streamlib_parsers.redaction import MASK, redact

SHORTEST: Final = 8
"""Characters of a key that is masked wherever it stands: a shorter one would be in every text."""

DEPTH: Final = 200
"""Levels of JSON that are looked at; the gateway takes 100."""


def secrets_of(headers: Mapping[str, str]) -> set[bytes]:
    """The keys among the headers of a request."""
    keys: list[str] = []
    for name, value in headers.items():
        if is_key_header(name, value) or name.lower() == "cookie":
            keys.append(value.rpartition(" ")[2])
    return long_keys(keys)


def long_keys(keys: Iterable[str]) -> set[bytes]:
    """Those of some keys that are masked wherever they stand."""
    return {key.encode() for key in keys if len(key) >= SHORTEST}


def masked_request(body: bytes, secrets: Iterable[bytes]) -> bytes:
    """The body of a request, with what is or looks like a key masked."""
    body = _without(secrets, body)
    try:
        value = msgspec.json.decode(body)
        masked = _masked(value, 0)
    except (msgspec.DecodeError, RecursionError):
        return redact(body.decode("utf-8", "replace")).encode()
    # What holds no key stays as it was sent, byte for byte.
    return body if masked == value else msgspec.json.encode(masked)


def masked_chunks(
    chunks: Sequence[Chunk], secrets: Iterable[bytes], *, is_stream: bool
) -> tuple[Chunk, ...]:
    """The chunks of a response without keys; one chunk, at the time of the last, where there were.

    Args:
        chunks: as they came.
        secrets: keys that were sent with the request.
        is_stream: what looks like a key stays: to mask it would break a frame.
    """
    body = b"".join([chunk.data for chunk in chunks])
    masked = _without(secrets, body)
    if not is_stream:
        masked = masked_request(masked, ())
    if masked == body:
        return tuple(chunks)
    return (Chunk(chunks[-1].at, masked),)


def _without(secrets: Iterable[bytes], body: bytes) -> bytes:
    # The longest first: of a key that begins as another one the rest would stay.
    for secret in sorted(secrets, key=len, reverse=True):
        body = body.replace(secret, MASK.encode())
    return body


def _masked(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return redact(value)
    if depth > DEPTH:
        return value
    if isinstance(value, list):
        return [_masked(element, depth + 1) for element in value]
    if isinstance(value, dict):
        return {key: _masked(element, depth + 1) for key, element in value.items()}
    return value
