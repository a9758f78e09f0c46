"""Gemini generateContent: `machine.py` reads the stream, the other files are what it reads with."""

from __future__ import annotations

from streamlib_parsers.wires.gemini.machine import (
    BLOCK_NUMBERS,
    FINISH_NUMBERS,
    FINISH_NUMBERS_VERTEX,
    STOP_REASONS,
    Machine,
    body_frames,
    framing,
    usage,
)

__all__ = [
    "BLOCK_NUMBERS",
    "FINISH_NUMBERS",
    "FINISH_NUMBERS_VERTEX",
    "STOP_REASONS",
    "Machine",
    "body_frames",
    "framing",
    "usage",
]
