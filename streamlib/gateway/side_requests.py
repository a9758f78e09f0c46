"""Requests beside responses: which models there are, how many tokens a request has, and a shorter
form of a conversation.

    GET  /v1/models   /v1/models/{id}   /v1beta/models   /v1beta/models/{id}
    POST /v1/messages/count_tokens   /v1beta/models/{id}:countTokens   /v1/responses/input_tokens
    POST /v1/responses/compact
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from streamlib.client import Client
from streamlib.errors import StreamError
from streamlib.gateway.admission import Admission, admit, reserve
from streamlib.gateway.client_limits import ClientLimits
from streamlib.gateway.client_request import (
    beta_headers,
    error_response,
    prompt_of,
    refusal_headers,
    sent_path,
)
from streamlib.gateway.client_state import ClientState
from streamlib.gateway.compaction import (
    compaction_body,
    compaction_usage,
    compacts_itself,
    forward_compaction,
    summarise,
    summary_prompt,
)
from streamlib.gateway.exchanges import note_request, watch_of
from streamlib.gateway.headers import id_header, report_header, status_of
from streamlib.gateway.identity import identity_of
from streamlib.gateway.model_pages import model_list, model_object, query_of, wire_of_client
from streamlib.gateway.models import ModelCatalog
from streamlib.gateway.named_clients import check_model, client_of
from streamlib.gateway.observer import Observer
from streamlib.gateway.request_body import Workers, read_body
from streamlib.gateway.routes import RouteTable
from streamlib.gateway.target_streams import (
    GatewayRequest,
    TargetStreams,
    hide_missing_key,
    prompt_for,
    restored_prompt,
)
from streamlib.gateway.token_count import count_tokens
from streamlib.wires.routes import Route as RouteMatch
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.response import Response as ModelResponse

ESTIMATE: Final = "x-streamlib-estimate"
"""Header of a count that is an estimate."""

GEMINI_REQUEST: Final = "generateContentRequest"
"""Key of a `:countTokens` body that holds a whole request, instead of its contents alone."""


class Serving(Protocol):
    """What these requests need of the gateway."""

    @property
    def client(self) -> Client:
        """Sends the requests."""
        ...

    @property
    def table(self) -> RouteTable:
        """The routes, as they are now."""
        ...

    @property
    def client_state(self) -> ClientState | None:
        """What the gateway stores for its clients."""
        ...

    @property
    def limits(self) -> ClientLimits:
        """Where the limits of named clients are counted."""
        ...

    @property
    def observers(self) -> Sequence[Observer]:
        """See requests that go to a model."""
        ...


class SideRequests:
    """Serves them."""

    def __init__(self, served: Serving, workers: Workers, body_seconds: float) -> None:
        """Prepares the endpoints.

        Args:
            served: the gateway.
            workers: decodes and builds large requests.
            body_seconds: how long a client may take to send its request.
        """
        self._served = served
        self._workers = workers
        self._body_seconds = body_seconds
        self._catalog = ModelCatalog()

    def routes(self) -> list[Route]:
        """The endpoints with their paths."""
        count = self._endpoint
        gemini_count = count("gemini", self._count_gemini)
        return [
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/v1beta/models", self._models, methods=["GET"]),
            Route("/v1/models/{model:path}", self._model, methods=["GET"]),
            Route("/v1beta/models/{model:path}", self._model, methods=["GET"]),
            Route("/v1/messages/count_tokens", count("messages", self._count), methods=["POST"]),
            Route("/v1/models/{model:path}:countTokens", gemini_count, methods=["POST"]),
            Route("/v1beta/models/{model:path}:countTokens", gemini_count, methods=["POST"]),
            Route(
                "/v1/responses/input_tokens",
                count("responses", self._count_responses),
                methods=["POST"],
            ),
            Route("/v1/responses/compact", count("responses", self._compact), methods=["POST"]),
        ]

    def _endpoint(
        self, wire_api: WireApi, serve: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint whose failures have the form of a wire."""

        async def endpoint(request: Request) -> Response:
            try:
                return await serve(request)
            except StreamError as error:
                return _refused(request.scope, wire_api, error)

        return endpoint

    # --- models ---

    async def _models(self, request: Request) -> Response:
        wire_api = wire_of_client(request.scope)
        models = await self._catalog.models(self._served.client, self._served.table)
        client = client_of(request.scope)
        if client is not None:
            models = [model for model in models if client.may_use(model.name)]
        return JSONResponse(model_list(wire_api, models, query_of(request.scope)))

    async def _model(self, request: Request) -> Response:
        wire_api = wire_of_client(request.scope)
        name: str = request.path_params["model"]
        try:
            check_model(client_of(request.scope), name)
            model = await self._catalog.find(self._served.client, self._served.table, name)
        except StreamError as error:
            return _refused(request.scope, wire_api, error)
        return JSONResponse(model_object(wire_api, model))

    # --- tokens ---

    async def _count(self, request: Request) -> Response:
        """Wire: Messages, `count_tokens`."""
        read = await self._read(request, RouteMatch("messages"), "/v1/messages")
        count, is_estimate = await self._tokens(read)
        return _counted({"input_tokens": count}, is_estimate=is_estimate)

    async def _count_gemini(self, request: Request) -> Response:
        """Wire: Gemini, `:countTokens`."""
        path = sent_path(request.scope).replace(":countTokens", ":generateContent")
        match = RouteMatch("gemini", stream=False, model=request.path_params["model"])
        read = await self._read(request, match, path)
        count, is_estimate = await self._tokens(read)
        return _counted({"totalTokens": count}, is_estimate=is_estimate)

    async def _count_responses(self, request: Request) -> Response:
        """Wire: Responses, `input_tokens`."""
        read = await self._read(request, RouteMatch("responses"), "/v1/responses")
        count, is_estimate = await self._tokens(read)
        body: JsonObject = {"object": "response.input_tokens", "input_tokens": count}
        return _counted(body, is_estimate=is_estimate)

    async def _tokens(self, request: GatewayRequest) -> tuple[int, bool]:
        # A fallback may count otherwise: the first target is the one that most likely responds.
        hop = request.hops[0]
        # Without envelopes, which no model gets.
        restored = await self._workers.run(request.size, restored_prompt, request)
        prompt = prompt_for(request, restored, hop)
        return await count_tokens(self._served.client, prompt, hop, self._workers, request.size)

    # --- compaction ---

    async def _compact(self, request: Request) -> Response:
        """Wire: Responses, `compact`."""
        read = await self._read(request, RouteMatch("responses"), "/v1/responses", uses_tokens=True)
        headers = id_header("responses", read.request_id)
        if compacts_itself(read.hops[0]):
            body = await self._forward_compaction(read)
            return Response(body, media_type="application/json", headers=headers)
        for_summary = msgspec.structs.replace(read, prompt=summary_prompt(read.prompt))
        watch = watch_of(request.scope, read.request_id, self._served.observers)
        note_request(watch, for_summary)
        targets = TargetStreams(
            for_summary, self._served.client, self._workers, watch, self._served.client_state
        )
        failure: ErrorInfo | None = ErrorInfo("cancelled", "the client disconnected")
        try:
            response = await summarise(targets)
            failure = None
            watch.exchange.status = 200
        except StreamError as error:
            failure = error.info
            watch.exchange.status = status_of("responses", failure)
            raise
        finally:
            targets.end(failure)
            if read.admission is not None:
                used = None if targets.stream is None else targets.stream.response
                await read.admission.settle(used)
        headers.update(report_header(targets.report))
        return JSONResponse(compaction_body(read, response), headers=headers)

    async def _forward_compaction(self, request: GatewayRequest) -> bytes:
        """The compaction of a target that compacts itself, counted for its client."""
        hop = request.hops[0]
        used: ModelResponse | None = None
        try:
            restored = await self._workers.run(request.size, restored_prompt, request)
            prompt = prompt_for(request, restored, hop)
            body = await forward_compaction(self._served.client, prompt, hop)
            used = ModelResponse(usage=compaction_usage(body))
        finally:
            if request.admission is not None:
                await request.admission.settle(used)
        return body

    # --- reading ---

    async def _read(
        self, request: Request, match: RouteMatch, path: str, *, uses_tokens: bool = False
    ) -> GatewayRequest:
        """The request of a client, as for a response.

        Args:
            request: the client's.
            match: its wire.
            path: of a request for a response.
            uses_tokens: it goes to a model; else it counts as a request alone.

        Raises:
            StreamError: it cannot be read, or no route serves its model.
        """
        scope = request.scope
        body = await read_body(scope, request.receive, seconds=self._body_seconds)
        size = len(body)
        if match.wire_api == "gemini":
            body = await self._workers.run(size, _whole_request, body)
        headers = beta_headers(scope)
        prompt = await self._workers.run(size, prompt_of, match, body, path, headers)
        model = prompt.model or ""
        client = client_of(scope)
        check_model(client, model)
        rule = self._served.table.rule(model)
        hops = self._served.table.hops(rule, model)
        # A count may be sent to the provider, so it is a request; it uses no tokens.
        admission: Admission | None = None
        if uses_tokens:
            admission = await admit(client, self._served.limits, prompt, self._workers, size)
        elif client is not None and client.is_limited:
            admission = await reserve(client, self._served.limits, 0)
        return GatewayRequest(
            wire_api=match.wire_api,
            prompt=prompt,
            size=size,
            rule=rule,
            hops=hops,
            is_stream=False,
            request_id=f"req_{secrets.token_hex(12)}",
            identity=identity_of(scope),
            admission=admission,
        )


def _whole_request(body: bytes) -> bytes:
    """The request whose tokens a Gemini client wants to know."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return body  # the decoder says what is wrong with it
    if isinstance(value, dict) and isinstance(value.get(GEMINI_REQUEST), dict):
        return msgspec.json.encode(value[GEMINI_REQUEST])
    return body


def _counted(body: JsonObject, *, is_estimate: bool) -> Response:
    headers = {ESTIMATE: "true"} if is_estimate else {}
    return JSONResponse(body, headers=headers)


def _refused(scope: Scope, wire_api: WireApi, error: StreamError) -> Response:
    response = error_response(wire_api, hide_missing_key(error.info))
    response.headers.update(refusal_headers(scope, wire_api, error))
    return response
