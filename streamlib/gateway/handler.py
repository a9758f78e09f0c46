"""One request of one client: the model's stream, translated into the client's wire.

    request ── stream of a target ── first event ── headers ── bytes … ── end
                 │ failed before its first event: the next target, else an HTTP error
                 └ silent for `keep_alive` seconds: headers and a keep-alive; a later failure is
                   an error inside the stream

A request has three tasks, however many events: one reads and writes, one waits for the client to
disconnect, one sleeps until a keep-alive is due. A client that disconnects cancels the first, which
closes the connection to the provider; one that reads slowly slows the reading from the provider.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlsplit

import anyio
import msgspec
from msgspec import Struct
from starlette.types import Receive, Send

from streamlib.client import Client
from streamlib.client.stream import RETRY_SAFE_EVENTS, ResponseStream
from streamlib.client.stream_timing import TOKEN_EVENTS
from streamlib.errors import StreamError
from streamlib.gateway.access import refuse, send_json
from streamlib.gateway.envelopes import hashed_origins
from streamlib.gateway.headers import (
    MODEL,
    error_headers,
    id_header,
    limit_headers,
    raw_headers,
    report_header,
)
from streamlib.gateway.json_array import JsonArray
from streamlib.gateway.log_text import log_error, log_name, log_text
from streamlib.gateway.request_body import Workers
from streamlib.gateway.restore import restore_history
from streamlib.gateway.routes import RouteRule, RouteTarget, apply_rule_limits, apply_rule_settings
from streamlib.gateway.translate import EventTranslator, QualifiedName
from streamlib.providers.wire_specs import gateway_spec
from streamlib.request.prompt import Prompt
from streamlib.request.report import Change
from streamlib.wires.encoders import Encoder, encode_body, encoder
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo, ErrorKind
from streamlib_parsers.events import Completed, Created, Failed, ResponseEvent
from streamlib_parsers.items import Origin, ResponseItem, WireApi

REQUEST_FAULTS: Final[frozenset[ErrorKind]] = frozenset(
    {"invalid_request", "invalid_history", "request_too_large", "content_filter", "cancelled"}
)
"""Failures that another target would not prevent."""

LOGGED_MESSAGES: Final[frozenset[ErrorKind]] = frozenset(
    {"connection", "stalled", "deadline", "authentication", "permission"}
)
"""Failures whose messages are the library's own and reveal no content: the log has them."""

LOGGED_CHANGES: Final = 100
"""Changes of a report that are looked at for the log, which shows some ten."""

STREAM_HEADERS: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}
"""Nothing between the gateway and the client may store or buffer a stream; nginx reads the
second."""

_log: Final = logging.getLogger("streamlib.gateway")


class GatewayRequest(Struct, frozen=True, kw_only=True):
    """A decoded request of a client.

    Attributes:
        wire_api: the client's wire.
        prompt: with the model that the client requested.
        rule: the route.
        hops: the targets of the route, in the order in which they are tried.
        is_stream: the client wants a stream, not one body.
        request_id: names the request in the log and in the response headers.
        is_json_array: the stream is a JSON array (Gemini without `alt=sse`).
        size: bytes of the request body.
    """

    wire_api: WireApi
    prompt: Prompt
    rule: RouteRule
    hops: Sequence[RouteTarget]
    is_stream: bool
    request_id: str
    is_json_array: bool = False
    size: int = 0

    @property
    def custom_tools(self) -> frozenset[QualifiedName]:
        """Namespaces and names of the free-form tools."""
        names: set[QualifiedName] = set()
        for tool in self.prompt.tools:
            if tool.format is not None:
                names.add((None, tool.name))
            for member in tool.tools:
                if member.format is not None:
                    names.add((tool.name, member.name))
        return frozenset(names)


def restored_prompt(request: GatewayRequest) -> Prompt:
    """The prompt for all targets of a request.

    Items get their origins back. An item with an envelope gets the origin in it. Any other is taken
    to be the first target's, if that target has the client's wire: its responses are sent
    unchanged, without envelopes.
    """
    wire_api = request.wire_api
    # All of them: after a fallback the history has items of several.
    origins = [hop.target.origin for hop in request.hops]
    items = restore_history(request.prompt.items, hashed_origins(origins))
    if origins[0].wire_api == wire_api:
        items = [_with_origin(item, wire_api, origins[0]) for item in items]
    prompt = msgspec.structs.replace(request.prompt, input=tuple(items), model=None, stream=None)
    return apply_rule_limits(prompt, request.rule)


def prompt_for(request: GatewayRequest, restored: Prompt, hop: RouteTarget) -> Prompt:
    """The prompt for one target.

    Args:
        request: the client's.
        restored: what `restored_prompt` returned for it.
        hop: the target.

    Raises:
        StreamError: the target cannot serve the request.
    """
    if hop.target.wire_api != request.wire_api:
        _refuse_stored_state(request)
    prompt = restored
    # Betas are Anthropic's own: whoever else has the wire refuses them, or learns of them.
    if not takes_betas(hop):
        prompt = msgspec.structs.replace(prompt, headers={})
    return apply_rule_settings(prompt, request.rule, hop.target.wire_api)


def takes_betas(hop: RouteTarget) -> bool:
    """Whether a target gets the `anthropic-beta` of a client."""
    return hop.provider.name == "anthropic" and hop.target.wire_api == "messages"


def _refuse_stored_state(request: GatewayRequest) -> None:
    """Refuses fields that name what the client's own provider stores: another has no such thing."""
    extra = request.prompt.extra or {}
    for name in gateway_spec(request.wire_api).stateful_fields:
        if extra.get(name):
            message = (
                f"{name} names state that only {request.wire_api} providers store: "
                "send the history itself"
            )
            raise StreamError(ErrorInfo("invalid_request", message, code=name))


def _with_origin(item: ResponseItem, wire_api: WireApi, origin: Origin) -> ResponseItem:
    """The item with an origin, if the decoder knew no more than its wire."""
    if item.origin is None or item.origin.provider is not None:
        return item
    if item.origin.wire_api != wire_api:
        return item
    return msgspec.structs.replace(item, origin=origin)


class RequestHandler:
    """Serves one request. `run` once; then `summary` describes the result."""

    def __init__(
        self,
        request: GatewayRequest,
        client: Client,
        send: Send,
        keep_alive: float,
        workers: Workers,
    ) -> None:
        self.request = request
        self.model = ""
        """`provider:model` of the target that was tried last."""
        self.base_url: str | None = None
        """The address that the route has for it; None: its provider's own."""
        self.error: ErrorInfo | None = None
        """What ended the request, unless it succeeded."""
        self.stream: ResponseStream | None = None
        """The stream of the target that was tried last."""
        self.report: list[Change] = []
        """Changes to the request for that target, later those to its response too."""
        self._client = client
        self._workers = workers
        self._restored: Prompt | None = None
        """The prompt for all targets, once the first is tried."""
        self._send = send
        self._keep_alive = keep_alive
        self._encoder = self._new_encoder()
        self._limit_headers: dict[str, str] = {}
        """Rate limits of the target, once it has responded."""
        self._started = False
        """Set when the headers are sent: from then on a failure is part of the stream."""
        self._ended = False
        """Set when the last byte was sent: a client that disconnects then has it all."""
        self._last_write = anyio.current_time()
        self._write_lock = anyio.Lock(fast_acquire=True)
        """Held while the server takes bytes; the keep-alive task writes too."""

    def _new_encoder(self) -> Encoder:
        wire_api, model = self.request.wire_api, self.request.prompt.model
        # The encoders are pure: they read no clock.
        if gateway_spec(wire_api).is_dated:
            return encoder(wire_api, model=model, created_at=int(time.time()))
        sse = encoder(wire_api, model=model)
        if self.request.is_json_array:
            return JsonArray(sse)
        return sse

    async def run(self, receive: Receive) -> None:
        """Serves the request, until its end or until the client disconnects."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._wait_for_disconnect, receive, group.cancel_scope)
            # One JSON body has no place for a keep-alive.
            if self.request.is_stream:
                group.start_soon(self._send_keep_alives)
            try:
                await self._try_hops()
            except OSError as error:
                # Some servers raise one when the client has disconnected.
                name = type(error).__name__
                self.error = ErrorInfo("cancelled", f"the client disconnected: {name}")
            except Exception as error:  # noqa: BLE001
                # A defect here must not truncate the stream without an error.
                text = log_error(error)
                _log.error("%s failed inside the gateway: %s", self.request.request_id, text)
                name = type(error).__name__
                await self._send_error(ErrorInfo("server_error", f"the gateway failed: {name}"))
            # The other two tasks wait for what no longer matters.
            group.cancel_scope.cancel()

    async def _wait_for_disconnect(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        # Servers report a disconnect after a complete response too.
        if not self._ended and self.error is None:
            self.error = ErrorInfo("cancelled", "the client disconnected")
        scope.cancel()

    async def _send_keep_alives(self) -> None:
        seconds = self._keep_alive
        while True:
            await anyio.sleep(seconds)
            seconds = self._last_write + self._keep_alive - anyio.current_time()
            if seconds > 0:
                continue
            seconds = self._keep_alive
            # While a write is blocked the client is not reading: it has bytes waiting already.
            if not self._write_lock.locked():
                await self._write(self._encoder.ping())

    # --- targets ---

    async def _try_hops(self) -> None:
        failure: ErrorInfo | None = None
        for hop in self.request.hops:
            if failure is not None:
                _log.info(
                    "%s %s failed with %s: trying the next target",
                    self.request.request_id,
                    log_name(self.model),
                    failure.kind,
                )
            self.model = f"{hop.provider.name}:{hop.target.model}"
            self.base_url = hop.base_url
            failure = await self._try(hop)
            if failure is None:
                return
            # Two responses in one stream would be worse than a failure. A keep-alive, too, starts
            # the stream.
            if failure.kind in REQUEST_FAULTS or self._started:
                break
        if failure is not None:
            await self._send_error(failure)

    async def _try(self, hop: RouteTarget) -> ErrorInfo | None:
        """Sends the response of one target.

        Returns:
            The failure, if nothing was sent yet, so that another target may be tried; else None.
        """
        try:
            self.stream = await self._workers.run(self.request.size, self._open_stream, hop)
        except StreamError as error:
            return error.info
        self.report = list(self.stream.request.report)
        async with self.stream as stream:
            translator = self._new_translator(stream)
            if self.request.is_stream:
                return await self._send_stream(stream, translator)
            return await self._send_body(stream, translator)

    def _open_stream(self, hop: RouteTarget) -> ResponseStream:
        """The stream of a target, with its request built and not sent."""
        # Once for all targets.
        if self._restored is None:
            self._restored = restored_prompt(self.request)
        return self._client.stream(
            prompt_for(self.request, self._restored, hop),
            hop.target.model,
            provider=hop.provider,
            wire_api=hop.target.wire_api,
            base_url=hop.base_url,
            api_key=hop.key,
            dialects=self.request.rule.dialects,
            errors="event",
        )

    def _new_translator(self, stream: ResponseStream) -> EventTranslator | None:
        """The translator of a target's events; None where they are sent as they are.

        That is the first target on the client's own wire: `prompt_for` recognises its items without
        envelopes.
        """
        is_first_target = stream.request.origin == self.request.hops[0].target.origin
        if is_first_target and stream.request.wire_api == self.request.wire_api:
            return None
        return EventTranslator(self.request.wire_api, self.request.custom_tools)

    async def _send_stream(
        self, stream: ResponseStream, translator: EventTranslator | None
    ) -> ErrorInfo | None:
        batches = aiter(stream.batches())
        first = await _until_first_output(batches)
        last = first[-1]
        # After output, the failure belongs in the stream: the client gets what there is.
        if isinstance(last, Failed) and not self._started:
            has_output = any(type(event) in TOKEN_EVENTS for event in first)
            if not has_output:
                return last.error
        self._limit_headers = limit_headers(
            self.request.wire_api, stream.rate_limits, datetime.now(UTC)
        )
        await self._write_events(first, translator)
        async for batch in batches:
            await self._write_events(batch, translator)
        await self._write(self._encoder.close(), more=False)
        self.report += self._encoder.report
        if translator is not None:
            self.report += translator.report
        return None

    async def _write_events(
        self, batch: list[ResponseEvent], translator: EventTranslator | None
    ) -> None:
        """Writes the events of one read at once."""
        last = batch[-1]
        if isinstance(last, Failed):
            self.error = last.error
        encode = self._encoder.feed
        # One write for all events of a read: each is a system call and a chunk on the socket.
        data = b"".join([encode(event) for event in self._client_events(batch, translator)])
        if data:
            await self._write(data)

    def _client_events(
        self, batch: list[ResponseEvent], translator: EventTranslator | None
    ) -> list[ResponseEvent]:
        """The events for the client's encoder, with the model that the client requested.

        Claude Code takes another name for another model, and leaves that one's reasoning out of its
        next request.
        """
        requested = self.request.prompt.model
        if not self.model.endswith(f":{requested}"):
            batch = [_with_model(event, requested) for event in batch]
        if translator is None:
            return batch
        events: list[ResponseEvent] = []
        for event in batch:
            events += translator.feed(event)
        return events

    async def _send_body(
        self, stream: ResponseStream, translator: EventTranslator | None
    ) -> ErrorInfo | None:
        accumulator = Accumulator()
        async for batch in stream.batches():
            for event in self._client_events(batch, translator):
                accumulator.feed(event)
        response = accumulator.response
        # Nothing was sent yet, so that the next target may be tried.
        if response.error is not None:
            return response.error
        wire_api, model = self.request.wire_api, self.request.prompt.model
        created_at = int(time.time())
        body = encode_body(
            wire_api, response, model=model, report=self.report, created_at=created_at
        )
        if translator is not None:
            self.report += translator.report
        headers = self._response_headers()
        headers.update(limit_headers(wire_api, response.rate_limits, datetime.now(UTC)))
        self._ended = True
        await send_json(self._send, 200, body, headers)
        return None

    # --- bytes to the client ---

    def _response_headers(self) -> dict[str, str]:
        headers = id_header(self.request.wire_api, self.request.request_id)
        headers.update(report_header(self.report))
        if self.model:
            # Model names may hold any character, headers only ASCII.
            headers[MODEL] = quote(self.model, safe=":/@")
        return headers

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        """Writes bytes of the stream, after its headers."""
        async with self._write_lock:
            if not self._started:
                self._started = True
                await self._send_headers()
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
            self._last_write = anyio.current_time()
            self._ended = not more

    async def _send_headers(self) -> None:
        headers = {"content-type": self._encoder.media_type, **STREAM_HEADERS}
        headers.update(self._response_headers())
        headers.update(self._limit_headers)
        await self._send(
            {"type": "http.response.start", "status": 200, "headers": raw_headers(headers)}
        )

    async def _send_error(self, error: ErrorInfo) -> None:
        """Sends a failure in the client's wire: an HTTP error, or inside the started stream."""
        self.error = error
        error = _hide_missing_key(error)
        if self._started:
            data = self._encoder.feed(Failed(error)) + self._encoder.close()
            await self._write(data, more=False)
            return
        wire_api = self.request.wire_api
        headers = self._response_headers()
        if self.stream is not None:
            limits = self.stream.rate_limits
            headers.update(limit_headers(wire_api, limits, datetime.now(UTC)))
        headers.update(error_headers(error))
        await refuse(wire_api, error, self._send, headers)

    # --- the log ---

    def summary(self) -> str:
        """One line for the log: no content, no key."""
        request = self.request
        requested = log_name(request.prompt.model or "")
        used = log_name(self.model)
        line = f"{request.request_id} {request.wire_api} {requested} -> {used}"
        if self.base_url:
            line += f" at {urlsplit(self.base_url).netloc}"
        line += f": {self._result()}, {self._tokens()}"
        # Each path once: a long history has the same change many times.
        changes = {
            f"{change.action} {change.path}": None for change in self.report[:LOGGED_CHANGES]
        }
        if changes:
            line += f", report: {log_text(', '.join(changes))}"
        return line

    def _result(self) -> str:
        if self.error is not None:
            if self.error.kind in LOGGED_MESSAGES:
                return f"{self.error.kind} ({log_text(self.error.message)})"
            return self.error.kind
        if self.stream is None:
            return "nothing"
        return log_name(str(self.stream.response.stop_reason))

    def _tokens(self) -> str:
        if self.stream is None or self.stream.response.usage is None:
            return "no usage"
        usage = self.stream.response.usage
        return f"{usage.input_tokens}+{usage.output_tokens} tokens"


async def _until_first_output(
    batches: AsyncIterator[list[ResponseEvent]],
) -> list[ResponseEvent]:
    """The events up to the first that belongs to a response, or up to its failure."""
    events: list[ResponseEvent] = []
    async for batch in batches:
        events += batch
        for event in batch:
            if type(event) not in RETRY_SAFE_EVENTS or isinstance(event, Failed):
                return events
    return events


def _with_model(event: ResponseEvent, model: str | None) -> ResponseEvent:
    """The event with another model, if it names one."""
    if isinstance(event, (Created, Completed)):
        return msgspec.structs.replace(event, model=model)
    return event


def _hide_missing_key(error: ErrorInfo) -> ErrorInfo:
    """The error for the client, which cannot set a key that the gateway lacks."""
    if error.code != "no_key":
        return error
    message = "the gateway has no key for this model's provider: its log says more"
    return ErrorInfo("server_error", message, code="no_key")
