"""Gemini generateContent: `machine.py` reads the stream with what the other files define."""

from __future__ import annotations

from streamlib_parsers.wires.gemini.machine import Machine, body_frames, framing
from streamlib_parsers.wires.gemini.stop_reasons import (
    BLOCK_NUMBERS,
    FAILURE_REASONS,
    FINISH_NUMBERS,
    FINISH_NUMBERS_VERTEX,
    STOP_REASONS,
)
from streamlib_parsers.wires.gemini.token_counts import usage

__all__ = [
    "BLOCK_NUMBERS",
    "FAILURE_REASONS",
    "FINISH_NUMBERS",
    "FINISH_NUMBERS_VERTEX",
    "STOP_REASONS",
    "Machine",
    "body_frames",
    "framing",
    "usage",
]
