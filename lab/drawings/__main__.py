"""Prints the figures of `coalesce`: `python -m lab.drawings`."""

from __future__ import annotations

import sys

import anyio

from lab.drawings.measure import DRAWING, INTERVAL, PARTS, crowd, virtually

sys.stdout.write("parts  drawing  drawings  in an interval  longest lag  allowed  first\n")
for parts in PARTS:
    for drawing in DRAWING:
        drawn = virtually(parts, drawing)
        allowed = 2 * INTERVAL + parts * drawing
        sys.stdout.write(
            f"{parts:5}  {drawing * 1e3:4.0f} ms  {drawn.drawings:8}  {drawn.in_an_interval:14}  "
            f"{drawn.lag * 1e3:8.1f} ms  {allowed * 1e3:4.0f} ms  {drawn.first * 1e3:.1f} ms\n"
        )
many = anyio.run(crowd)
sys.stdout.write(
    f"100 streams, 100 deltas a second each: p99 gap {many.p99_gap * 1e3:.1f} ms, "
    f"{many.cpu:.0%} of a core\n"
)
