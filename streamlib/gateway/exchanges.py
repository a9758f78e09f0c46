"""What an exchange has of the request that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
from starlette.types import Scope

from streamlib.gateway.access import wire_of
from streamlib.gateway.identity import identity_of
from streamlib.gateway.observer import Exchange, Observer, Watch
from streamlib.gateway.target_streams import GatewayRequest
from streamlib_parsers.errors import ErrorInfo

TRACE_HEADERS: Final = (b"traceparent", b"tracestate")
"""Headers of W3C Trace Context, by which the gateway's span becomes a child of the client's."""


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


def note_request(watch: Watch, request: GatewayRequest) -> None:
    """The request was read."""
    exchange = watch.exchange
    exchange.wire_api = request.wire_api
    exchange.requested = request.prompt.model or ""
    exchange.route = request.rule.model
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
    watch.ended(info, ())
