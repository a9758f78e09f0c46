"""AWS Signature Version 4, from the standard library. Pure: the time is an argument.

Canonical request -> its SHA-256 -> string to sign -> HMAC chain over date, region and service. The
path is encoded once more than it is sent (`%3A` in the URL is `%253A` in the signature), as every
service but S3 requires.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

ALGORITHM: Final = "AWS4-HMAC-SHA256"

UNSIGNED: Final = frozenset(
    {"connection", "expect", "transfer-encoding", "user-agent", "x-amzn-trace-id"}
)
"""Headers that a proxy may change."""


def sign(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    key_id: str,
    secret: str,
    region: str,
    service: str,
    now: datetime,
    token: str | None = None,
) -> dict[str, str]:
    """Signs a request.

    Args:
        headers: the request's headers; all are signed except `UNSIGNED`.
        now: the time of the signature, with a time zone.
        token: session token of temporary credentials.

    Returns:
        The headers to add: `x-amz-date`, `authorization` and, with a session token,
        `x-amz-security-token`.
    """
    parts = urlsplit(url)
    time = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    added = {"x-amz-date": time}
    if token:
        added["x-amz-security-token"] = token
    signed = _signed_headers({**headers, **added, "host": _host(parts)})
    names = ";".join(signed)
    lines = [method, _path(parts.path), _query(parts.query)]
    for name, value in signed.items():
        lines.append(f"{name}:{value}")
    lines += ["", names, sha256(body).hexdigest()]
    canonical = "\n".join(lines)
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join((ALGORITHM, time, scope, sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = _hmac(key, part)
    signature = _hmac(key, to_sign).hex()
    added["authorization"] = (
        f"{ALGORITHM} Credential={key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return added


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), sha256).digest()


def _signed_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Names in lower case and sorted, each run of blanks in a value as one."""
    normalized: dict[str, str] = {}
    for name, value in headers.items():
        normalized[name.lower()] = " ".join(value.split())
    return {name: normalized[name] for name in sorted(normalized) if name not in UNSIGNED}


def _host(parts: SplitResult) -> str:
    """The `host` header as HTTP libraries send it: without the user and a scheme's default port."""
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    default_port = {"http": 80, "https": 443}.get(parts.scheme)
    if parts.port in (None, default_port):
        return host
    return f"{host}:{parts.port}"


def _path(path: str) -> str:
    """The path without empty and dot segments, percent-encoded once more."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if segments:
                segments.pop()
        elif segment not in {"", "."}:
            segments.append(segment)
    slash = "/" if path.endswith("/") and segments else ""
    return quote("/" + "/".join(segments) + slash, safe="/~-_.")


def _query(query: str) -> str:
    """The query's pairs as they are sent, sorted by name and value."""
    pairs: list[tuple[str, str]] = []
    for parameter in query.split("&"):
        if parameter:
            name, _, value = parameter.partition("=")
            pairs.append((name, value))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))
