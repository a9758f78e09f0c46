"""What a client asks for by the path of its POST: a response, a count of tokens, or a compaction.

    POST /v1/messages  /v1/chat/completions  …            a response
    POST /v1/messages/count_tokens                        a count
    POST /v1beta/models/{id}:countTokens
    POST /v1/responses/input_tokens
    POST /v1/responses/compact                            a compaction

The body of the last two is that of a request for a response, and is read as one.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from streamlib.wires.routes import Route, route

Operation: TypeAlias = Literal["response", "count", "compaction"]
"""What is done with a request; observers see it."""

BESIDE_RESPONSES: Final[dict[str, tuple[str, Operation]]] = {
    "/v1/messages/count_tokens": ("/v1/messages", "count"),
    "/v1/responses/input_tokens": ("/v1/responses", "count"),
    "/v1/responses/compact": ("/v1/responses", "compaction"),
}
"""Path -> that of a response with the same body, and what is done."""

GEMINI_COUNT: Final = ":countTokens"
GEMINI_RESPONSE: Final = ":generateContent"


def response_path(path: str) -> str:
    """The path, or the end of a URL, of a response to the same body."""
    if path.endswith(GEMINI_COUNT):
        return path.removesuffix(GEMINI_COUNT) + GEMINI_RESPONSE
    for beside, (of_response, _) in BESIDE_RESPONSES.items():
        if path.endswith(beside):
            return path.removesuffix(beside) + of_response
    return path


class Endpoint(Struct, frozen=True):
    """What a path asks for.

    Attributes:
        operation: what is done.
        match: the wire, and what its path says of a response.
        path: of a response with the same body.
    """

    operation: Operation
    match: Route
    path: str


def endpoint_of(path: str) -> Endpoint | None:
    """What a path asks for, as it was sent; None where no wire has it."""
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
