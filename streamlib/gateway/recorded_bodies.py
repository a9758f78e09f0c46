"""Bodies that may be recorded: keys are masked, however a JSON text writes them.

Everything here runs in the thread that writes files. It gives other threads a turn between two
pieces of a long text: a regular expression does not.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from streamlib.recording import Chunk
from streamlib.request.headers import is_key_header
from streamlib_parsers.redaction import MASK, is_key_name, redacted_parts

SHORTEST: Final = 8
"""Characters of a key that is masked wherever it stands: a shorter one would be in every text."""

DEPTH: Final = 200
"""Levels of JSON that are kept; the gateway takes 100."""

WINDOW: Final = 1 << 16
"""Characters that are looked at before other threads get a turn: some ten milliseconds."""

_ESCAPE: Final = re.compile(rb"\\[u/]")
"""In a line of a stream that may have a key in escapes."""

_COOKIES: Final = ("cookie", "set-cookie")


def secrets_of(headers: Mapping[str, str]) -> set[str]:
    """The keys among the headers of a request."""
    keys: list[str] = []
    for name, value in headers.items():
        if name.lower() in _COOKIES:
            keys += _cookie_values(value)
        elif is_key_header(name, value):
            # `Bearer KEY`; a signature has several fields behind its scheme.
            scheme, *rest = value.split() or [""]
            keys += rest or [scheme]
            keys += value.replace(",", " ").split()[1:]
    return long_keys(keys)


def _cookie_values(header: str) -> list[str]:
    values: list[str] = []
    for pair in header.split(";"):
        name, sign, value = pair.strip().partition("=")
        # A browser sends a cookie without a name as its value alone.
        values.append((value if sign else name).strip('"'))
    return values


def long_keys(keys: Iterable[str]) -> set[str]:
    """Those of some keys that are masked wherever they stand."""
    return {key for key in keys if len(key) >= SHORTEST}


def masked_request(body: bytes, secrets: Iterable[str]) -> bytes:
    """The body of a request, with what is or looks like a key masked."""
    known = _longest_first(secrets)
    body = _without(known, body)
    try:
        value = msgspec.json.decode(body)
        masked = _masked(value, known, 0)
    except (msgspec.DecodeError, RecursionError):
        text = body.decode("utf-8", "replace")
        return _without_escaped(known, _redacted(text).encode("utf-8", "replace"))
    # What holds no key stays as it was sent, byte for byte.
    return body if masked == value else msgspec.json.encode(masked)


def masked_chunks(
    chunks: Sequence[Chunk], secrets: Iterable[str], *, is_stream: bool
) -> tuple[Chunk, ...]:
    """The chunks of a response without keys; one chunk, at the time of the last, where there were.

    Args:
        chunks: as they came.
        secrets: keys that were sent with the request.
        is_stream: what looks like a key stays: to mask it would break a frame.
    """
    body = b"".join([chunk.data for chunk in chunks])
    known = _longest_first(secrets)
    if is_stream:
        masked = _without_escaped(known, _without(known, body))
    else:
        masked = masked_request(body, known)
    if masked == body:
        return tuple(chunks)
    return (Chunk(chunks[-1].at, masked),)


def masked_text(text: str, secrets: Iterable[str]) -> str:
    """A text, such as a path, with what is or looks like a key masked."""
    return _masked_string(text, _longest_first(secrets))


def _longest_first(secrets: Iterable[str]) -> list[str]:
    # Of a key that begins as another one the rest would stay.
    return sorted(secrets, key=len, reverse=True)


def _without(secrets: Sequence[str], body: bytes) -> bytes:
    """Bytes without keys that are written as they are."""
    for secret in secrets:
        body = body.replace(secret.encode("utf-8", "surrogatepass"), MASK.encode())
    return body


def _without_escaped(secrets: Sequence[str], body: bytes) -> bytes:
    r"""Bytes without keys of which characters are written as escapes of JSON: `abc\/def`."""
    if not secrets or _ESCAPE.search(body) is None:
        return body
    pattern = re.compile(b"|".join([_escaped_pattern(secret) for secret in secrets]))
    lines: list[bytes] = []
    for line in body.splitlines(keepends=True):
        if _ESCAPE.search(line) is None:
            lines.append(line)
            continue
        lines.append(pattern.sub(MASK.encode(), line))
        time.sleep(0)
    return b"".join(lines)


def _escaped_pattern(secret: str) -> bytes:
    """Matches a key in any way in which a JSON text may write it."""
    parts: list[bytes] = []
    for character in secret:
        units = character.encode("utf-16-be", "surrogatepass").hex()
        escapes = b"".join(
            rb"\\u(?i:%s)" % units[start : start + 4].encode() for start in range(0, len(units), 4)
        )
        written = re.escape(character.encode("utf-8", "surrogatepass"))
        # `/`, `"` and the backslash may have a backslash before them.
        parts.append(rb"(?:\\?%s|%s)" % (written, escapes))
    return b"".join(parts)


def _masked(value: Any, secrets: Sequence[str], depth: int) -> Any:
    if isinstance(value, str):
        return _masked_string(value, secrets)
    if not isinstance(value, (list, dict)):
        return value
    if depth > DEPTH:
        return MASK
    if isinstance(value, list):
        return [_masked(element, secrets, depth + 1) for element in value]
    masked: dict[str, Any] = {}
    for key, element in value.items():
        is_key = isinstance(element, str) and is_key_name(key)
        name = _masked_string(key, secrets)
        masked[name] = MASK if is_key else _masked(element, secrets, depth + 1)
    return masked


def _masked_string(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    return _redacted(text)


def _redacted(text: str) -> str:
    if len(text) <= WINDOW:
        return next(redacted_parts(text), "")
    parts: list[str] = []
    for part in redacted_parts(text, WINDOW):
        parts.append(part)
        time.sleep(0)
    return "".join(parts)
