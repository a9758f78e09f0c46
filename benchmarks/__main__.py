"""Measures everything again and writes the tables of the pages.

    python -m benchmarks                     # everything: about half an hour on two cores
    python -m benchmarks --part transports   # one part, or several
    python -m benchmarks --quick             # whether all of it works; keeps nothing
    python -m benchmarks --page              # the tables alone, from what was measured last

Each part runs in a process of its own. What could not be measured is said loudly at the end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from benchmarks import node_readers, page, pipeline_peers


def main(argv: list[str] | None = None) -> int:
    """Measures the parts; returns 1 if one of them failed."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--part", action="append", choices=page.PARTS, metavar="PART")
    command.add_argument("--rounds", type=int, help="of each part; by default as many as it says")
    command.add_argument("--quick", action="store_true")
    command.add_argument("--page", action="store_true")
    arguments = command.parse_args(argv)
    failed: list[str] = []
    options = ["--quick"] if arguments.quick else ["--save"]
    if arguments.rounds:
        options += ["--rounds", str(arguments.rounds)]
    if not arguments.page:
        failed += [*node_readers.install(), *pipeline_peers.install()]
        for part in arguments.part or page.PARTS:
            failed += measure(part, pure(), options)
    if not arguments.quick:
        for path in page.write():
            print(f"tables written: {path.relative_to(page.ROOT)}")
    for line in failed:
        print(f"!! {line}")
    return 1 if failed else 0


def pure() -> Mapping[str, str]:
    """Environment variables that import this checkout, not an installed package."""
    paths = os.pathsep.join([str(page.ROOT), str(page.ROOT / "parsers")])
    return {**os.environ, "PYTHONPATH": paths}


def measure(part: str, environment: Mapping[str, str], options: Sequence[str]) -> list[str]:
    """Runs one part; returns its errors."""
    began = time.monotonic()
    print(f"== {part}", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{part}", *options]
    done = subprocess.run(command, check=False, cwd=page.ROOT, env=environment)
    print(f"-- {part}: {time.monotonic() - began:.0f} s", flush=True)
    if done.returncode != 0:
        return [f"{part} failed"]
    return []


if __name__ == "__main__":
    raise SystemExit(main())
