"""Draws figures: bars, or throughput against the size of the chunks as a curve.

An SVG is for pages, an HTML file to be sent: it has the numbers below the drawing. Both need only a
browser, and say when, with what and on which machine was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from streamlib.inspection.page import drawing_style, patterns
from streamlib.testing.bench.records import OURS, BenchRun, Figure, shown
from streamlib.testing.svg import LEFT, LETTER, WIDTH, number, picture, text

ROW: Final = 36
"""Height of a bar with the label above it."""
BAR: Final = 14
VALUE: Final = 130
"""Width of the numbers behind a bar."""
OURS_CLASS: Final = "message"
PEER_CLASSES: Final = ("other", "reasoning", "call", "tool")
"""Classes of `drawing.css`, and the ids of their patterns."""
DASHES: Final = ("6 3", "2 3", "8 3 2 3", "1 2")
"""Of the lines of others: the colour alone says nothing."""

# The drawing of a curve: its left, right, upper and lower end, and its whole height.
PLOT_LEFT, PLOT_RIGHT, PLOT_TOP, PLOT_BOTTOM, PLOT_HEIGHT = 44, WIDTH - 16, 34, 184, 222

STYLE: Final = (
    "svg .title{font-size:15px;font-weight:600}svg .heading{font-weight:600}"
    ".grid{stroke:var(--line)}.line{stroke:var(--ink);fill:none;stroke-width:2}"
    ".band{fill:var(--ink);opacity:.18}.rest{opacity:.45}"
)
PAGE_STYLE: Final = (
    "body{margin:0 auto;max-width:1120px;padding:12px;background:var(--page);color:var(--text);"
    "font:15px/1.5 system-ui,sans-serif}h1{font-size:20px}.soft{color:var(--soft)}"
    ".drawings{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(300px,1fr))}"
    ".drawings svg{width:100%;height:auto;max-width:540px;display:block}"
    ".table{overflow-x:auto}table{border-collapse:collapse}"
    "td,th{padding:2px 14px 2px 0;text-align:left;white-space:nowrap;"
    "border-bottom:1px solid var(--line)}td.number,th.number{text-align:right}"
    "td:first-child{min-width:7em;white-space:normal;overflow-wrap:anywhere}"
)


class Panel(NamedTuple):
    """A part of a drawing, which can stand alone.

    Attributes:
        description: what it shows, for those who do not see it.
        height: pixels.
        parts: its elements.
    """

    description: str
    height: float
    parts: list[str]


def draw(path: Path, title: str, figures: Sequence[Figure], result: BenchRun) -> None:
    """Writes a chart: HTML if the name ends so, else SVG."""
    if path.suffix in (".html", ".htm"):
        chart = page(title, figures, result)
    else:
        chart = drawing(title, figures, result)
    path.write_text(chart, encoding="utf-8")


def drawing(title: str, figures: Sequence[Figure], result: BenchRun) -> str:
    """All panels below each other, with the origin of the figures, as one SVG."""
    parts = [patterns(), text(title, LEFT, 24, "title", room=WIDTH * 0.8)]
    top = 34.0
    sentences: list[str] = [title]
    for panel in panels(figures):
        parts += [f'<g transform="translate(0 {number(top)})">', *panel.parts, "</g>"]
        top += panel.height
        sentences.append(panel.description)
    for line in (_legend(figures), *result.origin()):
        parts.append(text(line, LEFT, top + 12, "soft", room=WIDTH))
        top += 17
    return picture(" ".join(sentences), top + 8, parts, STYLE)


def page(title: str, figures: Sequence[Figure], result: BenchRun) -> str:
    """The panels beside each other where there is room, and the numbers as a table."""
    drawings: list[str] = []
    for position, panel in enumerate(panels(figures)):
        parts = [patterns(), *panel.parts]
        drawings.append(picture(panel.description, panel.height, parts, STYLE, f"panel-{position}"))
    sentences = "<br>".join(escape(line) for line in (_legend(figures), *result.origin()))
    rows: list[str] = []
    for entry in figures:
        names = (entry.workload, entry.chunks, entry.contestant, entry.measure)
        cells = [f"<td>{escape(name)}</td>" for name in names]
        for value in (entry.best, entry.median):
            cells.append(f'<td class="number">{shown(value)} {escape(entry.unit)}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    heading = "".join(f"<th>{name}</th>" for name in ("body", "chunks", "reader", "measure"))
    heading += '<th class="number">best round</th><th class="number">median</th>'
    numbers = "\n".join([f"<tr>{heading}</tr>", *rows])
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title>\n<style>{drawing_style()}{PAGE_STYLE}</style>\n"
        f'<h1>{escape(title)}</h1>\n<p class="soft">{sentences}</p>\n'
        f'<div class="drawings">\n{"".join(drawings)}</div>\n'
        f'<div class="table"><table>\n{numbers}\n</table></div>\n</html>\n'
    )


def _legend(figures: Sequence[Figure]) -> str:
    rounds = max((len(entry.rounds) for entry in figures), default=0)
    if _is_curve(figures):
        return f"line: median of {rounds} rounds; band: all of them"
    return f"best of {rounds} rounds / median; the bar is light between them"


def _is_curve(figures: Sequence[Figure]) -> bool:
    return bool(figures) and figures[0].bench == "curve"


def panels(figures: Sequence[Figure]) -> list[Panel]:
    """A panel for each body of a curve; else one with all bars."""
    if not _is_curve(figures):
        return [bars(figures)]
    return [curve(name, [*own]) for name, own in groupby(figures, lambda entry: entry.workload)]


# --- bars ---


def bars(figures: Sequence[Figure]) -> Panel:
    """A bar for each figure, up to its best round and, lighter, to its median."""
    largest = max((max(entry.best, entry.median) for entry in figures), default=1.0) or 1.0
    contestants = {entry.contestant for entry in figures}
    parts: list[str] = []
    sentences: list[str] = []
    for position, entry in enumerate(figures):
        kind = f", {entry.chunks}"
        if len(contestants) > 1:
            kind += f": {entry.contestant}"
        label = f"{entry.workload}{kind}"
        shortened = _end_of(entry.workload, WIDTH - 2 * LEFT - len(kind) * LETTER) + kind
        value = f"{shown(entry.best)} / {shown(entry.median)} {entry.unit}"
        sentences.append(f"{label} {value}.")
        parts += _bar(entry, shortened, value, position * ROW, largest)
    return Panel(" ".join(sentences), len(figures) * ROW + 8, parts)


def _bar(entry: Figure, label: str, value: str, top: float, largest: float) -> list[str]:
    look = OURS_CLASS if entry.contestant == OURS else PEER_CLASSES[0]
    room = WIDTH - 2 * LEFT - VALUE
    low, high = sorted((entry.best, entry.median))
    lengths = [max(1.0, room * max(0.0, value) / largest) for value in (high, low)]
    parts = [text(label, LEFT, top + 12, room=WIDTH - 2 * LEFT)]
    for kind, length in zip((f"{look} bar rest", f"{look} bar"), lengths, strict=True):
        size = f'width="{number(length)}" height="{BAR}"'
        parts.append(
            f'<rect class="{kind}" x="{LEFT}" y="{number(top + 17)}" {size} rx="2"'
            f' fill="url(#{look})"/>'
        )
    parts.append(text(value, LEFT + lengths[0] + 6, top + 28))
    return parts


def _end_of(name: str, room: float) -> str:
    """The end of a name: of a long path the name of the file, which tells the bars apart."""
    most = max(2, int(room / LETTER))
    if len(name) <= most:
        return name
    return f"…{name[1 - most :]}"


# --- curves ---


def curve(name: str, figures: Sequence[Figure]) -> Panel:
    """The curve of one body: a line for each reader."""
    sizes = list(dict.fromkeys(entry.chunks for entry in figures))
    highest = _rounded_up(max(entry.spread[1] for entry in figures))
    heading = _end_of(name, WIDTH - 2 * LEFT - 40)
    parts = [text(heading, LEFT, 14, "heading"), *_axes(sizes, highest)]
    sentences = [f"{name}, MB/s by size of the chunks."]
    readers = list(dict.fromkeys(entry.contestant for entry in figures))
    for position, reader in enumerate(readers):
        own = [entry for entry in figures if entry.contestant == reader]
        xs = [_x(sizes.index(entry.chunks), sizes) for entry in own]
        parts += _line(own, position, xs, highest)
        values = [f"{entry.chunks} {shown(entry.median)}" for entry in own]
        sentences.append(f"{reader}: {', '.join(values)}.")
    return Panel(" ".join(sentences), PLOT_HEIGHT + 18 * len(readers), parts)


def _x(position: int, sizes: Sequence[str]) -> float:
    return PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * position / max(1, len(sizes) - 1)


def _y(value: float, highest: float) -> float:
    return PLOT_BOTTOM - (PLOT_BOTTOM - PLOT_TOP) * value / highest


def _rounded_up(value: float) -> float:
    """The next number of one digit: a half of it is short too."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return math.ceil(value / power) * power


def _axes(sizes: Sequence[str], highest: float) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        y = _y(share * highest, highest)
        yield f'<path class="grid" d="M{PLOT_LEFT} {number(y)}H{PLOT_RIGHT}"/>'
        yield text(f"{share * highest:.4g}", PLOT_LEFT - 6, y + 4, "soft", "end")
    yield text("MB/s", PLOT_RIGHT, 14, "soft", "end")
    for position, size in enumerate(sizes):
        label = size.replace(" KiB", "K").replace(" B", "")
        yield text(label, _x(position, sizes), PLOT_BOTTOM + 17, "soft", "middle")
    yield text("bytes in a chunk", PLOT_RIGHT, PLOT_BOTTOM + 33, "soft", "end")


def _line(
    figures: Sequence[Figure], position: int, xs: Sequence[float], highest: float
) -> Iterator[str]:
    """A reader's line, the band of its rounds, and its name below the drawing."""
    kind, dash = OURS_CLASS, ""
    if position:
        kind = PEER_CLASSES[position % len(PEER_CLASSES)]
        dash = f' stroke-dasharray="{DASHES[position % len(DASHES)]}"'
    medians: list[str] = []
    upper: list[str] = []
    lower: list[str] = []
    for x, entry in zip(xs, figures, strict=True):
        low, high = entry.spread
        medians.append(f"{number(x)} {number(_y(entry.median, highest))}")
        upper.append(f"{number(x)} {number(_y(high, highest))}")
        lower.append(f"{number(x)} {number(_y(low, highest))}")
    y = PLOT_HEIGHT + 18 * position + 4
    yield f'<g class="{kind}">'
    yield f'<path class="band" d="M{"L".join([*upper, *reversed(lower)])}Z"/>'
    yield f'<path class="line" d="M{"L".join(medians)}"{dash}/>'
    for point in medians:
        x_of, y_of = point.split()
        yield f'<circle class="dots" cx="{x_of}" cy="{y_of}" r="3"/>'
    yield f'<path class="line" d="M{PLOT_LEFT} {y}h28"{dash}/></g>'
    yield text(figures[0].contestant, PLOT_LEFT + 36, y + 4, room=PLOT_RIGHT - PLOT_LEFT - 40)
