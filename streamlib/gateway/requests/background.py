"""Responses in the background: `background: true` of `/v1/responses`, on a log.

    POST /v1/responses {"background": true}               # goes on without its client
    GET /v1/responses/{id}                                # as it is now
    GET /v1/responses/{id}?stream=true&starting_after=N   # from any frame to the end
    POST /v1/responses/{id}/cancel
    DELETE /v1/responses/{id}

Any gateway on the same log serves them, whichever one writes. The log has the events for the
client's encoder; its `meta` has what the encoder needs, and a digest of who created the response.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

import anyio
import msgspec

from streamlib.asgi import SSE_HEADERS, AsgiExchange, Pings, Scope
from streamlib.client.stream import ResponseStream
from streamlib.durable import Head, Log, LogError
from streamlib.durable.records import parse_cursor
from streamlib.gateway.clients.access import refuse, send_json
from streamlib.gateway.clients.identity import identity_of
from streamlib.gateway.headers import id_header
from streamlib.gateway.log_text import log_error, log_text
from streamlib.gateway.requests.open_streams import STOPPING, OpenStreams
from streamlib.gateway.targets.pool import TargetPool, may_succeed_elsewhere
from streamlib.gateway.targets.streams import (
    GatewayRequest,
    Services,
    TargetStreams,
    hide_missing_key,
)
from streamlib.gateway.watch.observer import Watch
from streamlib.pipeline.branches import leave_group
from streamlib.providers.wire_specs import gateway_spec
from streamlib.wires.responses.background import NumberedFrames, StoredResponse, response_object
from streamlib_parsers.accumulate import Accumulator
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import (
    Completed,
    Created,
    Event,
    Failed,
    RateLimits,
    ResponseEvent,
)
from streamlib_parsers.items import JsonObject
from streamlib_parsers.stream_error import StreamError

ID_PREFIX: Final = "resp_gw_"
"""Ids of the gateway's own responses: no provider's look like it."""

RUNNING_LIMIT: Final = 1000
"""Responses that one gateway writes at the same time: their clients need not stay."""

CANCEL_SECONDS: Final = 5.0
"""How long a cancellation waits for the end; its writer may be another gateway, or gone."""

STOP_REASON: Final = "user"

PROJECT_HEADERS: Final = ("openai-organization", "openai-project")
"""What separates the responses of one client."""

_RESPONSE_ID: Final = re.compile(re.escape(ID_PREFIX) + "[0-9a-f]{32}")

_log: Final = logging.getLogger("streamlib.gateway")


class BackgroundWriter:
    """One response on its way from its targets to the log."""

    def __init__(self, targets: TargetStreams, stored: StoredResponse, pool: TargetPool) -> None:
        self.targets = targets
        self.error: ErrorInfo | None = ErrorInfo("cancelled", "the response was stopped")
        """What ended the response, unless it succeeded."""
        self._stored = stored
        self._pool = pool

    async def events(self, first: ResponseStream | None) -> AsyncGenerator[ResponseEvent]:
        """The events of the response, for the client's encoder.

        Args:
            first: the stream of the first target; None if that cannot serve the request.
        """
        request = self.targets.request
        attempts = self._pool.attempts(request.targets, request.rule.queue_seconds)
        async for slot in attempts:
            built, first = first, None
            if slot.target is not request.targets[0]:
                built = None
            with slot:
                async with self.targets.opened(slot, built) as opened:
                    if opened.failure is None:
                        async for batch in opened:
                            if isinstance(batch[-1], Completed):
                                await self.targets.store_state()
                            for event in self._client_events(batch):
                                yield event
                slot.ended(opened.failure or self.error)
            if opened.failure is not None:
                attempts.failed(opened.failure)
        if attempts.failure is not None:
            self.error = attempts.failure
            yield Failed(hide_missing_key(attempts.failure))
            return
        self.targets.report_translation()

    def _client_events(self, batch: list[ResponseEvent]) -> list[ResponseEvent]:
        """The events that are kept, with the response's own id."""
        events: list[ResponseEvent] = []
        for event in self.targets.client_events(batch):
            # The limits of the gateway's key are not the client's business.
            if isinstance(event, RateLimits):
                continue
            if isinstance(event, Completed):
                self.error = None
            elif isinstance(event, Failed):
                self.error = event.error
            events.append(self._with_own_id(event))
        return events

    def _with_own_id(self, event: ResponseEvent) -> ResponseEvent:
        if isinstance(event, (Created, Completed)):
            return msgspec.structs.replace(event, response_id=self._stored.response_id)
        return event


class BackgroundResponses:
    """The background responses of one gateway. Used with `async with`, inside the log's block."""

    def __init__(
        self,
        log: Log,
        services: Services,
        streams: OpenStreams,
        finish: Callable[[TargetStreams, ErrorInfo | None], Awaitable[None]],
    ) -> None:
        """Prepares them.

        Args:
            log: where responses are kept; entered by the caller.
            services: what the gateway's requests share.
            streams: what the gateway ends when it stops.
            finish: called at the end of each response.
        """
        self._durable = log
        self._services = services
        self._streams = streams
        self._finish = finish
        self._group = anyio.create_task_group()
        """The tasks of the writers: they outlive their requests, and end with the gateway."""
        self._writing = OpenStreams()
        """The responses that are written here."""
        self._running: set[str] = set()
        """Ids of the responses that this gateway writes, or watches for others."""

    async def __aenter__(self) -> BackgroundResponses:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        # Each log gets its end: the response was stopped.
        await leave_group(self._group, error)

    @property
    def count(self) -> int:
        """Responses that this gateway writes now."""
        return len(self._writing)

    async def finish(self, seconds: float) -> None:
        """Waits for the responses that this gateway writes.

        Args:
            seconds: at most.
        """
        with anyio.move_on_after(seconds):
            await self._writing.wait_until_empty()

    def stop(self) -> None:
        """Ends the responses that this gateway writes, as failed."""
        self._writing.end()

    # --- creating ---

    async def start(self, request: GatewayRequest, scope: Scope, watch: Watch) -> StoredResponse:
        """Starts a response, whose log exists before anybody hears its id.

        Raises:
            StreamError: no target can serve the request, or the log cannot be written.
        """
        if len(self._running) >= RUNNING_LIMIT:
            message = f"{RUNNING_LIMIT} responses run in the background: try again later"
            raise StreamError(ErrorInfo("overloaded", message, code="background"))
        stored = StoredResponse(
            response_id=ID_PREFIX + secrets.token_hex(16),
            model=request.prompt.model or "",
            created_at=int(time.time()),
            settings=request.settings,
        )
        targets = TargetStreams(request, self._services, watch)
        # Counted before anything waits: others start meanwhile.
        self._running.add(stored.response_id)
        try:
            first = await self._first_stream(targets)
            await self._create(stored, owner_of(scope, stored.response_id))
        except BaseException:
            self._running.discard(stored.response_id)
            raise
        watch.exchange.status = 200
        self._group.start_soon(self._write, targets, stored, first)
        return stored

    async def _first_stream(self, targets: TargetStreams) -> ResponseStream | None:
        """The stream of the first target, not started; None if another one may serve the request.

        Raises:
            StreamError: None can: the client hears of it at once.
        """
        first, *others = targets.request.targets
        is_last = not self._services.pool.is_any_ready(others)
        try:
            return await targets.build(first, is_last=is_last)
        except StreamError as error:
            if not others or not may_succeed_elsewhere(error.info):
                raise StreamError(hide_missing_key(error.info)) from None
            return None

    async def _create(self, stored: StoredResponse, owner: str) -> None:
        """Makes the log of a response.

        Raises:
            StreamError: it cannot be written.
        """
        meta = {"response": msgspec.to_builtins(stored), "owner": owner}
        try:
            await self._durable.create(stored.response_id, meta)
        except LogError as error:
            raise StreamError(_failure(error)) from None

    async def _write(
        self, targets: TargetStreams, stored: StoredResponse, first: ResponseStream | None
    ) -> None:
        writer = BackgroundWriter(targets, stored, self._services.pool)
        try:
            # Not the group's: the gateway itself runs inside that.
            with anyio.CancelScope() as scope, self._writing.entered(scope.cancel):
                await self._durable.write(stored.response_id, writer.events(first))
        except LogError as error:
            writer.error = _failure(error)
            _log.error("%s: its log: %s", stored.response_id, log_text(str(error)))
        except Exception as error:  # noqa: BLE001
            # Another response's task must not end with this one.
            writer.error = ErrorInfo("server_error", "the gateway failed")
            _log.error("%s failed inside the gateway: %s", stored.response_id, log_error(error))
        finally:
            self._running.discard(stored.response_id)
            await self._finish(targets, writer.error)

    async def respond(
        self, request: GatewayRequest, stored: StoredResponse, asgi: AsgiExchange
    ) -> None:
        """Responds to the request that has started one in the background."""
        headers = id_header("responses", request.request_id)
        if request.is_stream:
            await self._send_frames(stored, -1, asgi, headers)
        else:
            body = response_object(stored, Accumulator().response, "queued")
            await send_json(asgi, 200, msgspec.json.encode(body), headers)

    # --- by id ---

    async def serve(self, asgi: AsgiExchange) -> None:
        """Serves a request about a response that exists."""
        headers = id_header("responses", f"req_{secrets.token_hex(12)}")
        try:
            await self._serve(asgi, headers)
        except LogError as error:
            await refuse("responses", _failure(error), asgi, headers)
        except StreamError as error:
            await refuse("responses", error.info, asgi, headers)

    async def _serve(self, asgi: AsgiExchange, headers: dict[str, str]) -> None:
        response_id: str = asgi.scope["path_params"]["response_id"]
        stored, head = await self._find(response_id, asgi.scope)
        body: JsonObject
        if asgi.method == "DELETE":
            await self._durable.delete(response_id)
            body = {"id": response_id, "object": "response", "deleted": True}
        elif asgi.method == "POST":
            await self._cancel(response_id, head)
            body = await self._current(stored, await self._durable.head(response_id))
        else:
            if _last(asgi.query("stream")).lower() == "true":
                after = _starting_after(asgi)
                await self._send_frames(stored, after, asgi, headers)
                return
            body = await self._current(stored, head)
        await send_json(asgi, 200, msgspec.json.encode(body), headers)

    async def _find(self, response_id: str, scope: Scope) -> tuple[StoredResponse, Head]:
        """The response of this client; another's is not there for it.

        Raises:
            StreamError: there is none.
        """
        missing = ErrorInfo("not_found", f"there is no response {response_id[:80]!r}")
        if not _RESPONSE_ID.fullmatch(response_id):
            raise StreamError(missing)
        head = await self._durable.head(response_id)
        owner = str(head.meta.get("owner", ""))
        if not hmac.compare_digest(owner.encode(), owner_of(scope, response_id).encode()):
            raise StreamError(missing)
        return msgspec.convert(head.meta["response"], StoredResponse), head

    async def _current(self, stored: StoredResponse, head: Head) -> JsonObject:
        """The response as far as its log goes now."""
        accumulator = Accumulator()
        last: ResponseEvent | None = None
        end = parse_cursor(head.cursor).position
        if end:
            async for entry in self._durable.read(stored.response_id):
                if isinstance(entry.event, Event):  # always: the log holds one response
                    last = entry.event
                    accumulator.feed(last)
                if parse_cursor(entry.cursor).position >= end:
                    break
        status: str | None = None
        match last:
            case None:
                status = "queued"
            case Failed(error) if error.kind == "cancelled" and error.code is not None:
                status = "cancelled"
            case Completed() | Failed():
                pass
            case _:
                status = "in_progress"
        if head.state != "closed":
            self._watch(stored.response_id, head.cursor)
        return response_object(stored, accumulator.response, status)

    def _watch(self, response_id: str, cursor: str) -> None:
        """Reads a log to its end once somebody asked for it: a reader notices a dead writer.

        Those who only ask for the whole response again and again would wait for it for ever.
        """
        if response_id not in self._running and len(self._running) < RUNNING_LIMIT:
            self._running.add(response_id)
            self._group.start_soon(self._read_to_end, response_id, cursor)

    async def _read_to_end(self, response_id: str, cursor: str) -> None:
        try:
            async for _ in self._durable.read(response_id, after=cursor):
                pass
        except LogError:
            pass  # whoever asks for it next learns of it
        finally:
            self._running.discard(response_id)

    async def _cancel(self, response_id: str, head: Head) -> None:
        """Stops a response, and waits for its end. One that has ended stays as it is."""
        if head.state == "closed":
            return
        await self._durable.stop(response_id, STOP_REASON)
        with anyio.move_on_after(CANCEL_SECONDS):
            async for _ in self._durable.read(response_id, after=head.cursor):
                pass

    # --- streams ---

    async def _send_frames(
        self, stored: StoredResponse, after: int, asgi: AsgiExchange, headers: dict[str, str]
    ) -> None:
        asgi.head = lambda: (200, SSE_HEADERS | headers)
        numbered = NumberedFrames(stored, after)
        keep_alive = gateway_spec("responses").keep_alive
        pings = Pings(lambda: keep_alive, self._services.keep_alive)

        async def end_early() -> None:
            # The response may go on at another gateway: its client reads on there.
            await asgi.write(numbered.feed(Failed(STOPPING)), more=False)

        frames = self._frames(numbered, stored.response_id)
        with self._streams.entered(asgi.stop):
            async with aclosing(frames), asgi.while_connected(pings, end_early):
                await asgi.write_all(frames)

    async def _frames(self, frames: NumberedFrames, response_id: str) -> AsyncGenerator[bytes]:
        """The frames of a response, from its first event to its end."""
        yield frames.start()
        try:
            async for entries in self._durable.read(response_id).batches():
                events = [entry.event for entry in entries if isinstance(entry.event, Event)]
                yield b"".join([frames.feed(event) for event in events])
            yield frames.close()
        except LogError as error:
            yield frames.feed(Failed(_failure(error)))


def owner_of(scope: Scope, response_id: str) -> str:
    """A digest of what tells this client from others; it is of no use for another response.

    That is its identity, as for everything else that is kept for it, and the organisation and the
    project that it names.
    """
    parts: list[tuple[str, str]] = [("identity", identity_of(scope).key or "")]
    for name, value in scope["headers"]:
        field = name.decode("latin-1").lower()
        if field in PROJECT_HEADERS:
            parts.append((field, value.decode("latin-1")))
    content = msgspec.json.encode(sorted(parts))
    return hashlib.blake2b(content, key=response_id.encode()).hexdigest()


def refuse_own_history(request_extra: JsonObject | None) -> None:
    """Refuses a turn that follows one of the gateway's responses.

    Raises:
        StreamError: a log has the events of a response, and not what was asked for.
    """
    previous = (request_extra or {}).get("previous_response_id")
    if isinstance(previous, str) and previous.startswith(ID_PREFIX):
        message = (
            "previous_response_id names a response that the gateway keeps without its input: "
            "send the history itself"
        )
        raise StreamError(ErrorInfo("invalid_request", message, code="previous_response_id"))


def _last(values: list[str]) -> str:
    """The last value of a query parameter; "" if there is none."""
    return values[-1] if values else ""


def _starting_after(asgi: AsgiExchange) -> int:
    """Wire: `starting_after`.

    Raises:
        StreamError: it is not a number.
    """
    text = _last(asgi.query("starting_after")) or "-1"
    if text != "-1" and not (text.isascii() and text.isdigit() and len(text) < 16):
        message = "starting_after is a sequence_number of this response"
        raise StreamError(ErrorInfo("invalid_request", message, code="starting_after"))
    return int(text)


def _failure(error: LogError) -> ErrorInfo:
    """The error sent when a log cannot be read or written."""
    if error.kind == "gone":
        return ErrorInfo("not_found", "there is no such response, or no longer")
    message = f"the log of the response: {error.kind}"
    return ErrorInfo("overloaded", message, retryable=True, code=error.kind)
