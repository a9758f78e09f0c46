"""Records as a bar chart: an SVG file that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final
from xml.sax.saxutils import escape

from streamlib.bench.records import OURS, Record, shown

ROW, GAP, LEFT, WIDTH = 18, 10, 250, 900
OURS_COLOUR, PEER_COLOUR = "#2563eb", "#94a3b8"
STYLE: Final = "text{font:12px system-ui,sans-serif;fill:#334155}.t{font-size:15px;font-weight:600}"


def bars(title: str, records: Sequence[Record]) -> str:
    """One bar for each record, longest the largest; records of one workload and chunking stand together."""
    groups = [list(group) for _, group in groupby(records, lambda one: (one.workload, one.chunks))]
    largest = max((one.best for one in records), default=1.0)
    parts: list[str] = []
    top = 40
    for group in groups:
        for one in group:
            parts += _bar(one, top, one.best / largest, alone=len(group) == 1)
            top += ROW
        top += GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}"><style>{STYLE}</style>'
    return "\n".join(
        [
            head,
            '<rect width="100%" height="100%" fill="#fff"/>',
            f'<text class="t" x="12" y="24">{escape(title)}</text>',
            *parts,
            "</svg>\n",
        ]
    )


def _bar(one: Record, top: int, share: float, *, alone: bool) -> list[str]:
    label = (
        f"{one.workload}, {one.chunks}"
        if alone
        else f"{one.workload}, {one.chunks}: {one.contestant}"
    )
    long = max(1.0, share * (WIDTH - LEFT - 110))
    colour = OURS_COLOUR if one.contestant == OURS else PEER_COLOUR
    return [
        f'<text x="{LEFT - 8}" y="{top + 13}" text-anchor="end">{escape(label)}</text>',
        f'<rect x="{LEFT}" y="{top + 2}" width="{long:.1f}" height="{ROW - 4}" rx="2" fill="{colour}"/>',
        f'<text x="{LEFT + long + 6:.1f}" y="{top + 13}">{shown(one.best)} {escape(one.unit)}</text>',
    ]
