"""The files of the pictures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from benchmarks.results import load
from streamlib.testing import split_picture
from streamlib.testing.bench import chart
from tests.support.shared import ROOT

IMAGES: Final = ROOT / "docs" / "images"
FUZZING: Final = ROOT / "docs" / "fuzzing.md"
EXAMPLE: Final = re.compile(r"^```python\n(?P<code>[^`]*\bfuzz\([^`]*)^```$", re.MULTILINE)
"""The example of the page: it fuzzes `TheirParser`, and names what it found `finding`."""


def files() -> dict[Path, str]:
    """Every picture: path and content."""
    return {IMAGES / "fuzz-split.svg": split(), IMAGES / "bench-curve.svg": curve()}


def example() -> dict[str, Any]:
    """The names of the page's example after it ran."""
    block = EXAMPLE.search(FUZZING.read_text(encoding="utf-8"))
    assert block is not None
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(block["code"], FUZZING, "exec", dont_inherit=True), names)
    return names


def split() -> str:
    """The split on which the parser of the page fails."""
    names = example()
    return split_picture.draw(names["TheirParser"], names["finding"])


def curve() -> str:
    """Throughput by the size of the chunks, as it was measured last."""
    result = load("curve")
    assert result is not None
    return chart.drawing("MB/s by size of the chunks", result.figures, result)
