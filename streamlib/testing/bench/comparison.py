"""Whether one run of `streamlib bench` was faster than another: ratio, spread, and a verdict.

Two runs of the same code differ, because the machine is never the same: it may take twice as long a
second later, and one process is slower than another for as long as it lives. So each round is
divided by the fixed work beside it, and a process counts once, with its median. A verdict needs two
things: apart from the fastest and the slowest process of each run, none of the one is as fast as
one of the other; and the medians of the processes differ by more than `NOTICEABLE`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

from streamlib.testing.bench.records import BenchRun, Figure, aligned, shown

NOTICEABLE: Final = 1.2
"""Times as long. Of 4,560 pairs of runs of the same code 12 differed by more, and were separate.
What takes turns in one run shows less, such as `--parser`, which compares in each round."""

FEWEST: Final = 5
"""Processes of each run: those of fewer are too often apart by accident."""

FASTER: Final = "faster"
SLOWER: Final = "slower"
SAME: Final = "no difference that this measurement can show"
UNSURE: Final = "cannot be told: the processes of a run differ too much"
TOO_FEW: Final = f"cannot be told: measured in fewer than {FEWEST} processes"

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
        """How many times as long the second takes, by the medians of the processes."""
        a, b = self._costs
        return _factor(statistics.median(a), statistics.median(b))

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the most that the ratio is between two processes, apart from the fastest
        and the slowest of each run."""
        a, b = (_without_ends(costs) for costs in self._costs)
        return _factor(a[-1], b[0]), _factor(a[0], b[-1])

    @property
    def machine_ratio(self) -> float | None:
        """How many times as long the fixed work took beside the second; None if it is not known."""
        a, b = self.a.yardstick, self.b.yardstick
        return statistics.median(b) / statistics.median(a) if a and b else None

    @property
    def verdict(self) -> str:
        """What the measurement shows of the second: `FASTER`, `SLOWER`, or that it shows nothing:
        `SAME`, `UNSURE` or `TOO_FEW`."""
        if min(self.a.processes, self.b.processes) < FEWEST:
            return TOO_FEW
        if not all(0 < cost < float("inf") for costs in self._costs for cost in costs):
            return UNSURE  # too short to measure, such as a stage that does next to nothing
        low, high = self.spread
        if low > 1 and self.ratio > NOTICEABLE:
            return SLOWER
        if high < 1 and self.ratio < 1 / NOTICEABLE:
            return FASTER
        # A difference that would be noticeable is excluded only if no two processes have it.
        return SAME if low >= 1 / NOTICEABLE and high <= NOTICEABLE else UNSURE

    @property
    def _costs(self) -> tuple[list[float], list[float]]:
        """What each process took, of both runs: of the fixed work, if both did that."""
        is_divided = bool(self.a.yardstick and self.b.yardstick)
        return _costs(self.a, is_divided=is_divided), _costs(self.b, is_divided=is_divided)


def _costs(figure: Figure, *, is_divided: bool) -> list[float]:
    """The median time of each process; a rate is the inverse of one."""
    times = [1 / rate if rate else float("inf") for rate in figure.rounds]
    if not figure.is_rate:
        times = [*figure.rounds]
    if is_divided:
        times = [time / fixed for time, fixed in zip(times, figure.yardstick, strict=True)]
    return [statistics.median(own) for own in figure.by_process(times)]


def _without_ends(costs: Sequence[float]) -> list[float]:
    """In order, without the least and the most, if there are so many."""
    ordered = sorted(costs)
    return ordered[1:-1] if len(ordered) > 2 else ordered


def _factor(before: float, after: float) -> float:
    """How many times as long."""
    return after / before if before > 0 else float("inf")


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


def notes(comparisons: Sequence[Comparison]) -> list[str]:
    """What to know of the verdicts: how much slower the machine was, and what to do."""
    lines: list[str] = []
    known = [each.machine_ratio for each in comparisons if each.machine_ratio is not None]
    if known:
        machine = statistics.median(known)
        if not 1 / NOTICEABLE <= machine <= NOTICEABLE:
            lines.append(
                f"The machine took {machine:.2f} times as long for the fixed work during B; B / A "
                "leaves that out."
            )
    verdicts = {each.verdict for each in comparisons}
    if UNSURE in verdicts:
        lines.append(
            "Measure both again, with more --rounds or while the machine is less busy; or let both "
            "take turns in one run, with --parser."
        )
    if TOO_FEW in verdicts:
        lines.append(f"Measure both with --rounds of {FEWEST} or more, with this version.")
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
