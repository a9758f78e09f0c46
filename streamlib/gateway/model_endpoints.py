"""Endpoints that list the models, in the format of each wire.

GET  /v1/models   /v1/models/{id}   /v1beta/models   /v1beta/models/{id}
"""

from __future__ import annotations

from typing import Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from streamlib.client import Client
from streamlib.errors import StreamError
from streamlib.gateway.client_request import error_response, refusal_headers
from streamlib.gateway.model_pages import model_list, model_object, query_of, wire_of_client
from streamlib.gateway.models import ModelCatalog
from streamlib.gateway.named_clients import check_model, client_of
from streamlib.gateway.routes import RouteTable
from streamlib.gateway.target_streams import hide_missing_key


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
