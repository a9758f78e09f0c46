"""Anthropic Messages: `machine.py` reads the stream, the other files are what it reads with."""

from __future__ import annotations

from streamlib_parsers.wires.messages.blocks import BLOCKS
from streamlib_parsers.wires.messages.machine import APPLY, DELTAS, KINDS, LAW, STOP_REASONS, At, Machine, body_frames, framing, usage

__all__ = ["APPLY", "BLOCKS", "DELTAS", "KINDS", "LAW", "STOP_REASONS", "At", "Machine", "body_frames", "framing", "usage"]
