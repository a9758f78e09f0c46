"""How the code reads: one thought a statement, no private words, sizes, comments with reasons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.style import RETIRED_NAMES, measure, measure_all, sources
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


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_source_file_is_unfolded(path: Path) -> None:
    assert measure(path).violations == []


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
