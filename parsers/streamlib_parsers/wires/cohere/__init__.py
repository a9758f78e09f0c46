"""Cohere v2 chat: `machine.py` reads the stream with what the other files define.

events.py        the wire's frequent events
citations.py     which open item a citation belongs to
token_counts.py  the wire's usage object -> `Usage`
body.py          a complete body -> the events of its stream
"""

from __future__ import annotations

from streamlib_parsers.framing.sse import SSEFraming as framing  # noqa: N813  # every wire's name
from streamlib_parsers.wires.cohere.body import body_frames
from streamlib_parsers.wires.cohere.machine import FAILURES, STOP_REASONS, Machine
from streamlib_parsers.wires.cohere.token_counts import usage

__all__ = ["FAILURES", "STOP_REASONS", "Machine", "body_frames", "framing", "usage"]
