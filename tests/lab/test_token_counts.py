"""The published errors of counts are those that the program measures, and anchors are better."""

from __future__ import annotations

import re

from lab.token_counts import Ratios, close_ones, measured
from tests.support.shared import ROOT

ROW = re.compile(r"^\| (\w+) \|(.+\|)$", re.MULTILINE)


def shares(ratios: Ratios, wire: str) -> list[str]:
    """How many of each are within a third, as the page has them."""
    cells: list[str] = []
    for values in (ratios.estimated[wire], ratios.anchored[wire]):
        cells.append(f"{close_ones(values)} of {len(values)}")
    return cells


def test_published_errors_of_counts_are_measured() -> None:
    ratios = measured()
    page = (ROOT / "docs" / "history.md").read_text(encoding="utf-8")
    table = page[page.index("as `estimated / reported`") :].partition("The far ends")[0]
    rows = dict(ROW.findall(table))
    for wire in ratios.anchored:
        for share in shares(ratios, wire):
            assert share in rows[wire]
        anchored, plain = ratios.anchored[wire], ratios.plain[wire]
        assert close_ones(anchored) >= close_ones(plain)
        # Two of three, on each wire.
        assert close_ones(anchored) * 3 >= len(anchored) * 2
