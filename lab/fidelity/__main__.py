"""Figures of invariant 12: requests drawn from the SDKs' types, leaves compared, losses.

    python -m lab.fidelity          every wire: each field and union member once, zero and empty
                                    values, unknown keys, chained requests
    python -m lab.fidelity messages --random 2000   and so many random requests
    python -m lab.fidelity messages --reported      lists what the report names, too

Exit status 1 if a leaf was lost silently, or a request was refused.
"""

from __future__ import annotations

import argparse
import sys

from hypothesis import HealthCheck, Phase, given, settings

from lab.fidelity.compare import Body, WireTable
from lab.fidelity.figures import Figures, add, described, measure
from lab.fidelity.shapes import DRAWS, covering, values_of
from lab.fidelity.tables import TABLES


def write(line: str) -> None:
    """Writes one line."""
    sys.stdout.write(f"{line}\n")


def random_requests(figures: Figures, table: WireTable, count: int) -> None:
    """Adds so many random requests to the figures."""

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(values_of(table.request()))
    def run(body: Body) -> None:
        add(figures, table, body)

    run()


def main() -> int:
    """Prints a table, and what was lost."""
    parser = argparse.ArgumentParser(description="figures of invariant 12, request fidelity")
    parser.add_argument("wires", nargs="*", default=list(TABLES), metavar="WIRE")
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--reported", action="store_true")
    arguments = parser.parse_args()
    failures = 0
    write(f"{'wire':10}{'requests':>10}{'leaves':>10}{'silent':>8}{'reported':>10}{'refused':>9}")
    for wire in arguments.wires:
        table = TABLES[wire]
        figures = measure(table, table.chained)
        for draw in DRAWS:
            for body in covering(table.request(), draw=draw):
                add(figures, table, body)
        if arguments.random:
            random_requests(figures, table, arguments.random)
        reported = sum(figures.reported.values())
        write(
            f"{wire:10}{figures.requests:10,}{figures.leaves:10,}{len(figures.silent):8}"
            f"{reported:10,}{figures.refusals:9,}"
        )
        if figures.silent or figures.refused:
            write(described(figures))
            failures += 1
        if arguments.reported:
            for (pattern, reason), count in sorted(figures.reported.items()):
                write(f"  {count:6,} {pattern}: {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
