"""Every public name is on a page of the documentation, and docs/names.md lists names that exist."""

from __future__ import annotations

import re

import streamlib
from tests.docs.test_readme import PAGES
from tests.support.shared import ROOT

PAGE = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")


def test_every_public_name_is_on_a_page() -> None:
    """D6: 30 of 84 names were on none. A new name belongs on its own page, or in docs/names.md."""
    words: set[str] = set()
    for page in PAGES:
        words |= set(re.findall(r"\w+", page.read_text(encoding="utf-8")))
    assert [name for name in streamlib.__all__ if name not in words] == []


def test_page_of_names_lists_public_names_once() -> None:
    listed: list[str] = []
    for line in PAGE.splitlines():
        if line.startswith("| `"):
            listed += re.findall(r"`(\w+)`", line.split("|")[1])
    assert len(listed) > 100
    assert [name for name in listed if name not in streamlib.__all__] == []
    assert len(listed) == len(set(listed))
