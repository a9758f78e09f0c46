"""One request of one client: the model's stream, translated into the client's wire.

    request ── stream of a target ── first event ── headers ── bytes … ── end
                 │ failed before its first event: the next target, else an HTTP error
                 └ silent for `keep_alive` seconds: headers and a keep-alive; a later failure is
                   an error inside the stream

A client that disconnects cancels the reading, which closes the connection to the provider; one that
reads slowly slows the reading from the provider.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from streamlib.asgi import UNBUFFERED, AsgiExchange, Head, Pings
from streamlib.gateway.clients.access import refuse, send_json
from streamlib.gateway.clients.admission import own_limits
from streamlib.gateway.headers import (
    MODEL,
    error_headers,
    id_header,
    limit_headers,
    report_header,
    status_of,
)
from streamlib.gateway.log_text import log_error, log_name
from streamlib.gateway.requests.open_streams import STOPPING
from streamlib.gateway.targets.pool import Slot
from streamlib.gateway.targets.streams import (
    GatewayRequest,
    Services,
    TargetStreams,
    hide_missing_key,
)
from streamlib.gateway.watch.observer import Watch
from streamlib.gateway.watch.request_log import FIELDS, error_text, failed_target_fields
from streamlib.pipeline.attempts import Opened
from streamlib.providers.wire_specs import gateway_spec
from streamlib.request.report import Change
from streamlib.wires.encoders import Encoder, encode_body, encoder
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Completed, Failed, RateLimits, ResponseEvent

_log: Final = logging.getLogger("streamlib.gateway")


class RequestHandler:
    """Serves one request. `run` once; then `error` and `targets` describe the result."""

    def __init__(
        self,
        request: GatewayRequest,
        asgi: AsgiExchange,
        services: Services,
        watch: Watch,
    ) -> None:
        self.request = request
        self.error: ErrorInfo | None = None
        """What ended the request, unless it succeeded."""
        self.targets = TargetStreams(request, services, watch)
        self._exchange = watch.exchange
        self._services = services
        self._asgi = asgi
        """The HTTP exchange with the client."""
        asgi.head = self._stream_head
        # The encoders are pure: they read no clock.
        self._body_options: dict[str, Any] = {"created_at": int(time.time())}
        """What a response has of its time and its request, for `encode_body`."""
        if request.settings is not None:
            self._body_options.update(settings=request.settings, clock=time.time)
        self._encoder = self._new_encoder()
        self._limit_headers: dict[str, str] = {}
        """Rate limits of the target, once it has responded."""

    def _new_encoder(self) -> Encoder:
        wire_api, model = self.request.wire_api, self.request.prompt.model
        options: dict[str, Any] = {}
        if gateway_spec(wire_api).is_dated:
            options = self._body_options
        options = {**options, **self.request.encoder_options}
        sse: Encoder = encoder(wire_api, model=model, **options)
        if self.request.is_json_array:
            return JsonArray(sse)
        return sse

    async def run(self) -> None:
        """Serves the request, until its end or until the client disconnects."""
        pings: Pings | None = None
        # One JSON body has no place for a keep-alive.
        if self.request.is_stream:
            pings = Pings(self._encoder.ping, self._services.keep_alive)
        async with self._asgi.while_connected(pings, self._end_early):
            try:
                await self._try_targets()
            except Exception as error:  # noqa: BLE001
                # A defect here must not truncate the stream without an error.
                text = log_error(error)
                _log.error("%s failed inside the gateway: %s", self.request.request_id, text)
                name = type(error).__name__
                await self._send_error(ErrorInfo("server_error", f"the gateway failed: {name}"))
        if self._asgi.client_left and self.error is None:
            self.error = ErrorInfo("cancelled", "the client disconnected")

    async def _end_early(self) -> None:
        """Ends a stream that the gateway does not finish, unless it has its error already."""
        if self.error is None:
            await self._send_error(STOPPING)

    # --- targets ---

    async def _try_targets(self) -> None:
        seconds = self.request.rule.queue_seconds
        attempts = self._services.pool.attempts(self.request.targets, seconds)
        async for slot in attempts:
            if attempts.failures:
                self._log_failure(attempts.failures[-1])
            with slot:
                failure = await self._try(slot)
                slot.ended(failure or self.error)
            if failure is not None:
                attempts.failed(failure)
        if attempts.failure is not None:
            await self._send_error(attempts.failure)

    def _log_failure(self, error: ErrorInfo) -> None:
        model = self.targets.model
        _log.info(
            "%s %s failed with %s: trying the next target",
            self.request.request_id,
            log_name(model),
            error_text(error, self._exchange.upstream_request_id),
            extra={FIELDS: failed_target_fields(self._exchange, model, error)},
        )

    async def _try(self, slot: Slot) -> ErrorInfo | None:
        """Sends the response of one target.

        Returns:
            The failure, if nothing of it was sent, so that another target may be tried; else None.
        """
        async with self.targets.opened(slot) as opened:
            if opened.failure is not None:
                return opened.failure
            if not self.request.is_stream:
                return await self._send_body(opened)
            self._limit_headers = self._limits_of(self.targets.rate_limits)
            async for batch in opened:
                await self._write_events(batch)
        await self._asgi.write(self._encoder.close(), more=False)
        self.targets.report += self._encoder.report
        self.targets.report_translation()
        return None

    async def _write_events(self, batch: list[ResponseEvent]) -> None:
        """Writes the events of one read at once."""
        last = batch[-1]
        if isinstance(last, Failed):
            self.error = last.error
        elif isinstance(last, Completed):
            await self.targets.store_state()
        encode = self._encoder.feed
        # One write for all events of a read: each is a system call and a chunk on the socket.
        data = b"".join([encode(event) for event in self.targets.client_events(batch)])
        await self._asgi.write(data)

    async def _send_body(self, opened: Opened) -> ErrorInfo | None:
        accumulator = Accumulator()
        async for batch in opened:
            for event in self.targets.client_events(batch):
                accumulator.feed(event)
        response = accumulator.response
        # Nothing was sent yet, so that the next target may be tried.
        if response.error is not None:
            return response.error
        await self.targets.store_state()
        wire_api, model = self.request.wire_api, self.request.prompt.model
        report, options = self.targets.report, self._body_options
        body = encode_body(wire_api, response, model=model, report=report, **options)
        self.targets.report_translation()
        await self._send_whole(body, response.rate_limits)
        return None

    # --- bytes to the client ---

    async def _send_whole(
        self,
        body: bytes,
        limits: RateLimits | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Sends a response that is one JSON body.

        Args:
            body: the response.
            limits: the target's rate limits.
            headers: beside those of every response.
        """
        fields = self._response_headers()
        fields.update(self._limits_of(limits))
        fields.update(headers or {})
        self._exchange.status = 200
        await send_json(self._asgi, 200, body, fields)

    def _response_headers(self) -> dict[str, str]:
        headers = id_header(self.request.wire_api, self.request.request_id)
        headers.update(report_header(self.targets.report))
        if self.targets.model:
            # Model names may hold any character, headers only ASCII.
            headers[MODEL] = quote(self.targets.model, safe=":/@")
        return headers

    def _limits_of(self, reported: RateLimits | None) -> dict[str, str]:
        limits = own_limits(self.request.admission, reported)
        return limit_headers(self.request.wire_api, limits, datetime.now(UTC))

    def _stream_head(self) -> Head:
        headers = {"content-type": self._encoder.media_type, **UNBUFFERED}
        headers.update(self._response_headers())
        headers.update(self._limit_headers)
        self._exchange.status = 200
        return 200, headers

    async def _send_error(self, error: ErrorInfo) -> None:
        """Sends a failure in the client's wire: an HTTP error, or inside the started stream."""
        self.error = error
        error = hide_missing_key(error)
        if self._asgi.is_started:
            data = self._encoder.feed(Failed(error)) + self._encoder.close()
            await self._asgi.write(data, more=False)
            return
        wire_api = self.request.wire_api
        headers = self._response_headers()
        headers.update(self._limits_of(self.targets.rate_limits))
        headers.update(error_headers(error))
        self._exchange.status = status_of(wire_api, error)
        await refuse(wire_api, error, self._asgi, headers)


class JsonArray:
    """Writes the events of an SSE encoder as the elements of a JSON array."""

    media_type = "application/json"

    def __init__(self, inner: Encoder) -> None:
        self.report: list[Change] = inner.report
        """The inner encoder's."""
        self._inner = inner
        self._has_elements = False
        """Whether the array was opened, with its first element."""

    def feed(self, event: ResponseEvent) -> bytes:
        """The bytes of one event; empty if it is buffered or cannot be encoded."""
        return self._elements(self._inner.feed(event))

    def close(self) -> bytes:
        """The last elements and the end of the array."""
        last = self._elements(self._inner.close())
        if self._has_elements:
            return last + b"]"
        return b"[]"

    def ping(self) -> bytes:
        """White space, which is allowed between elements."""
        return b"\n"

    def _elements(self, stream: bytes) -> bytes:
        elements: list[bytes] = []
        for frame in stream.split(b"\n\n"):
            # What follows the last blank line is empty.
            if frame:
                # JSON that has line breaks is sent in several `data` lines.
                elements.append(frame.removeprefix(b"data: ").replace(b"\ndata: ", b"\n"))
        if not elements:
            return b""
        separator = b"["
        if self._has_elements:
            separator = b","
        self._has_elements = True
        return separator + b",\r\n".join(elements)
