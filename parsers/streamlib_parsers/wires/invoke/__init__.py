"""Bedrock InvokeModelWithResponseStream: `machine.py` reads the frames and selects a family.

families.py      the table of model families and how they are recognized
text_machine.py  the machine of families without a wire API of their own
token_counts.py  their usage, and Bedrock's own metrics, as `Usage`
body.py          a complete body -> the payloads of its stream
"""

from __future__ import annotations

from streamlib_parsers.framing.eventstream import (
    EventStreamFraming as framing,  # noqa: N813  # every wire's name
)
from streamlib_parsers.wires.invoke.body import body_frames
from streamlib_parsers.wires.invoke.families import (
    BEDROCK,
    BY_NAME,
    COUNTS,
    FAMILIES,
    METRICS,
    STOP_REASONS,
    Family,
)
from streamlib_parsers.wires.invoke.machine import Machine
from streamlib_parsers.wires.invoke.token_counts import usage

__all__ = [
    "BEDROCK",
    "BY_NAME",
    "COUNTS",
    "FAMILIES",
    "METRICS",
    "STOP_REASONS",
    "Family",
    "Machine",
    "body_frames",
    "framing",
    "usage",
]
