"""What the proof measured, promise by promise, as JSON beside this file.

The page is made from it, so that a part can be measured again. Mutation testing and coverage-guided
fuzzing take longer than the proof may; their commands write `lab/proof/quoted/NAME.json`:

    {"command": "python -m …", "date": "2026-11-22", "commit": "1234abcd",
     "figures": {"mutants": 1234, "killed, %": 96.2}, "notes": ["survived: …"]}
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.support.shared import ROOT

QUOTED: Final = Path(__file__).with_name("quoted")
MEASURED: Final = Path(__file__).with_name("measured.json")

OLDEST: Final = 200
"""In how many commits the code may have changed since a measurement that still counts."""

CODE: Final = ("streamlib", "parsers", "streamlib_pytest")
"""Folders of the code that is measured."""

DIRTY: Final = "-dirty"
"""What follows the name of a commit if files differed from it."""


@dataclass(frozen=True)
class Summary:
    """All counts of one figure."""

    sum: float
    max: float
    min: float


def summarize(figures: Mapping[str, list[float]]) -> dict[str, Summary]:
    """Name of a figure -> its counts summarized."""
    return {
        name: Summary(sum(values), max(values), min(values)) for name, values in figures.items()
    }


@dataclass(frozen=True)
class Result:
    """The outcome of one promise."""

    figures: dict[str, Summary]
    seconds: float = 0.0
    outcome: str = "not run yet"
    """The last line of each run of pytest."""
    failed: tuple[str, ...] = ()
    """Failed tests, and selections that did not run."""
    run: str = ""
    """When and on what machine."""
    commit: str = ""
    """Short name of the commit, maybe with `-dirty`; empty if it is unknown."""
    command: str = ""
    """The command that is quoted."""
    notes: tuple[str, ...] = ()


def doubt(commit: str) -> str:
    """Why a measurement of a commit says nothing about the present code; empty if it does."""
    if not commit:
        return "at an unknown commit"
    if commit.endswith(DIRTY):
        return "of files that were not committed"
    since = commits_since(commit)
    if since is not None and since > OLDEST:
        return f"out of date: the code changed in more than {OLDEST} commits since"
    return ""


@cache
def commits_since(commit: str) -> int | None:
    """In how many commits the code has changed since one; None where git does not know that one."""
    command = ["git", "rev-list", "--count", f"{commit}..HEAD", "--", *CODE]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if process.returncode:
        return None
    return int(process.stdout)


@cache
def present_commit() -> str:
    """The commit that is measured, with `-dirty` if files differ from it; empty without git."""
    command = ["git", "describe", "--always", f"--dirty={DIRTY}", "--exclude=*"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return process.stdout.strip()


def quoted(name: str) -> Result:
    """The last run of another command; empty if there was none."""
    path = QUOTED / f"{name}.json"
    if not path.exists():
        return Result({})
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    figures = {key: [float(value)] for key, value in document["figures"].items()}
    return Result(
        summarize(figures),
        outcome="quoted",
        command=document["command"],
        run=document["date"],
        commit=document.get("commit", ""),
        notes=tuple(document.get("notes", ())),
    )


def known_results(promises: Iterable[tuple[int, str | None]]) -> dict[int, Result]:
    """What was measured last, by this command and by the quoted ones.

    promises: (number, name of the quoted command or None).
    """
    return load() | {number: quoted(name) for number, name in promises if name}


def load() -> dict[int, Result]:
    """What this command measured last."""
    if not MEASURED.exists():
        return {}
    document: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return {int(number): _result(fields) for number, fields in document.items()}


def _result(fields: dict[str, Any]) -> Result:
    figures = {name: Summary(**figure) for name, figure in fields.pop("figures").items()}
    for name in ("failed", "notes"):
        fields[name] = tuple(fields[name])
    return Result(figures, **fields)


def save(results: Mapping[int, Result]) -> None:
    """Writes all results, in the order of their numbers."""
    document = {str(number): asdict(results[number]) for number in sorted(results)}
    MEASURED.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
