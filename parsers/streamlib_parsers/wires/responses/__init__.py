"""OpenAI Responses: `machine.py` reads the stream, the other files are what it reads with; `items.py` is read by builders and encoders too."""

from __future__ import annotations

from streamlib_parsers.wires.responses.machine import (
    EVENT_KINDS,
    Machine,
    body_frames,
    framing,
    usage,
)

__all__ = [
    "EVENT_KINDS",
    "Machine",
    "body_frames",
    "framing",
    "usage",
]
