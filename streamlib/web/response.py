"""`StreamResponse`: a stream or a run as a response of Starlette, FastAPI or Litestar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import anyio
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from streamlib.errors import StreamError
from streamlib.web.event_sender import EventSender
from streamlib.web.failure_log import log_failure
from streamlib.web.http_errors import error_headers, error_json, http_status, public_error
from streamlib.web.public_errors import ErrorText, public_text
from streamlib.web.request_errors import UIRequestError
from streamlib.web.sources import (
    AnyEncoder,
    EventSource,
    OnDone,
    UIProtocol,
    encoder_for,
    stream_headers,
)
from streamlib_parsers.errors import ErrorInfo

PING: Final = 15.0
"""Seconds of silence before a ping: proxies close a silent connection after 30 or 60."""


class StreamResponse(Response):
    """Streams a response of a model, or a run of several, to a front end.

        @app.post("/chat")
        async def chat(request: Request) -> StreamResponse:
            return StreamResponse(client.stream(prompt, model), "vercel")

    The stream is entered when the response is sent. If it fails before its first event, the status
    is the provider's own (401, 429 …), with `Retry-After` and a JSON body; later failures are in
    the stream. When the browser leaves, the connection to the model is closed, while the model is
    silent too.
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
            stream: A `ResponseStream`, or a run such as ``agent(…)``; not entered yet.
            protocol: `vercel`, `agui`, `jsonl` (without what a browser must not see), or an encoder
                such as ``UIRequest.encoder()``.
            ping: Seconds of silence after which a comment is sent, so that no proxy closes the
                connection; None: never.
            on_done: A function, sync or async, that receives the `streamlib.Response` when it has
                ended: complete, failed, or cancelled because the browser left. The end of the
                stream is sent after it, so that the next request finds what it stored.
            error_text: Returns the text of an error. By default a sentence about its kind: the
                provider's own message may name accounts and addresses.
            status_code: The status of a stream that starts.
            headers: Further headers.
            background: A task of Starlette's, run after everything.
        """
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
        output = _AsgiOutput(self, send)
        sender = EventSender(
            self._stream,
            self._encode,
            output,
            ping=self._ping,
            error_text=self._error_text,
            on_done=self._on_done,
        )
        failure: Exception | None = None
        try:
            async with anyio.create_task_group() as group:
                output.scope = group.cancel_scope
                group.start_soon(output.wait_for_disconnect, receive)
                group.start_soon(sender.send_pings)
                try:
                    await sender.transfer()
                except Exception as error:  # noqa: BLE001
                    # Raised below, where no task group wraps it.
                    failure = error
                # The other two tasks wait for what no longer matters.
                group.cancel_scope.cancel()
        except BaseException:
            await sender.finish(is_cancelled=True)
            raise
        try:
            await sender.finish(is_cancelled=False)
        except Exception as error:  # noqa: BLE001
            failure = failure or error
        await output.end()
        if failure is not None:
            raise failure
        if self.background is not None:
            await self.background()


class _AsgiOutput:
    """Sends the parts of one response to the server."""

    def __init__(self, response: StreamResponse, send: Send) -> None:
        self._response = response
        self._send = send
        self.scope = anyio.CancelScope()
        """Scope of the tasks that serve the browser; cancelled when it has left."""
        self._has_left = False
        """The browser has left: nobody reads what is sent."""
        self._is_open = False
        """Status and headers of a stream were sent, and its last byte not yet."""

    async def wait_for_disconnect(self, receive: Receive) -> None:
        """Waits until the browser leaves, and ends the response then."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self._has_left = True
        self.scope.cancel()

    async def _send_message(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:
            # The server's sign that the browser has left (ASGI 2.4).
            self._leave()

    async def start(self) -> None:
        """Sends status and headers of the stream."""
        self._is_open = True
        await self._send_head(self._response.status_code, self._response.raw_headers)

    async def write(self, data: bytes) -> None:
        """Sends bytes of the stream."""
        await self._send_message({"type": "http.response.body", "body": data, "more_body": True})

    async def refuse(self, error: ErrorInfo) -> None:
        """Sends an error in place of the stream, with the headers that are not the stream's."""
        body = error_json(error)
        fields = {**error_headers(error), "content-length": str(len(body))}
        headers = [(name.encode(), value.encode()) for name, value in fields.items()]
        for name, value in self._response.raw_headers:
            if name.decode("latin-1") not in {*fields, *self._response.stream_header_names}:
                headers.append((name, value))
        await self._send_head(http_status(error), headers)
        await self._send_message({"type": "http.response.body", "body": body})

    async def end(self) -> None:
        """Sends the last byte of a stream that was started."""
        if self._is_open and not self._has_left:
            await self._send_message({"type": "http.response.body", "body": b""})

    async def _send_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        await self._send_message(
            {"type": "http.response.start", "status": status, "headers": headers}
        )


def error_response(error: StreamError, error_text: ErrorText = public_text) -> Response:
    """Returns the response to a request that failed before there was a stream.

    Args:
        error: What `Client.stream` or `streamlib.web.parse_ui_request` raised.
        error_text: Returns the text of the error. Errors in a browser's own request keep their
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
