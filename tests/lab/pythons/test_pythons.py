"""The Pythons of the tests are those of the classifiers."""

from __future__ import annotations

import ast
import sys
import tomllib

from lab.pythons import PROMISED, find_python
from tests.support.shared import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_classifiers_are_the_versions_that_are_tested() -> None:
    prefix = "Programming Language :: Python :: 3."
    classified = [
        line.rpartition(" ")[2] for line in PROJECT["classifiers"] if line.startswith(prefix)
    ]
    assert tuple(classified) == PROMISED
    assert PROJECT["requires-python"] == f">={PROMISED[0]}"


def test_nox_runs_the_same_versions() -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    assigned = {
        ast.unparse(node.targets[0]): node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
    }
    assert tuple(ast.literal_eval(assigned["PYTHONS"])) == PROMISED


def test_running_python_is_found_by_its_version() -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert find_python(version) is not None


def test_missing_python_is_none() -> None:
    assert find_python("3.4") is None
