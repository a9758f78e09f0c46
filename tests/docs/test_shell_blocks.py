"""Runs the shell blocks of README and of every page, and compares their output with the page.

The blocks of a page are one session, in a folder of its own; a block after `<!-- file: NAME -->`
is written to that file. What is not run says why, and its commands, modules and files exist.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from streamlib.cli import parse
from tests.docs.shell import (
    PAGES,
    SHELLS,
    Block,
    Shell,
    assert_matches,
    blocks_of,
    commands,
    shell_blocks,
)
from tests.support.cases import each_case
from tests.support.shared import ROOT

CAPTURE: Final = ROOT / "tests" / "recordings" / "messages" / "llama-tool.sse"
RUN: Final = [
    page for page in PAGES if any(b.kind in SHELLS and not b.mark for b in blocks_of(page))
]
REASON: Final = re.compile(
    r"it (installs|downloads|compiles|serves|needs|takes|starts|writes|continues|is what)\b.*"
)
"""How a reason begins."""


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_shows_the_output_of_its_commands(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("STREAMLIB_MODEL", raising=False)
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    # The figures are not compared, and 42 rounds in seven processes take seconds a command.
    monkeypatch.setattr("streamlib.cli.bench.ROUNDS", 2)
    shell = Shell(monkeypatch, capfdbinary)
    for block in blocks_of(page):
        if block.mark == "file":
            Path(block.word).write_text(block.body, encoding="utf-8")
        if block.kind not in SHELLS or block.mark:
            continue
        for command, expected in commands(block):
            output = shell.run(command)
            if expected is not None:
                assert_matches(output, expected, command)


def test_most_pages_with_sessions_are_run() -> None:
    sessions = [block for block in shell_blocks() if block.kind == "console"]
    assert len(sessions) > 15
    assert [block.name for block in sessions if block.mark] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "block", [b for b in shell_blocks() if b.mark == "run slowly"], ids=lambda block: block.name
)
def test_slow_block_runs(block: Block, tmp_path: Path) -> None:
    """In bash, with programs of this environment."""
    shutil.copy(CAPTURE, tmp_path / "capture.sse")
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "parsers")])
    ran = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", block.body],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]


@each_case(
    "block", [b for b in shell_blocks() if b.mark == "not run"], ids=lambda block: block.name
)
def test_block_that_is_not_run_names_what_exists(block: Block) -> None:
    assert REASON.fullmatch(block.word), "<!-- not run: it … -->"
    for path in re.findall(r"(?:tests|\.ci)/[\w/.]+", block.word):
        assert (ROOT / path).exists(), path
    for command, _ in commands(block):
        for part in re.split(r" && | \| ", command):
            _check_words(shlex.split(part.partition(" > ")[0], comments=True))


def _check_words(words: list[str]) -> None:
    """The command, module, file or session of nox that is named exists."""
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    if not words:
        return
    program, *arguments = words
    if program.endswith("streamlib"):
        assert parse(arguments).run
    elif program.endswith(("python", "python3")) and arguments[0] == "-m":
        assert importlib.util.find_spec(arguments[1]), arguments[1]
    elif program.endswith(("python", "python3")) and not arguments[0].startswith("-"):
        assert (ROOT / arguments[0]).exists(), arguments[0]
    elif program.endswith("nox") and arguments:
        noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
        assert f"def {arguments[1]}(" in noxfile
    elif program == "bash":
        assert (ROOT / arguments[0]).exists(), arguments[0]
