"""Anthropic Messages: `machine.py` reads the stream with what the other files define.

events.py        the wire's events and deltas
blocks.py        the start of a content block -> its item
token_counts.py  the wire's usage object -> `Usage`
body.py          a complete body -> the events of its stream
"""

from __future__ import annotations

from streamlib_parsers.framing.sse import SSEFraming as framing  # noqa: N813  # every wire's name
from streamlib_parsers.wires.messages.blocks import BLOCKS
from streamlib_parsers.wires.messages.body import body_frames
from streamlib_parsers.wires.messages.events import DELTAS, KINDS
from streamlib_parsers.wires.messages.machine import (
    ACCEPTED_DELTAS,
    STOP_REASONS,
    TRANSITIONS,
    Machine,
    State,
)
from streamlib_parsers.wires.messages.token_counts import usage

__all__ = [
    "ACCEPTED_DELTAS",
    "BLOCKS",
    "DELTAS",
    "KINDS",
    "STOP_REASONS",
    "TRANSITIONS",
    "Machine",
    "State",
    "body_frames",
    "framing",
    "usage",
]
