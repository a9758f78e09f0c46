"""Chat Completions and its many dialects: `machine.py` reads the stream, the other files are what it reads with."""

from __future__ import annotations

from streamlib_parsers.wires.chat.machine import (
    CACHE_READS,
    CACHE_WRITES,
    CHUNK_KEYS,
    STOP_REASONS,
    THOUGHT_TOKENS,
    Machine,
    body_frames,
    contradictions,
    framing,
    usage,
)

__all__ = [
    "CACHE_READS",
    "CACHE_WRITES",
    "CHUNK_KEYS",
    "STOP_REASONS",
    "THOUGHT_TOKENS",
    "Machine",
    "body_frames",
    "contradictions",
    "framing",
    "usage",
]
