"""Encodes events as JSON lines, one event per line, for WebSockets and logs.

`streamlib.recording.load_events` reads them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from streamlib.request.report import Change, Report
from streamlib.web.public_errors import ErrorText
from streamlib.web.public_events import PublicView
from streamlib_parsers.accumulate import Response
from streamlib_parsers.errors import ErrorInfo
from streamlib_parsers.events import Failed, RunEvent
from streamlib_parsers.items import JsonObject


class JsonLinesEncoder:
    """Encodes every event, and every output between the responses of a run; nothing is lost.

    Args:
        model: not used: the events name it.
        response_id: not used: the events name it.
        public: for a browser: without endpoint and account, headers, the provider's own objects,
            signatures and encrypted state; errors have a text for readers. See
            `streamlib.web.public_events`.
        error_text: returns the message for a failure that a browser sees.
    """

    media_type = "application/x-ndjson"

    def __init__(
        self,
        *,
        model: str | None = None,
        response_id: str | None = None,
        public: bool = False,
        error_text: ErrorText | None = None,
    ) -> None:
        self._report = Report()
        self._view: PublicView | None = None
        """What a browser may see of the events; None: everything is sent."""
        if public:
            self._view = PublicView(self._report, error_text)

    @property
    def report(self) -> list[Change]:
        """What was left out because a browser must not see it; empty if everything is sent."""
        return self._report.changes

    def feed(self, event: RunEvent) -> bytes:
        """One line."""
        if self._view is not None:
            event = self._view.of(event)
        return msgspec.json.encode(event) + b"\n"

    def close(self) -> bytes:
        """Nothing: the terminal event is the end."""
        return b""

    def ping(self) -> bytes:
        """An empty line, to send while the model is silent; `load_events` ignores it."""
        return b"\n"


def run_encoder(**options: Any) -> JsonLinesEncoder:
    """An encoder of a run: each line is an event or an output.

    Args:
        **options: those of `JsonLinesEncoder`.
    """
    return JsonLinesEncoder(**options)


def error_body(error: ErrorInfo) -> JsonObject:
    """A failure as its event."""
    body: JsonObject = msgspec.to_builtins(Failed(error))
    return body


def encode_body(
    response: Response, model: str | None = None, message_id: str | None = None
) -> bytes:
    """A response as one JSON object; it names its model, and is not a message."""
    return msgspec.json.encode(response)
