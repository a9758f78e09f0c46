"""Every public name is in a guide, and docs/names.md lists names that exist."""

from __future__ import annotations

import re
from typing import Final

import streamlib
from tests.docs.test_readme import PAGES
from tests.support.shared import ROOT

PAGE = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")

LISTS: Final = {
    "names.md",
    "architecture.md",
    "benchmarks.md",
    "PROOF.md",
    "comparison.md",
    "drift.md",
}
"""Pages that show nobody how to use a name, beside those of docs/reference."""

CODE: Final = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
"""A block of code, or code within a sentence."""


def test_every_public_name_is_on_a_page() -> None:
    """D6: 30 of 84 names were on none. A new name belongs on its own page, or in docs/names.md."""
    words: set[str] = set()
    for page in PAGES:
        words |= set(re.findall(r"\w+", page.read_text(encoding="utf-8")))
    assert [name for name in streamlib.__all__ if name not in words] == []


def test_every_public_name_is_in_a_guide() -> None:
    """D6: names were in the reference alone. A name belongs on the page that its user reads."""
    shown: set[str] = set()
    for page in ROOT.glob("docs/**/*.md"):
        if page.parent.name == "reference" or page.name in LISTS:
            continue
        for code in CODE.findall(page.read_text(encoding="utf-8")):
            shown |= set(re.findall(r"\w+", code))
    assert [name for name in streamlib.__all__ if name not in shown] == []


def test_page_of_names_lists_public_names_once() -> None:
    listed: list[str] = []
    for line in PAGE.splitlines():
        if line.startswith("| `"):
            listed += re.findall(r"`(\w+)`", line.split("|")[1])
    assert len(listed) > 100
    assert [name for name in listed if name not in streamlib.__all__] == []
    assert len(listed) == len(set(listed))
