"""Records as a bar chart: an SVG file that needs only a browser."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final
from xml.sax.saxutils import escape

from streamlib.bench.records import OURS, Record, shown

# Pixels: height of a row, gap between groups, width of the labels, width of the chart.
ROW, GAP, LEFT, WIDTH = 18, 10, 250, 900
OURS_COLOUR, PEER_COLOUR = "#2563eb", "#94a3b8"
STYLE: Final = "text{font:12px system-ui,sans-serif;fill:#334155}.t{font-size:15px;font-weight:600}"


def bars(title: str, records: Sequence[Record]) -> str:
    """A bar for each record, its length relative to the largest.

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
        f'viewBox="0 0 {WIDTH} {top}"><style>{STYLE}</style>'
    )
    background = '<rect width="100%" height="100%" fill="#fff"/>'
    heading = f'<text class="t" x="12" y="24">{escape(title)}</text>'
    return "\n".join([svg, background, heading, *parts, "</svg>\n"])


def _group(record: Record) -> tuple[str, str]:
    return record.workload, record.chunks


def _bar(record: Record, label: str, top: int, share: float) -> list[str]:
    length = max(1.0, share * (WIDTH - LEFT - 110))
    colour = PEER_COLOUR
    if record.contestant == OURS:
        colour = OURS_COLOUR
    baseline = top + 13
    value = f"{shown(record.best)} {escape(record.unit)}"
    size = f'width="{length:.1f}" height="{ROW - 4}"'
    return [
        f'<text x="{LEFT - 8}" y="{baseline}" text-anchor="end">{escape(label)}</text>',
        f'<rect x="{LEFT}" y="{top + 2}" {size} rx="2" fill="{colour}"/>',
        f'<text x="{LEFT + length + 6:.1f}" y="{baseline}">{value}</text>',
    ]
