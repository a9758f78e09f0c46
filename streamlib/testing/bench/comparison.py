"""Whether one run of `streamlib bench` was faster than another: ratio, spread, and a verdict.

Two runs of the same code differ, because the machine is never the same. So a verdict needs three
things at once: the middle halves of the rounds of both runs do not overlap, and both the medians
and the best rounds differ by more than `NOTICEABLE`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

from streamlib.testing.bench.records import BenchRun, Figure, aligned, shown

NOTICEABLE: Final = 1.1
"""Times as long: two runs of the same code differed by less, even with four programs a core. What
takes turns in one run shows less, such as `--parser`, which compares in each round."""

FEWEST: Final = 5
"""Rounds of each run: of fewer the middle half says nothing."""

FASTER: Final = "faster"
SLOWER: Final = "slower"
SAME: Final = "no difference that this measurement can show"
TOO_FEW: Final = f"cannot be told: fewer than {FEWEST} rounds"

TIMES: Final = ("ns/event", "µs/event", "µs/body", "µs", "ms", "s")
"""Units of time. Rates are compared too, where a row has no time."""

MATTERS: Final = ("python", "build", "cpu", "cores")
"""What is compared if it differs between two runs: these, not the code."""


class Comparison(NamedTuple):
    """One figure in two runs.

    Attributes:
        a: in the first.
        b: in the second.
    """

    a: Figure
    b: Figure

    @property
    def ratio(self) -> float:
        """How many times as long the second takes, by the medians."""
        return _factor(self.a, self.a.median, self.b.median)

    @property
    def best_ratio(self) -> float:
        """The same by the best rounds."""
        return _factor(self.a, self.a.best, self.b.best)

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the most that the ratio is between the middle halves of the rounds."""
        a_low, a_high = _middle_half(self.a)
        b_low, b_high = _middle_half(self.b)
        ends = (_factor(self.a, a_high, b_low), _factor(self.a, a_low, b_high))
        return min(ends), max(ends)

    @property
    def verdict(self) -> str:
        """What the measurement shows of the second: `FASTER`, `SLOWER`, `SAME` or `TOO_FEW`."""
        if min(len(self.a.rounds), len(self.b.rounds)) < FEWEST:
            return TOO_FEW
        low, high = self.spread
        if low > 1 and min(self.best_ratio, self.ratio) > NOTICEABLE:
            return SLOWER
        if high < 1 and max(self.best_ratio, self.ratio) < 1 / NOTICEABLE:
            return FASTER
        return SAME


def _factor(figure: Figure, a: float, b: float) -> float:
    """How many times as long: a rate is the inverse of a time."""
    before, after = (b, a) if figure.is_rate else (a, b)
    return after / before if before > 0 else float("inf")


def _middle_half(figure: Figure) -> tuple[float, float]:
    if len(figure.rounds) < 2:
        return figure.median, figure.median
    low, _, high = statistics.quantiles(figure.rounds, n=4, method="inclusive")
    return low, high


def compare(a: BenchRun, b: BenchRun) -> tuple[list[Comparison], list[str]]:
    """The times and rates that both have, and names of what only one has."""
    ours, theirs = _compared(a), _compared(b)
    both = [Comparison(ours[key], theirs[key]) for key in ours if key in theirs]
    alone = [f"only in A: {', '.join(key)}" for key in ours if key not in theirs]
    alone += [f"only in B: {', '.join(key)}" for key in theirs if key not in ours]
    return both, alone


def _compared(result: BenchRun) -> dict[tuple[str, ...], Figure]:
    """Name of a row and its quantity -> figure: times, and rates of what has no time."""
    rows: dict[tuple[str, ...], Figure] = {}
    timed = {_row(entry) for entry in result.figures if entry.unit in TIMES}
    for entry in result.figures:
        if entry.unit in TIMES or (entry.is_rate and _row(entry) not in timed):
            rows[(*_row(entry), f"{entry.measure} ({entry.unit})")] = entry
    return rows


def _row(figure: Figure) -> tuple[str, str, str]:
    return figure.workload, figure.chunks, figure.contestant


def differences(a: BenchRun, b: BenchRun) -> list[str]:
    """What is not the same of the two machines, so that not only the code is compared."""
    lines: list[str] = []
    for name in MATTERS:
        before, after = a.machine.get(name, "unknown"), b.machine.get(name, "unknown")
        if before != after:
            lines.append(f"{name}: A {before}, B {after}")
    return lines


def table(comparisons: Sequence[Comparison]) -> str:
    """The ratios as text, with the verdict on the second in words."""
    lines = [["workload", "chunks", "of", "measure", "A", "B", "B / A", "spread", "B is"]]
    for each in comparisons:
        low, high = each.spread
        lines.append(
            [
                *_row(each.a),
                f"{each.a.measure} ({each.a.unit})",
                _cell(each.a),
                _cell(each.b),
                f"{each.ratio:.2f}",
                f"{low:.2f}-{high:.2f}",
                each.verdict,
            ]
        )
    return aligned(lines)


def _cell(figure: Figure) -> str:
    return f"{shown(figure.best)} / {shown(figure.median)}"
