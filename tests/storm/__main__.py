"""Runs one storm and prints its counts as JSON: `python -X dev -m tests.storm`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import anyio

from tests.storm.run import TRANSPORTS, run
from tests.storm.stops import STOPS

LOOPS = ("asyncio", "uvloop", "trio")


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument("--transport", choices=TRANSPORTS, default="httpx")
    parser.add_argument("--loop", choices=LOOPS, default="asyncio")
    parser.add_argument("--streams", type=int, default=1000)
    options = parser.parse_args()
    backend: Any = {"backend": options.loop}
    if options.loop == "uvloop":
        backend = {"backend": "asyncio", "backend_options": {"use_uvloop": True}}
    began = time.monotonic()
    storm = anyio.run(run, options.transport, options.streams, **backend)
    result = {
        **storm.counts,
        "kinds": storm.kinds,
        "ways": len(STOPS),
        "pairs": len(storm.pairs),
        "seconds": round(time.monotonic() - began, 1),
        "examples": storm.examples,
    }
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


main()
