"""Ollama /api/chat. See `machine.py`."""

from __future__ import annotations

from streamlib_parsers.framing.ndjson import (
    NdjsonFraming as framing,  # noqa: N813  # the name every wire gives its framing
)
from streamlib_parsers.wires.ollama.machine import (
    IMAGE_TYPES,
    STOP_REASONS,
    TYPED_KEYS,
    USAGE_KEYS,
    Machine,
    body_frames,
    usage,
)

__all__ = [
    "IMAGE_TYPES",
    "STOP_REASONS",
    "TYPED_KEYS",
    "USAGE_KEYS",
    "Machine",
    "body_frames",
    "framing",
    "usage",
]
