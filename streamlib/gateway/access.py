"""Access control and request limits, in front of every path of the gateway.

The gateway spends its owner's keys. On 127.0.0.1 it serves everybody on the machine, but no web
page: a page in the owner's browser can send requests there too, under another host's name or from
another origin. On any other address it requires its own token.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from streamlib.client.credentials import Secret
from streamlib.client.origins import LOOPBACK
from streamlib.errors import StreamError, invalid_request
from streamlib.gateway.headers import raw_headers, status_of
from streamlib.wires.encoders import error_body
from streamlib.wires.routes import route
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi

BODY_BYTES: Final = 32 << 20
"""Maximum size of a request body: that of the provider with the highest limit."""

DEPTH: Final = 100
"""Maximum nesting of JSON: schemas of tools need a dozen levels."""

TOKEN_HEADERS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
"""Headers in which the SDKs of OpenAI, Anthropic, Google and Azure send their API key, which here
is the gateway's token."""

# Brackets inside a string nest nothing. The last quote is optional: a truncated string ends with
# the body.
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_OPENING: Final = b"[{"
_OTHER_BYTES: Final = bytes(set(range(256)) - set(b"[]{}"))


class AccessControl:
    """ASGI middleware that refuses requests which may not use the gateway."""

    def __init__(self, app: ASGIApp, token: Secret | None = None) -> None:
        """Wraps an application.

        Args:
            app: receives the requests that are allowed.
            token: what clients must send as their API key. None: everybody on this machine may use
                the gateway, under the machine's own names.
        """
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request (ASGI)."""
        problem = None
        # A `lifespan` scope has no headers; it starts and stops the gateway.
        if scope["type"] == "http":
            problem = self._problem(_headers(scope))
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await refuse(wire_of(scope), problem, send)

    def _problem(self, headers: Mapping[str, str]) -> ErrorInfo | None:
        if self._token is not None:
            return self._token_problem(self._token, headers)
        # Host: a name of the attacker's that resolves to 127.0.0.1 (DNS rebinding). Origin: a page
        # of another site; browsers send it with every POST.
        for name in ("host", "origin"):
            if name in headers and not _is_local(headers[name]):
                message = f"without a token only this machine is served: the {name} is another"
                return ErrorInfo("permission", message, code=name)
        return None

    def _token_problem(self, token: Secret, headers: Mapping[str, str]) -> ErrorInfo | None:
        expected = token.reveal().encode()
        matches = False
        # All headers are compared, each in constant time: how long it takes tells nothing.
        for name in TOKEN_HEADERS:
            sent = headers.get(name, "").removeprefix("Bearer ").strip()
            if hmac.compare_digest(sent.encode(), expected):
                matches = True
        if matches:
            return None
        message = "this gateway requires its own token, sent as the API key"
        return ErrorInfo("authentication", message, code="token")


def _is_local(address: str) -> bool:
    """Whether a ``Host`` or `Origin` header names this machine."""
    url = address
    # A ``Host`` has no scheme; without slashes `urlsplit` would take it for a path.
    if "//" not in url:
        url = f"//{url}"
    try:
        return urlsplit(url).hostname in LOOPBACK
    except ValueError:
        # A bracket without its pair: no valid IPv6 address.
        return False


def _headers(scope: Scope) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        headers[name.decode("latin-1").lower()] = value.decode("latin-1")
    return headers


def wire_of(scope: Scope) -> WireApi:
    """The wire of a path, for the format of an error; `chat` where the path is of no wire."""
    path: str = scope["path"]
    # Token counts are Anthropic's: their errors are those of `/v1/messages`.
    match = route(path.removesuffix("/count_tokens"))
    if match is not None:
        return match.wire_api
    # Also for Gemini's paths that the gateway does not serve, such as `:countTokens`.
    if "/v1beta/" in path:
        return "gemini"
    return "chat"


async def refuse(
    wire_api: WireApi, error: ErrorInfo, send: Send, headers: Mapping[str, str] | None = None
) -> None:
    """Sends an HTTP error in the format of the wire."""
    body = msgspec.json.encode(error_body(wire_api, error))
    await send_json(send, status_of(wire_api, error), body, headers or {})


async def send_json(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    """Sends a complete response with a JSON body."""
    fields = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    start = {"type": "http.response.start", "status": status, "headers": raw_headers(fields)}
    await send(start)
    await send({"type": "http.response.body", "body": body})


async def read_body(scope: Scope, receive: Receive, limit: int = BODY_BYTES) -> bytes:
    """Reads a request body, within the limits of size and nesting.

    Raises:
        StreamError: it is too large (`request_too_large`) or nested too deeply
            (`invalid_request`).
    """
    # Refused before a byte of it is read. Chunked bodies declare nothing.
    declared = _headers(scope).get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    has_more = True
    while has_more:
        message = await receive()
        chunk: bytes = message.get("body", b"")
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        # A client that disconnects leaves a truncated body, which the decoder refuses.
        has_more = message["type"] == "http.request" and message.get("more_body", False)
    body = b"".join(chunks)
    check_depth(body)
    return body


def _too_large(limit: int) -> StreamError:
    message = f"the request body exceeds {limit} bytes"
    return StreamError(ErrorInfo("request_too_large", message, code="body"))


def check_depth(body: bytes, limit: int = DEPTH) -> None:
    """Refuses JSON that is nested deeper than any real request, before a decoder reads it.

    Raises:
        StreamError: `invalid_request`.
    """
    # `sub` and `translate` run in C; the loop sees brackets only.
    depth = 0
    for bracket in _STRING.sub(b"", body).translate(None, _OTHER_BYTES):
        if bracket in _OPENING:
            depth += 1
        else:
            depth -= 1
        if depth > limit:
            raise invalid_request(f"JSON is nested deeper than {limit} levels", "nesting")
