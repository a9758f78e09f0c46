"""A release that is not ready is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.release import files, problems
from tests.support.shared import ROOT

READY: dict[str, Any] = {"version": "1.2.3", "urls": {"Repository": "https://example.org/x"}}
CHANGELOG = "# Changelog\n\n## [1.2.3] - 2027-01-31\n"


def test_release_with_version_date_and_links_is_ready() -> None:
    assert problems("v1.2.3", READY, CHANGELOG) == []


@pytest.mark.parametrize(
    ("tag", "project", "changelog", "named"),
    [
        ("v1.2.4", READY, CHANGELOG, "the tag v1.2.4"),
        ("1.2.3", READY, CHANGELOG, "the tag 1.2.3"),
        ("v1.2.3", {"version": "1.2.3"}, CHANGELOG, "project.urls"),
        ("v1.2.3", READY, "## [1.2.3] - unreleased", "CHANGELOG.md"),
        ("v1.2.3", READY, "## [1.2.30] - 2027-01-31", "CHANGELOG.md"),
    ],
)
def test_release_that_is_not_ready_is_refused(
    tag: str, project: dict[str, Any], changelog: str, named: str
) -> None:
    (problem,) = problems(tag, project, changelog)
    assert named in problem


def test_release_of_this_checkout_has_a_changelog() -> None:
    project, changelog = files()
    assert f"## [{project['version']}]" in changelog


def test_workflows_pin_every_action_by_commit() -> None:
    found = 0
    for path in sorted(Path(ROOT, ".github", "workflows").glob("*.yml")):
        for used in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used), used
            found += 1
    assert found >= 8
