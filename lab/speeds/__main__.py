"""Prints the measured ratios as one JSON object: `python -m lab.speeds`."""

from __future__ import annotations

import json
import sys

from lab.speeds.measure import (
    ABOVE_MESSAGES,
    ABOVE_SPLITTER,
    GROWING,
    SDKS,
    above_messages,
    above_parser,
    above_sdk,
    above_splitter,
    doubling,
)

figures = {
    "splitter": {wire: above_splitter(wire) for wire in ABOVE_SPLITTER},
    "client": {"messages": above_parser()},
    "sdk": {wire: above_sdk(wire) for wire in SDKS},
    "doubling": {name: doubling(name) for name in GROWING},
    "encoder": {wire: above_messages(wire) for wire in ABOVE_MESSAGES},
}
sys.stdout.write(json.dumps(figures))
