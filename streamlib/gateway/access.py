"""Who may ask, and how much: in front of everything else, and the same for every path.

The gateway spends its owner's keys. On 127.0.0.1 it answers whoever is on the machine, but no web page: a page in the owner's browser
can send requests there too, under another host's name or from another origin. Anywhere else it wants its own token.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from streamlib.client.credentials import Secret
from streamlib.client.origins import LOOPBACK
from streamlib.errors import StreamError, invalid_request
from streamlib.gateway.headers import status_of
from streamlib.wires.encoders import error_body
from streamlib.wires.routes import route
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi

BODY_BYTES: Final = 32 << 20
"""The largest request that is read: what the largest of the providers takes."""
DEPTH: Final = 100
"""Brackets within brackets: tools' schemas need a dozen."""
TOKEN_HEADERS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
"""Where the SDKs put their key, which here is the gateway's token."""
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKETS: Final = b"[]{}"
_OTHERS: Final = bytes(set(range(256)) - set(_BRACKETS))


class AccessControl:
    """Refuses what may not ask. token: None where everyone on this machine may, under the machine's own names."""

    def __init__(self, app: ASGIApp, token: Secret | None = None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        problem = self._problem(_headers(scope)) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await refuse(wire_of(scope), problem, send)

    def _problem(self, headers: Mapping[str, str]) -> ErrorInfo | None:
        if self._token is not None:
            given = [
                headers.get(name, "").removeprefix("Bearer ").strip() for name in TOKEN_HEADERS
            ]
            token = self._token.reveal().encode()
            right = [hmac.compare_digest(one.encode(), token) for one in given]
            return (
                None
                if any(right)
                else ErrorInfo(
                    "authentication",
                    "this gateway wants its own token, as the API key",
                    code="token",
                )
            )
        for name in ("host", "origin"):
            if name in headers and not _is_local(headers[name]):
                return ErrorInfo(
                    "permission",
                    f"without a token only this machine may ask: the {name} is another",
                    code=name,
                )
        return None


def _is_local(place: str) -> bool:
    try:
        return urlsplit(place if "//" in place else f"//{place}").hostname in LOOPBACK
    except ValueError:
        return False


def _headers(scope: Scope) -> dict[str, str]:
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }


def wire_of(scope: Scope) -> WireApi:
    """The wire of a path, for the shape of an error; OpenAI's where it is none."""
    found = route(scope["path"].removesuffix("/count_tokens"))
    return found.wire_api if found else "gemini" if "/v1beta/" in scope["path"] else "chat"


async def refuse(
    wire_api: WireApi, error: ErrorInfo, send: Send, headers: Mapping[str, str] | None = None
) -> None:
    """An HTTP error in the wire's own shape."""
    body = msgspec.json.encode(error_body(wire_api, error))
    await send_whole(send, status_of(wire_api, error), body, headers or {})


async def send_whole(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    """A whole JSON body."""
    given: dict[str, str] = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **headers,
    }
    head: Any = [
        (name.encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in given.items()
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def read_body(scope: Scope, receive: Receive, limit: int = BODY_BYTES) -> bytes:
    """The request's body, within its limits. Raises `StreamError` (request_too_large, invalid_request)."""
    length = _headers(scope).get("content-length", "0")
    parts: list[bytes] = []
    size = int(length) if length.isdigit() else 0
    more = size <= limit
    size = size if not more else 0
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = (
            message["type"] == "http.request" and message.get("more_body", False) and size <= limit
        )
    if size > limit:
        raise StreamError(
            ErrorInfo("request_too_large", f"a request has at most {limit} bytes here", code="body")
        )
    return checked_depth(b"".join(parts))


def checked_depth(body: bytes, limit: int = DEPTH) -> bytes:
    """The body, where its brackets are not nested deeper than any honest request's."""
    depth = 0
    for bracket in _STRING.sub(b"", body).translate(None, _OTHERS):
        depth += 1 if bracket in b"[{" else -1
        if depth > limit:
            raise invalid_request(f"JSON is nested at most {limit} deep here", "nesting")
    return body
