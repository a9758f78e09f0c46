"""Events of a log as a browser may see them."""

from __future__ import annotations

from typing import Final

from streamlib.wires.encoders import encoder
from streamlib_parsers.events import Passthrough, ResponseEvent, ResponseMetadata

INTERNAL_EVENTS: Final = frozenset({Passthrough, ResponseMetadata})
"""Events that hold a provider's own objects: no reader gets them."""


class PublicLines:
    """Events as JSON, without endpoint, headers, signatures and what else a provider wrote."""

    def __init__(self) -> None:
        self._encode = encoder("jsonl", public=True)

    def line(self, event: ResponseEvent) -> bytes:
        """The event as one line, without a line feed; empty for one that nobody may see."""
        if type(event) in INTERNAL_EVENTS:
            return b""
        return self._encode.feed(event).rstrip(b"\n")
