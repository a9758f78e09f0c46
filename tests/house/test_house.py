"""Rules that no tool checks: sizes, one list of development tools, the version in the changelog."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import streamlib
from tests.support.shared import ROOT

SOURCES = sorted([*ROOT.glob("streamlib/**/*.py"), *ROOT.glob("parsers/**/*.py")])
LONGEST_FILE = 580  # the aim is under 500
LONGEST_FUNCTION = 80  # the aim is 7 to 10

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def group(name: str) -> set[str]:
    """A dependency group with the groups it includes."""
    entries = PYPROJECT["dependency-groups"][name]
    return {
        package
        for entry in entries
        for package in (group(entry["include-group"]) if isinstance(entry, dict) else {entry})
    }


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def test_there_are_sources_to_check() -> None:
    assert SOURCES


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_and_its_functions_can_be_read_in_one_sitting(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    long = {
        f.name: size
        for f in functions(path)
        if (size := (f.end_lineno or f.lineno) - f.lineno + 1) > LONGEST_FUNCTION
    }
    assert lines <= LONGEST_FILE, f"{lines} lines: split it"
    assert not long


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
