"""Cells and rows of the pages' tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamlib.testing.bench.records import BenchRun, Figure

NOTHING = "not measured yet"


def short(value: float) -> str:
    """A number with two or three digits."""
    if abs(value) >= 10:
        return f"{value:,.0f}"
    if abs(value) >= 1:
        return f"{value:.1f}"
    return f"{value:.2f}"


def with_spread(found: Figure) -> str:
    """The median of a figure, and its spread if the rounds differ: `12 (11-13)`."""
    median = short(found.median)
    low, high = (short(value) for value in found.spread)
    if low == high:
        return median
    return f"{median} ({low}-{high})"


def best_and_median(figures: Sequence[Figure]) -> str:
    """The lowest round and the median of a figure: `12 / 13`; empty without a figure."""
    if not figures:
        return ""
    lowest, median = short(min(figures[0].rounds)), short(figures[0].median)
    return lowest if lowest == median else f"{lowest} / {median}"


def cell(figures: Sequence[Figure], *, losses: bool = False) -> str:
    """A figure as a cell; empty without a figure.

    Args:
        figures: no figure or one.
        losses: whether a ratio below 1, where the peer is faster, is set in bold.
    """
    if not figures:
        return ""
    found = figures[0]
    text = with_spread(found)
    if losses and found.median < 1:
        return f"**{text}**"
    return text


def markdown(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; columns that are empty in every row are omitted."""
    lines = [list(row) for row in rows]
    if not lines:
        return NOTHING
    used = [any(row[column] for row in lines) for column in range(len(heading))]
    kept: list[str] = []
    for row in (list(heading), ["---"] * len(heading), *lines):
        cells = [text for text, is_used in zip(row, used, strict=True) if is_used]
        kept.append(f"| {' | '.join(cells)} |")
    return "\n".join(kept)


def origin(result: BenchRun | None) -> str:
    """The origin of the figures in a table: command, date, machine, versions."""
    if result is None:
        return ""
    about = result.machine
    versions = [f"{name} {number}" for name, number in result.versions.items()]
    machine = (
        f"Python {about['python']}, {about['build']}, {about['cores']} cores of {about['cpu']}"
    )
    lines = [f"`{result.command}`, {result.date}; {machine}, load {about['load']}."]
    if versions:
        lines.append(f"With {', '.join(versions)}.")
    for why in result.absent:
        lines.append(f"Not measured: {why}.")
    return "\n".join(lines)
