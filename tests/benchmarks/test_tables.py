"""The pages' tables are those of what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.cells import cell, markdown, short, with_spread
from streamlib.testing.bench.records import figure
from tests.support.shared import ROOT


@pytest.mark.parametrize("path", page.PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_are_those_of_the_measurements(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    names = [block["name"] for block in page.BLOCK.finditer(text)]
    assert names
    assert text.count("<!-- table:") == len(names)
    assert page.fill(text, page.known()) == text


def test_every_table_is_on_a_page() -> None:
    shown: set[str] = set()
    for path in page.PAGES:
        for block in page.BLOCK.finditer(path.read_text(encoding="utf-8")):
            shown.add(block["name"])
    assert shown == set(page.TABLES)


def test_every_part_was_measured() -> None:
    known = page.known()
    assert [name for name in page.PARTS if known[name] is None] == []


def test_page_without_results_names_the_lack() -> None:
    empty = dict.fromkeys(page.known())
    text = "<!-- table: imports -->\nold\n<!-- end of table -->\n"
    assert "not measured yet" in page.fill(text, empty)


def test_cell_has_the_median_and_the_spread() -> None:
    found = figure("events", "w", "16 KiB", "peer", "ratio", "x", [0.5, 0.7, 0.61])
    assert with_spread(found) == "0.61 (0.50-0.70)"
    assert cell([found], losses=True) == "**0.61 (0.50-0.70)**"
    assert cell([]) == ""
    assert [short(value) for value in (1234.5, 12.6, 1.26, 0.126)] == ["1,234", "13", "1.3", "0.13"]


def test_markdown_leaves_out_columns_that_are_empty() -> None:
    table = markdown(["a", "b", "c"], [["1", "", "2"], ["3", "", "4"]])
    assert table.splitlines() == ["| a | c |", "| --- | --- |", "| 1 | 2 |", "| 3 | 4 |"]
