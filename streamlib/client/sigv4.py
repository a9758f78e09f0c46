"""AWS Signature Version 4, from the standard library alone. Pure: the time is an argument.

canonical request -> its SHA-256 -> string to sign -> HMAC chain over date, region and service. The path is encoded once more than it
is sent (`%3A` in the URL is `%253A` in the signature), as every service but S3 wants it.
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
"""Headers that what stands between may change."""


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
    """The headers to add: `x-amz-date`, `authorization` and, with a session token, `x-amz-security-token`."""
    parts, time = urlsplit(url), now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    added = {"x-amz-date": time, **({"x-amz-security-token": token} if token else {})}
    signed = {
        name.lower(): " ".join(value.split())
        for name, value in {**headers, **added, "host": _host(parts)}.items()
    }
    signed = {name: signed[name] for name in sorted(signed) if name not in UNSIGNED}
    names, scope = ";".join(signed), f"{time[:8]}/{region}/{service}/aws4_request"
    lines = (
        method,
        _path(parts.path),
        _query(parts.query),
        *(f"{name}:{value}" for name, value in signed.items()),
        "",
        names,
    )
    request = "\n".join((*lines, sha256(body).hexdigest()))
    to_sign = "\n".join((ALGORITHM, time, scope, sha256(request.encode()).hexdigest()))
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


def _host(parts: SplitResult) -> str:
    """As HTTP libraries send it: without user, and without the scheme's own port."""
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return host if parts.port in (None, usual) else f"{host}:{parts.port}"


def _path(path: str) -> str:
    """Without empty and dot segments, encoded once more."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    slash = "/" if path.endswith("/") and kept else ""
    return quote("/" + "/".join(kept) + slash, safe="/~-_.")


def _query(query: str) -> str:
    """The pairs as they are sent, sorted."""
    return "&".join(
        "=".join(pair)
        for pair in sorted(part.partition("=")[::2] for part in query.split("&") if part)
    )
