"""The gateway's paths: what POST requests ask for, and who may use its own pages.

    POST /v1/messages  /v1/chat/completions  …            a response
    POST /v1/messages/count_tokens                        a count
    POST /v1beta/models/{id}:countTokens
    POST /v1/responses/input_tokens
    POST /v1/responses/compact                            a compaction

Bodies of counts and compactions have the format of a request for a response, and are parsed as one.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from streamlib.wires.routes import Route, route

Operation: TypeAlias = Literal["response", "count", "compaction"]
"""What a request asks the gateway for; observers can read it."""

BESIDE_RESPONSES: Final[dict[str, tuple[str, Operation]]] = {
    "/v1/messages/count_tokens": ("/v1/messages", "count"),
    "/v1/responses/input_tokens": ("/v1/responses", "count"),
    "/v1/responses/compact": ("/v1/responses", "compaction"),
}
"""Path -> path of a response with the same body, and the operation."""

GEMINI_COUNT: Final = ":countTokens"
GEMINI_RESPONSE: Final = ":generateContent"

HEALTH: Final = "/health"
READY: Final = "/ready"
OPEN_PATHS: Final = frozenset({HEALTH, READY})
"""Paths of probes, which have no token."""

METRICS: Final = "/metrics"

OWNER_PATHS: Final = frozenset({METRICS})
"""Paths that no token of a named client opens."""

FORM_PATHS: Final = frozenset({"/login", "/logout"})
"""Paths that forms are posted to."""

PAGE_PATHS: Final = frozenset({"/", "/live", *FORM_PATHS})
"""Paths that need no token: the page asks for it itself."""


def response_path(path: str) -> str:
    """The path (or the end of a URL) of a request for a response with the same body."""
    if path.endswith(GEMINI_COUNT):
        return path.removesuffix(GEMINI_COUNT) + GEMINI_RESPONSE
    for beside, (of_response, _) in BESIDE_RESPONSES.items():
        if path.endswith(beside):
            return path.removesuffix(beside) + of_response
    return path


class Endpoint(Struct, frozen=True):
    """The endpoint that a path names.

    Attributes:
        operation: operation that is requested.
        match: the wire, and the parts of the path that describe the response.
        path: path of a request for a response with the same body.
    """

    operation: Operation
    match: Route
    path: str


def endpoint_of(path: str) -> Endpoint | None:
    """The endpoint of a path, as the client sent it; None if no wire has the path."""
    operation: Operation = "response"
    if path in BESIDE_RESPONSES:
        operation = BESIDE_RESPONSES[path][1]
    elif path.endswith(GEMINI_COUNT):
        operation = "count"
    path = response_path(path)
    match = route(path)
    if match is None:
        return None
    return Endpoint(operation, match, path)
