"""What the pictures have in common: a frame with words, and numbers and texts that fit.

The charts of `streamlib bench` and the splits of `streamlib fuzz` are 380 wide, so that a telephone
shows them in their own size, and have the colours of the inspector's page, light or dark as the
browser prefers. They need only a browser.
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

from streamlib.inspection.page import drawing_style

WIDTH: Final = 380
LEFT: Final = 12
LETTER: Final = 6.7
"""Most pixels that a letter of the text takes on average, at its 12 pixels."""
CODE: Final = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace'

NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML may contain, not even escaped: bodies and errors of others have them."""


def frame(description: str, width: int, height: int, style: str, body: str, name: str = "t") -> str:
    """A picture.

    Args:
        description: what it shows, for those who do not see it.
        width: pixels.
        height: pixels.
        style: its CSS.
        body: its elements.
        name: id of its description, which differs where several pictures are on a page.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img" aria-labelledby="{name}">\n'
        f'<title id="{name}">{escaped(description)}</title>\n<style>\n{style}</style>\n'
        f"{body}\n</svg>\n"
    )


def picture(
    description: str, height: float, parts: list[str], style: str = "", name: str = "t"
) -> str:
    """A picture in the colours of the inspector's page."""
    # White for programs that know no CSS variables.
    back = '<rect class="backing" width="100%" height="100%" rx="8" fill="#fff"/>'
    body = "\n".join([back, *parts])
    return frame(description, WIDTH, round(height), f"{drawing_style()}{style}\n", body, name)


def text(
    label: str, x: float, y: float, kind: str = "", anchor: str = "start", room: float = WIDTH
) -> str:
    """A line of text.

    Args:
        label: the text; what does not fit is cut.
        x: where its anchor is.
        y: its baseline.
        kind: its class.
        anchor: what `x` is: "start", "middle" or "end".
        room: pixels that it may take.
    """
    attributes = f'x="{number(x)}" y="{number(y)}"'
    if kind:
        attributes = f'class="{kind}" {attributes}'
    if anchor != "start":
        attributes += f' text-anchor="{anchor}"'
    return f"<text {attributes}>{escaped(fitted(label, room))}</text>"


def fitted(label: str, room: float) -> str:
    """The beginning of a text that fits into so many pixels."""
    most = int(room / LETTER)
    if len(label) <= most:
        return label
    return f"{label[: most - 1]}…"


def escaped(label: str) -> str:
    """A text as content of an element."""
    return escape(NOT_XML.sub("\ufffd", label))


def number(value: float) -> str:
    """A number of pixels."""
    return f"{value:.1f}".removesuffix(".0")
