"""Follows docs/guides/add-a-wire.md exactly, in a copy of both packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.shared import ROOT

PAGE = (ROOT / "docs" / "guides" / "add-a-wire.md").read_text(encoding="utf-8")
RUN = "not run: here, but in a copy of the packages"
BLOCK = r"\n```\w+\n(.*?)```"


def block(mark: str) -> str:
    """The code block below a mark."""
    match = re.search(rf"<!-- {re.escape(mark)} -->{BLOCK}", PAGE, re.DOTALL)
    assert match, mark
    return match[1]


def add_after(path: Path, pattern: str, text: str) -> None:
    """Insert a text after the only match of a pattern."""
    source = path.read_text(encoding="utf-8")
    matches = list(re.finditer(pattern, source, re.DOTALL))
    assert len(matches) == 1, path
    end = matches[0].end()
    path.write_text(source[:end] + text + source[end:], encoding="utf-8")


def copy_with_the_guides_wire(root: Path) -> None:
    """Copy both packages into a folder and add everything that the guide adds."""
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "streamlib", root / "streamlib", ignore=skip)
    shutil.copytree(ROOT / "parsers", root / "parsers", ignore=skip)
    for path in re.findall(r"<!-- not run: file (\S+) -->", PAGE):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(block(f"not run: file {path}"), encoding="utf-8")
    items = root / "parsers" / "streamlib_parsers" / "item_base.py"
    add_after(items, r"WireApi: TypeAlias = Literal\[", '"tiny", ')
    specs = "streamlib/providers/wire_specs.py"
    entry = block(f"not run: entry of WIRE_SPECS in {specs}")
    add_after(root / specs, r"WIRE_SPECS: Final\[dict\[WireApi, WireSpec\]\] = \{\n", entry)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of both packages with the guide's wire."""
    root = tmp_path_factory.mktemp("guide")
    copy_with_the_guides_wire(root)
    return root


@pytest.fixture
def python(packages: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python with the copied packages."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        paths = f"{packages}{os.pathsep}{packages / 'parsers'}"
        environment = {**os.environ, "PYTHONPATH": paths, "MYPYPATH": paths, "PYTHONSAFEPATH": "1"}
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, env=environment, cwd=packages, capture_output=True, text=True, check=False
        )

    return run


def test_wire_of_the_guide_works(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    result = python("-c", block(RUN))
    output = re.search(rf"<!-- {RUN} -->{BLOCK}\n+```text\n(.*?)```", PAGE, re.DOTALL)
    assert output
    assert result.stderr == ""
    assert result.stdout == output[2]


def test_benchmarks_measure_the_wire(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    program = """
from streamlib.testing.bench.workloads import WORKLOADS
from streamlib_parsers import accumulate
workload = WORKLOADS["tiny"]
parser = workload.parser()
events = [event for chunk in workload.events() for event in parser.feed(chunk)]
response = accumulate(events + parser.close())
print(response.status, len(response.text))
"""
    result = python("-c", program)
    assert result.stderr == ""
    status, characters = result.stdout.split()
    assert (status, int(characters) > 0) == ("completed", True)


def test_guide_names_every_file_it_adds() -> None:
    table = PAGE.split("## 1.")[0]
    for path in re.findall(r"<!-- not run: file (\S+) -->", PAGE):
        assert f"`{path}`" in table or path.endswith("streamlib/wires/tiny/__init__.py")
