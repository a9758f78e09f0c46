"""The files of the web example: short ones of ours, small ones of others with their licences."""

from __future__ import annotations

import json

from tests.support.shared import ROOT

EXAMPLE = ROOT / "examples" / "web"
PAGE = EXAMPLE / "page"
VENDOR = EXAMPLE / "vendor"


def test_vendored_files_have_their_licences_and_are_small() -> None:
    wanted = json.loads((VENDOR / "package.json").read_text(encoding="utf-8"))["dependencies"]
    licences = (VENDOR / "LICENCES.txt").read_text(encoding="utf-8")
    assert [name for name, version in wanted.items() if f"{name} {version}," not in licences] == []
    assert sum(path.stat().st_size for path in VENDOR.iterdir()) < 600_000


def test_files_of_the_pages_can_be_read_in_one_sitting() -> None:
    for path in [*EXAMPLE.glob("*.py"), *PAGE.iterdir()]:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 500, path.name
        if path.suffix == ".js":
            assert max(map(len, lines)) <= 150, path.name
