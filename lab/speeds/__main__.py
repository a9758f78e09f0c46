"""Prints the measured ratios as one JSON object: `python -m lab.speeds`."""

from __future__ import annotations

import json
import sys

from lab.speeds.measure import (
    ABOVE_FLOOR,
    ABOVE_MESSAGES,
    FLOORS,
    GROWING,
    above_floor,
    above_messages,
    doubling,
    floor_name,
    ratio,
)

figures = {name: ratio(floor) for name, floor in FLOORS.items()}
figures |= {name: doubling(name) for name in GROWING}
figures |= {floor_name(*case): above_floor(*case) for case in ABOVE_FLOOR}
figures |= {f"{wire}, encoder": above_messages(wire) for wire in ABOVE_MESSAGES}
sys.stdout.write(json.dumps(figures))
