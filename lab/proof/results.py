"""What the proof measured, promise by promise, as JSON beside this file.

The page is made from it, so that a part can be measured again. Mutation testing and coverage-guided
fuzzing take longer than the proof may; their commands write `lab/proof/quoted/NAME.json`:

    {"command": "python -m …", "date": "2026-11-22",
     "figures": {"mutants": 1234, "killed, %": 96.2}, "notes": ["survived: …"]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

QUOTED: Final = Path(__file__).with_name("quoted")
MEASURED: Final = Path(__file__).with_name("measured.json")


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
    """When, on what machine, at which commit."""
    command: str = ""
    """The command that is quoted."""
    notes: tuple[str, ...] = ()


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
