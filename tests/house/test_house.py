"""Rules that no tool checks: one list of development tools, the version in the changelog."""

from __future__ import annotations

import ast
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


def test_thorough_session_has_each_test_that_tries_more() -> None:
    """Else nothing would ever try what the default run leaves out."""
    listed: dict[str, set[str]] = {}
    for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "THOROUGH_TESTS":
            for entry in ast.literal_eval(node.value):
                path, _, name = entry.partition("::")
                listed.setdefault(path, set()).add(name)
    shorter = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if re.search(r"^from tests\.support\.thorough import", text, re.MULTILINE):
            shorter.add(path.relative_to(ROOT).as_posix())
    assert shorter
    assert shorter - listed.keys() == set()
    for name, tests in listed.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        assert all(f"def {test}(" in text for test in tests - {""}), name
