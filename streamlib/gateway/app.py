"""The gateway as an ASGI application: lets any client use any model.

    from streamlib.gateway import RouteRule, RouteTable, gateway

    app = gateway(RouteTable([RouteRule("claude-*", "openrouter:x-ai/grok-code-fast-1")]))

Serve it with `uvicorn module:app`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Match, Route, WebSocketRoute
from starlette.websockets import WebSocket

from streamlib.asgi import AsgiExchange, Receive, Scope, Send
from streamlib.client import Client
from streamlib.client.credentials import Secret
from streamlib.durable import Log, open_log
from streamlib.gateway.clients.access import AccessControl, refuse, wire_of
from streamlib.gateway.clients.identity import ClientIdentity
from streamlib.gateway.clients.limits import ClientLimits, MemoryLimits
from streamlib.gateway.headers import id_header, status_of
from streamlib.gateway.log_text import escaped
from streamlib.gateway.paths import HEALTH, METRICS, READY, Operation
from streamlib.gateway.requests.background import BackgroundResponses
from streamlib.gateway.requests.body import BODY_SECONDS
from streamlib.gateway.requests.handler import RequestHandler
from streamlib.gateway.requests.model_endpoints import ModelEndpoints
from streamlib.gateway.requests.open_streams import OpenStreams
from streamlib.gateway.requests.reader import (
    RequestReader,
    end_refused,
    end_unread,
    note_request,
    refusal_headers,
    refusal_of,
    watch_of,
)
from streamlib.gateway.requests.side_handlers import CompactionHandler, CountHandler
from streamlib.gateway.state.client_state import ClientState
from streamlib.gateway.state.store import StateStore, open_state
from streamlib.gateway.targets.memory import HELD_BYTES, StreamMemory
from streamlib.gateway.targets.pool import TargetPool
from streamlib.gateway.targets.routes import RouteTable
from streamlib.gateway.targets.streams import RETRY, GatewayRequest, Services, TargetStreams
from streamlib.gateway.watch.health import HealthPages, Readiness
from streamlib.gateway.watch.metrics_page import MetricsPage, metrics_if_installed
from streamlib.gateway.watch.observer import Observer, Watch, call_observers
from streamlib.gateway.watch.page import LiveView, Page, PageAccess
from streamlib.gateway.watch.record import ExchangeFiles
from streamlib.gateway.watch.request_log import RequestLog
from streamlib.gateway.workers import Workers
from streamlib.wires.encoders import error_body
from streamlib.wires.responses.background import StoredResponse
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.stream_error import StreamError

KEEP_ALIVE: Final = 15.0
"""Seconds of silence after which a client is sent a keep-alive: proxies close a silent connection
after 30 or 60."""

HANDLERS: Final[dict[Operation, type[RequestHandler]]] = {
    "response": RequestHandler,
    "count": CountHandler,
    "compaction": CompactionHandler,
}
"""What a client asks for -> what serves it."""

POLICY_VIOLATION: Final = 1008
"""Code with which a WebSocket is closed whose messages are not taken (RFC 6455)."""

SERVED: Final = "/v1/messages, /v1/chat/completions, /v1/responses, /v1beta/models, /v1/models"

_log: Final = logging.getLogger("streamlib.gateway")


class Gateway:
    """What all requests share: the routes and a client. Used with `async with`, by the
    application's lifespan."""

    def __init__(
        self,
        table: RouteTable | None = None,
        *,
        client: Mapping[str, Any] | None = None,
        keep_alive: float = KEEP_ALIVE,
        log_content: bool = False,
        body_seconds: float = BODY_SECONDS,
        log: Log | str | None = None,
        state: StateStore | str | None = "memory:",
        observers: Sequence[Observer] = (),
        limits: ClientLimits | str | None = None,
        record: ExchangeFiles | None = None,
        grace_seconds: float = 0.0,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        """Configures a gateway.

        Args:
            table: the routes; None: everything goes to the loopback provider at its usual address,
                where `streamlib serve` runs it.
            client: options of `streamlib.Client` (`deadlines`, `retry`, `connections`, `http` …).
            keep_alive: seconds of silence before a keep-alive is sent.
            log_content: write requests and responses to the log too (logger `streamlib.gateway`,
                level DEBUG).
            body_seconds: how long a client may take to send its request.
            log: where `background: true` of Responses clients is kept: a log that is entered, or
                what `open_log` takes. None: a response ends with its request.
            state: where signed reasoning is stored for clients that do not send it back: a store
                that is not entered, or what `open_state` takes. None: it is lost for them.
            observers: see how each request fares, beside the gateway's own log.
            limits: where the limits of named clients are counted: the URL of a Redis server where
                several gateways share them; None: each gateway counts for itself.
            record: keeps whole exchanges in files. None: nothing is kept.
            grace_seconds: how long responses in the background may go on when the block ends.
            held_bytes: bytes that the open streams may hold together; beyond, the largest end.
        """
        self.readiness = Readiness()
        """Whether requests should be sent here; `/ready` serves it."""
        self.metrics = metrics_if_installed()
        """What `/metrics` shows; None without the extra `metrics`."""
        self.view = LiveView()
        """What the page shows."""
        own = (RequestLog(with_content=log_content), self.view, self.metrics, record)
        self._observers = [*filter(None, own), *observers]
        self._record = record
        self._grace_seconds = grace_seconds
        self._memory = StreamMemory(held_bytes)
        self.table = table or RouteTable()
        """The routes."""
        self._options = dict(client or {})
        self._keep_alive = keep_alive
        self._log_content = log_content
        self._workers = Workers()
        self._reader = RequestReader(self, self._workers, body_seconds)
        self._durable = log
        if isinstance(state, str):
            state = open_state(state)
        self._store = state
        self._limits = limits
        self.limits: ClientLimits = MemoryLimits()
        """Where the limits of named clients are counted, once the gateway runs."""
        self.pool = TargetPool()
        """The targets of all routes."""
        self.streams = OpenStreams()
        """Requests under way."""
        self._background: BackgroundResponses | None = None
        """Set while the gateway runs, if it has a log."""
        self._stack = AsyncExitStack()
        """Closes what the gateway opened."""
        self._services: Services | None = None
        """Set while the gateway runs."""

    async def __aenter__(self) -> Gateway:
        options = dict(self._options)
        if self._record is not None:
            self._stack.enter_context(self._record)
            transport = self._record.transport(options.get("http"), options.get("connections"))
            self._stack.push_async_callback(transport.aclose)
            options["http"] = transport
        client = await self._stack.enter_async_context(Client(**options))
        try:
            await self._enter_limits()
            self._services = Services(
                client=client,
                workers=self._workers,
                pool=self.pool,
                keep_alive=self._keep_alive,
                memory=self._memory,
                retry=options.get("retry") or RETRY,
                state=await self._entered_state(),
            )
            await self._enter_background()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        self.streams.begin()
        self.readiness.unblock("starting")
        self.readiness.unblock("stopped")
        return self

    async def _enter_limits(self) -> None:
        if isinstance(self._limits, str):
            from streamlib.gateway.clients.redis_limits import redis_limits  # an extra

            limits = redis_limits(self._limits)
            self.limits = await self._stack.enter_async_context(limits)
        elif self._limits is not None:
            self.limits = self._limits

    async def _entered_state(self) -> ClientState | None:
        if self._store is None:
            return None
        return ClientState(await self._stack.enter_async_context(self._store))

    async def use(self, table: RouteTable) -> None:
        """Replaces the routes and clients of a running gateway.

        Requests under way end on the routes that they began with.

        Args:
            table: for all requests from now on.
        """
        self.table = table

    async def _enter_background(self) -> None:
        log = self._durable
        if log is None:
            return
        if isinstance(log, str):
            log = await self._stack.enter_async_context(open_log(log))
        background = BackgroundResponses(log, self.services, self.streams, self._end)
        self._background = await self._stack.enter_async_context(background)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._background is not None and kind is None:
            await self._background.finish(self._grace_seconds)
        self._services = None
        self._background = None
        self.readiness.block("stopped", "the gateway has stopped")
        await self._stack.aclose()

    def end_streams(self) -> None:
        """Ends what is under way, each with an error of its wire: the gateway stops."""
        if self._background is not None:
            self._background.stop()
        self.streams.end()

    @property
    def background_count(self) -> int:
        """Responses in the background that this gateway writes now."""
        return 0 if self._background is None else self._background.count

    @property
    def services(self) -> Services:
        """What all requests share.

        Raises:
            RuntimeError: the gateway is not running.
        """
        if self._services is None:
            raise RuntimeError(
                "the gateway is not running: `async with` it, or serve it with its lifespan"
            )
        return self._services

    @property
    def client(self) -> Client:
        """The client that all requests share.

        Raises:
            RuntimeError: the gateway is not running.
        """
        return self.services.client

    @property
    def keeps_responses(self) -> bool:
        """Whether a response may outlive its request."""
        return self._background is not None

    async def check_ids(self, identity: ClientIdentity, ids: Sequence[str]) -> None:
        """Refuses ids of a provider that a named client did not get.

        Raises:
            StreamError: `not_found`, as for an id that does not exist.
        """
        state = self.services.state
        unknown = list(ids)
        if state is not None and ids:
            unknown = await state.unknown_ids(identity, ids)
        if unknown:
            message = f"{unknown[0][:80]!r} was not given to this client"
            raise StreamError(ErrorInfo("not_found", message, code="id_not_found"))

    def note_refusal(self, scope: Scope, error: ErrorInfo, status: int) -> None:
        """Tells the observers of a request that may not use the gateway.

        Args:
            scope: of the request (ASGI).
            error: what its client is told.
            status: HTTP status that the client gets.
        """
        refusal = refusal_of(scope, error, status)
        call_observers(
            self._observers, lambda observer: observer.access_refused(refusal), "a refusal:"
        )

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request of a client (ASGI)."""
        request_id = f"req_{secrets.token_hex(12)}"
        wire_api = wire_of(scope)
        watch = watch_of(scope, request_id, self._observers)
        if self._record is not None:
            receive, send = self._record.watch(request_id, scope, receive, send)
        asgi = AsgiExchange(scope, receive, send)
        stored: StoredResponse | None = None
        try:
            request = await self._reader.read(scope, receive, watch)
            note_request(watch, request)
            if request.in_background and self._background is not None:
                stored = await self._start_in_background(self._background, request, scope, watch)
        except StreamError as error:
            watch.exchange.status = status_of(wire_api, error.info)
            headers = id_header(wire_api, request_id) | refusal_headers(scope, wire_api, error)
            try:
                await refuse(wire_api, error.info, asgi, headers)
            finally:
                # After the response: a record of the exchange has it too.
                end_refused(watch, error.info)
            return
        except BaseException as error:
            end_unread(watch, error)
            raise
        if stored is not None and self._background is not None:
            await self._background.respond(request, stored, asgi)
            return
        handler = HANDLERS[request.operation](request, asgi, self.services, watch)
        try:
            with self.streams.entered(asgi.stop):
                await handler.run()
        finally:
            # Also when the request is cancelled: the log has a line of every request.
            await self._end(handler.targets, handler.error)

    async def _start_in_background(
        self, background: BackgroundResponses, request: GatewayRequest, scope: Scope, watch: Watch
    ) -> StoredResponse:
        try:
            return await background.start(request, scope, watch)
        except BaseException:  # a client that leaves while it starts, too
            if request.admission is not None:
                await request.admission.settle(None)
            raise

    async def _end(self, targets: TargetStreams, error: ErrorInfo | None) -> None:
        """Notes the end of a request."""
        request_id = targets.request.request_id
        targets.end(error)
        if self._log_content and targets.stream is not None:
            body = targets.stream.request.body.decode("utf-8", "replace")
            items = msgspec.json.encode(targets.stream.response.items).decode()
            _log.debug("%s request body: %s", request_id, escaped(body))
            _log.debug("%s response items: %s", request_id, escaped(items))

        admission = targets.request.admission
        if admission is not None:
            await admission.settle(targets.response)

    async def stored(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request about a response in the background (ASGI)."""
        asgi = AsgiExchange(scope, receive, send)
        if self._background is not None:
            await self._background.serve(asgi)
            return
        message = "this gateway keeps no responses: `streamlib gateway --log` names where it may"
        await refuse("responses", ErrorInfo("not_found", message, code="log"), asgi)


async def refuse_socket(socket: WebSocket) -> None:
    """Tells a client of Responses over WebSocket what is served instead, as an event of its wire.

    A refused handshake would have a status and no message.
    """
    message = "this gateway has no WebSockets: send the request to POST /v1/responses"
    error = ErrorInfo("invalid_request", message, code="websocket")
    await socket.accept()
    await socket.send_json({"type": "error", "status": 400, **error_body("responses", error)})
    await socket.close(POLICY_VIOLATION, "no WebSockets")


class OpenRoute(Route):
    """A route that also handles other methods on its path: they receive 405 with ``Allow``.

    An ordinary route leaves other methods to later routes. The last of these serves requests for
    models, which must not be reachable without a token: it records, logs and counts them.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the path of a request (ASGI scope) is that of the route, whatever the method."""
        match, child_scope = super().matches(scope)
        if match is Match.PARTIAL:
            match = Match.FULL
        return match, child_scope


class _Endpoint:
    """A method of the gateway as an ASGI application.

    Starlette would take a method for an endpoint that returns a response.
    """

    def __init__(self, serve: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._serve = serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serve(scope, receive, send)


def gateway(
    running_gateway: Gateway | RouteTable | None = None, *, token: Secret | str | None = None
) -> Starlette:
    """The ASGI application of a gateway.

    Args:
        running_gateway: the gateway, which the application's lifespan starts; or its routes.
        token: what clients must send as their API key, unless they have a token of their own. With
            neither, only this machine is served.
    """
    served = running_gateway
    if not isinstance(served, Gateway):
        served = Gateway(served)
    secret = None
    if token is not None:
        secret = Secret(token)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with served:
            yield

    stored = _Endpoint(served.stored)
    health = HealthPages(served.readiness)
    access = PageAccess(secret, is_closed=lambda: bool(served.table.clients))
    page = Page(served.view, access, served.readiness, SERVED, served.note_refusal)
    # The last route has all other paths, so that an unknown one gets an error in its wire's format.
    routes = [
        OpenRoute("/", page.show, methods=["GET"]),
        OpenRoute("/live", _Endpoint(page.live), methods=["GET"]),
        OpenRoute("/login", page.login, methods=["POST"]),
        OpenRoute("/logout", page.logout, methods=["POST"]),
        OpenRoute(HEALTH, health.live, methods=["GET"]),
        OpenRoute(READY, health.ready, methods=["GET"]),
        Route(METRICS, MetricsPage(served.metrics).read, methods=["GET"]),
        *ModelEndpoints(served).routes(),
        Route("/v1/responses/{response_id}", stored, methods=["GET", "DELETE"]),
        Route("/v1/responses/{response_id}/cancel", stored, methods=["POST"]),
        Route("/{path:path}", _Endpoint(served.answer), methods=["POST"]),
        WebSocketRoute("/{path:path}", refuse_socket),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(
                AccessControl,
                token=secret,
                clients=lambda: served.table.clients,
                refused=served.note_refusal,
            )
        ],
        lifespan=lifespan,
    )
