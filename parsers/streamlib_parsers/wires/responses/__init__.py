"""OpenAI Responses.

`machine.py` reads the stream by means of the other files; builders and encoders read `items.py` and
`wire_items.py` too.
"""

from __future__ import annotations

from streamlib_parsers.wires.responses.envelope import usage
from streamlib_parsers.wires.responses.events import read_position
from streamlib_parsers.wires.responses.machine import (
    EVENT_KINDS,
    Machine,
    body_frames,
    framing,
)

__all__ = [
    "EVENT_KINDS",
    "Machine",
    "body_frames",
    "framing",
    "read_position",
    "usage",
]
