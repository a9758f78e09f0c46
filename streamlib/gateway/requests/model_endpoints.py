"""Endpoints that list the models, in the format that each client reads.

    GET  /v1/models   /v1/models/{id}   /v1beta/models   /v1beta/models/{id}

The SDKs of OpenAI, Anthropic and Cohere request the same path, `/v1/models`; other parts of the
request identify the SDK. Google's SDK uses another path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from streamlib.asgi import Scope
from streamlib.client import Client
from streamlib.gateway.clients.access import error_response
from streamlib.gateway.clients.named_clients import check_model, client_of
from streamlib.gateway.requests.reader import refusal_headers
from streamlib.gateway.targets.models import ModelCatalog, ServedModel
from streamlib.gateway.targets.routes import RouteTable
from streamlib.gateway.targets.streams import hide_missing_key
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.stream_error import StreamError

OWNER: Final = "streamlib"

PAGE_SIZES: Final[Mapping[WireApi, str]] = {
    "messages": "limit",
    "gemini": "pageSize",
    "cohere": "page_size",
}
"""Wire -> query parameter with the number of models on a page. OpenAI's list has one page."""

GEMINI_METHODS: Final = ("generateContent", "streamGenerateContent", "countTokens")


def wire_of_client(scope: Scope) -> WireApi:
    """The wire of a client that requests models, from its ASGI scope."""
    if "/v1beta/" in scope["path"]:
        return "gemini"
    headers: dict[bytes, bytes] = {name.lower(): value for name, value in scope["headers"]}
    if b"anthropic-version" in headers:
        return "messages"
    if headers.get(b"x-fern-sdk-name") == b"cohere":
        return "cohere"
    # Google's SDK sends its key in this header, on `/v1` too.
    if b"x-goog-api-key" in headers:
        return "gemini"
    return "chat"


def model_object(wire_api: WireApi, model: ServedModel) -> JsonObject:
    """One model, in the format of a wire."""
    match wire_api:
        case "messages":
            return _anthropic(model)
        case "gemini":
            return _google(model)
        case "cohere":
            return _cohere(model)
        case _:
            return _openai(model)


def model_list(
    wire_api: WireApi, models: Sequence[ServedModel], query: Mapping[str, str]
) -> JsonObject:
    """A page of models, in the format of a wire.

    Args:
        wire_api: the client's wire.
        models: all models that the client may request.
        query: the query of the request: the length of the page, and the end of the page before.
    """
    page, has_more = _page(wire_api, models, query)
    objects = [model_object(wire_api, model) for model in page]
    last = page[-1].name if page else None
    match wire_api:
        case "messages":
            first = page[0].name if page else None
            return {"data": objects, "has_more": has_more, "first_id": first, "last_id": last}
        case "gemini":
            body: JsonObject = {"models": objects}
            if has_more:
                body["nextPageToken"] = last
            return body
        case "cohere":
            body = {"models": objects}
            if has_more:
                body["next_page_token"] = last
            return body
        case _:
            return {"object": "list", "data": objects}


def query_of(scope: Scope) -> dict[str, str]:
    """The query of a request, from its ASGI scope; repeated names have their last value."""
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return {name: values[-1] for name, values in query.items()}


def _page(
    wire_api: WireApi, models: Sequence[ServedModel], query: Mapping[str, str]
) -> tuple[Sequence[ServedModel], bool]:
    """The models of a page, and whether there are more in its direction."""
    size = len(models)
    text = query.get(PAGE_SIZES.get(wire_api, ""), "")
    if text.isascii() and text.isdigit() and 0 < int(text[:9]) < size:
        size = int(text[:9])
    names = [model.name for model in models]
    before = query.get("before_id")
    if wire_api == "messages" and before in names:
        end = names.index(before)
        start = max(0, end - size)
        return models[start:end], start > 0
    # A page is identified by the last model of the page before it.
    start = 0
    for name in ("after_id", "pageToken", "page_token"):
        after = query.get(name)
        if after in names:
            start = names.index(after) + 1
    return models[start : start + size], start + size < len(models)


def _openai(model: ServedModel) -> JsonObject:
    return {"id": model.name, "object": "model", "created": model.created, "owned_by": OWNER}


def _anthropic(model: ServedModel) -> JsonObject:
    created = datetime.fromtimestamp(model.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.name,
        "created_at": created,
        "lifecycle": "active",
        "max_input_tokens": model.input_tokens,
        "max_tokens": model.output_tokens,
    }


def _google(model: ServedModel) -> JsonObject:
    body: JsonObject = {
        "name": f"models/{model.name}",
        "displayName": model.name,
        "supportedGenerationMethods": list(GEMINI_METHODS),
    }
    if model.input_tokens is not None:
        body["inputTokenLimit"] = model.input_tokens
    if model.output_tokens is not None:
        body["outputTokenLimit"] = model.output_tokens
    return body


def _cohere(model: ServedModel) -> JsonObject:
    body: JsonObject = {"name": model.name, "endpoints": ["chat"], "finetuned": False}
    if model.input_tokens is not None:
        body["context_length"] = model.input_tokens
    return body


class Serving(Protocol):
    """Parts of the gateway that these endpoints need."""

    @property
    def client(self) -> Client:
        """Client that requests the providers' lists."""
        ...

    @property
    def table(self) -> RouteTable:
        """The current routes."""
        ...


class ModelEndpoints:
    """Serves lists of models, and single models."""

    def __init__(self, served: Serving) -> None:
        """Prepares the endpoints.

        Args:
            served: the gateway.
        """
        self._served = served
        self._catalog = ModelCatalog()

    def routes(self) -> list[Route]:
        """The endpoints with their paths."""
        return [
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/v1beta/models", self._models, methods=["GET"]),
            Route("/v1/models/{model:path}", self._model, methods=["GET"]),
            Route("/v1beta/models/{model:path}", self._model, methods=["GET"]),
        ]

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
            response = error_response(wire_api, hide_missing_key(error.info))
            response.headers.update(refusal_headers(request.scope, wire_api, error))
            return response
        return JSONResponse(model_object(wire_api, model))
