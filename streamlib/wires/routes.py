"""Request paths to wire APIs, for the loopback provider and the gateway."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from streamlib.providers.wire_specs import WIRE_SPECS
from streamlib_parsers.items import WireApi


class Route(Struct, frozen=True):
    """What a request path says.

    Attributes:
        wire_api: the wire of the request.
        stream: whether the response is streamed; None where the body says so.
        model: the model; None where the body names it.
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
    """The route of a path, whose query is ignored; None where no wire has it."""
    path = path.partition("?")[0]
    for pattern, wire_api, stream in ROUTES:
        match = pattern.fullmatch(path)
        if match:
            return Route(wire_api, stream, unquote(match.group(1)) if match.groups() else None)
    return None
