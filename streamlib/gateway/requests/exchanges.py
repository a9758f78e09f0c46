"""What an exchange has of the request that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio

from streamlib.asgi import Scope
from streamlib.gateway.clients.access import wire_of
from streamlib.gateway.clients.identity import identity_of, tokens_of
from streamlib.gateway.targets.streams import GatewayRequest
from streamlib.gateway.watch.observer import AccessRefusal, Exchange, Observer, Watch
from streamlib.recording.masked_bodies import SHORTEST
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.redaction import MASK, redact

TRACE_HEADERS: Final = (b"traceparent", b"tracestate")
"""Headers of W3C Trace Context, by which the gateway's span becomes a child of the client's."""

PATH_CHARACTERS: Final = 200
"""Characters of a path that are shown."""


def watch_of(scope: Scope, request_id: str, observers: Sequence[Observer]) -> Watch:
    """Watches a request that begins to arrive (ASGI scope)."""
    trace_headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in TRACE_HEADERS:
            trace_headers[name.decode()] = value.decode("latin-1")
    exchange = Exchange(
        request_id=request_id,
        wire_api=wire_of(scope),
        client=identity_of(scope).name,
        trace_headers=trace_headers,
    )
    return Watch(exchange, observers)


def masked_path(scope: Scope, path: str) -> str:
    """The path of a request (ASGI scope), limited in length; keys and sent tokens are masked."""
    # A client may have put its key into the path too.
    for token in tokens_of(scope):
        if len(token) >= SHORTEST:
            path = path.replace(token, MASK)
    return redact(path[:PATH_CHARACTERS])


def refusal_of(scope: Scope, error: ErrorInfo, status: int) -> AccessRefusal:
    """What is known of a request that access control refused (ASGI scope)."""
    client = scope.get("client")
    return AccessRefusal(
        reason=error.code or error.kind,
        error=error,
        status=status,
        method=scope["method"],
        path=masked_path(scope, scope["path"]),
        address=client[0] if client else None,
    )


def note_route(watch: Watch, requested: str, route: str | None = None) -> None:
    """What is known of a request while it is read: it may be refused before it is complete.

    Args:
        watch: of the request.
        requested: the model that the client requested.
        route: the pattern of the route; None: not found yet.
    """
    watch.exchange.requested = requested
    watch.exchange.route = route


def note_request(watch: Watch, request: GatewayRequest) -> None:
    """The request was read."""
    exchange = watch.exchange
    exchange.wire_api = request.wire_api
    note_route(watch, request.prompt.model or "", request.rule.model)
    exchange.is_stream = request.is_stream
    exchange.in_background = request.in_background
    watch.started()


def end_unread(watch: Watch, error: BaseException) -> None:
    """The request ended before it was read: its client left, or the gateway failed."""
    if isinstance(error, anyio.get_cancelled_exc_class() | OSError):
        info = ErrorInfo("cancelled", "the client disconnected")
    else:
        info = ErrorInfo("server_error", f"the gateway failed: {type(error).__name__}")
        watch.exchange.status = 500
    end_refused(watch, info)


def end_refused(watch: Watch, error: ErrorInfo) -> None:
    """The request ended with an error of the gateway's own, unless a target was tried."""
    watch.exchange.is_refused = watch.exchange.targets_tried == 0
    watch.ended(error, ())
