"""Request paths to wire APIs, for the loopback provider and the gateway."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.items import WireApi


class Route(Struct, frozen=True):
    """What a request path determines.

    Attributes:
        wire_api: the wire of the request.
        stream: whether the response is streamed; None if the body decides.
        model: the model; None if the body names it.
    """

    wire_api: WireApi
    stream: bool | None = None
    model: str | None = None


ROUTES: Final[tuple[tuple[re.Pattern[str], WireApi, bool | None], ...]] = tuple(
    (re.compile(served.pattern), wire_api, served.stream)
    for wire_api, spec in WIRE_SPECS.items()
    for served in spec.served_paths
)


def route(path: str) -> Route | None:
    """The route of a path, whose query is ignored; None if no wire has this path."""
    path = path.partition("?")[0]
    for pattern, wire_api, stream in ROUTES:
        match = pattern.fullmatch(path)
        if match:
            return Route(wire_api, stream, unquote(match.group(1)) if match.groups() else None)
    return None


class StoredRoute(Struct, frozen=True):
    """What the path of a stored response determines.

    Attributes:
        wire_api: the wire of the response.
        response_id: the id of the response.
        action: `"cancel"`, or `""` to read the response.
    """

    wire_api: WireApi
    response_id: str
    action: str


STORED_ROUTES: Final[tuple[tuple[re.Pattern[str], WireApi], ...]] = tuple(
    (re.compile(rf"{served.pattern}/([^/]+)(/cancel)?"), wire_api)
    for wire_api, spec in WIRE_SPECS.items()
    if spec.resume is not None
    for served in spec.served_paths
)


def stored_route(path: str) -> StoredRoute | None:
    """The stored response of a path, whose query is ignored; None for any other path."""
    path = path.partition("?")[0]
    for pattern, wire_api in STORED_ROUTES:
        match = pattern.fullmatch(path)
        if match:
            action = (match.group(2) or "").lstrip("/")
            return StoredRoute(wire_api, unquote(match.group(1)), action)
    return None
