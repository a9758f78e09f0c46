"""The files of the casts, and the words that stand in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lab.casts.screen import draw
from lab.casts.sessions import CASTS
from lab.casts.svg import animated, still
from tests.support.shared import ROOT

IMAGES: Final = ROOT / "docs" / "images"
TITLES: Final = {
    "chat": "A terminal: streamlib is asked to compare three rivers. Its response appears as it"
    " streams: a table that grows row by row, bold words, Python code, a list.",
    "inspect": "A terminal: streamlib replays a recording that was cut, shows the text so far and"
    " an error; streamlib inspect then names the byte, the frame and what was not received.",
}
"""Name of a cast -> what is to be seen in it."""


def files() -> dict[Path, str]:
    """Every picture: its path and its content."""
    found: dict[Path, str] = {}
    for name, session in CASTS.items():
        tape = session()
        found[IMAGES / f"cast-{name}.svg"] = animated(draw(tape), TITLES[name])
        last = draw(tape, is_still=True)
        found[IMAGES / f"cast-{name}-still.svg"] = still(last, TITLES[name])
    return found
