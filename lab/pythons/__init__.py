"""The Pythons that the versions in pyproject.toml promise, as far as this machine has them."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

PROMISED: Final = ("3.11", "3.12", "3.13")
"""The classifiers of pyproject.toml."""

_VERSION: Final = "import sys; print(*sys.version_info[:2], sep='.')"


@cache
def find_python(version: str) -> str | None:
    """An interpreter of that version: the system's, pyenv's or uv's; None if there is none."""
    for candidate in _candidates(version):
        if _prints(candidate, "-c", _VERSION) == version:
            return candidate
    return None


def missing_pythons() -> list[str]:
    """Promised versions that this machine does not have."""
    return [version for version in PROMISED if find_python(version) is None]


def _candidates(version: str) -> list[str]:
    candidates: list[str] = []
    system = shutil.which(f"python{version}")
    if system is not None:
        candidates.append(system)  # it may be a shim of pyenv, for a Python that is not active
    for found in sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")):
        candidates.append(str(found))
    managed = _prints("uv", "python", "find", "--offline", "--managed-python", version)
    if managed:
        candidates.append(managed)
    return candidates


def _prints(*command: str) -> str:
    """What a command prints; nothing if it fails or does not exist."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    if process.returncode:
        return ""
    return process.stdout.strip()
