"""How the code reads: one thought a statement, no private words, sizes, comments with reasons.

A name between backticks in a docstring exists: in the code, in a wire's fields or in Python.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from pathlib import Path

from lab.house.names import names_of, nodes_of
from lab.house.style import RETIRED_NAMES, measure, measure_all, read, sources
from tests.support.shared import ROOT

SOURCES = sources()
CONDITIONALS = 10.0
"""Conditional expressions for each 1,000 lines; codebases we admire have 1 to 10."""
COMPREHENSIONS = 13.0
"""Comprehensions for each 1,000 lines; codebases we admire have 1 to 13."""
COMMENT_SHARE = 4.5
"""Percentage of lines with a comment; httpx has 5, h11 27."""

TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
TEST_NAME_LENGTH = 60
RETIRED_WORDS = (RETIRED_NAMES | {"demoted", "dressed", "heard", "mints", "says", "law"}) - {
    # Words of the language that are retired as names alone.
    "at",
    "one",
    "where",
    "given",
    "kept",
    "held",
    "found",
    "place",
    "word",
    "words",
    "thing",
    "answer",
    "whole",
    "cut",
    "asked",
}


def test_every_source_file_is_unfolded() -> None:
    """Long files and functions are among the violations."""
    assert measure_all(SOURCES).violations == []


RULE_CODE = re.compile(r"\([A-Z]\d{1,2}[a-z]?(, ?[A-Z]\d{1,2}[a-z]?)*\)")
"""The number of a rule of docs/wires, as in "(A13)"."""


def test_no_text_for_users_has_the_code_of_a_rule() -> None:
    """Reasons of a report and errors are read by people who do not have the table of rules."""
    found: list[str] = []
    for path in SOURCES:
        for line, text in read(path).strings:
            if RULE_CODE.search(text):
                found.append(f"{path.relative_to(ROOT)}:{line} {text}")
    assert found == []


def test_class_outside_the_wires_has_a_name_of_its_own() -> None:
    """Who searches for a name finds one class. In a wire's folder names follow the wire."""
    folders: dict[str, list[str]] = {}
    for path in SOURCES:
        parts = path.relative_to(ROOT).parts
        if "wires" in parts and len(parts) > parts.index("wires") + 2:
            continue
        for name in read(path).classes:
            folders.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in folders.items() if len(paths) > 1} == {}


def test_sources_have_few_folded_expressions() -> None:
    figures = measure_all(SOURCES)
    assert figures.files > 200
    assert figures.per_thousand(figures.conditionals) <= CONDITIONALS
    assert figures.per_thousand(figures.comprehensions) <= COMPREHENSIONS


def test_sources_state_their_reasons() -> None:
    assert measure_all(SOURCES).comment_share >= COMMENT_SHARE


def test_names_of_tests_are_short_and_plain() -> None:
    wrong: list[str] = []
    for path in TESTS:
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", text, re.MULTILINE):
            if len(name) > TEST_NAME_LENGTH or RETIRED_WORDS & set(name.split("_")):
                wrong.append(f"{path.relative_to(ROOT)} {name}")
    assert wrong == []


def test_the_measure_finds_each_violation(tmp_path: Path) -> None:
    path = tmp_path / "folded.py"
    path.write_text(
        "a = 1 if b else 2 if c else 3\n"
        "d = [x for x in y if x], {x for x in y}, (x for x in y)\n"
        "e = (1, 2)[f]\n"
        "g = [*([1] if h else [])]\n"
        f"said = {'1' * 100}\n" + "def long():\n" + "    pass\n" * 80,
        encoding="utf-8",
    )
    violations = " ".join(measure(path).violations)
    for expected in (
        "nested conditional",
        "3 conditional expressions or comprehensions",
        "a table indexed",
        "107 columns",
        "retired name said",
        "long has 81 lines",
    ):
        assert expected in violations
    assert len(re.findall("conditional splat", violations)) == 2


# --- names in docstrings ---

QUOTED = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")
OTHERS = ("tests", "lab", "benchmarks", "examples")


def unknown_names(names: Iterable[str]) -> set[str]:
    """Those that are no identifier of the code and no word of its strings (wire fields)."""
    unknown = set(names) - set(dir(builtins)) - set(keyword.kwlist)
    unknown -= set(re.findall(r"\w+", (ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    for path in SOURCES:
        unknown -= {path.stem, *path.relative_to(ROOT).parts} | read(path).names
    for folder in OTHERS:
        for path in (ROOT / folder).rglob("*.py"):
            unknown -= {path.stem, *path.relative_to(ROOT).parts}
            text = path.read_text(encoding="utf-8")
            # Few of these files have one of the names that are left: the others are not parsed.
            if not unknown.isdisjoint(re.findall(r"\w+", text)):
                unknown -= names_of(nodes_of(text))
    return unknown


def test_names_in_docstrings_exist() -> None:
    locations: dict[str, list[str]] = {}
    for path in SOURCES:
        for line, text in read(path).docstrings:
            for name in QUOTED.findall(text):
                locations.setdefault(name, []).append(f"{path.relative_to(ROOT)}:{line}")
    assert len(locations) > 500
    parts = {part for name in locations for part in name.split(".") if part}
    unknown = unknown_names(parts)
    missing = {
        name: lines for name, lines in locations.items() if not unknown.isdisjoint(name.split("."))
    }
    assert missing == {}


def test_a_name_that_does_not_exist_is_unknown() -> None:
    nowhere = "thisNameIsNowhere"[::-1]
    assert unknown_names(["EventAssembler", nowhere]) == {nowhere}
