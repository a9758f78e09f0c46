"""Encodes events as JSON lines, one event per line, for WebSockets and logs.

`streamlib.recording.load_events` reads them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib.request.report import Change
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed, RunEvent
from streamlib_parsers.items import JsonObject


class Encoder:
    """Encodes every event, and every output between the responses of a run; nothing is lost."""

    media_type = "application/x-ndjson"

    def __init__(self, *, model: str | None = None, response_id: str | None = None) -> None:
        self.report: list[Change] = []
        """Always empty."""

    def feed(self, event: RunEvent) -> bytes:
        """Returns one line."""
        return msgspec.json.encode(event) + b"\n"

    def close(self) -> bytes:
        """Returns nothing: the terminal event is the end."""
        return b""

    def ping(self) -> bytes:
        """Returns an empty line, to send while the model is silent; `load_events` ignores it."""
        return b"\n"


def run_encoder(**options: Any) -> Encoder:
    """Returns an encoder of a run: each line is an event or an output. Options as of `Encoder`."""
    return Encoder(**options)


def error_body(error: ErrorInfo) -> JsonObject:
    """Returns a failure as its event."""
    body: JsonObject = msgspec.to_builtins(Failed(error))
    return body


def encode_body(
    response: Response, model: str | None = None, message_id: str | None = None
) -> bytes:
    """Returns a response as one JSON object; it names its model, and is no message."""
    return msgspec.json.encode(response)
