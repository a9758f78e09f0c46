"""Figures of the synchronous client, as JSON.

python -m lab.sync storm [--streams 1000] [--threads 32]
python -m lab.sync interrupts [--places 100]
python -m lab.sync speed
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
from typing import Any

from lab.sync import interrupts, speed, storm

WATCHDOG_SECONDS = 500
"""After so long the tracebacks of all threads are printed, and the command ends."""


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m lab.sync", description=__doc__)
    parser.add_argument("command", choices=["storm", "interrupts", "speed"])
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--places", type=int, default=100)
    options = parser.parse_args()
    faulthandler.dump_traceback_later(WATCHDOG_SECONDS, exit=True)
    result: dict[str, Any]
    if options.command == "storm":
        result = storm.run_storm(options.streams, options.threads)
    elif options.command == "interrupts":
        result = {
            "by line": interrupts.by_line(options.places),
            "by time": interrupts.by_time(options.places),
        }
    else:
        result = speed.measure()
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


main()
