"""A name between backticks in a docstring exists: in the code, in a wire's fields or in Python."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from functools import cache
from pathlib import Path

import pytest

from tests.house.style import sources
from tests.support.shared import ROOT

SOURCES = sources()
QUOTED = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")
OTHERS = ("tests", "benchmarks", "examples")


@cache
def known_names() -> frozenset[str]:
    """Every identifier of the code, and every word of its string constants (wire fields)."""
    names = set(dir(builtins)) | set(keyword.kwlist)
    paths = list(SOURCES)
    for folder in OTHERS:
        paths += sorted((ROOT / folder).rglob("*.py"))
    for path in paths:
        names.add(path.stem)
        names.update(path.relative_to(ROOT).parts)
        names |= names_of(ast.parse(path.read_text(encoding="utf-8")))
    names |= set(re.findall(r"\w+", (ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    return frozenset(names)


def names_of(tree: ast.Module) -> set[str]:
    """Identifiers and words of string constants; docstrings do not count."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                names.add(name)
            case ast.keyword(arg=str(name)) | ast.alias(name=name, asname=None):
                names.update(name.split("."))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name):
                names.add(name)
    for constant in _constants(tree):
        names.update(re.findall(r"\w+", constant))
    return names


def _constants(tree: ast.Module) -> list[str]:
    """String and byte constants that are values, not docstrings."""
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(id(node.value))
    constants: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str):
            constants.append(node.value)
        elif isinstance(node.value, bytes):
            constants.append(node.value.decode("latin-1"))
    return constants


def docstrings_of(tree: ast.Module) -> list[tuple[int, str]]:
    """Every string that stands alone as a statement, with its line."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                found.append((node.lineno, node.value.value))
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_in_docstrings_exist(path: Path) -> None:
    missing: list[str] = []
    for line, text in docstrings_of(ast.parse(path.read_text(encoding="utf-8"))):
        for name in QUOTED.findall(text):
            unknown = [part for part in name.split(".") if part and part not in known_names()]
            if unknown:
                missing.append(f"line {line}: {name}")
    assert missing == []


def test_a_name_that_does_not_exist_is_unknown() -> None:
    assert "EventAssembler" in known_names()
    assert "thisNameIsNowhere"[::-1] not in known_names()
