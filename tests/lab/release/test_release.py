"""A release that is not ready is refused."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hatch_readme import ATTRIBUTE, LINK, for_index
from lab.release import files, problems
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


README = "# x\n![A chat](docs/a.svg) [Pages](docs/x.md#y), [here](#z), [out](https://a.example/)\n"
PICTURE = '<picture>\n<img src="docs/b.svg" alt="">\n</picture>\n'
CODE = "```text\n[a](b)\n```\n"


def test_readme_of_an_index_links_to_the_tag() -> None:
    shown = for_index(README + PICTURE + CODE, "https://example.org/x", "1.2.3")
    assert '<img src="https://example.org/x/raw/v1.2.3/docs/b.svg" alt="">' in shown
    assert "![A chat](https://example.org/x/raw/v1.2.3/docs/a.svg)" in shown
    assert "[Pages](https://example.org/x/blob/v1.2.3/docs/x.md#y), [here](#z)" in shown
    assert "[out](https://a.example/)" in shown
    assert shown.endswith(CODE)


def test_readme_of_an_index_has_no_broken_links_without_address() -> None:
    shown = for_index(README + PICTURE + CODE, None, "1.2.3")
    assert shown == f"# x\n Pages, [here](#z), [out](https://a.example/)\n{CODE}"


def test_readme_links_to_files_that_exist() -> None:
    text = Path(ROOT, "README.md").read_text(encoding="utf-8")
    targets = [link["target"] for pattern in (LINK, ATTRIBUTE) for link in pattern.finditer(text)]
    linked = [target.partition("#")[0] for target in targets]
    assert len(linked) > 10
    assert [path for path in linked if path and not Path(ROOT, path).exists()] == []


def test_image_has_every_file_that_the_build_reads() -> None:
    """The hook of the build was left out: the image could not be built."""
    settings = tomllib.loads(Path(ROOT, "pyproject.toml").read_text(encoding="utf-8"))
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    hooks = settings["tool"]["hatch"]["metadata"]["hooks"]
    needed = {"README.md", *settings["project"]["license-files"], hooks["custom"]["path"]}
    needed |= {
        wheel["hooks"]["custom"]["path"],
        *(name.split("/")[0] for name in wheel["packages"]),
    }
    copied = re.findall(
        r"^COPY (?!--)(.+) \S+$", Path(ROOT, "deploy", "Dockerfile").read_text(), re.MULTILINE
    )
    assert needed <= set(" ".join(copied).split())
    ignored = Path(ROOT, ".dockerignore").read_text(encoding="utf-8").split()
    assert {f"!{name}" for name in needed} <= set(ignored)
