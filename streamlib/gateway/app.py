"""The gateway as an ASGI application: any client in front of any model.

    from streamlib.gateway import Gateway, gateway

    app = gateway(Table([RouteRule("claude-*", "openrouter:x-ai/grok-code-fast-1")]))        # uvicorn module:app

It is `parse_request`, `Client` and `encoder`, with a route table between them.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from streamlib.client import Client
from streamlib.client.credentials import Secret
from streamlib.errors import StreamError
from streamlib.gateway.access import AccessControl, read_body, refuse, wire_of
from streamlib.gateway.handler import GatewayRequest, RequestHandler
from streamlib.gateway.headers import error_headers, id_header, status_of
from streamlib.gateway.models import listed, model_names
from streamlib.gateway.routes import RouteTable
from streamlib.gateway.token_count import count_tokens
from streamlib.loopback import running
from streamlib.providers import Provider
from streamlib.providers.loopback import PROVIDER as LOOPBACK
from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib.wires.decoders import parse_request
from streamlib.wires.encoders import error_body
from streamlib.wires.routes import route
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi

CLIENT_WIRES: Final[frozenset[WireApi]] = frozenset(
    name for name, spec in WIRE_SPECS.items() if spec.gateway is not None
)
"""Wires that clients may speak here."""
KEEP_ALIVE: Final = 15.0
"""Seconds of silence after which a client is told that the model still thinks: proxies give up after 30 or 60."""

_log: Final = logging.getLogger("streamlib.gateway")


class Gateway:
    """What all requests share: the routes and a client. Used with `async with`, by the application's lifespan.

    client: options of `streamlib.Client` (`deadlines`, `retry`, `connections`, `http` …). keep_alive: seconds of silence before a sign of
    life. log_content: write requests and answers to the log too (logger `streamlib.gateway`, level DEBUG).
    """

    def __init__(
        self,
        table: RouteTable | None = None,
        *,
        client: Mapping[str, Any] | None = None,
        keep_alive: float = KEEP_ALIVE,
        log_content: bool = False,
    ) -> None:
        self.table = table or RouteTable()
        self._options = dict(client or {})
        self._keep_alive = keep_alive
        self._log_content = log_content
        self._stack = AsyncExitStack()
        self._client: Client | None = None

    async def __aenter__(self) -> Gateway:
        if any(
            to.startswith("loopback:")
            for rule in self.table.rules
            for to in rule.to
            if rule.base_url is None
        ):
            url = await self._stack.enter_async_context(running())
            self.table = self.table.using(loopback_at(url))
        self._client = await self._stack.enter_async_context(Client(**self._options))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client = None
        await self._stack.aclose()

    @property
    def client(self) -> Client:
        """The client; RuntimeError before the gateway runs."""
        if self._client is None:
            raise RuntimeError(
                "the gateway is not running: `async with` it, or serve it with its lifespan"
            )
        return self._client

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI: one request of a client, to a model and back."""
        request_id = f"req_{secrets.token_hex(12)}"
        wire_api = wire_of(scope)
        try:
            asked = await self._read(scope, receive, request_id)
        except StreamError as error:
            _log.info("%s %s refused: %s", request_id, wire_api, error)
            await refuse(wire_api, error.info, send, id_header(wire_api, request_id))
            return
        answering = RequestHandler(asked, self.client, send, self._keep_alive)
        try:
            await answering.run(receive)
        finally:
            _log.info("%s", answering.summary())
            if self._log_content and answering.stream is not None:
                _log.debug(
                    "%s asked %s",
                    request_id,
                    answering.stream.request.body.decode("utf-8", "replace"),
                )
                _log.debug(
                    "%s answered %s",
                    request_id,
                    msgspec.json.encode(answering.stream.response.items).decode(),
                )

    async def _read(self, scope: Scope, receive: Receive, request_id: str) -> GatewayRequest:
        path = _path(scope)
        found = route(path)
        if found is None or found.wire_api not in CLIENT_WIRES:
            hint = (
                ": the base URL that this client takes has no /v1"
                if path.startswith("/v1/v1/")
                else ""
            )
            raise StreamError(
                ErrorInfo("not_found", f"nothing is served at {path[:200]}{hint}", code="path")
            )
        body = await read_body(scope, receive)
        prompt = parse_request(found.wire_api, body, path=path)
        model = prompt.model or found.model or ""
        rule = self.table.rule(model)
        stream = prompt.stream if found.stream is None else found.stream
        prompt = msgspec.structs.replace(prompt, model=model)
        array = found.wire_api == "gemini" and b"alt=sse" not in scope["query_string"]
        return GatewayRequest(
            found.wire_api,
            prompt,
            rule,
            self.table.hops(rule, model),
            not stream,
            request_id,
            array,
        )

    async def count(self, request: Request) -> Response:
        """The tokens of a Messages request: what Anthropic says, or an estimate that says it is one."""
        try:
            body = await read_body(request.scope, request.receive)
            prompt = parse_request("messages", body, path="/v1/messages")
            rule = self.table.rule(prompt.model or "")
            hop = self.table.hops(rule, prompt.model or "")[0]
            count, estimated = await count_tokens(self.client, prompt, hop)
        except StreamError as error:
            return error_response("messages", error.info)
        return JSONResponse(
            {"input_tokens": count}, headers={"x-streamlib-estimate": "true"} if estimated else None
        )

    async def models(self, request: Request) -> Response:
        """The models that the routes name."""
        return JSONResponse(listed(await model_names(self.client, self.table)))


def loopback_at(url: str) -> Provider:
    """The loopback provider, at another address."""
    urls = {
        wire: address.replace(LOOPBACK.base_url, url)
        for wire, address in LOOPBACK.wire_urls.items()
    }
    return msgspec.structs.replace(LOOPBACK, base_url=url, wire_urls=urls)


def _path(scope: Scope) -> str:
    """As it was sent: a model's name may hold an encoded slash."""
    raw: bytes | None = scope.get("raw_path")
    path: str = scope["path"]
    return raw.decode("ascii", "replace").partition("?")[0] if raw else path


def error_response(wire_api: WireApi, error: ErrorInfo) -> Response:
    """The same as `guard.refuse`, for an endpoint that returns."""
    return JSONResponse(
        error_body(wire_api, error), status_of(wire_api, error), headers=error_headers(error)
    )


class _Endpoint:
    """An ASGI application, for Starlette: what is no function is given the whole scope."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gateway.answer(scope, receive, send)


async def _hello(request: Request) -> Response:
    return PlainTextResponse(
        "streamlib gateway: /v1/messages, /v1/chat/completions, /v1/responses, /v1beta/models, /v1/models\n"
    )


def gateway(
    running_gateway: Gateway | RouteTable | None = None, *, token: Secret | str | None = None
) -> Starlette:
    """The application. token: what clients must send as their API key; without one only this machine is answered."""
    one = running_gateway if isinstance(running_gateway, Gateway) else Gateway(running_gateway)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with one:
            yield

    routes = [
        Route("/", _hello, methods=["GET"]),
        Route("/v1/models", one.models, methods=["GET"]),
        Route("/v1beta/models", one.models, methods=["GET"]),
        Route("/v1/messages/count_tokens", one.count, methods=["POST"]),
        Route("/{path:path}", _Endpoint(one), methods=["POST"]),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(AccessControl, token=None if token is None else Secret(token))],
        lifespan=lifespan,
    )
