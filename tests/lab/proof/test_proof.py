"""The proof and the comparison themselves.

Figures add up, bounds can fail, verdicts are fair, the committed pages are generated.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.peers.cases import CASES, THEMES
from lab.peers.told import Told, Want, verdict
from lab.proof import __main__ as command
from lab.proof.page import bound, is_kept, number, page, row
from lab.proof.promises import (
    PROMISES,
    Promise,
    Requirement,
    at_most,
    pytest_arguments,
)
from lab.proof.results import CODE, OLDEST, Result, doubt, known_results, quoted, summarize
from tests.support.cases import each_case
from tests.support.metrics import VARIABLE, figure, figures
from tests.support.shared import ROOT

# --- figures ---


def test_figures_are_recorded_only_when_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "figures"
    figure("runs", 3)
    monkeypatch.setenv(VARIABLE, str(path))
    figure("runs", 3)
    figure("runs")
    figure("ratio", 2.25)
    assert figures(path) == {"runs": [3, 1], "ratio": [2.25]}
    assert figures(tmp_path / "none") == {}


@each_case(
    "requirement, value, met",
    [
        (Requirement("runs", 7), 7, True),
        (Requirement("runs", 8), 7, False),
        (at_most("runs", 4), 4, True),
        (at_most("runs", 3), 4, False),
        (Requirement("runs", 3, "min"), 3, True),
        (Requirement("case/", 2, "names"), 2, True),
        (Requirement("case/", 3, "names"), 2, False),
        (Requirement("absent", 0), None, False),
        (at_most("absent", 9), None, False),
        (Requirement("other/", 0, "names"), None, False),
    ],
)
def test_a_bound_is_met_only_by_a_figure_that_was_summarize(
    requirement: Requirement, value: float | None, met: bool
) -> None:
    figures_of_run = summarize({"runs": [3.0, 4.0], "case/a": [1.0, 1.0], "case/b": [1.0]})
    outcome = (requirement.value(figures_of_run), requirement.is_met(figures_of_run))
    assert outcome == (value, met)


def test_a_promise_fails_with_a_failed_test_or_a_missed_bound() -> None:
    promise = Promise(1, "It holds", (Requirement("runs", 5),), ("tests",))
    enough, few = summarize({"runs": [5]}), summarize({"runs": [4]})
    assert is_kept(promise, Result(enough, commit="HEAD"))
    assert not is_kept(promise, Result(few, commit="HEAD"))
    assert not is_kept(promise, Result({}, commit="HEAD"))
    assert not is_kept(promise, Result(enough, failed=("test_x",), commit="HEAD"))
    assert (
        row(promise, Result(few, 2.4, run="today", commit="HEAD"))
        == "| 1 | It holds | ≥ 5 runs | 4 runs | **no** | 2 | today, HEAD |"
    )


def commits_ago(count: int) -> str:
    """The newest commit that as many commits of the code are younger than."""
    history = ["git", "rev-list", "HEAD", "--", *CODE]
    process = subprocess.run(history, cwd=ROOT, capture_output=True, text=True, check=False)
    commits = process.stdout.split()
    if len(commits) <= count:
        pytest.skip("this checkout has no history: nothing is known of when a row was measured")
    return commits[count]


@pytest.mark.parametrize(
    ("commit", "reason"),
    [
        ("", "unknown"),
        ("1234abc-dirty", "not committed"),
        (OLDEST + 60, "out of date"),
        (OLDEST // 2, ""),
    ],
)
def test_a_measurement_counts_only_on_recent_committed_code(commit: str | int, reason: str) -> None:
    if isinstance(commit, int):
        commit = commits_ago(commit)
    result = Result(summarize({"runs": [5]}), run="today", commit=commit)
    assert reason in doubt(result.commit)
    assert bool(reason) == bool(doubt(result.commit))
    promise = Promise(1, "It holds", (Requirement("runs", 5),), ("tests",))
    assert is_kept(promise, result) == (not reason)
    assert doubt(result.commit) in row(promise, result)


def test_only_some_promises_leave_the_page_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    monkeypatch.setattr(command, "write", lambda: written.append(1))
    monkeypatch.setattr(command, "is_kept", lambda promise, result: True)
    monkeypatch.setattr(sys, "argv", ["proof", "--only", "18"])
    monkeypatch.setattr(command, "run", lambda chosen, jobs: {18: Result({}, commit="HEAD")})
    assert command.main() == 0
    assert written == []
    everything = {promise.number: Result({}, commit="HEAD") for promise in PROMISES}
    monkeypatch.setattr(command, "run", lambda chosen, jobs: everything)
    monkeypatch.setattr(sys, "argv", ["proof"])
    assert command.main() == 0
    assert written == [1]


def test_page_names_the_promises_that_are_not_kept() -> None:
    text = page({})
    assert f"0 of {len(PROMISES)} are kept; **not kept: 1, 2, 3, " in text
    assert "All" not in text.partition("| # |")[0]


def test_numbers_can_be_read() -> None:
    assert [number(value) for value in (None, 0, 1_000_000, 2.2471, 0.0012, 12_345.6)] == [
        "not measured:",
        "0",
        "1,000,000",
        "2.25",
        "0.0012",
        "12,346",
    ]
    assert bound(at_most("import s", 0.25)) == "≤ 0.25 CPU seconds for the import"
    assert bound(at_most("crashes", 0)) == "no crashes"


# --- promises ---


def test_every_promise_has_bounds_and_tests_or_a_command() -> None:
    assert [promise.number for promise in PROMISES] == list(range(1, 24))
    for promise in PROMISES:
        assert promise.requirements
        assert bool(promise.tests) != bool(promise.quoted)
        for selection in promise.tests:
            assert (ROOT / pytest_arguments(selection)[0]).exists(), selection


def test_every_selection_of_a_promise_selects_a_test() -> None:
    """A `-k` expression that matches nothing would prove its promise with no test."""
    selections = [selection for promise in PROMISES for selection in promise.tests]
    arguments = [pytest_arguments(selection) for selection in selections]
    files = sorted({path for path, *expression in arguments if expression})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    process = subprocess.run(
        [*command, "-m", "not real", *files], cwd=ROOT, capture_output=True, text=True, check=True
    )
    collected = [line for line in process.stdout.splitlines() if "::" in line]
    empty: list[str] = []
    for path, *expression in arguments:
        if not expression:
            continue
        names = [line for line in collected if line.startswith(f"{path}::")]
        if not any(matches(expression[1], name) for name in names):
            empty.append(f"{path} -k {expression[1]}")
    assert empty == []


def matches(expression: str, name: str) -> bool:
    """Whether `-k` selects a test: words joined by `and`, these groups joined by `or`."""
    for group in expression.split(" or "):
        if all(word in name for word in group.split(" and ")):
            return True
    return False


def test_the_page_is_generated_from_the_measurements() -> None:
    """After a change of the promises, run `python -m lab.proof --page`.

    A row that has become out of date fails here too, until it is measured again or the page says
    that it does not count.
    """
    commits_ago(OLDEST)
    results = known_results((promise.number, promise.quoted) for promise in PROMISES)
    assert (ROOT / "docs" / "PROOF.md").read_text(encoding="utf-8") == page(results)


# --- peers ---


@each_case(
    "told, want, word",
    [
        (Told(text="Hi"), Want(text="Hi"), "ok"),
        (Told(text="H"), Want(text="Hi"), "silent loss"),
        (Told(text="Hi"), Want(error=""), "silent loss"),
        (Told(ended="error", error="Truncated: cut"), Want(error=""), "ok"),
        (Told(ended="error", error="Odd: busy", own=False), Want(error=""), "crash"),
        (Told(ended="error", error="Error: oops"), Want(error="overloaded"), "wrong error"),
        (Told(ended="error", error="Error: OVERLOADED"), Want(error="overloaded"), "ok"),
        (Told(ended="error", error="Error: oops"), Want(text="Hi"), "wrong error"),
        (Told(ended="error", error="Error: cut"), Want(calls=(), may_fail=True), "ok"),
        (Told(ended="hang"), Want(error=""), "hang"),
        (Told(text="Hi", requests=2), Want(text="Hi", requests=1), "resent"),
        (Told(calls=[("f", '{"a": 1}')]), Want(calls=(("f", {"a": 1}),)), "ok"),
        (Told(calls=[("f", '{"a": 1')]), Want(calls=(("f", {"a": 1}),)), "silent loss"),
        (Told(calls=[("f", '{"a": 1')], stop="max_tokens"), Want(cut=True), "ok"),
        (Told(calls=[("f", {})], stop="max_tokens"), Want(cut=True), "silent loss"),
        (Told(open=1), Want(closed=True), "silent loss"),
    ],
)
def test_a_verdict_is_what_a_user_would_conclude(told: Told, want: Want, word: str) -> None:
    assert verdict(told, want).word == word


def test_cases_have_unique_ids_and_an_expectation() -> None:
    assert len(CASES) == len({case.id for case in CASES}) > 100
    assert [case.id for case in CASES if case.want == Want()] == []
    assert {case.wire for case in CASES} == {
        "messages",
        "responses",
        "chat",
        "gemini",
        "converse",
        "ollama",
    }


def test_the_comparison_is_the_generated_one() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    assert "Generated by `python -m lab.peers run`; do not edit" in page
    assert [title for title, _ in THEMES if f"\n## {title}\n" not in page] == []
    conditions: list[Any] = [case.condition for case in CASES if f"| {case.condition}" not in page]
    assert conditions == []


def test_every_file_with_a_surviving_mutant_exists() -> None:
    """Files were renamed, and the page named those of before."""
    named: set[str] = set()
    for note in quoted("mutation").notes:
        named.update(re.findall(r"[\w/]+\.py", note))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
