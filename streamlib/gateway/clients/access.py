"""Access control, in front of every path of the gateway.

The gateway spends its owner's keys. On 127.0.0.1 it serves everybody on the machine, but no web
page: a page in the owner's browser can send requests there too, under another host's name or from
another origin. On any other address it requires its own token.
"""

from __future__ import annotations

import hmac
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from streamlib.asgi import AsgiExchange, Message, Receive, Scope, Send
from streamlib.client.credentials import Secret
from streamlib.gateway.clients.identity import (
    ClientIdentity,
    digest_of,
    hide_query_token,
    set_identity,
    tokens_of,
)
from streamlib.gateway.clients.named_clients import SCOPE_KEY, ClientTable
from streamlib.gateway.headers import error_headers, status_of
from streamlib.gateway.log_text import log_error
from streamlib.gateway.paths import FORM_PATHS, OPEN_PATHS, OWNER_PATHS, PAGE_PATHS, endpoint_of
from streamlib.wires.encoders import error_body
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi

HEADERS: Final = 128
"""Maximum number of request headers; SDKs send about 25."""

HEADER_BYTES: Final = 64 << 10
"""Maximum size of the names and values of all request headers."""

NoteRefusal: TypeAlias = Callable[[Scope, ErrorInfo, int], None]
"""Is told of each request that is refused: its ASGI scope, the error, the HTTP status."""

_LOCAL_HOST: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
"""A ``Host`` header that names this machine, and nothing beside host and port: `urlsplit` would
accept a user (`user@127.0.0.1`), a scheme and a path."""

_log: Final = logging.getLogger("streamlib.gateway")


def note_nothing(scope: Scope, error: ErrorInfo, status: int) -> None:
    """Takes no notice of a refusal."""


class AccessControl:
    """ASGI middleware that refuses requests which may not use the gateway."""

    def __init__(
        self,
        app: ASGIApp,
        token: Secret | None = None,
        clients: Callable[[], ClientTable] = ClientTable,
        refused: NoteRefusal = note_nothing,
    ) -> None:
        """Wraps an application.

        Args:
            app: receives the requests that are allowed.
            token: what clients must send as their API key.
            clients: those with a token of their own, asked at each request. With neither, everybody
                on this machine may use the gateway, under the machine's own names.
            refused: is told of what is refused.
        """
        self._app = app
        self._refused = refused
        self._token = token
        self._clients = clients

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request (ASGI)."""
        # A `lifespan` scope has no headers; it starts and stops the gateway.
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        tokens = tuple(tokens_of(scope))
        hide_query_token(scope)
        body = _Body(scope, receive, send)
        receive, send = body.receive, body.send
        problem = _header_problem(scope["headers"])
        if problem is None:
            problem = self._problem(scope, tokens)
        if problem is None:
            await _guarded(self._app, scope, receive, send)
            return
        wire_api = wire_of(scope)
        self._refused(scope, problem, status_of(wire_api, problem))
        await refuse(wire_api, problem, AsgiExchange(scope, receive, send))

    def _problem(self, scope: Scope, tokens: Sequence[str]) -> ErrorInfo | None:
        """Why the client may not use the gateway; sets its identity where it may."""
        clients = self._clients()
        if self._token is not None or clients:
            if _is_open(scope):
                return None
            return _token_problem(self._token, clients, scope, tokens)
        headers, scheme = _headers(scope), scope.get("scheme", "http")
        # A name of the attacker's that resolves to 127.0.0.1 (DNS rebinding).
        host = headers.get("host")
        if host is not None and not is_local_host(host):
            return _not_local("host")
        # Browsers send it with every POST. A page of another port or scheme of this machine, and
        # an extension, is another origin.
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"{scheme}://{host}".lower():
            return _not_local("origin")
        if tokens:
            set_identity(scope, ClientIdentity(token_digest=digest_of(tokens[0])))
        return None


def _is_open(scope: Scope) -> bool:
    """Whether a request needs no token: probes of an orchestrator have none, and the page asks for
    it itself."""
    path = _own_path(scope)
    # Any other POST would be served, logged and recorded as a request for a model.
    if scope["method"] == "POST":
        return path in FORM_PATHS
    return path in OPEN_PATHS | PAGE_PATHS


def _own_path(scope: Scope) -> str:
    """The path, without where an application has mounted the gateway."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def _token_problem(
    token: Secret | None, clients: ClientTable, scope: Scope, tokens: Sequence[str]
) -> ErrorInfo | None:
    if token is not None:
        expected = token.reveal().encode()
        matching: str | None = None
        # All are compared, each in constant time: how long it takes tells nothing.
        for sent in tokens:
            if hmac.compare_digest(sent.encode(), expected):
                matching = sent
        if matching is not None:
            set_identity(scope, ClientIdentity(token_digest=digest_of(matching)))
            return None
    client = clients.find(tokens)
    if client is None:
        message = "this gateway requires its own token, sent as the API key"
        return ErrorInfo("authentication", message, code="token")
    if _own_path(scope) in OWNER_PATHS:
        # They are about all clients.
        message = "this path needs the gateway's own token, that of --token-env"
        return ErrorInfo("permission", message, code="token")
    scope[SCOPE_KEY] = client
    set_identity(scope, ClientIdentity(client.name))
    return None


class _Body:
    """Closes the connection of a client that is answered before its body was read to its end.

    What is left of the body would be read as the next request, or be received for ever: a client
    that has no token could drip it.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        headers = dict(scope["headers"])
        has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
        # Over HTTP/2 only the stream ends.
        self._is_unread = has_body and scope["http_version"].startswith("1")
        """Set until the last part of the body was received."""

    async def receive(self) -> Message:
        """The next message of the client (ASGI)."""
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self._is_unread = False
        return message

    async def send(self, message: Message) -> None:
        """Sends a message to the client (ASGI)."""
        if self._is_unread and message["type"] == "http.response.start":
            fields = [field for field in message["headers"] if field[0].lower() != b"connection"]
            message = {**message, "headers": [*fields, (b"connection", b"close")]}
        await self._send(message)


async def _guarded(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Runs the application; a defect of it becomes a line in the log and an error.

    A server would log the exception itself, unescaped: its message may be a client's text.
    """
    started = False

    async def noting_send(message: Message) -> None:
        nonlocal started
        started = True
        await send(message)

    try:
        await app(scope, receive, noting_send)
    except OSError:
        # Some servers raise one when the client has disconnected.
        raise
    except Exception as error:  # noqa: BLE001
        _log.error("the gateway failed: %s", log_error(error))  # escaped
        if not started:
            name = type(error).__name__
            info = ErrorInfo("server_error", f"the gateway failed: {name}")
            await refuse(wire_of(scope), info, AsgiExchange(scope, receive, send))


def _header_problem(headers: Iterable[tuple[bytes, bytes]]) -> ErrorInfo | None:
    """What is wrong with the headers of any request."""
    counts = Counter(name.lower() for name, _ in headers)
    size = sum(len(name) + len(value) for name, value in headers)
    if counts.total() > HEADERS or size > HEADER_BYTES:
        message = f"a request has at most {HEADERS} headers of {HEADER_BYTES} bytes in all"
        return ErrorInfo("request_too_large", message, code="headers")
    for name in (b"host", b"origin"):
        # Which one counts, every program on the way decides in its own way.
        if counts[name] > 1:
            text = name.decode()
            return ErrorInfo("invalid_request", f"several {text} headers", code=text)
    return None


def is_local_host(host: str) -> bool:
    """Whether a ``Host`` header names this machine."""
    return _LOCAL_HOST.fullmatch(host) is not None


def _not_local(header: str) -> ErrorInfo:
    message = f"without a token only this machine is served: {header} names another host"
    return ErrorInfo("permission", message, code=header)


def _headers(scope: Scope) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        headers[name.decode("latin-1").lower()] = value.decode("latin-1")
    return headers


def wire_of(scope: Scope) -> WireApi:
    """The wire of a path, for the format of an error; `chat` where the path is of no wire."""
    path: str = scope["path"]
    # Counts and compactions fail as the requests that they are about.
    endpoint = endpoint_of(path)
    if endpoint is not None:
        return endpoint.match.wire_api
    # Also for Google's other paths.
    if "/interactions/" in path:
        return "interactions"
    if "/v1beta/" in path:
        return "gemini"
    return "chat"


async def refuse(
    wire_api: WireApi,
    error: ErrorInfo,
    exchange: AsgiExchange,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Sends an HTTP error in the format of the wire."""
    body = msgspec.json.encode(error_body(wire_api, error))
    await send_json(exchange, status_of(wire_api, error), body, headers or {})


async def send_json(
    exchange: AsgiExchange, status: int, body: bytes, headers: Mapping[str, str]
) -> None:
    """Sends a complete response with a JSON body."""
    await exchange.respond(status, {"content-type": "application/json", **headers}, body)


def error_response(wire_api: WireApi, error: ErrorInfo) -> Response:
    """The same as `refuse`, for an endpoint that returns a response."""
    status = status_of(wire_api, error)
    return JSONResponse(error_body(wire_api, error), status, headers=error_headers(error))
