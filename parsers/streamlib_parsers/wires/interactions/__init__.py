"""Gemini Interactions: `machine.py` reads the stream with what the other files define.

events.py        the wire's events
steps.py         the start of a step -> its item
contents.py      the texts, images and audio of a model's output
byte_offsets.py  offsets of annotations, in bytes and in characters
envelope.py      id, status, usage and errors of the interaction
token_counts.py  the wire's usage object -> `Usage`
body.py          a complete body -> the events of its stream
"""

from __future__ import annotations

from streamlib_parsers.framing.sse import SSEFraming as framing  # noqa: N813  # every wire's name
from streamlib_parsers.wires.interactions.body import body_frames
from streamlib_parsers.wires.interactions.byte_offsets import ByteOffsets
from streamlib_parsers.wires.interactions.contents import part_of
from streamlib_parsers.wires.interactions.envelope import STOP_REASONS
from streamlib_parsers.wires.interactions.events import read_position
from streamlib_parsers.wires.interactions.machine import Machine
from streamlib_parsers.wires.interactions.steps import CALLS, RESULTS, item_of, output_of
from streamlib_parsers.wires.interactions.token_counts import usage

__all__ = [
    "CALLS",
    "RESULTS",
    "STOP_REASONS",
    "ByteOffsets",
    "Machine",
    "body_frames",
    "framing",
    "item_of",
    "output_of",
    "part_of",
    "read_position",
    "usage",
]
