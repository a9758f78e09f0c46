"""Type-checks the examples of README and of every page: `python -m lab.example_types`.

Each example becomes a file of its own, with as many empty lines before it as its page has, so that
the checkers name the page's lines. mypy is strict except that functions may lack annotations:
examples are short. What an example without a key or a server needs is checked like the others; the
files of a guide are checked where a test puts them into a copy of the packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.docs.test_readme import BLOCK, PAGES
from tests.support.shared import ROOT

RUN_WITH_A_KEY = "needs a key"
"""Part of the mark of an example that is a complete program and is not run."""

MYPY = ("--strict", "--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls")


def write_examples(pages: Sequence[Path], folder: Path) -> dict[str, str]:
    """Writes each example into a file. Returns file name -> the page's path in the repository."""
    files: dict[str, str] = {}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        name = os.path.relpath(page, ROOT)
        stem = "".join([letter if letter.isalnum() else "_" for letter in name])
        for block in BLOCK.finditer(text):
            if block["mark"] and RUN_WITH_A_KEY not in block["mark"]:
                continue
            line = text.count("\n", 0, block.start("code"))
            file = folder / f"{stem}_{line}.py"
            file.write_text("\n" * line + block["code"], encoding="utf-8")
            files[file.name] = name
    return files


def type_errors(pages: Sequence[Path] = PAGES) -> list[str]:
    """What mypy and basedpyright report about the examples of the pages."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = write_examples(pages, folder)
        checked = [_mypy(folder, sorted(files)), _pyright(folder)]
    errors: list[str] = []
    for line in "\n".join(checked).splitlines():
        for file, page in files.items():
            if file in line and " error: " in line:
                errors.append(page + line.rpartition(file)[2])
    if not errors and "Success: no issues" not in checked[0]:
        errors.append(checked[0])
    return errors


def _mypy(folder: Path, files: list[str]) -> str:
    command = [sys.executable, "-m", "mypy", *MYPY, "--config-file="]
    command += ["--cache-dir", str(ROOT / ".mypy_cache" / "examples"), *files]
    return _output(command, folder)


def _pyright(folder: Path) -> str:
    settings = {
        "include": ["."],
        "typeCheckingMode": "standard",
        "extraPaths": [str(ROOT), str(ROOT / "parsers")],
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--project", str(folder)]
    return _output([*command, "--pythonpath", sys.executable], folder)


def _output(command: list[str], folder: Path) -> str:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "parsers")])
    environment = {**os.environ, "MYPYPATH": paths, "PYTHONPATH": paths}
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return result.stdout + result.stderr


def main() -> int:
    """Prints the errors; the exit code is 1 if there are some."""
    errors = type_errors()
    sys.stdout.write("".join([f"{error}\n" for error in errors]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
