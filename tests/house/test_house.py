"""Rules that no tool checks: one list of development tools, the version in the changelog."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import streamlib
from tests.support.shared import ROOT

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def group(name: str) -> set[str]:
    """A dependency group with the groups it includes."""
    entries = PYPROJECT["dependency-groups"][name]
    return {
        package
        for entry in entries
        for package in (group(entry["include-group"]) if isinstance(entry, dict) else {entry})
    }


def test_the_dev_extra_and_the_dev_group_are_one_list() -> None:
    assert set(PYPROJECT["project"]["optional-dependencies"]["dev"]) == group("dev")


def test_the_changelog_names_the_version_being_built() -> None:
    version = PYPROJECT["project"]["version"]
    headings = re.findall(
        r"^## \[([^\]]+)\](.*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert headings[0][0] in {"Unreleased", version}
    assert version in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_package_reports_the_version_it_was_built_as() -> None:
    assert streamlib.__version__ == PYPROJECT["project"]["version"]
