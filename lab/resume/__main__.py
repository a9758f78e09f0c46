"""Cuts each background stream at every byte, and prints what was found, as JSON.

python -m lab.resume [--recorded 10] [--step 1]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time

import anyio

from lab.resume.cuts import Counts, check_stream, derived_streams, recorded_streams


async def run(recorded: int, step: int) -> dict[str, object]:
    """All of them."""
    counts = Counts()
    streams = [*derived_streams(), *recorded_streams(recorded)]
    for stream in streams:
        size = len(stream.body) - stream.first_connection
        await check_stream(stream, range(0, size + 1, step), counts)
    found = dataclasses.asdict(counts)
    found["violations"] = counts.violations[:20]
    found["violations_count"] = len(counts.violations)
    return {"streams": len(streams), **found, "cpu_seconds": round(time.process_time(), 1)}


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m lab.resume", description=__doc__)
    parser.add_argument("--recorded", type=int, default=10)
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    found = anyio.run(run, options.recorded, options.step)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


main()
