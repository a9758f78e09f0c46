"""Draws records as a bar chart: an SVG file that needs only a browser.

Colours and patterns are those of the inspector's page; light or dark as the browser prefers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final
from xml.sax.saxutils import escape

from streamlib.inspection.page import drawing_style, patterns
from streamlib.testing.bench.records import OURS, BenchRecord, shown

# Pixels: height of a row, gap between groups, width of the labels, width of the chart.
ROW, GAP, LEFT, WIDTH = 18, 10, 250, 900
OURS_CLASS, PEER_CLASS = "message", "other"
"""Classes of `drawing.css`, and the ids of their patterns: a solid bar and a striped one."""

TITLE_STYLE: Final = "svg .title{font-size:15px;font-weight:600}"


def bars(title: str, records: Sequence[BenchRecord]) -> str:
    """A bar chart with a bar for each record; lengths are relative to the largest.

    Consecutive records of the same workload and chunking form a group.
    """
    largest = max((record.best for record in records), default=1.0)
    parts: list[str] = []
    top = 40
    for _, entries in groupby(records, _group):
        group = list(entries)
        for record in group:
            label = f"{record.workload}, {record.chunks}"
            if len(group) > 1:
                label += f": {record.contestant}"
            parts += _bar(record, label, top, record.best / largest)
            top += ROW
        top += GAP
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" '
        f'viewBox="0 0 {WIDTH} {top}" role="img">'
    )
    name = f"<title>{escape(title)}</title>"
    style = f"<style>{drawing_style()}{TITLE_STYLE}</style>"
    # White for programs that do not support CSS variables.
    background = '<rect class="backing" width="100%" height="100%" fill="#fff"/>'
    heading = f'<text class="title" x="12" y="24">{escape(title)}</text>'
    lines = [svg, name, style, patterns(), background, heading, *parts, "</svg>\n"]
    return "\n".join(lines)


def _group(record: BenchRecord) -> tuple[str, str]:
    return record.workload, record.chunks


def _bar(record: BenchRecord, label: str, top: int, share: float) -> list[str]:
    length = max(1.0, share * (WIDTH - LEFT - 110))
    look = PEER_CLASS
    if record.contestant == OURS:
        look = OURS_CLASS
    baseline = top + 13
    value = f"{shown(record.best)} {escape(record.unit)}"
    size = f'width="{length:.1f}" height="{ROW - 4}"'
    return [
        f'<text x="{LEFT - 8}" y="{baseline}" text-anchor="end">{escape(label)}</text>',
        f'<rect class="{look} bar" x="{LEFT}" y="{top + 2}" {size} rx="2" fill="url(#{look})"/>',
        f'<text x="{LEFT + length + 6:.1f}" y="{baseline}">{value}</text>',
    ]
