"""A marble diagram as SVG: 380 wide, so that a telephone shows it in its own size.

Time runs from left to right. It has its own background, light or dark as the reader prefers.
"""

from __future__ import annotations

from html import escape
from typing import Final, NamedTuple

from lab.marbles.operators import Picture
from lab.marbles.script import Line, Mark
from streamlib.testing.svg import CODE, WIDTH, frame, number

LEFT: Final = 12
RIGHT: Final = 12
NAME: Final = 15
"""Height of the name above a line."""
ROW: Final = 22
"""Height of a row of marbles."""
LETTER: Final = 7.3
"""Width of a letter of 12 pixels in the fonts below."""
BOX: Final = 30
GAP: Final = 8

LIGHT: Final = {
    "back": "#f6f7fa",
    "ink": "#1c2430",
    "quiet": "#566172",
    "grid": "#dde1e8",
    "box": "#e4e8f4",
    "first": "#cfe2ff",
    "second": "#ffe0b8",
    "third": "#d3f0d2",
    "edge": "#4a6fb0",
    "bad": "#a31621",
}
DARK: Final = {
    "back": "#151a22",
    "ink": "#e8ecf2",
    "quiet": "#a7b1c0",
    "grid": "#2c3542",
    "box": "#263046",
    "first": "#1f3f73",
    "second": "#6b4410",
    "third": "#1f5a2c",
    "edge": "#86a8e8",
    "bad": "#ff9a94",
}
COLOURS: Final = ("first", "second", "third")
"""Of the marbles of items 0, 1, 2 …"""


class _Placed(NamedTuple):
    """A mark with its place: x of its left end, row, width."""

    mark: Mark
    x: float
    row: int
    width: float


def draw(picture: Picture) -> str:
    """The diagram."""
    lines = [*picture.above, *picture.below]
    last = max(mark.time for line in lines for mark in line.marks)
    scale = _scale(lines)
    parts: list[str] = []
    top = 6.0
    for line in picture.above:
        top = _line(parts, line, top, scale)
    parts.append(
        f'<rect class="box" x="6" y="{number(top)}" width="{WIDTH - 12}" height="{BOX}" rx="6"/>'
        f'<text class="code" x="{WIDTH / 2:g}" y="{number(top + 20)}" text-anchor="middle">'
        f"{escape(picture.code)}</text>"
    )
    top += BOX + GAP
    for line in picture.below:
        top = _line(parts, line, top, scale)
    height = round(top + 16)
    ticks = _ticks(last, scale, height)
    body = "\n".join([*ticks, *parts])
    back = f'<rect class="back" width="{WIDTH}" height="{height}" rx="8"/>'
    return frame(words_of(picture), WIDTH, height, _style(), f"{back}\n{body}")


def words_of(picture: Picture) -> str:
    """What the diagram shows, for those who do not see it."""
    told = [f"{picture.code}."]
    for line in (*picture.above, *picture.below):
        seen: list[str] = []
        for mark in line.marks:
            if mark.kind != "done":
                seen.append(f"{mark.time:.3g} s {_shown(mark)}")
        told.append(f"{line.name}: {', '.join(seen)}.")
    return " ".join(told)


def _shown(mark: Mark) -> str:
    """The words of a mark: white space can be seen."""
    text = mark.text.replace(" ", "␣").replace("\n", "⏎")
    if mark.kind in ("text", "list"):
        return text
    return mark.text


def _width(mark: Mark) -> float:
    if mark.kind == "done":
        return 8
    return len(_shown(mark)) * LETTER + 10


def _scale(lines: list[Line]) -> float:
    """Pixels of a second, so that each mark begins at its time and ends in the picture."""
    scales: list[float] = []
    for line in lines:
        for mark in line.marks:
            if mark.time > 0:
                scales.append((WIDTH - LEFT - RIGHT - _width(mark)) / mark.time)
    return min(scales)


def _place(line: Line, scale: float) -> list[_Placed]:
    """Marks from left to right; what would cover another one goes into the next row."""
    ends: list[float] = []
    """Where each row is free."""
    placed: list[_Placed] = []
    lowest = 0
    moment = -1.0
    for mark in line.marks:
        width = _width(mark)
        x = LEFT + mark.time * scale
        if mark.time != moment:
            moment, lowest = mark.time, 0
        # At one moment the order is from top to bottom.
        row = lowest
        while row < len(ends) and ends[row] > x:
            row += 1
        if row == len(ends):
            ends.append(0.0)
        lowest = row
        ends[row] = x + width + 2
        placed.append(_Placed(mark, x, row, width))
    return placed


def _line(parts: list[str], line: Line, top: float, scale: float) -> float:
    """Draws a stream; returns where it ends."""
    parts.append(f'<text class="name" x="{LEFT}" y="{number(top + 11)}">{escape(line.name)}</text>')
    placed = _place(line, scale)
    rows = 1 + max([each.row for each in placed], default=0)
    axis = top + NAME + 1
    parts.append(f'<path class="axis" d="M{LEFT} {number(axis)}H{WIDTH - RIGHT}l-5 -3m5 3l-5 3"/>')
    for each in placed:
        parts.append(_marble(each, axis + 3 + each.row * ROW))
    return axis + 3 + rows * ROW + GAP


def _marble(placed: _Placed, top: float) -> str:
    mark, x, _, width = placed
    shape = f'x="{number(x)}" y="{number(top)}" width="{number(width)}" height="{ROW - 4}"'
    text = (
        f'<text x="{number(x + width / 2)}" y="{number(top + 13)}" text-anchor="middle"'
        f' textLength="{number(width - 10)}">{escape(_shown(mark))}</text>'
    )
    if mark.kind == "done":
        return f'<rect class="done" x="{number(x)}" y="{number(top + 5)}" width="8" height="8"/>'
    if mark.kind in ("text", "list"):
        colour = COLOURS[mark.item % len(COLOURS)]
        return f'<rect class="{colour}" {shape} rx="8"/>{text}'
    if mark.kind in ("end", "failed", "closed"):
        bar = f'<path class="{mark.kind}" d="M{number(x + 1)} {number(top)}v{ROW - 4}"/>'
        return f'<g class="of-{mark.kind}">{bar}{text}</g>'
    return f'<rect class="{mark.kind}" {shape} rx="2"/>{text}'


def _ticks(last: float, scale: float, height: int) -> list[str]:
    """A line each second, with its number below."""
    ticks: list[str] = []
    for second in range(int(last + 1e-9) + 1):
        x = number(LEFT + second * scale)
        ticks.append(
            f'<path class="grid" d="M{x} 6V{height - 16}"/>'
            f'<text class="second" x="{x}" y="{height - 5}" text-anchor="middle">{second}</text>'
        )
    ticks.append(
        f'<text class="second" x="{WIDTH - 6}" y="{height - 5}" text-anchor="end">s</text>'
    )
    return ticks


def _style() -> str:
    light = ";".join(f"--{name}:{value}" for name, value in LIGHT.items())
    dark = ";".join(f"--{name}:{value}" for name, value in DARK.items())
    return (
        f":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"text{{font:12px {CODE};fill:var(--ink)}}\n"
        ".name,.second{font-size:11px;fill:var(--quiet)}.code{font-weight:600}\n"
        ".back{fill:var(--back)}.box{fill:var(--box);stroke:var(--edge)}\n"
        ".axis{stroke:var(--quiet);fill:none}.grid{stroke:var(--grid)}\n"
        ".first{fill:var(--first)}rect.second{fill:var(--second)}.third{fill:var(--third)}\n"
        ".event,.fact{fill:var(--back);stroke:var(--quiet)}\n"
        ".notice{fill:var(--back);stroke:var(--edge);stroke-dasharray:3 2}\n"
        ".done{fill:var(--quiet)}.end{stroke:var(--ink);stroke-width:3}\n"
        ".failed,.closed{stroke:var(--bad);stroke-width:3}\n"
        ".of-failed text,.of-closed text{fill:var(--bad)}.closed{stroke-dasharray:3 2}\n"
    )
