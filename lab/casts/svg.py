"""A cast as SVG: CSS alone moves it, and it needs no font, no script and no other file.

Without animations (a reader who wants less motion, a program that knows no CSS) it is the last
picture: that is what the elements show by themselves, and the animation hides them until their
time. Each run of characters has the width of its cells, whatever font there is.
"""

from __future__ import annotations

from html import escape
from typing import Final

from lab.casts.screen import Drawn, Run, Style
from streamlib.testing.svg import frame

CELL: Final = 8.4
LINE: Final = 19
SIZE: Final = 14
MARGIN: Final = 16
TIMES: Final = 3
"""How often a cast is played before it rests."""

BACKGROUND: Final = "#10151d"
COLOURS: Final = {
    "default": "#e4e9f0",
    "brightblack": "#98a5b5",
    "red": "#ff8a80",
    "green": "#7fdc95",
    "brown": "#e8bd5c",  # pyte's name for yellow
    "cyan": "#77d6e6",
}
"""Colours on `BACKGROUND`, which the picture has on a light page too."""

STYLE: Final = """\
text{{font:{size}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;\
white-space:pre;fill:{fill}}}
{classes}
"""
ANIMATION: Final = """\
.a,.g{{animation:{seconds}s step-end {times} both}}
.g{{visibility:hidden}}
{frames}
@media (prefers-reduced-motion:reduce){{*{{animation:none!important}}}}
"""


def still(drawn: Drawn, title: str) -> str:
    """The last picture of a cast."""
    texts = [_text(run) for run in drawn.runs if run.end is None]
    return _picture(drawn, title, "", texts)


def animated(drawn: Drawn, title: str) -> str:
    """The whole cast; it ends with its last picture."""
    frames: dict[str, str] = {}
    """Keyframes -> their name: runs that come and go together share them."""
    texts: list[str] = []
    for run in drawn.runs:
        if run.start == 0 and run.end is None:
            texts.append(_text(run))
            continue
        name = frames.setdefault(_shown(run, drawn.seconds), f"k{len(frames)}")
        kind = "a" if run.end is None else "g"
        texts.append(_text(run, kind, name))
    rules: list[str] = []
    for steps, name in frames.items():
        rules.append(f"@keyframes {name}{{{steps}}}.{name}{{animation-name:{name}}}")
    rules.append(f"@keyframes c{{{_moves(drawn)}}}#c{{animation-name:c}}")
    seconds = _number(drawn.seconds)
    style = ANIMATION.format(seconds=seconds, times=TIMES, frames="\n".join(rules))
    return _picture(drawn, title, style, texts)


def _picture(drawn: Drawn, title: str, animation: str, texts: list[str]) -> str:
    width = round(drawn.columns * CELL + 2 * MARGIN)
    height = drawn.lines * LINE + 2 * MARGIN
    used = sorted({run.style for run in drawn.runs})
    classes = "\n".join([f".{_name(style)}{{{_look(style)}}}" for style in used if _look(style)])
    style = STYLE.format(size=SIZE, fill=COLOURS["default"], classes=classes)
    _, line, column = drawn.cursor[-1]
    box = f'x="{MARGIN}" y="{MARGIN}" width="{CELL}" height="{LINE - 2}"'
    place = f"translate({_number(column * CELL)}px,{line * LINE}px)"
    back = f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>'
    cursor = (
        f'<rect id="c" class="a" {box} fill="{COLOURS["brightblack"]}" opacity=".7"'
        f' style="transform:{place}"/>'
    )
    body = "\n".join([back, *texts, cursor])
    return frame(title, width, height, f"{style}{animation}", body)


def _text(run: Run, *classes: str) -> str:
    """A run; `classes` are those that animate it."""
    names = list(classes)
    if _look(run.style):
        names.append(_name(run.style))
    attributes = ""
    if names:
        attributes = f' class="{" ".join(names)}"'
    x = _number(MARGIN + run.column * CELL)
    y = MARGIN + run.line * LINE + SIZE
    width = ""
    if len(run.text) > 1:
        width = f' textLength="{_number(len(run.text) * CELL)}"'
    return f'<text x="{x}" y="{y}"{width}{attributes}>{escape(run.text)}</text>'


def _shown(run: Run, seconds: float) -> str:
    """Keyframes that show a run from its start to its end."""
    steps: list[str] = []
    if run.start:
        steps.append("0%{visibility:hidden}")
    steps.append(f"{_share(run.start, seconds)}{{visibility:visible}}")
    if run.end is not None:
        steps.append(f"{_share(run.end, seconds)}{{visibility:hidden}}")
    return "".join(steps)


def _moves(drawn: Drawn) -> str:
    steps: list[str] = []
    for at, line, column in drawn.cursor:
        place = f"translate({_number(column * CELL)}px,{line * LINE}px)"
        steps.append(f"{_share(at, drawn.seconds)}{{transform:{place}}}")
    return "".join(steps)


def _share(at: float, seconds: float) -> str:
    return f"{_number(100 * at / seconds)}%"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _name(style: Style) -> str:
    """A class for a style."""
    name = style.colour
    for letter, has_it in (("b", style.bold), ("i", style.italics), ("u", style.underscore)):
        if has_it:
            name += f"-{letter}"
    return name


def _look(style: Style) -> str:
    rules: list[str] = []
    if style.colour != "default":
        rules.append(f"fill:{COLOURS[style.colour]}")
    if style.bold:
        rules.append("font-weight:700")
    if style.italics:
        rules.append("font-style:italic")
    if style.underscore:
        rules.append("text-decoration:underline")
    return ";".join(rules)
