"""Chat Completions and its many variants.

`machine.py` reads the stream with what the other files define.
"""

from __future__ import annotations

from streamlib_parsers.wires.chat.choice import DOCUMENT_BY_URL, REFERENCES_KEY
from streamlib_parsers.wires.chat.machine import (
    CHUNK_KEYS,
    FAILURE_REASONS,
    STOP_REASONS,
    Machine,
    body_frames,
    framing,
)
from streamlib_parsers.wires.chat.token_counts import (
    CACHE_READS,
    CACHE_WRITES,
    REASONING_TOKENS,
    contradictions,
    usage,
)

__all__ = [
    "CACHE_READS",
    "CACHE_WRITES",
    "CHUNK_KEYS",
    "DOCUMENT_BY_URL",
    "FAILURE_REASONS",
    "REASONING_TOKENS",
    "REFERENCES_KEY",
    "STOP_REASONS",
    "Machine",
    "body_frames",
    "contradictions",
    "framing",
    "usage",
]
