"""Prints the figures: see `lab.structured`."""

from __future__ import annotations

import argparse
import sys
import time

from lab.structured.growth import growth
from lab.structured.jiter_agreement import differences
from lab.structured.splits import complete_views_are_values, find_difference

LIMIT = 2.3
"""Invariant 8: twice the text costs at most so many times the time."""


def main() -> int:
    parser = argparse.ArgumentParser(description="figures of structured output")
    parser.add_argument("--splits", type=int, default=2_000, metavar="N")
    parser.add_argument("--growth", type=int, default=200_000, metavar="BYTES")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    failures = 0

    compared, differing = differences()
    failures += len(differing)
    sys.stdout.write("".join(f"{line}\n" for line in differing))
    sys.stdout.write(f"jiter: {compared} beginnings of texts, {len(differing)} differ\n")

    start = time.perf_counter()
    difference = find_difference(arguments.splits, arguments.seed)
    failures += difference is not None
    failures += not complete_views_are_values(500)
    took = time.perf_counter() - start
    sys.stdout.write(f"splits: {arguments.splits}, {difference or 'all equal'}, {took:.0f} s\n")

    sys.stdout.write(f"{arguments.growth:,} bytes in deltas of 10 characters, a view after each\n")
    for name, (microseconds, ratio) in growth(arguments.growth).items():
        failures += ratio > LIMIT
        sys.stdout.write(f"  {name:24}{microseconds:8.2f} us a delta, doubling {ratio:.2f}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
