"""Which path speaks which wire: read by the loopback provider and by the gateway."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from streamlib_parsers.items import WireApi


class Route(Struct, frozen=True):
    """A request line, read. `stream`: None where the body says it. `model`: None where the body names it."""

    wire_api: WireApi
    stream: bool | None = None
    model: str | None = None


_PATHS: Final[tuple[tuple[str, WireApi, bool | None], ...]] = (
    (r"(?:/v1)?/messages", "messages", None),
    (r"(?:/v1)?/chat/completions", "chat", None),
    (r"(?:/v1)?/responses", "responses", None),
    (r"/v1(?:beta)?/models/([^/:]+):streamGenerateContent", "gemini", True),
    (r"/v1(?:beta)?/models/([^/:]+):generateContent", "gemini", False),
    (r"/model/([^/]+)/converse-stream", "converse", True),
    (r"/model/([^/]+)/converse", "converse", False),
    (r"/model/([^/]+)/invoke-with-response-stream", "invoke", True),
    (r"/model/([^/]+)/invoke", "invoke", False),
    (r"/api/chat", "ollama", None),
)
ROUTES: Final[tuple[tuple[re.Pattern[str], WireApi, bool | None], ...]] = tuple(
    (re.compile(pattern), wire_api, stream) for pattern, wire_api, stream in _PATHS
)


def route(path: str) -> Route | None:
    """The route of a path (its query is not looked at), or None."""
    path = path.partition("?")[0]
    for pattern, wire_api, stream in ROUTES:
        match = pattern.fullmatch(path)
        if match:
            return Route(wire_api, stream, unquote(match.group(1)) if match.groups() else None)
    return None
