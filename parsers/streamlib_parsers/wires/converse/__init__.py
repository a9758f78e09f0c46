"""Bedrock ConverseStream: `machine.py` reads the stream with what the other files define.

payloads.py      the JSON of deltas
blocks.py        the start of a content block -> its item
token_counts.py  the wire's usage object -> `Usage`
body.py          a complete body -> the events of its stream
"""

from __future__ import annotations

from streamlib_parsers.framing.eventstream import (
    EventStreamFraming as framing,  # noqa: N813  # every wire's name
)
from streamlib_parsers.wires.converse.blocks import BLOCKS, JOINS, OPENERS
from streamlib_parsers.wires.converse.body import body_frames
from streamlib_parsers.wires.converse.machine import STOP_REASONS, Machine
from streamlib_parsers.wires.converse.payloads import Delta
from streamlib_parsers.wires.converse.states import TRANSITIONS, State
from streamlib_parsers.wires.converse.token_counts import usage

__all__ = [
    "BLOCKS",
    "JOINS",
    "OPENERS",
    "STOP_REASONS",
    "TRANSITIONS",
    "Delta",
    "Machine",
    "State",
    "body_frames",
    "framing",
    "usage",
]
