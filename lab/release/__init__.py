"""What must hold before a version is published: `python -m lab.release TAG` in its workflow."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from tests.support.shared import ROOT


def problems(tag: str, project: dict[str, Any], changelog: str) -> list[str]:
    """What is not ready for this tag.

    Args:
        tag: `v` and a version.
        project: the table `[project]` of pyproject.toml.
        changelog: the text of CHANGELOG.md.
    """
    version = str(project["version"])
    found: list[str] = []
    if tag != f"v{version}":
        found.append(f"the tag {tag} is not v{version}, the version of pyproject.toml")
    heading = re.search(rf"^## \[{re.escape(version)}\] - (.+)$", changelog, re.MULTILINE)
    if heading is None or re.fullmatch(r"\d{4}-\d\d-\d\d", heading[1]) is None:
        found.append(f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD'")
    if "Repository" not in project.get("urls", {}):
        found.append("pyproject.toml has no [project.urls] with Repository")
    return found


def files() -> tuple[dict[str, Any], str]:
    """The table `[project]` and the changelog of this checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
