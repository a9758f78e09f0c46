"""Encodes events as JSON lines, one event per line, for WebSockets and logs.

`streamlib.recording.load_events` reads them.
"""

from __future__ import annotations

import msgspec

from streamlib.request.report import Change
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed, ResponseEvent
from streamlib_parsers.items import JsonObject


class Encoder:
    """Encodes every event; nothing is lost."""

    media_type = "application/x-ndjson"

    def __init__(self, *, model: str | None = None, response_id: str | None = None) -> None:
        # Always empty.
        self.report: list[Change] = []

    def feed(self, event: ResponseEvent) -> bytes:
        """Returns one line."""
        return msgspec.json.encode(event) + b"\n"

    def close(self) -> bytes:
        """Returns nothing: the terminal event is the end."""
        return b""


def error_body(error: ErrorInfo) -> JsonObject:
    """Returns a failure as its event."""
    body: JsonObject = msgspec.to_builtins(Failed(error))
    return body


def encode_body(response: Response, model: str | None = None) -> bytes:
    """Returns a response as one JSON object."""
    return msgspec.json.encode(response)
