"""`StreamResponse`: a stream or a run as a response of Starlette, FastAPI or Litestar."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from streamlib.asgi import AsgiExchange, Receive, Scope, Send, raw_headers
from streamlib.web.event_sender import EventSender, log_failure
from streamlib.web.http_errors import error_headers, error_json, http_status, public_error
from streamlib.web.public_errors import ErrorText, public_text
from streamlib.web.request_body import UIRequestError
from streamlib.web.sources import (
    AnyEncoder,
    EventSource,
    OnDone,
    UIProtocol,
    check_response,
    encoder_for,
    stream_headers,
)
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError

PING: Final = 15.0
"""Seconds of silence before a ping: proxies close a silent connection after 30 or 60."""


class StreamResponse(Response):
    """Streams a response of a model, or a run of several, to a front end.

        @app.post("/chat")
        async def chat(request: Request) -> StreamResponse:
            return StreamResponse(client.stream(prompt, model), "vercel")

    The stream is entered when the response is sent. If it fails before its first event, the status
    is one that the page can act on (429, 503, 504) or 502, with `Retry-After` and a JSON body;
    later failures are in the stream. When the browser leaves, the connection to the model is
    closed, while the model is silent too.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        stream: EventSource,
        protocol: UIProtocol | AnyEncoder,
        *,
        ping: float | None = PING,
        on_done: OnDone | None = None,
        error_text: ErrorText = public_text,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        background: BackgroundTask | None = None,
    ) -> None:
        """Makes the response; nothing is sent yet.

        Args:
            stream: a `ResponseStream`, or a run such as ``agent(…)``; not entered yet.
            protocol: `vercel`, `agui`, `jsonl` (without what a browser must not see), or an encoder
                such as ``UIRequest.encoder()``.
            ping: seconds of silence after which a comment is sent, so that no proxy closes the
                connection; None: never.
            on_done: a function, sync or async, that receives the `streamlib.Response` when it has
                ended: complete, failed, or cancelled because the browser left. The end of the
                stream is sent after it, so that the next request finds what it stored.
            error_text: returns the text of an error. By default a sentence about its kind: the
                provider's own message may name accounts and addresses.
            status_code: the status of a stream that starts.
            headers: further headers.
            background: a task of Starlette's, run after everything.
        """
        check_response(stream, ping, on_done, error_text)
        self._stream = stream
        self._encode = encoder_for(protocol, stream)
        self._ping = ping
        self._on_done = on_done
        self._error_text = error_text
        self.status_code = status_code
        self.background = background
        self.media_type = self._encode.media_type
        # As a header, so that Starlette adds no charset to it.
        fields = {"content-type": self.media_type, **stream_headers(self._encode)}
        self.stream_header_names = frozenset(fields)
        """Names of headers that are left out when an error is sent in place of the stream."""
        for name, value in (headers or {}).items():
            fields[name.lower()] = value
        self.init_headers(fields)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves the response (ASGI)."""
        exchange = AsgiExchange(scope, receive, send, lambda: (self.status_code, self.raw_headers))
        sender = EventSender(
            self._stream,
            self._encode,
            exchange,
            functools.partial(self._refuse, exchange),
            ping=self._ping,
            error_text=self._error_text,
            on_done=self._on_done,
        )
        await sender.serve()
        if self.background is not None:
            await self.background()

    async def _refuse(self, exchange: AsgiExchange, error: ErrorInfo) -> None:
        """Sends an error in place of the stream, with the headers that are not the stream's."""
        fields = error_headers(error)
        headers = raw_headers(fields)
        for name, value in self.raw_headers:
            if name.decode("latin-1") not in {*fields, *self.stream_header_names}:
                headers.append((name, value))
        await exchange.respond(http_status(error), headers, error_json(error))


def error_response(error: StreamError, error_text: ErrorText = public_text) -> Response:
    """The response to a request that failed before there was a stream.

    Args:
        error: what `Client.stream` or `streamlib.web.parse_ui_request` raised.
        error_text: returns the text of the error. Errors in a browser's own request keep their
            message.
    """
    info = error.info
    if not isinstance(error, UIRequestError):
        log_failure(info)
        info = public_error(info, error_text)
    return Response(error_json(info), http_status(info), error_headers(info))


async def on_stream_error(request: Request, error: Exception) -> Response:
    """Handles `StreamError` for a whole application, as `error_response` does.

    app = FastAPI(exception_handlers={StreamError: on_stream_error})
    """
    if not isinstance(error, StreamError):
        raise error
    return error_response(error)
