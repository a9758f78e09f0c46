"""A client's request as it arrives: its path, its headers, its body as a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
from starlette.responses import JSONResponse, Response

from streamlib.asgi import Scope
from streamlib.errors import StreamError
from streamlib.gateway.admission import LimitExceeded
from streamlib.gateway.headers import error_headers, limit_headers, status_of
from streamlib.gateway.request_body import BODY_ERRORS
from streamlib.providers.wire_specs import ANTHROPIC_BETA
from streamlib.request.prompt import Prompt
from streamlib.wires.decoders import parse_request
from streamlib.wires.encoders import error_body
from streamlib.wires.routes import Route as RouteMatch
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.items import WireApi


def sent_path(scope: Scope) -> str:
    """The path as it was sent: in a decoded one, a slash in a model's name looks like any other."""
    raw: bytes | None = scope.get("raw_path")
    if raw:
        return raw.decode("ascii", "replace").partition("?")[0]
    path: str = scope["path"]
    return path


def beta_headers(scope: Scope) -> dict[str, str]:
    """The only header of a client that may go upstream: the betas of Claude, as one list."""
    values: list[str] = []
    for name, value in scope["headers"]:
        if name.lower() == ANTHROPIC_BETA.encode():
            values.append(value.decode("latin-1"))
    if not values:
        return {}
    return {ANTHROPIC_BETA: ",".join(values)}


def user_agent(scope: Scope) -> str:
    """What the client says that it is; "" if it says nothing (ASGI scope)."""
    for name, value in scope["headers"]:
        if name == b"user-agent":
            return str(value.decode("latin-1"))
    return ""


def prompt_of(match: RouteMatch, body: bytes, path: str, headers: Mapping[str, str]) -> Prompt:
    """The prompt of a request, with its model."""
    prompt = parse_request(match.wire_api, body, path=path, headers=headers)
    # Gemini's clients put model and streaming into the path, all others into the body.
    return msgspec.structs.replace(prompt, model=prompt.model or match.model or "")


def closing_headers(scope: Scope, error: ErrorInfo) -> dict[str, str]:
    """Headers that close the connection of a client whose body was refused before its end."""
    # What is left of it would be read as the next request, or be received for ever.
    if error.code in BODY_ERRORS and scope["http_version"].startswith("1"):
        return {"connection": "close"}
    return {}


def refusal_headers(scope: Scope, wire_api: WireApi, error: StreamError) -> dict[str, str]:
    """Headers of a request that no target was asked to serve."""
    headers = closing_headers(scope, error.info)
    if isinstance(error, LimitExceeded):
        headers.update(limit_headers(wire_api, error.limits, datetime.now(UTC)))
    return headers


def error_response(wire_api: WireApi, error: ErrorInfo) -> Response:
    """The same as `access.refuse`, for an endpoint that returns a response."""
    status = status_of(wire_api, error)
    return JSONResponse(error_body(wire_api, error), status, headers=error_headers(error))
