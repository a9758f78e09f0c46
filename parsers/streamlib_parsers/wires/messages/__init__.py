"""Anthropic Messages: `machine.py` reads the stream, the other files are what it reads with."""

from __future__ import annotations

from streamlib_parsers.wires.messages.blocks import BLOCKS
from streamlib_parsers.wires.messages.machine import (
    DELTA_HANDLERS,
    DELTAS,
    KINDS,
    STOP_REASONS,
    TRANSITIONS,
    Machine,
    State,
    body_frames,
    framing,
    usage,
)

__all__ = [
    "BLOCKS",
    "DELTAS",
    "DELTA_HANDLERS",
    "KINDS",
    "STOP_REASONS",
    "TRANSITIONS",
    "Machine",
    "State",
    "body_frames",
    "framing",
    "usage",
]
