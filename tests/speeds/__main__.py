"""Prints the measured ratios as one JSON object: `python -m tests.speeds`."""

from __future__ import annotations

import json
import sys

from tests.speeds.measure import FLOORS, GROWING, doubling, ratio

figures = {name: ratio(floor) for name, floor in FLOORS.items()}
figures |= {name: doubling(name) for name in GROWING}
sys.stdout.write(json.dumps(figures))
