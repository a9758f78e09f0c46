"""Masks secret keys in bodies before they are recorded, in every spelling that JSON allows.

The gateway calls most of them in the thread that writes files. Between parts of a long text they
yield to other threads, which a single regular expression would block.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec

from streamlib.recording.files import Chunk
from streamlib.request.headers import is_key_header
from streamlib_parsers.json_text import DECODE_ERRORS
from streamlib_parsers.redaction import MASK, is_key_name, redacted_parts

SHORTEST: Final = 8
"""Minimum characters of a key that is masked everywhere: a shorter one may occur by chance."""

DEPTH: Final = 200
"""Limit of JSON levels that are recorded; the gateway accepts 100."""

WINDOW: Final = 1 << 16
"""Characters processed before other threads may run: about ten milliseconds."""

Mask: TypeAlias = Callable[[bytes], bytes]
"""Returns what replaces a key."""

_ESCAPE: Final = re.compile(rb"\\[u/]")
"""Matches an escape that a key in a stream may contain."""

_COOKIES: Final = ("cookie", "set-cookie")


def secrets_of(headers: Mapping[str, str]) -> set[str]:
    """The keys in the headers of a request."""
    keys: list[str] = []
    for name, value in headers.items():
        if name.lower() in _COOKIES:
            keys += _cookie_values(value)
        elif is_key_header(name, value):
            # `Bearer KEY`; a signature has several fields after its scheme.
            scheme, *rest = value.split() or [""]
            keys += rest or [scheme]
            keys += value.replace(",", " ").split()[1:]
    return long_keys(keys)


def secrets_of_url(url: str) -> set[str]:
    """The keys in a URL: in its query (`?key=`), and its password."""
    parts = urlsplit(url)
    keys: list[str] = []
    for name, value in parse_qsl(parts.query):
        if is_key_header(name, value):
            keys.append(value)
    if parts.password:
        keys.append(unquote(parts.password))
    return long_keys(keys)


def _cookie_values(header: str) -> list[str]:
    values: list[str] = []
    for pair in header.split(";"):
        name, sign, value = pair.strip().partition("=")
        # Browsers send a cookie without a name as its value only.
        values.append((value if sign else name).strip('"'))
    return values


def long_keys(keys: Iterable[str]) -> set[str]:
    """The keys that are long enough to be masked everywhere."""
    return {key for key in keys if len(key) >= SHORTEST}


def masked_request(body: bytes, secrets: Iterable[str]) -> bytes:
    """The body of a request; keys, and texts that look like keys, are masked."""
    known = _longest_first(secrets)
    body = _without(known, body)
    try:
        value = msgspec.json.decode(body)
        masked = _masked(value, known, 0)
    except DECODE_ERRORS:
        text = body.decode("utf-8", "replace")
        return _without_escaped(known, _redacted(text).encode("utf-8", "replace"))
    # A body without keys is recorded unchanged, byte for byte.
    return body if masked == value else msgspec.json.encode(masked)


def masked_chunks(
    chunks: Sequence[Chunk], secrets: Iterable[str], *, is_stream: bool
) -> tuple[Chunk, ...]:
    """The chunks of a response with keys masked; if there were any, one chunk at the last time.

    Args:
        chunks: chunks as they were received.
        secrets: keys that were sent with the request.
        is_stream: whether the body is a stream: then texts that look like keys are not masked,
            because that could break a frame.
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


def masked_in_place(chunks: Sequence[Chunk], secrets: Iterable[str]) -> tuple[Chunk, ...]:
    """The chunks of a response; each key is replaced by as many `*`, so that offsets remain.

    Args:
        chunks: chunks as they were received.
        secrets: keys that were sent with the request.
    """
    known = _longest_first(secrets)
    body = b"".join([chunk.data for chunk in chunks])
    masked = _without_escaped(known, _without(known, body, _stars), _stars)
    if masked == body:
        return tuple(chunks)
    parts: list[Chunk] = []
    start = 0
    for chunk in chunks:
        end = start + len(chunk.data)
        parts.append(Chunk(chunk.at, masked[start:end]))
        start = end
    return tuple(parts)


def masked_text(text: str, secrets: Iterable[str]) -> str:
    """A text (for example a path); keys, and texts that look like keys, are masked."""
    return _masked_string(text, _longest_first(secrets))


def _longest_first(secrets: Iterable[str]) -> list[str]:
    spelled: set[str] = set()
    for secret in secrets:
        # A URL in a body may have the key too.
        spelled |= {secret, quote(secret, safe="", errors="surrogatepass")}
    # Else a key that is the start of another one would be masked, and leave the other's rest.
    return sorted(spelled, key=len, reverse=True)


def _short(_key: bytes) -> bytes:
    return MASK.encode()


def _stars(key: bytes) -> bytes:
    return b"*" * len(key)


def _without(secrets: Sequence[str], body: bytes, mask: Mask = _short) -> bytes:
    """The bytes without keys that are written literally."""
    for secret in secrets:
        written = secret.encode("utf-8", "surrogatepass")
        body = body.replace(written, mask(written))
    return body


def _without_escaped(secrets: Sequence[str], body: bytes, mask: Mask = _short) -> bytes:
    r"""The bytes without keys whose characters are written as JSON escapes: `abc\/def`."""
    if not secrets or _ESCAPE.search(body) is None:
        return body
    pattern = re.compile(b"|".join([_escaped_pattern(secret) for secret in secrets]))
    lines: list[bytes] = []
    for line in body.splitlines(keepends=True):
        if _ESCAPE.search(line) is None:
            lines.append(line)
            continue
        lines.append(pattern.sub(lambda match: mask(match[0]), line))
        time.sleep(0)
    return b"".join(lines)


def _escaped_pattern(secret: str) -> bytes:
    """A pattern for a key in every spelling that JSON allows."""
    parts: list[bytes] = []
    for character in secret:
        units = character.encode("utf-16-be", "surrogatepass").hex()
        escapes = b"".join(
            rb"\\u(?i:%s)" % units[start : start + 4].encode() for start in range(0, len(units), 4)
        )
        written = re.escape(character.encode("utf-8", "surrogatepass"))
        # `/`, `"` and the backslash may follow a backslash.
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
        name = _masked_string(key, secrets)
        if is_key_name(key) and isinstance(element, (str, list)):
            masked[name] = _masked_key(element, secrets, depth)
        else:
            masked[name] = _masked(element, secrets, depth + 1)
    return masked


def _masked_key(value: str | list[Any], secrets: Sequence[str], depth: int) -> Any:
    """The value of a field with the name of a key: a text, or a list of them as in HTTP headers."""
    if isinstance(value, str):
        return MASK
    masked = _masked(value, secrets, depth + 1)
    if isinstance(masked, list):
        return [MASK if isinstance(element, str) else element for element in masked]
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
