"""The compiled build of this checkout, for benchmarks: made by `nox -s compiled` or anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
HOME: Final = ROOT / "build" / "compiled"
SOURCES: Final = (ROOT / "streamlib", ROOT / "parsers" / "streamlib_parsers")


def is_fresh() -> bool:
    """Whether there is a build that is newer than every source file."""
    if not HOME.exists():
        return False
    built = HOME.stat().st_mtime
    for folder in SOURCES:
        for source in folder.rglob("*.py"):
            if source.stat().st_mtime > built:
                return False
    return True


def environment() -> Mapping[str, str]:
    """Environment variables that import the compiled build and this checkout's benchmarks.

    Raises:
        RuntimeError: It could not be built, or is not compiled.
    """
    if not is_fresh():
        _build()
    # Without the current folder, because its `streamlib` is not compiled.
    paths = os.pathsep.join([str(HOME), str(ROOT)])
    variables = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
    asked = subprocess.run(
        [sys.executable, "-c", "import streamlib; print(getattr(streamlib, 'compiled', False))"],
        env=variables,
        cwd=HOME,
        check=True,
        capture_output=True,
        text=True,
    )
    if asked.stdout.strip() != "True":
        raise RuntimeError("the build is not compiled")
    return variables


def _build() -> None:
    shutil.rmtree(HOME, ignore_errors=True)
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(HOME)]
    built = subprocess.run(
        [*install, str(ROOT)],
        env={**os.environ, "STREAMLIB_COMPILE": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    if built.returncode != 0:
        raise RuntimeError(f"the compiled build failed: {built.stderr[-1000:]}")
