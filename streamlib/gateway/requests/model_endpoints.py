"""Endpoints that list the models, in the format that each client reads.

    GET  /v1/models   /v1/models/{id}   /v1beta/models   /v1beta/models/{id}

The SDKs of OpenAI, Anthropic and Cohere request the same path, `/v1/models`; other parts of the
request identify the SDK. Google's SDK uses another path.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Final, Protocol
from urllib.parse import parse_qs

import anyio
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from streamlib.asgi import Scope
from streamlib.client import Client
from streamlib.client.model_list import ModelInfo
from streamlib.gateway.clients.access import error_response
from streamlib.gateway.clients.named_clients import check_model, client_of
from streamlib.gateway.requests.reader import refusal_headers
from streamlib.gateway.targets.routes import RouteRule, RouteTable, RouteTarget
from streamlib.gateway.targets.streams import hide_missing_key
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import JsonObject, WireApi
from streamlib_parsers.stream_error import StreamError

LIST_SECONDS: Final = 10.0
"""Timeout in seconds for a provider's list; after it, its models are missing from ours."""

LISTED_SECONDS: Final = 60.0
"""Seconds for which a provider's list is reused, because clients request it at each start."""

FAILED_SECONDS: Final = 10.0
"""Seconds before a list that could not be read is requested again."""

CREATED_KEYS: Final = ("created", "created_at", "modified_at")
"""Keys of the creation time in lists of OpenAI, Anthropic and Ollama."""


class ServedModel(Struct, frozen=True):
    """A model that clients may request.

    Attributes:
        name: name of the model in requests.
        created: creation time in seconds since 1970; if the provider does not report it, the start
            of the gateway.
        input_tokens: maximum in a request; None: unknown.
        output_tokens: maximum in a response; None: unknown.
    """

    name: str
    created: int
    input_tokens: int | None = None
    output_tokens: int | None = None


class ModelCatalog:
    """The models that the routes serve, completed by the providers' lists."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Makes a catalog without any list.

        Args:
            clock: returns seconds since 1970.
        """
        self._clock = clock
        self._started = int(clock())
        """Start of the gateway, in seconds since 1970."""
        self._lists: dict[object, tuple[float, list[ModelInfo] | None]] = {}
        """Server and key -> expiry time of the list, and the list; None: it could not be read. The
        key is part of it, because a provider lists what that key may use."""

    async def models(self, client: Client, table: RouteTable) -> list[ServedModel]:
        """The models that the routes serve, each once."""
        models: dict[str, ServedModel] = {}
        lists = await self._lists_of(client, table)
        for rule, listed in zip(table.rules, lists, strict=True):
            if not rule.is_pattern:
                model = self._alias(rule.model, table.targets(rule, rule.model)[0], listed)
                models.setdefault(rule.model, model)
                continue
            # Other targets have a fixed name, which the provider's list need not contain.
            if not _takes_own_name(rule):
                continue
            for info in listed or ():
                # An earlier route may match the name, and may serve another model under it.
                if fnmatchcase(info.id, rule.model) and table.rule(info.id) is rule:
                    models.setdefault(info.id, self._listed(info.id, info))
        return list(models.values())

    async def find(self, client: Client, table: RouteTable, name: str) -> ServedModel:
        """The model that a client would receive under a name.

        Raises:
            StreamError: no route serves the name (`not_found`), or its provider has no such model.
        """
        rule = table.rule(name)
        target = table.targets(rule, name)[0]
        listed = await self._list(client, target)
        if not _takes_own_name(rule):
            return self._alias(name, target, listed)
        if listed is None:
            return ServedModel(name, self._started)
        for info in listed:
            if info.id == name:
                return self._listed(name, info)
        message = f"the provider of this route has no model {name[:200]!r}"
        raise StreamError(ErrorInfo("not_found", message, code="model_not_found"))

    def _alias(
        self, name: str, target: RouteTarget, listed: Sequence[ModelInfo] | None
    ) -> ServedModel:
        """A model of a provider, under the name that the gateway gives it."""
        for info in listed or ():
            if info.id == target.resolved.model:
                return self._listed(name, info)
        return ServedModel(name, self._started)

    def _listed(self, name: str, info: ModelInfo) -> ServedModel:
        raw = info.raw
        return ServedModel(
            name,
            _created(raw) or self._started,
            _number(raw, "max_input_tokens", "inputTokenLimit", "context_length"),
            _number(raw, "max_tokens", "outputTokenLimit"),
        )

    async def _lists_of(
        self, client: Client, table: RouteTable
    ) -> list[Sequence[ModelInfo] | None]:
        """The list of each route's provider; all are requested at once."""
        lists: list[Sequence[ModelInfo] | None] = [None] * len(table.rules)

        async def read(index: int, target: RouteTarget) -> None:
            lists[index] = await self._list(client, target)

        async with anyio.create_task_group() as group:
            for index, rule in enumerate(table.rules):
                group.start_soon(read, index, table.targets(rule, "model")[0])
        return lists

    async def _list(self, client: Client, target: RouteTarget) -> list[ModelInfo] | None:
        """The list of a target's provider; None if it has none, or if it could not be read."""
        key = (target.provider.name, target.resolved.wire_api, target.base_url, target.key)
        now = self._clock()
        if key in self._lists and now < self._lists[key][0]:
            return self._lists[key][1]
        listed: list[ModelInfo] | None = None
        with anyio.move_on_after(LIST_SECONDS):
            try:
                listed = await client.models(
                    target.provider,
                    wire_api=target.resolved.wire_api,
                    base_url=target.base_url,
                    api_key=target.key,
                )
            except StreamError:
                # The provider has no list, or there is no key for it: its models are served all the
                # same, but not listed.
                listed = None
        seconds = LISTED_SECONDS if listed is not None else FAILED_SECONDS
        # Expired entries are dropped, so that lists of former routes or keys do not stay.
        fresh = {known: entry for known, entry in self._lists.items() if entry[0] > now}
        self._lists = {**fresh, key: (now + seconds, listed)}
        return listed


def _takes_own_name(rule: RouteRule) -> bool:
    """Whether a route's first target receives the name that the client sends."""
    return rule.is_pattern and rule.targets[0].model.endswith(":*")


def _created(raw: dict[str, Any]) -> int | None:
    """The creation time of a provider's model, in seconds since 1970; None if not reported."""
    for key in CREATED_KEYS:
        value = raw.get(key)
        if isinstance(value, (int, float)) and value > 0:
            return int(value)
        if isinstance(value, str):
            try:
                return int(datetime.fromisoformat(value).timestamp()) or None
            except (ValueError, OverflowError):
                continue
    return None


def _number(raw: dict[str, Any], *keys: str) -> int | None:
    for key in keys:
        value = raw.get(key)
        if isinstance(value, int) and value > 0:
            return value
    return None


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
