"""Packages of npm, for what runs in Node: installed into a folder, or said to be absent."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SECONDS: Final = 300.0


def absence_in(home: Path, packages: Sequence[str]) -> str | None:
    """Why packages of npm cannot be run from a folder; None where they can."""
    if shutil.which("node") is None:
        return "there is no node"
    lost = [
        name for name in packages if not (home / "node_modules" / name / "package.json").exists()
    ]
    return f"no {', '.join(lost)}" if lost else None


def install_packages(name: str, source: Path, home: Path) -> list[str]:
    """Installs what the `package.json` of a folder names; what could not be had, one line each."""
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / "package.json", home / "package.json")
    npm = (
        "npm",
        "install",
        "--silent",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--prefix",
        str(home),
    )
    return tried(name, npm)


def tried(name: str, command: tuple[str, ...]) -> list[str]:
    """Runs a command that installs something; what could not be had, one line."""
    try:
        subprocess.run(
            command,
            check=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return [f"{name}: {type(error).__name__}: {error}"]
    return []
