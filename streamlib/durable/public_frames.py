"""Events of a log, reduced to what a browser may see."""

from __future__ import annotations

from typing import Final

from streamlib.wires.encoders import encoder
from streamlib_parsers.events import Passthrough, ResponseMetadata, RunEvent

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
