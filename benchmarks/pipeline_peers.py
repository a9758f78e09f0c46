"""Libraries of pipelines to compare with, in an environment of their own.

python -m benchmarks.pipeline_peers      # from PyPI into a folder for temporary files, 60 MB

None of them is a dependency. Ours runs there too, so that all have the same Python.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.node_packages import tried

HOME: Final = Path(tempfile.gettempdir()) / "streamlib-pipeline-peers"
PYTHON: Final = HOME / "bin" / "python"
PACKAGES: Final = ("aiostream", "reactivex", "langchain-core", "anyio", "msgspec", "regex")
"""Theirs, and what streamlib itself needs."""


def missing() -> list[str]:
    """Why they cannot run here; empty if they can."""
    if PYTHON.exists():
        return []
    return [f"libraries of pipelines (no {PYTHON}: python -m benchmarks.pipeline_peers)"]


def install() -> list[str]:
    """Makes the environment if it is not there; returns a line for each failure."""
    if PYTHON.exists():
        return []
    lines = tried("libraries of pipelines", (sys.executable, "-m", "venv", str(HOME)))
    pip = (str(PYTHON), "-m", "pip", "install", "--quiet", *PACKAGES)
    return lines or tried("libraries of pipelines", pip)


if __name__ == "__main__":
    for line in (*install(), *missing()):
        sys.stdout.write(f"!! {line}\n")
