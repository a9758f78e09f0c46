"""What a test counts while it runs, for the page of measured promises.

    figure("cuts", runs)

Where nobody collects (the usual run), this does nothing. `python -m tests.proof` names a file in `STREAMLIB_FIGURES`, and every
call adds a line to it; how the lines of one name become one number is said where the figure is demanded (tests/proof/promises.py).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

VARIABLE: Final = "STREAMLIB_FIGURES"


def figure(name: str, value: float = 1) -> None:
    """One count or measurement of the test that is running."""
    place = os.environ.get(VARIABLE)
    if place:
        with Path(place).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([name, value]) + "\n")


def figures(place: Path) -> dict[str, list[float]]:
    """All that was counted, by name."""
    found: dict[str, list[float]] = {}
    for line in place.read_text(encoding="utf-8").splitlines() if place.exists() else ():
        name, value = json.loads(line)
        found.setdefault(name, []).append(value)
    return found
