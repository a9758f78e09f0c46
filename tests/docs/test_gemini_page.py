"""docs/wires/gemini.md lists exactly the rules of the builder."""

from __future__ import annotations

import re

from tests.support.shared import ROOT

PAGE = (ROOT / "docs" / "wires" / "gemini.md").read_text("utf-8")
TABLE = set(re.findall(r"^\| (G\d+) ", PAGE, re.MULTILINE))


def test_rules_named_in_the_builder_are_on_the_page() -> None:
    builders = "".join(
        path.read_text("utf-8")
        for path in (ROOT / "streamlib" / "wires" / "gemini").glob("build*.py")
    )
    assert set(re.findall(r"\bG\d+\b", builders)) <= TABLE


def test_every_rule_on_the_page_has_a_test() -> None:
    folder = ROOT / "tests" / "streamlib" / "wires" / "gemini"
    tests = "".join(path.read_text("utf-8") for path in folder.glob("test_build*.py"))
    names = " ".join(re.findall(r"^def (test_\w+)", tests, re.MULTILINE))
    assert {rule for rule in TABLE if not re.search(rf"_{rule.lower()}_", names)} == set()
