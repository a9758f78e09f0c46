"""docs/inspector.md describes every key of the inspection document, and no other."""

from __future__ import annotations

import re
from typing import Any, get_args

import streamlib.inspection
from streamlib.inspection import Difference, DifferenceRow, Inspection
from streamlib.inspection.document import FindingCode
from streamlib.inspection.forms import FORMS
from tests.support.shared import ROOT

PAGE = (
    (ROOT / "docs" / "inspector.md")
    .read_text(encoding="utf-8")
    .partition("\n## The inspection document\n")[2]
)
NAMES = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", PAGE))))


def fields_of(*classes: Any) -> set[str]:
    return {field for each in classes for field in each.__struct_fields__}


def test_page_names_every_key_of_the_document() -> None:
    structs = [
        value
        for value in (getattr(streamlib.inspection, name) for name in streamlib.inspection.__all__)
        if hasattr(value, "__struct_fields__")
    ]
    assert {Inspection, Difference, DifferenceRow} <= set(structs)
    assert fields_of(*structs) - NAMES == set()


def test_page_lists_the_keys_of_the_top_level_in_order() -> None:
    table = PAGE[PAGE.index("## Top level") : PAGE.index("## `source`")]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(Inspection.__struct_fields__)


def test_page_lists_the_codes_of_findings() -> None:
    table = PAGE[PAGE.index("| code |") : PAGE.index("## `facts`")]
    first_cells = re.findall(r"^\| (.*?) \|", table, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(first_cells))) == set(get_args(FindingCode))


def test_page_of_the_inspector_lists_every_form() -> None:
    page = (ROOT / "docs" / "inspector.md").read_text(encoding="utf-8")
    table = page[page.index("| form |") : page.index("What a form lacks")]
    cells = re.findall(r"^\| ([\w -]+(?:, [\w -]+)*) \|", table, re.MULTILINE)
    listed = {name for cell in cells for name in cell.split(", ")}
    assert {form.name for form in FORMS} - listed == {"recording", "response"}
