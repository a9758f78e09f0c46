"""One request to the logs' application: the headers and the errors of its responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from streamlib.asgi import AsgiExchange, Headers, raw_headers
from streamlib.durable.records import LogError
from streamlib.wires.encoders import encoder
from streamlib_parsers.events import Passthrough, ResponseMetadata, RunEvent

SECURITY_HEADERS: Final = {
    # A log contains JSON from a model: no browser may read it as a page or a script.
    "x-content-type-options": "nosniff",
    # Protects against embedding by other sites without CORS; `fetch` with CORS still works.
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every response."""

RETRY_AFTER: Final = "1"
"""Seconds after which a client may retry while the engine does not respond."""


class LogExchange(AsgiExchange):
    """One request about a log, and its response."""

    async def start(self, status: int, headers: Headers) -> None:
        """Sends status and headers, with those of every response."""
        await super().start(status, raw_headers(SECURITY_HEADERS) + raw_headers(headers))

    async def refuse(
        self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Sends an error: ``{"error": {"kind", "message"}}``."""
        body = msgspec.json.encode({"error": {"kind": kind, "message": message}})
        fields = {"content-type": "application/json", "cache-control": "no-store"}
        fields.update(headers or {})
        await self.respond(status, fields, body)

    async def refuse_log_error(self, error: LogError) -> None:
        """Sends the status for an error of a log; the body quotes nothing of the log."""
        match error.kind:
            case "gone" if error.known:
                await self.refuse(410, "gone", "the log was deleted, or has expired")
            case "gone":
                await self.refuse(404, "gone", "there is no such log")
            case "rewound":
                await self.refuse(
                    410, "rewound", "the log lost events that were read: read it from its start"
                )
            case "unreadable":
                await self.refuse(500, "unreadable", "the log was changed and cannot be read")
            case _:
                fields = {"retry-after": RETRY_AFTER}
                await self.refuse(503, "unavailable", "logs cannot be read at the moment", fields)


INTERNAL_EVENTS: Final = frozenset({Passthrough, ResponseMetadata})
"""Events that contain a provider's own objects: they are never sent."""


class PublicLines:
    """Events as JSON, without endpoint, headers, signatures and other fields of a provider."""

    def __init__(self) -> None:
        self._encode = encoder("jsonl", public=True, run=True)

    def line(self, event: RunEvent) -> bytes:
        """The event as one line, without a line feed; empty if the event must not be seen."""
        if type(event) in INTERNAL_EVENTS:
            return b""
        return self._encode.feed(event).rstrip(b"\n")
