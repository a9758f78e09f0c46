"""Figures that a test counts while it runs, for docs/PROOF.md.

    figure("partitions", runs)

Does nothing in a usual run. `python -m lab.proof` names a file in `STREAMLIB_FIGURES`, and every
call appends a line to it; lab/proof/promises.py says how the lines of one name become one number.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

VARIABLE: Final = "STREAMLIB_FIGURES"


def figure(name: str, value: float = 1) -> None:
    """Records one count or measurement of the running test."""
    path = os.environ.get(VARIABLE)
    if path:
        with Path(path).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([name, value]) + "\n")


def figures(path: Path) -> dict[str, list[float]]:
    """All recorded values by name; empty if the file is absent."""
    values: dict[str, list[float]] = {}
    if not path.exists():
        return values
    for line in path.read_text(encoding="utf-8").splitlines():
        name, value = json.loads(line)
        values.setdefault(name, []).append(value)
    return values
